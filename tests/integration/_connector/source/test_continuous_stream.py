"""The continuous source without an engine, against a real broker: latency, epochs, changes of partitions, losses."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from kit.administration import create_partitions, create_topic, delete_records, delete_topics
from kit.costs import without_collections
from kit.fixtures.broker import FREEZE, MortalBroker, TopicMaker
from kit.fixtures.waits import waiting_lines
from kit.fixtures.wire import WireTrace
from kit.independent_client import Record, produce
from kit.reading import options_for
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.source.executor.continuous_reader import KafkaContinuousPartitionReader
from pyspark_kafka.connector import Offset
from pyspark_kafka.errors import DataLossError, OptionError

KIB = 1 << 10
ON_EXECUTOR = "pyspark_kafka._connector.source.executor.range_decoder"


def stream_of(
    servers: str, topic: str, options: dict[str, str] | None = None, *, tasks: int | None = None, **more: str
) -> KafkaContinuousStream:
    return KafkaContinuousStream.from_options(
        {
            "kafka.bootstrap.servers": servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            # A missing topic is looked for a dozen times.
            "kafka.retry.backoff.ms": "10",
            "kafka.retry.backoff.max.ms": "50",
            **(options or {}),
            **more,
        },
        tasks=tasks,
    )


class Run:
    """The tasks of one plan, driven in turns by one thread, as an engine drives each of them.

    Attributes:
        rows: (partition, offset, value), in the order in which they came.
    """

    def __init__(self, stream: KafkaContinuousStream, start: Offset | None = None) -> None:
        self.stream = stream
        factory = stream.createContinuousReaderFactory()
        planned = stream.planInputPartitions(stream.initialOffset() if start is None else start)
        self.readers = [factory.createReader(partition) for partition in planned]
        self.rows: list[tuple[int, int, bytes]] = []

    def __enter__(self) -> Run:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self.readers:
            reader.close()

    def turn(self) -> bool:
        """Call each task once; return whether there were rows."""
        found = False
        for reader in self.readers:
            if reader.next():
                found = True
                columns = reader.get().select(["partition", "offset", "value"]).to_pylist()
                self.rows += [(row["partition"], row["offset"], row["value"]) for row in columns]
        return found

    def until(self, condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
        """Call the tasks until a condition holds."""
        end = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < end, f"it did not come to that within {timeout_s:g} s: {self.offset()}"
            self.turn()

    def until_rows(self, count: int) -> Run:
        """Read until there are this many rows."""
        self.until(lambda: len(self.rows) >= count)
        assert len(self.rows) == count
        return self

    def offset(self) -> KafkaSourceOffset:
        """Return what an engine logs at the end of an epoch."""
        return self.stream.mergeOffsets([reader.getOffset() for reader in self.readers])

    def until_offset(self, wanted: dict[TopicPartition, int]) -> None:
        """Read until the positions are these."""
        self.until(lambda: self.offset() == KafkaSourceOffset(wanted))

    @property
    def values(self) -> list[bytes]:
        return [value for _, _, value in self.rows]


def numbered(first: int, last: int, partition: int = 0) -> list[Record]:
    return [Record(None, b"%d:%d" % (partition, number), partition) for number in range(first, last)]


def named(first: int, last: int, partition: int = 0) -> list[bytes]:
    return [b"%d:%d" % (partition, number) for number in range(first, last)]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING)
    return caplog


@pytest.fixture
def producer(bootstrap_servers: str) -> Iterator[KafkaProducer]:
    found = KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=0)
    yield found
    found.close()


# -- the reader


def test_record_is_returned_when_it_arrives_and_not_when_the_broker_has_waited(
    bootstrap_servers: str, make_topic: TopicMaker, producer: KafkaProducer, wire: WireTrace
) -> None:
    topic = make_topic()
    with Run(stream_of(bootstrap_servers, topic, {"kafka.fetch.max.wait.ms": "20000"})) as run:
        run.turn()
        assert wire.counts()["Fetch"] == 1
        for number in range(5):
            # The request of the wait before is still there.
            began = time.monotonic()
            assert not run.turn()
            assert time.monotonic() - began < 10
            sent = time.monotonic()
            producer.send(topic, b"%d" % number, partition=0).get(timeout=PATIENCE_S)
            run.until_rows(number + 1)
            assert time.monotonic() - sent < 10
        assert wire.counts()["Fetch"] == 6
        assert run.offset() == KafkaSourceOffset({TopicPartition(topic, 0): 5})


@pytest.mark.usefixtures("early_reports")
def test_idle_reader_sends_a_request_for_each_wait_of_the_broker_and_logs_nothing(
    bootstrap_servers: str,
    make_topic: TopicMaker,
    wire: WireTrace,
    warnings: pytest.LogCaptureFixture,
) -> None:
    topic = make_topic()
    with Run(stream_of(bootstrap_servers, topic)) as run:
        run.turn()
        wire.clear()
        # Those of the first contact, on a busy machine.
        warnings.clear()
        with without_collections():
            began, cpu, turns = time.monotonic(), time.thread_time(), 0
            while time.monotonic() - began < 3:
                assert not run.turn()
                turns += 1
            took = time.thread_time() - cpu
        # Each waits for 500 ms at the broker; each turn for 100 ms. Less on a machine that is busy.
        assert 2 <= wire.counts()["Fetch"] <= 8
        assert set(wire.counts()) == {"Fetch"}
        assert turns <= 31
        assert took < 0.3
    assert waiting_lines(warnings) == []


def test_reader_that_nobody_asks_for_rows_fetches_no_more(
    bootstrap_servers: str, make_topic: TopicMaker, wire: WireTrace
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"." * 10 * KIB, 0)] * 600, batch_size=64 * KIB, linger_ms=20)
    options = {"kafka.fetch.max.bytes": str(256 * KIB), "kafka.max.partition.fetch.bytes": str(256 * KIB)}
    with Run(stream_of(bootstrap_servers, topic, options)) as run:
        while not run.turn():
            pass
        # One response at hand, one request in flight, whose response stays in the socket.
        assert wire.counts()["Fetch"] == 2
        received = [event.size for event in wire.events if event.step.value == "received" and event.request == "Fetch"]
        assert len(received) == 1
        assert received[0] <= 400 * KIB
        run.until_rows(600)
        assert [offset for _, offset, _ in run.rows] == [*range(600)]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_position_passes_markers_and_aborted_records_to_the_end_of_the_log(
    bootstrap_servers: str, make_topic: TopicMaker, isolation: str
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    committed = isolation == "read_committed"
    transactions = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=f"tx-{topic}")
    with Run(stream_of(bootstrap_servers, topic, {"kafka.isolation.level": isolation})) as run:
        run.turn()
        transactions.init_transactions()
        try:
            for number, commit in enumerate([True, False, True, False]):
                transactions.begin_transaction()
                for each in range(3):
                    transactions.send(topic, b"%d.%d" % (number, each), partition=0)
                transactions.flush()
                if commit:
                    transactions.commit_transaction()
                else:
                    transactions.abort_transaction()
        finally:
            transactions.close()
        # Three records and a marker each; the last transaction is an aborted one.
        run.until_offset({partition: 16})
        visible = [0, 2] if committed else [0, 1, 2, 3]
        assert run.values == [b"%d.%d" % (number, each) for number in visible for each in range(3)]


def test_open_transaction_holds_rows_back_and_no_error_comes_of_it(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    transactions = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=f"open-{topic}")
    transactions.init_transactions()
    transactions.begin_transaction()
    transactions.send(topic, b"held", partition=0)
    transactions.flush()
    # Longer than the time for progress.
    options = {"kafka.isolation.level": "read_committed", "kafkaConsumer.pollTimeoutMs": "300"}
    try:
        with Run(stream_of(bootstrap_servers, topic, options)) as run:
            began = time.monotonic()
            while time.monotonic() - began < 1:
                assert not run.turn()
            transactions.commit_transaction()
            run.until_rows(1)
    finally:
        transactions.close()


def test_position_is_behind_what_get_has_returned(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(bootstrap_servers, topic, numbered(0, 4))
    with Run(stream_of(bootstrap_servers, topic)) as run:
        (reader,) = run.readers
        assert run.offset() == KafkaSourceOffset({partition: 0})
        eventually(reader.next)
        # The rows are not the engine's yet.
        assert run.offset() == KafkaSourceOffset({partition: 0})
        assert reader.get().num_rows == 4
        assert run.offset() == KafkaSourceOffset({partition: 4})
        assert not reader.next()
        assert run.offset() == KafkaSourceOffset({partition: 4})
        with pytest.raises(RuntimeError, match=r"get\(\) before next\(\), or after next\(\) returned False"):
            reader.get()


def test_reader_is_closed_while_another_thread_waits_for_rows(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    stream = stream_of(bootstrap_servers, make_topic())
    (partition,) = stream.planInputPartitions(stream.initialOffset())
    reader = stream.createContinuousReaderFactory().createReader(partition)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            while True:
                assert not reader.next()
        except RuntimeError as error:
            ended.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    eventually(lambda: isinstance(reader, KafkaContinuousPartitionReader) and reader._fetcher is not None)
    reader.close()
    waiting.join(timeout=PATIENCE_S)
    assert [str(error) for error in ended] == ["the reader is closed"]
    reader.close()


@pytest.mark.usefixtures("early_reports")
@pytest.mark.parametrize("how", ["kill", FREEZE])
def test_reader_continues_after_an_outage_of_the_broker(
    mortal_broker: MortalBroker, warnings: pytest.LogCaptureFixture, how: str
) -> None:
    topic = f"continuous-outage-{how}"
    mortal_broker.kafka.create_topic(topic)
    servers = mortal_broker.bootstrap_servers
    produce(servers, topic, numbered(0, 3))
    # An outage lasts longer than the time for progress.
    options = {"kafkaConsumer.pollTimeoutMs": "1000", "kafka.request.timeout.ms": "1000"}
    with Run(stream_of(servers, topic, options)) as run:
        run.until_rows(3)
        if how == "kill":
            mortal_broker.kafka.kill()
        else:
            mortal_broker.kafka.pause()
        began = time.monotonic()
        while time.monotonic() - began < 3:
            assert not run.turn()
        assert any("Waiting for Kafka: reading" in line for line in waiting_lines(warnings))
        if how == "kill":
            mortal_broker.start_soon()
        else:
            mortal_broker.kafka.resume()
        mortal_broker.wait()
        produce(servers, topic, numbered(3, 5))
        run.until_rows(5)
        assert run.values == named(0, 5)


# -- plans and epochs


def test_run_continues_from_a_merged_offset_without_loss_or_repetition(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(5)
    for partition in range(5):
        produce(bootstrap_servers, topic, numbered(0, 30, partition))
    stream = stream_of(bootstrap_servers, topic, tasks=2)
    start = stream.initialOffset()
    assert (
        start == stream.initialOffset() == KafkaSourceOffset({TopicPartition(topic, number): 0 for number in range(5)})
    )
    with Run(stream, start) as first:
        assert len(first.readers) == 2
        first.until_rows(150)
        end = stream.deserializeOffset(first.offset().json())
    for partition in range(5):
        produce(bootstrap_servers, topic, numbered(30, 40, partition))
    # Another run: the offset is all that it has.
    with Run(stream_of(bootstrap_servers, topic, tasks=3), end) as second:
        assert len(second.readers) == 3
        second.until_rows(50)
    expected = [(partition, number) for partition in range(5) for number in range(40)]
    assert sorted((partition, offset) for partition, offset, _ in [*first.rows, *second.rows]) == expected


def test_start_is_resolved_as_the_options_say(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(2)
    produce(bootstrap_servers, topic, numbered(0, 5))
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for starting, expected in (
        ("earliest", {first: 0, second: 0}),
        ("latest", {first: 5, second: 0}),
        (f'{{"{topic}":{{"0":3,"1":-1}}}}', {first: 3, second: 0}),
    ):
        stream = stream_of(bootstrap_servers, topic, startingOffsets=starting)
        assert stream.initialOffset() == KafkaSourceOffset(expected)
    with pytest.raises(OptionError, match="startingOffsets"):
        stream_of(bootstrap_servers, topic, startingOffsets=f'{{"{topic}":{{"0":3}}}}').initialOffset()


def test_new_partition_asks_for_a_plan_and_is_read_from_its_beginning(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 3))
    stream = stream_of(bootstrap_servers, topic, startingOffsets="latest")
    assert not stream.needsReconfiguration()
    with Run(stream) as run:
        assert stream.knownPartitions == {TopicPartition(topic, 0)}
        assert not stream.needsReconfiguration()
        with borrow_client(options_for(bootstrap_servers)) as client:
            create_partitions(client, {topic: 2})
        eventually(stream.needsReconfiguration)
        produce(bootstrap_servers, topic, [*numbered(3, 5), *numbered(0, 4, 1)])
        run.until_rows(2)
        end = run.offset()
    # Its first records are older than the plan, and are not skipped.
    with Run(stream, end) as run:
        assert stream.knownPartitions == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
        assert not stream.needsReconfiguration()
        assert run.until_rows(4).values == named(0, 4, 1)


# -- losses


def delete(bootstrap_servers: str, topic: str) -> None:
    with borrow_client(options_for(bootstrap_servers)) as client:
        delete_topics(client, [topic])


def test_deleted_topic_is_an_error_of_the_reader_and_of_the_plan(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 3))
    stream = stream_of(bootstrap_servers, topic)
    with Run(stream) as run:
        run.until_rows(3)
        end = run.offset()
        delete(bootstrap_servers, topic)
        with pytest.raises(DataLossError) as caught:
            eventually(run.turn)
    assert caught.value.condition == "KAFKA_DATA_LOSS.PARTITIONS_DELETED"
    text = str(caught.value)
    assert f"was deleted after {topic}-0 [0, no end) was planned" in text
    assert "Records before 3 were handed out; offsets from 3 on are gone." in text
    eventually(stream.needsReconfiguration)
    with pytest.raises(DataLossError, match="PARTITIONS_DELETED"):
        stream.planInputPartitions(end)


def test_deleted_topic_is_left_out_and_read_again_when_it_is_back_if_loss_is_tolerated(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    kept, deleted = make_topic(), make_topic()
    for topic in (kept, deleted):
        produce(bootstrap_servers, topic, numbered(0, 3))
    stream = stream_of(
        bootstrap_servers, f"{kept},{deleted}", tasks=1, failOnDataLoss="false", checkpointLocation=str(tmp_path)
    )
    with Run(stream) as run:
        run.until_rows(6)
        delete(bootstrap_servers, deleted)
        eventually(lambda: not run.turn() and any("was deleted" in line for line in warnings.messages))
        # The others are read on, and its last position is kept until there is another plan.
        produce(bootstrap_servers, kept, numbered(3, 5))
        run.until_rows(8)
        end = run.offset()
        assert end == KafkaSourceOffset({TopicPartition(kept, 0): 5, TopicPartition(deleted, 0): 3})
        eventually(stream.needsReconfiguration)
    with Run(stream, end) as run:
        assert stream.knownPartitions == {TopicPartition(kept, 0)}
        assert not stream.needsReconfiguration()
        end = run.offset()
        with borrow_client(options_for(bootstrap_servers)) as client:
            create_topic(client, deleted)
        produce(bootstrap_servers, deleted, numbered(0, 7))
        eventually(stream.needsReconfiguration)
    with Run(stream, end) as run:
        assert run.until_rows(7).values == named(0, 7)


@pytest.mark.parametrize("records", [2, 30])
def test_recreated_topic_asks_for_a_plan_and_is_read_from_its_beginning(
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    records: int,
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 10))
    options = {"failOnDataLoss": "false", "checkpointLocation": str(tmp_path)}
    stream = stream_of(bootstrap_servers, topic, options)
    with Run(stream) as run:
        run.until_rows(10)
        delete(bootstrap_servers, topic)
        with borrow_client(options_for(bootstrap_servers)) as client:
            create_topic(client, topic)
        produce(bootstrap_servers, topic, numbered(0, records))
        eventually(lambda: not run.turn() and bool(stream.needsReconfiguration()))
        end = run.offset()
        # Whatever the reader has noticed, it has read nothing of the other log.
        assert end == KafkaSourceOffset({TopicPartition(topic, 0): 10})
        assert len(run.rows) == 10
    with pytest.raises(DataLossError, match=r"TOPIC_RECREATED\] .* \(id .* before, .* now\)"):
        stream_of(bootstrap_servers, topic, checkpointLocation=str(tmp_path)).planInputPartitions(end)
    # The run that plans it dies before an epoch is committed: the next one plans from the same offset, and the same.
    for _ in range(2):
        with Run(stream_of(bootstrap_servers, topic, options), end) as run:
            assert run.until_rows(records).values == named(0, records)
            later = run.offset()
    produce(bootstrap_servers, topic, numbered(records, records + 3))
    # From then on it is the query's topic.
    with Run(stream_of(bootstrap_servers, topic, checkpointLocation=str(tmp_path)), later) as run:
        assert run.until_rows(3).values == named(records, records + 3)


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_records_that_retention_removes_before_they_are_read_are_lost(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, fail_on_data_loss: str
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(bootstrap_servers, topic, numbered(0, 50))
    stream = stream_of(bootstrap_servers, topic, failOnDataLoss=fail_on_data_loss)
    start = stream.initialOffset()
    with borrow_client(options_for(bootstrap_servers)) as client:
        delete_records(client, {partition: 40})
    text = f"Offsets [0, 40) of {topic}-0 [0, no end) cannot be read: the log of {topic}-0 is now [40, 50)."
    with Run(stream, start) as run:
        if fail_on_data_loss == "true":
            with pytest.raises(DataLossError) as caught:
                run.until_rows(10)
            assert text in str(caught.value)
            assert caught.value.condition == "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE"
        else:
            assert run.until_rows(10).values == named(40, 50)
            assert run.offset() == KafkaSourceOffset({partition: 50})
            (line,) = [record.getMessage() for record in warnings.records if record.name == ON_EXECUTOR]
            assert text in line
            assert line.endswith("40 offsets are lost. The read continues at 40, because 'failOnDataLoss' is false.")


def test_end_of_the_log_is_waited_at_wherever_retention_has_moved_its_start(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(bootstrap_servers, topic, numbered(0, 5))
    with Run(stream_of(bootstrap_servers, topic)) as run:
        run.until_rows(5)
        with borrow_client(options_for(bootstrap_servers)) as client:
            delete_records(client, {partition: 5})
        assert not run.turn()
        produce(bootstrap_servers, topic, numbered(5, 6))
        run.until_rows(6)


def test_position_beyond_the_log_is_a_loss(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(bootstrap_servers, topic, numbered(0, 5))
    options = {"startingOffsets": f'{{"{topic}":{{"0":9}}}}', "kafkaConsumer.pollTimeoutMs": "1000"}
    text = (
        f"{topic}-0 [9, no end) cannot be read on at offset 9: the log of {topic}-0 is now [0, 5), which ends 4 "
        "offsets before it."
    )
    with Run(stream_of(bootstrap_servers, topic, options)) as run, pytest.raises(DataLossError) as caught:
        eventually(run.turn)
    assert text in str(caught.value)
    with Run(stream_of(bootstrap_servers, topic, options, failOnDataLoss="false")) as run:
        run.until_offset({partition: 5})
        produce(bootstrap_servers, topic, numbered(5, 7))
        assert run.until_rows(2).values == named(5, 7)
    assert any(text in message for message in warnings.messages)
