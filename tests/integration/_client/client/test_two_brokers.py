"""Two real brokers: reads from both and from followers; one of them is killed in the middle of reads and writes."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from kit import reading
from kit.brokers.two_brokers import COMMITS, TwoBrokers, two_brokers
from kit.independent_client import Record, consume, consume_committed, produce
from kit.waiting import eventually
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.leaders import find_leaders
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.fetch.lanes import FetchLane
from pyspark_kafka._client.client.fetch.response import FetchResponse
from pyspark_kafka._client.client.fetch.session.session import FetchSession
from pyspark_kafka._client.client.produce.pool import drop_producers
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import ExactlyOnceOptions, FetchOptions, ProducerOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, MarkerFinding
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.publisher import Publisher
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka._connector.sink.executor.outbox import Chunk, PreparedBatch
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.executor.partition_offset import KafkaSourcePartitionOffset
from pyspark_kafka._connector.source.input_partition import (
    KafkaContinuousInputPartition,
    KafkaContinuousPartitionReaderFactory,
)
from pyspark_kafka.connector import PartitionReader
from pyspark_kafka.records import encode

# Real brokers, though not the shared one that the fixtures' marker is derived from.
KIB = 1 << 10
SCHEMA = pa.schema([SOURCE_SCHEMA.field(name) for name in ("value", "partition", "offset")])


@pytest.fixture(scope="module")
def _cluster_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoBrokers]:
    with two_brokers(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
        close_clients()


@pytest.fixture
def cluster(_cluster_of_the_module: TwoBrokers) -> TwoBrokers:
    """Both brokers run; the test may kill the second one."""
    _cluster_of_the_module.mend()
    return _cluster_of_the_module


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def received(cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How many bytes of records each broker has answered, by what its address says it is."""
    found: Counter[int] = Counter()
    take, receive, ports = FetchSession.on_response, Fetcher._receive, list[int]()

    def receiving(self: Fetcher, lane: FetchLane, progress: Deadline, until: Deadline | None, began_at: float) -> None:
        assert lane.connection is not None
        ports.append(lane.connection.port)
        receive(self, lane, progress, until, began_at)

    def counting(self: FetchSession, broker_id: int, response: FetchResponse, now: float) -> None:
        found[cluster.number_of(ports[-1])] += sum(len(entry.records) for entry in response.partitions)
        take(self, broker_id, response, now)

    monkeypatch.setattr(Fetcher, "_receive", receiving)
    monkeypatch.setattr(FetchSession, "on_response", counting)
    return found


def fill(cluster: TwoBrokers, topic: str, counts: list[int]) -> list[OffsetRange]:
    """Write the number of records in `counts` to each partition, 1 KiB each, about ten a batch; return all ranges."""
    records = [Record(None, value_of(p, n), p) for p, count in enumerate(counts) for n in range(count)]
    produce(cluster.bootstrap_servers, topic, records, batch_size=10 * KIB, linger_ms=20)
    return [OffsetRange(TopicPartition(topic, partition), 0, count) for partition, count in enumerate(counts)]


def value_of(partition: int, number: int) -> bytes:
    return b"%d:%d " % (partition, number) + b"." * KIB


def reader_of(cluster: TwoBrokers, ranges: list[OffsetRange], *, rack: str | None = None) -> PartitionReader:
    """Make the reader of one task, which fetches little at a time."""
    return reading.reader_of(
        cluster.options(client_rack=rack), *ranges, columns=SCHEMA.names, max_bytes_per_fetch=32 * KIB
    )


