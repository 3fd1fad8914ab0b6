"""Publishing prepared batches against a real broker, with faults at each step: once and whole, or not at all."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from kit.administration import create_partitions
from kit.fixtures.broker import TopicMaker
from kit.independent_client import consume_committed
from kit.reading import options_for
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError
from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, ProducerOptions, WriteOptions
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, MarkerFinding
from pyspark_kafka._connector.sink.driver.publisher import Publisher
from pyspark_kafka._connector.sink.executor.outbox import Chunk, PreparedBatch
from pyspark_kafka._connector.sink.spool import SpoolFiles
from pyspark_kafka.errors import CheckpointError, ConnectorError, DeliveryError
from pyspark_kafka.records import encode

COMMITS = "commits-of-publisher-tests"


@pytest.fixture
def connection(bootstrap_servers: str) -> ConnectionOptions:
    return options_for(bootstrap_servers, api_timeout_ms=30_000)


@pytest.fixture
def client(connection: ConnectionOptions) -> Iterator[KafkaClient]:
    with KafkaClient(connection) as client:
        yield client


@pytest.fixture
def marker() -> CommitMarker:
    return CommitMarker(f"sink-{uuid.uuid4().hex}", "query", 4, "print")


def publisher_of(
    client: KafkaClient, marker: CommitMarker, spool: SpoolFiles | None = None, **settings: Any
) -> Publisher:
    exactly_once = ExactlyOnceOptions(commit_topic=COMMITS, **settings)
    return Publisher(client, WriteOptions(client.options), exactly_once, marker.sink_id, spool)


def chunk(topic: str, *values: bytes, partition: int = 0) -> Chunk:
    data = encode(pa.RecordBatch.from_pydict({"value": list(values)}))
    return Chunk((PreparedBatch(TopicPartition(topic, partition), len(data), len(values)),), data)


def committed(client: KafkaClient, bootstrap_servers: str, marker: CommitMarker, topic: str) -> list[bytes]:
    """Return what readers of committed records see, once nothing of the sink is in flight."""
    TransactionalId(client, marker.sink_id, 60_000).fence()
    return [record.value or b"" for record in consume_committed(bootstrap_servers, topic)]


def fail(publisher: Publisher, monkeypatch: pytest.MonkeyPatch, *, after: bool, times: int) -> list[str]:
    """Let the first ends of transactions be in doubt, after or instead of the real call."""
    end, ends = publisher._id.end, list[str]()

    def in_doubt(*arguments: Any, **named: Any) -> OpenTransaction:
        ends.append("end")
        if len(ends) > times:
            return end(*arguments, **named)
        if after:
            end(*arguments, **named)
        raise TransactionInDoubtError("planted", condition="TRANSACTION_IN_DOUBT")

    monkeypatch.setattr(publisher._id, "end", in_doubt)
    return ends


def test_a_batch_is_published_once_however_often_it_is_run(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker
) -> None:
    topic = make_topic(partitions=2)
    chunks = [chunk(topic, b"a", b"b"), chunk(topic, b"c", partition=1), chunk(topic, b"d")]
    assert publisher_of(client, marker).publish(marker, chunks) is MarkerFinding.NOT_COMMITTED
    # Run again with other rows, as by a function that is not deterministic.
    assert publisher_of(client, marker).publish(marker, [chunk(topic, b"x")]) is MarkerFinding.COMMITTED
    following = replace(marker, batch_id=marker.batch_id + 1)
    assert publisher_of(client, marker).publish(following, [chunk(topic, b"e")]) is MarkerFinding.NOT_COMMITTED
    assert sorted(committed(client, bootstrap_servers, marker, topic)) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_batch_without_records_is_noted_as_well(client: KafkaClient, marker: CommitMarker) -> None:
    assert publisher_of(client, marker).publish(marker, []) is MarkerFinding.NOT_COMMITTED
    assert publisher_of(client, marker).publish(marker, []) is MarkerFinding.COMMITTED


@pytest.mark.parametrize(("after", "ends"), [(True, 1), (False, 2)], ids=["was committed", "was not committed"])
def test_a_commit_in_doubt_is_looked_up(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker,
    monkeypatch: pytest.MonkeyPatch, after: bool, ends: int,
) -> None:  # fmt: skip
    topic = make_topic()
    publisher = publisher_of(client, marker)
    called = fail(publisher, monkeypatch, after=after, times=1)
    publisher.publish(marker, [chunk(topic, b"a", b"b")])
    assert len(called) == ends
    assert committed(client, bootstrap_servers, marker, topic) == [b"a", b"b"]


def test_a_job_in_doubt_is_looked_up_by_its_own_id(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topic = make_topic()
    publisher = publisher_of(client, marker)
    called = fail(publisher, monkeypatch, after=True, times=1)
    job = replace(marker, query_id=f"job-{uuid.uuid4().hex}")
    publisher.publish_job(job, [chunk(topic, b"a")])
    assert len(called) == 1
    assert committed(client, bootstrap_servers, marker, topic) == [b"a"]


def test_batch_that_is_never_committed_is_an_error_and_not_visible(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topic = make_topic()
    publisher = publisher_of(client, marker)
    publisher._options = replace(publisher._options, producer=ProducerOptions(delivery_timeout_ms=4_000))
    called = fail(publisher, monkeypatch, after=False, times=1_000)
    with pytest.raises(
        DeliveryError, match=r"TRANSACTION_NOT_COMMITTED\] Batch 4 of query query .* Nothing of it is visible.*planted"
    ) as caught:
        publisher.publish(marker, [chunk(topic, b"a")])
    # After the last attempt it was looked: nothing is in doubt.
    assert "not known" not in str(caught.value)
    assert len(called) >= 2
    assert committed(client, bootstrap_servers, marker, topic) == []


def test_one_of_two_drivers_writes_if_both_publish(
    client: KafkaClient, connection: ConnectionOptions, make_topic: TopicMaker, bootstrap_servers: str,
    marker: CommitMarker, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topic = make_topic()
    publisher = publisher_of(client, marker)
    end = publisher._id.end

    def overtaken(*arguments: Any, **named: Any) -> None:
        with KafkaClient(connection) as other:
            publisher_of(other, marker).publish(marker, [chunk(topic, b"other")])
        end(*arguments, **named)

    monkeypatch.setattr(publisher._id, "end", overtaken)
    publisher.publish(marker, [chunk(topic, b"a")])
    assert committed(client, bootstrap_servers, marker, topic) == [b"other"]


class PausingSpool:
    """Returns the same bytes for each file, and lets a test stand still at one of them."""

    shown = "spool"

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.arrived, self.resume = threading.Event(), threading.Event()
        self._left = at

    def read(self, *_: object) -> bytes:
        self._left -= 1
        if self._left == 0:
            self.arrived.set()
            assert self.resume.wait(PATIENCE_S)
        return self.data


def test_a_driver_that_was_overtaken_does_not_end_the_transaction_of_the_one_that_took_over(
    client: KafkaClient, connection: ConnectionOptions, make_topic: TopicMaker, bootstrap_servers: str,
    marker: CommitMarker,
) -> None:  # fmt: skip
    topic = make_topic()

    def spooled(value: bytes) -> tuple[list[Chunk], bytes]:
        # Large enough to be sent at once: what was sent opens the transaction at its coordinator.
        whole = chunk(topic, value * 200_000)
        return [replace(whole, data=b"", file=f"f{number}") for number in range(8)], whole.data

    old_chunks, old_data = spooled(b"old")
    new_chunks, new_data = spooled(b"new")
    old_spool, new_spool = PausingSpool(old_data, at=5), PausingSpool(new_data, at=5)
    errors: list[BaseException] = []

    def old_driver() -> None:
        with KafkaClient(connection) as own:
            try:
                publisher_of(own, marker, cast("SpoolFiles", old_spool)).publish(marker, old_chunks)
            except ConnectorError as error:
                errors.append(error)

    def new_driver() -> None:
        with KafkaClient(connection) as own:
            publisher_of(own, marker, cast("SpoolFiles", new_spool)).publish(marker, new_chunks)
            done.append("new")

    done: list[str] = []
    old, new = threading.Thread(target=old_driver), threading.Thread(target=new_driver)
    old.start()
    assert old_spool.arrived.wait(PATIENCE_S)
    new.start()
    # The new driver has its transaction open, in which the old one must not interfere.
    assert new_spool.arrived.wait(PATIENCE_S)
    old_spool.resume.set()
    old.join(PATIENCE_S)
    new_spool.resume.set()
    new.join(PATIENCE_S)
    assert done == ["new"]
    (error,) = errors
    assert str(error).startswith("[SINK_TAKEN_OVER] Batch 4 of query query was not committed: another driver has taken")
    assert committed(client, bootstrap_servers, marker, topic) == [b"new" * 200_000] * 8


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ({"batch_id": 3}, "COMMIT_MARKER_OF_A_LATER_BATCH"),
        ({"fingerprint": "other"}, "COMMIT_MARKER_OF_OTHER_OFFSETS"),
        ({"query_id": "other", "batch_id": 9}, "COMMIT_MARKER_OF_ANOTHER_QUERY"),
    ],
)
def test_publisher_writes_nothing_if_neither_writing_nor_skipping_is_right(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker, change: Any,
    condition: str,
) -> None:  # fmt: skip
    topic = make_topic()
    publisher_of(client, marker).publish(marker, [chunk(topic, b"a")])
    with pytest.raises(CheckpointError, match=rf"\[{condition}\]"):
        publisher_of(client, marker).publish(replace(marker, **change), [chunk(topic, b"x")])
    assert committed(client, bootstrap_servers, marker, topic) == [b"a"]


def refuse_size(topic: str) -> tuple[list[Chunk], str]:
    return [chunk(topic, b"fine"), chunk(topic, b"." * 5_000)], "MESSAGE_TOO_LARGE"


def refuse_partition(topic: str) -> tuple[list[Chunk], str]:
    return [chunk(topic, b"fine"), chunk(topic, b"x", partition=7)], "UNKNOWN_PARTITION"


def miss_file(topic: str) -> tuple[list[Chunk], str]:
    gone = replace(chunk(topic, b"x"), data=b"", file="4-gone")
    return [chunk(topic, b"fine"), gone], "SPOOL_FILE_MISSING"


@pytest.mark.parametrize("case", [refuse_size, refuse_partition, miss_file])
def test_batch_that_cannot_be_written_whole_is_not_visible_and_holds_no_reader_back(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker, tmp_path: Path,
    case: Callable[[str], tuple[list[Chunk], str]],
) -> None:  # fmt: skip
    topic = make_topic(config={"max.message.bytes": "2000"})
    chunks, condition = case(topic)
    publisher = publisher_of(client, marker, SpoolFiles(str(tmp_path), "query"))
    publisher._options = replace(publisher._options, max_block_ms=2_000)
    with pytest.raises(ConnectorError) as caught:
        publisher.publish(marker, chunks)
    assert caught.value.condition == condition
    partition = TopicPartition(topic, 0)
    end = list_offsets(client, {partition: Latest()})
    # Aborted at once, not after the transaction's timeout. The publisher has waited for the end of it.
    assert list_offsets(client, {partition: Latest()}, IsolationLevel.READ_COMMITTED) == end
    assert [record.value for record in consume_committed(bootstrap_servers, topic)] == []
    # After the fix it succeeds.
    publisher_of(client, marker).publish(marker, [chunk(topic, b"fine")])
    assert committed(client, bootstrap_servers, marker, topic) == [b"fine"]


def test_batch_that_takes_longer_than_its_transaction_may_is_an_error(
    client: KafkaClient, make_topic: TopicMaker, marker: CommitMarker, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = publisher_of(client, marker, transaction_timeout_ms=60_000)
    fail(publisher, monkeypatch, after=False, times=100)
    monkeypatch.setattr(publisher, "_timeout_ms", 0)
    with pytest.raises(
        DeliveryError, match=r"TRANSACTION_TIMED_OUT\] Handing the batch .*'kafka.transaction.timeout.ms'"
    ):
        publisher.publish(marker, [chunk(make_topic(), b"a")])


def test_spooled_chunks_are_read(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker, tmp_path: Path
) -> None:
    topic, spool = make_topic(), SpoolFiles(str(tmp_path), "query")
    whole = chunk(topic, b"a", b"b")
    name = spool.write(4, "0-1", [whole.data])
    publisher_of(client, marker, spool).publish(marker, [replace(whole, data=b"", file=name)])
    assert committed(client, bootstrap_servers, marker, topic) == [b"a", b"b"]


def test_the_start_is_refused_for_another_querys_sink(client: KafkaClient, marker: CommitMarker) -> None:
    publisher_of(client, marker).publish(marker, [])
    publisher_of(client, marker).check(replace(marker, batch_id=-1))
    with pytest.raises(CheckpointError, match="COMMIT_MARKER_OF_ANOTHER_QUERY"):
        publisher_of(client, marker).check(replace(marker, query_id="other", batch_id=-1))


def test_a_batch_is_not_written_again_after_the_commit_topic_got_more_partitions(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker
) -> None:
    topic, commits = make_topic(), make_topic(partitions=2)

    def publish() -> MarkerFinding:
        settings = ExactlyOnceOptions(commit_topic=commits)
        publisher = Publisher(client, WriteOptions(client.options), settings, marker.sink_id, None)
        return publisher.publish(marker, [chunk(topic, b"a")])

    assert publish() is MarkerFinding.NOT_COMMITTED
    # To numbers of which at least one puts the sink's key elsewhere.
    for count in (3, 4, 5, 7, 11):
        create_partitions(client, {commits: count})
        assert publish() is MarkerFinding.COMMITTED
    assert committed(client, bootstrap_servers, marker, topic) == [b"a"]


def test_a_batch_that_another_broker_knows_to_be_committed_is_not_committed_again(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str, marker: CommitMarker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topic = make_topic()
    publisher_of(client, marker).publish(marker, [chunk(topic, b"a")])
    publisher = publisher_of(client, marker)
    read = publisher._markers.read

    def as_of_a_broker_that_was_cut_off(key: str, query_id: str | None = None) -> None:
        read(key, query_id)
        for where in publisher._markers._read_to:
            publisher._markers._read_to[where] = 0

    monkeypatch.setattr(publisher._markers, "read", as_of_a_broker_that_was_cut_off)
    publisher.publish(marker, [chunk(topic, b"a")])
    assert committed(client, bootstrap_servers, marker, topic) == [b"a"]