def read_rest(reader: PartitionReader, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        while reader.next():
            rows += reader.get().to_pylist()
    finally:
        reader.close()
    return rows


def check_complete(rows: list[dict[str, Any]], counts: list[int]) -> None:
    """Check that every record was given once, those of a partition in order."""
    for partition, count in enumerate(counts):
        found = [(row["offset"], row["value"]) for row in rows if row["partition"] == partition]
        assert found == [(number, value_of(partition, number)) for number in range(count)]
    assert len(rows) == sum(counts)


@pytest.mark.parametrize(("rack", "read_from"), [("b", 2), ("a", 1), (None, 1)])
def test_all_records_come_from_the_replica_in_the_readers_rack(
    cluster: TwoBrokers, topic: str, received: Counter[int], rack: str | None, read_from: int
) -> None:
    cluster.create_topic(topic, [(1, 2)])
    ranges = fill(cluster, topic, [300])
    check_complete(read_rest(reader_of(cluster, ranges, rack=rack), []), [300])
    assert received[read_from] > 300 * KIB
    assert received[3 - read_from] == 0


def test_one_task_reads_partitions_of_both_leaders(cluster: TwoBrokers, topic: str, received: Counter[int]) -> None:
    counts = [200, 150, 1, 0, 90]
    cluster.create_topic(topic, [(1,), (2,), (2,), (1,), (2,)])
    ranges = [each for each in fill(cluster, topic, counts) if each.end_offset]
    check_complete(read_rest(reader_of(cluster, ranges), []), counts)
    assert received[1] > 200 * KIB
    assert received[2] > 241 * KIB


def test_reads_and_writes_continue_with_a_leader_that_has_moved(
    cluster: TwoBrokers, topic: str, received: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, learned = KafkaClient.learn_leader, list[int]()

    def noting(self: KafkaClient, where: TopicPartition, leader_id: int, *more: Any) -> bool:
        news = learn(self, where, leader_id, *more)
        if news:
            learned.append(leader_id)
        return news

    monkeypatch.setattr(KafkaClient, "learn_leader", noting)
    cluster.create_topic(topic, [(2, 1)])
    ranges, where = fill(cluster, topic, [600]), TopicPartition(topic, 0)
    reader = reader_of(cluster, ranges)
    assert reader.next()
    rows = reader.get().to_pylist()
    with KafkaClient(cluster.options()) as client, Producer(client, ProducerOptions()) as producer:
        for leader in (2, 1, 2):
            if leader != cluster.partitions(topic)[0].leader_id:
                cluster.move_leader(topic, leader)
            while received[leader] == 0:
                assert reader.next()
                rows += reader.get().to_pylist()
            for number in range(10):
                producer.send_batch(
                    where, bytearray(encode(pa.RecordBatch.from_pydict({"value": [b"%d" % number]}))), 1
                )
            producer.flush()
            if leader == 1:
                # Back where it began, and counted again.
                received[2] = 0
    check_complete(read_rest(reader, rows), [600])
    # The reader learns it from the one that leads no longer (KIP-951).
    assert learned == [1, 2]
    stored = consume(cluster.bootstrap_servers, topic, 630)[600:]
    assert [record.value for record in stored] == [b"%d" % number for _ in range(3) for number in range(10)]


def test_continuous_reader_reads_other_partitions_while_a_leader_dies_and_then_all(
    cluster: TwoBrokers, topic: str
) -> None:
    moving, kept = TopicPartition(topic, 0), TopicPartition(f"{topic}-kept", 0)
    cluster.create_topic(moving.topic, [(2, 1)])
    cluster.create_topic(kept.topic, [(1,)])
    factory = KafkaContinuousPartitionReaderFactory(cluster.options(), FetchOptions(), SCHEMA, fail_on_data_loss=True)
    reader = factory.createReader(KafkaContinuousInputPartition(((moving, 0), (kept, 0))))
    values: list[bytes] = []

    def add(topic_partition: TopicPartition, first: int, last: int) -> None:
        """Write values of the topic-partition, and read until all values that were written are there."""
        number = int(topic_partition == kept)
        added = [Record(None, value_of(number, each), 0) for each in range(first, last)]
        produce(cluster.first.bootstrap_servers, topic_partition.topic, added)
        end, wanted = time.monotonic() + 60, len(values) + len(added)
        while len(values) < wanted:
            assert time.monotonic() < end, f"{len(values)} rows came"
            if reader.next():
                values.extend(reader.get().column("value").to_pylist())

    add(moving, 0, 20)
    add(kept, 0, 20)
    cluster.second.kill()
    # The partition of the other broker; then the one that has another leader, from where it was.
    add(kept, 20, 25)
    eventually(lambda: cluster.partitions(topic)[0].leader_id == 1)
    add(moving, 20, 25)
    add(kept, 25, 26)
    assert reader.getOffset() == KafkaSourcePartitionOffset({moving: 25, kept: 26})
    reader.close()
    assert [each for each in values if each.startswith(b"0:")] == [value_of(0, number) for number in range(25)]
    assert [each for each in values if each.startswith(b"1:")] == [value_of(1, number) for number in range(26)]


def test_every_record_is_read_once_though_the_broker_that_is_read_dies(
    cluster: TwoBrokers, topic: str, received: Counter[int]
) -> None:
    counts = [300, 300]
    cluster.create_topic(topic, [(2, 1), (1, 2)])
    ranges = fill(cluster, topic, counts)
    # One loses the leader. The other loses the leader of a partition and the follower that it reads of another.
    readers = [reader_of(cluster, ranges[:1]), reader_of(cluster, ranges, rack="b")]
    rows: list[list[dict[str, Any]]] = [[], []]
    for reader, found in zip(readers, rows, strict=True):
        before = received[2]
        while received[2] < before + 100 * KIB:
            assert reader.next()
            found.extend(reader.get().to_pylist())
    assert received[2] < 300 * KIB
    cluster.second.kill()
    check_complete(read_rest(readers[0], rows[0]), counts[:1])
    check_complete(read_rest(readers[1], rows[1]), counts)
    assert received[1] > 600 * KIB


@pytest.mark.full("Frozen brokers")
def test_writes_continue_with_another_leader_while_the_former_one_stands_still(cluster: TwoBrokers, topic: str) -> None:
    cluster.create_topic(topic, [(2, 1)])
    where = TopicPartition(topic, 0)
    patient = ProducerOptions(request_timeout_ms=100_000)
    with KafkaClient(cluster.options()) as client, Producer(client, patient) as producer:
        producer.send_batch(where, bytearray(encode(pa.RecordBatch.from_pydict({"value": [b"0"]}))), 1)
        producer.flush()
        cluster.second.pause()
        try:
            started = time.monotonic()
            for number in range(1, 10):
                producer.send_batch(
                    where, bytearray(encode(pa.RecordBatch.from_pydict({"value": [b"%d" % number]}))), 1
                )
            producer.flush()
            # The former leader's answer alone would be waited for until kafka.request.timeout.ms.
            assert time.monotonic() - started < 75
        finally:
            cluster.second.resume()
    # The former leader, awake again, returns what it had until it hears of the other one.
    stored = consume(cluster.first.bootstrap_servers, topic, 10)
    assert [record.value for record in stored] == [b"%d" % number for number in range(10)]


def lose_answer(producer: Producer, broker_id: int) -> None:
    """Wait for an answer and take it away; without that it could still be read after the broker's death."""
    lane = producer._loop.lanes.by_broker.get(broker_id)
    assert lane is not None
    sock = lane.connection.open_socket()
    sock.settimeout(60)
    assert sock.recv(64 * KIB)


def test_batches_are_stored_once_and_in_order_though_their_leader_dies(cluster: TwoBrokers, topic: str) -> None:
    cluster.create_topic(topic, [(2, 1), (1, 2)], {"min.insync.replicas": "1"})
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    expected: dict[int, list[bytes | None]] = {0: [], 1: []}

    def send(where: TopicPartition, *values: bytes) -> None:
        data = encode(pa.RecordBatch.from_pydict({"value": list(values)}))
        producer.send_batch(where, bytearray(data), len(values))
        expected[where.partition] += values

    with KafkaClient(cluster.options()) as client, Producer(client, ProducerOptions()) as producer:
        for number in range(20):
            send(first, b"%d a" % number, b"%d b" % number)
            send(second, b"%d" % number)
        producer.flush()
        send(first, b"stored by both, and the answer is lost")
        with KafkaClient(cluster.options()) as watcher:
            eventually(lambda: list_offsets(watcher, {first: Latest()})[first] == 41)
        lose_answer(producer, broker_id=2)
        cluster.second.kill()
        for number in range(20, 40):
            send(first, b"%d" % number)
            send(second, b"%d" % number)
        producer.flush()
        assert producer.metrics.retries > 0
    found: dict[int, list[bytes | None]] = {0: [], 1: []}
    for record in consume(cluster.first.bootstrap_servers, topic, 101):
        found[record.partition or 0].append(record.value)
    assert found == expected


@pytest.mark.full("Frozen brokers")
def test_broker_that_falls_silent_is_left_for_the_one_that_takes_over(cluster: TwoBrokers, topic: str) -> None:
    cluster.create_topic(topic, [(2, 1)])
    fill(cluster, topic, [10])
    where = TopicPartition(topic, 0)
    with KafkaClient(cluster.options(api_timeout_ms=25_000)) as client:
        owner = TransactionalId(client, sink_on(client, 2), 60_000)
        owner.fence()
        assert list_offsets(client, {where: Latest()}) == {where: 10}
        # As a machine that is gone: its connections stay open.
        cluster.second.pause()
        try:
            assert list_offsets(client, {where: Latest()}) == {where: 10}
            assert owner._coordinator.broker_id == 2
            owner.fence()
            assert owner._coordinator.broker_id == 1
        finally:
            cluster.second.resume()


def chunk(topic: str, partition: int, *values: bytes) -> Chunk:
    data = encode(pa.RecordBatch.from_pydict({"value": list(values)}))
    return Chunk((PreparedBatch(TopicPartition(topic, partition), len(data), len(values)),), data)


def publisher_of(client: KafkaClient, sink_id: str) -> Publisher:
    return Publisher(client, WriteOptions(client.options), ExactlyOnceOptions(commit_topic=COMMITS), sink_id, None)


def sink_on(client: KafkaClient, broker: int) -> str:
    """Return the name of a sink whose coordinator, and the leader of whose markers, is this broker."""
    while True:
        name = f"sink-{uuid.uuid4().hex}"
        owner = TransactionalId(client, name, 60_000)
        owner.fence()
        marker_at = CommitTopic(client, COMMITS).partition_of(name)
        if owner._coordinator.broker_id == find_leaders(client, [marker_at])[marker_at].leader_id == broker:
            return name


def committed(cluster: TwoBrokers, topic: str) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {}
    for record in consume_committed(cluster.first.bootstrap_servers, topic):
        found.setdefault(record.partition or 0, []).append(record.value)
    return found


def die_between_sends(cluster: TwoBrokers, publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - as the others
    send, sent = Producer.send_batch, list[TopicPartition]()

    def dying(self: Producer, where: TopicPartition, *batch: Any) -> None:
        sent.append(where)
        if len(sent) == 3:
            # What it has acknowledged is part of the transaction.
            self.flush()
            cluster.second.kill()
        send(self, where, *batch)

    monkeypatch.setattr(Producer, "send_batch", dying)


def die_before_the_end(cluster: TwoBrokers, publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    end = publisher._id.end

    def dying(*arguments: Any, **named: Any) -> None:
        cluster.second.kill()
        end(*arguments, **named)

    monkeypatch.setattr(publisher._id, "end", dying)


def die_after_the_end(cluster: TwoBrokers, publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    end = publisher._id.end

    def dying(*arguments: Any, **named: Any) -> None:
        end(*arguments, **named)
        cluster.second.kill()
        raise TransactionInDoubtError("the answer is lost", condition="TRANSACTION_IN_DOUBT")

    monkeypatch.setattr(publisher._id, "end", dying)


@pytest.mark.parametrize(
    ("die", "coordinator"),
    [
        (die_between_sends, 1),
        pytest.param(die_between_sends, 2, marks=pytest.mark.long),
        pytest.param(die_before_the_end, 2, marks=pytest.mark.long),
        pytest.param(die_after_the_end, 2, marks=pytest.mark.long),
    ],
)
def test_batch_is_published_once_though_a_broker_dies(
    cluster: TwoBrokers, topic: str, monkeypatch: pytest.MonkeyPatch,
    die: Callable[[TwoBrokers, Publisher, pytest.MonkeyPatch], None], coordinator: int,
) -> None:  # fmt: skip
    cluster.create_topic(topic, [(1, 2), (2, 1)])
    chunks = [chunk(topic, 1, b"a", b"b"), chunk(topic, 0, b"c"), chunk(topic, 1, b"d"), chunk(topic, 0, b"e", b"f")]
    with KafkaClient(cluster.options()) as client:
        sink_id = sink_on(client, coordinator)
        marker = CommitMarker(sink_id, "query", 4, "print")
        publisher = publisher_of(client, sink_id)
        die(cluster, publisher, monkeypatch)
        assert publisher.publish(marker, chunks) is MarkerFinding.NOT_COMMITTED
    assert not cluster.second.running
    monkeypatch.undo()
    # As a driver that has lost the answer does; what is committed is complete then.
    with KafkaClient(cluster.options()) as client:
        assert publisher_of(client, sink_id).publish(marker, [chunk(topic, 0, b"x")]) is MarkerFinding.COMMITTED
    assert committed(cluster, topic) == {0: [b"c", b"e", b"f"], 1: [b"a", b"b", b"d"]}


def test_rows_without_a_key_go_to_the_partitions_of_the_broker_that_is_left(cluster: TwoBrokers, topic: str) -> None:
    cluster.create_topic(topic, [[1], [2], [1], [2]])

    def task(rows: int) -> None:
        producer = ProducerOptions(delivery_timeout_ms=20_000)
        writer = KafkaDataWriter(WriteOptions(cluster.options(), topic, producer), SinkColumns(value=0))
        try:
            writer.write(pa.record_batch({"value": pa.array([b"x" * 1_000] * rows)}))
            writer.commit()
        finally:
            writer.close()

    task(1)
    cluster.second.kill()
    eventually(lambda: [p.has_leader for p in cluster.partitions(topic)] == [True, False, True, False])
    drop_producers()
    # Each more than one partition takes before the next one has its turn.
    for _ in range(4):
        task(3_000)
    cluster.mend()
