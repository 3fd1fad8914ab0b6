"""Each condition of data loss, with `failOnDataLoss` true and false; errors that are not data loss.

Real brokers, real logs. Elsewhere: a partition that vanishes before its first offset is known
(test_micro_batch_stream.py), a log that a new leader cuts (tests/protocol/_client/client/test_leader_changes.py,
scripted).
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from kit.administration import create_partitions, create_topic, delete_records, delete_topics
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import options_for
from kit.reading import read as read_task
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._base.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.queries.leader_epochs import fetch_log_ends
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions, StreamReadOptions, Subscription
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.connector import InputPartition, ReadAllAvailable
from pyspark_kafka.errors import BrokerError, DataLossError, DeadlineError, TransportError

KIB = 1 << 10
ON_DRIVER, ON_EXECUTOR = (
    "pyspark_kafka._connector.source.driver.topic_losses",
    "pyspark_kafka._connector.source.executor.range_decoder",
)
EITHER = pytest.mark.parametrize("fail_on_data_loss", [True, False])


def stream_of(
    servers: str | ConnectionOptions, *topics: str, fail_on_data_loss: bool = True, **options: Any
) -> KafkaMicroBatchStream:
    """Build a stream that reads the topics there are of these names."""
    read = StreamReadOptions(
        options_for(servers),
        Subscription("subscribePattern", pattern=f"^({'|'.join(topics)})$"),
        starting=Earliest(),
        fail_on_data_loss=fail_on_data_loss,
        fetch_offset_attempts=1,
        **options,
    )
    return KafkaMicroBatchStream(read, SOURCE_SCHEMA)


def read(
    servers: str | ConnectionOptions, *ranges: OffsetRange, fail_on_data_loss: bool, **fetch: Any
) -> Iterator[tuple[str, int, bytes]]:
    """Read ranges as one task does; yield topic, offset and value."""
    columns = ("topic", "offset", "value")
    for row in read_task(servers, *ranges, columns=columns, fail_on_data_loss=fail_on_data_loss, **fetch):
        yield row["topic"], row["offset"], row["value"]


def numbered(count: int, value: bytes = b"v", partition: int = 0) -> list[Record]:
    return [Record(None, value, partition)] * count


def trim(bootstrap_servers: str, topic_partition: TopicPartition, before: int) -> None:
    """Remove the records below an offset, as retention does."""
    with borrow_client(options_for(bootstrap_servers)) as client:
        delete_records(client, {topic_partition: before})


def delete(bootstrap_servers: str, topic: str) -> None:
    with borrow_client(options_for(bootstrap_servers)) as client:
        delete_topics(client, [topic])


def make_again(bootstrap_servers: str, topic: str, records: list[Record], **config: Any) -> None:
    with borrow_client(options_for(bootstrap_servers)) as client:
        delete_topics(client, [topic])
        create_topic(client, topic)
    produce(bootstrap_servers, topic, records, **config)


@contextmanager
def transaction(bootstrap_servers: str, topic: str) -> Iterator[KafkaProducer]:
    """Begin a transaction; the test ends it."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=f"open-{topic}")
    try:
        producer.init_transactions()
        producer.begin_transaction()
        yield producer
    finally:
        producer.close()


def warnings_of(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == name]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING)
    return caplog


@pytest.fixture
def nobody() -> Iterator[ConnectionOptions]:
    """An address at which no broker is: the port is taken, and nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host, port = taken.getsockname()
        yield ConnectionOptions(((host, port),), api_timeout_ms=500, connect_timeout_ms=500)


# -- on the driver


@EITHER
def test_added_partition_does_not_start_from_offset_zero(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    topic = make_topic()
    known, added = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with borrow_client(options_for(bootstrap_servers)) as client:
        create_partitions(client, {topic: 2})
    produce(bootstrap_servers, topic, numbered(5, partition=1))
    trim(bootstrap_servers, added, 3)
    stream = stream_of(bootstrap_servers, topic, fail_on_data_loss=fail_on_data_loss)
    start = KafkaSourceOffset({known: 0})
    text = f"{added}: the new partition starts from 3 instead of 0, 3 offsets [0, 3) missing. "
    if fail_on_data_loss:
        with pytest.raises(DataLossError) as caught:
            stream.latestOffset(start, ReadAllAvailable())
        assert caught.value.condition == "KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"
        assert text in str(caught.value)
    else:
        end = stream.latestOffset(start, ReadAllAvailable())
        assert stream.planInputPartitions(start, end) == [KafkaInputPartition(OffsetRange(added, 3, 5))]
        (warning,) = warnings_of(warnings, ON_DRIVER)
        assert warning.startswith("[KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO] ")
        assert text in warning
        assert warning.endswith("The query continues, because 'failOnDataLoss' is false.")


@EITHER
def test_partitions_deleted(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    kept, deleted = make_topic(), make_topic()
    for topic in (kept, deleted):
        produce(bootstrap_servers, topic, numbered(4))
    stream = stream_of(bootstrap_servers, kept, deleted, fail_on_data_loss=fail_on_data_loss)
    start = KafkaSourceOffset({TopicPartition(kept, 0): 1, TopicPartition(deleted, 0): 2})
    delete(bootstrap_servers, deleted)
    text = f"{deleted}-0: the partition was read up to 2, and has been deleted"
    if fail_on_data_loss:
        with pytest.raises(DataLossError) as caught:
            stream.latestOffset(start, ReadAllAvailable())
        assert caught.value.condition == "KAFKA_DATA_LOSS.PARTITIONS_DELETED"
        assert f"{text}. " in str(caught.value)
    else:
        end = stream.latestOffset(start, ReadAllAvailable())
        assert end == KafkaSourceOffset({TopicPartition(kept, 0): 4})
        left = OffsetRange(TopicPartition(kept, 0), 1, 4)
        assert stream.planInputPartitions(start, end) == [KafkaInputPartition(left)]
        (warning,) = warnings_of(warnings, ON_DRIVER)
        assert f"{text} or left the subscription. " in warning


@EITHER
def test_partition_offset_changed(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    topic = make_topic()
    topic_partition = TopicPartition(topic, 0)
    produce(bootstrap_servers, topic, numbered(5))
    # A stream that has just begun, and does not know which topic its checkpoint is of.
    stream = stream_of(bootstrap_servers, topic, fail_on_data_loss=fail_on_data_loss)
    start = KafkaSourceOffset({topic_partition: 50})
    text = f"{topic}-0: the offset to continue from was 50, but the log now ends at 5, 45 offsets [5, 50) missing. "
    if fail_on_data_loss:
        with pytest.raises(DataLossError) as caught:
            stream.latestOffset(start, ReadAllAvailable())
        assert caught.value.condition == "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED"
        assert text in str(caught.value)
    else:
        end = stream.latestOffset(start, ReadAllAvailable())
        assert stream.planInputPartitions(start, end) == []
        assert any(text in warning for warning in warnings_of(warnings, ON_DRIVER))
        # The next batch continues from the lower end: what lies before it is never read.
        produce(bootstrap_servers, topic, numbered(2))
        after = stream.latestOffset(end, ReadAllAvailable())
        assert stream.planInputPartitions(end, after) == [KafkaInputPartition(OffsetRange(topic_partition, 5, 7))]


def test_end_behind_an_open_transaction_is_not_data_loss(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    """The position is after the last stable offset, as after a change of `kafka.isolation.level`."""
    topic = make_topic()
    position = KafkaSourceOffset({TopicPartition(topic, 0): 3})
    with transaction(bootstrap_servers, topic) as producer:
        for _ in range(4):
            producer.send(topic, b"open", partition=0).get(timeout=PATIENCE_S)
        for fail_on_data_loss in (True, False):
            stream = stream_of(
                bootstrap_servers,
                topic,
                fail_on_data_loss=fail_on_data_loss,
                fetch=FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED),
            )
            assert stream.latestOffset(position, ReadAllAvailable()) == position
        with borrow_client(options_for(bootstrap_servers)) as client:
            assert fetch_log_ends(client, position.partitions, client.deadline()) == {TopicPartition(topic, 0): 4}
        producer.commit_transaction()
        # The coordinator writes the marker of the commit after its response; then the query reads the record at 3.
        eventually(lambda: stream.latestOffset(position, ReadAllAvailable()) != position)
    tasks = stream.planInputPartitions(position, stream.latestOffset(position, ReadAllAvailable()))
    assert [str(task.offset_range) for task in tasks if isinstance(task, KafkaInputPartition)] == [f"{topic}-0 [3, 5)"]


# -- on executors


@EITHER
@pytest.mark.parametrize(
    ("trimmed_to", "lost", "left"),
    [
        (40, "30 offsets", [*range(40, 90)]),
        (89, "79 offsets", [89]),
        (90, "80 offsets", list[int]()),
        (95, "80 offsets", list[int]()),
    ],
)
def test_could_not_read_offset_range(
    bootstrap_servers: str,
    make_topic: TopicMaker,
    warnings: pytest.LogCaptureFixture,
    *,
    fail_on_data_loss: bool,
    trimmed_to: int,
    lost: str,
    left: list[int],
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(100))
    trim(bootstrap_servers, TopicPartition(topic, 0), trimmed_to)
    reading = read(
        bootstrap_servers, OffsetRange(TopicPartition(topic, 0), 10, 90), fail_on_data_loss=fail_on_data_loss
    )
    resume = min(trimmed_to, 90)
    text = (
        f"Offsets [10, {resume}) of {topic}-0 [10, 90) cannot be read: the log of {topic}-0 is now "
        f"[{trimmed_to}, 100). Retention may have removed the records, or the topic was recreated. No record of the "
        f"range was emitted; {lost} are lost."
    )
    if fail_on_data_loss:
        with pytest.raises(DataLossError) as caught:
            next(reading)
        assert str(caught.value).startswith(f"[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] {text}")
    else:
        assert [offset for _, offset, _ in reading] == left
        assert warnings_of(warnings, ON_EXECUTOR) == [
            f"{text} The read continues at {resume}, because 'failOnDataLoss' is false."
        ]


@EITHER
def test_could_not_read_offset_range_of_one_of_several_partitions(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    whole, trimmed = make_topic(), make_topic()
    for topic in (whole, trimmed):
        produce(bootstrap_servers, topic, numbered(20))
    trim(bootstrap_servers, TopicPartition(trimmed, 0), 15)
    ranges = [OffsetRange(TopicPartition(topic, 0), 0, 20) for topic in (whole, trimmed)]
    reading = read(bootstrap_servers, *ranges, fail_on_data_loss=fail_on_data_loss)
    if fail_on_data_loss:
        with pytest.raises(DataLossError, match=rf"Offsets \[0, 15\) of {trimmed}-0 \[0, 20\) .*15 offsets are lost"):
            list(reading)
    else:
        found = [(topic, offset) for topic, offset, _ in reading]
        assert sorted(found) == sorted([(whole, n) for n in range(20)] + [(trimmed, n) for n in range(15, 20)])
        assert len(warnings_of(warnings, ON_EXECUTOR)) == 1


@EITHER
def test_topic_recreated_while_a_task_reads_it(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    topic, count = make_topic(), 2_000
    produce(bootstrap_servers, topic, numbered(count, b"old" * KIB), batch_size=32 * KIB)
    whole = OffsetRange(TopicPartition(topic, 0), 0, count)
    reading = read(bootstrap_servers, whole, fail_on_data_loss=fail_on_data_loss, max_bytes_per_fetch=128 * KIB)
    found = [next(reading)]
    make_again(bootstrap_servers, topic, numbered(count, b"new" * KIB), batch_size=32 * KIB)
    if fail_on_data_loss:
        with pytest.raises(DataLossError, match=r"TOPIC_RECREATED\].* was recreated") as caught:
            found.extend(reading)
        former = len(found)
        assert f"the {count - former} offsets [{former}, {count}) of the former topic are gone" in str(caught.value)
    else:
        # As Spark's connector does: at the same offset, if the new topic has it.
        found.extend(reading)
        former = sum(value.startswith(b"old") for _, _, value in found)
        assert len(found) == count
        (warning,) = warnings_of(warnings, ON_EXECUTOR)
        assert f"the {count - former} offsets [{former}, {count}) of the former topic are gone" in warning
        assert warning.endswith(f"The read continues at {former}, because 'failOnDataLoss' is false.")
    assert 0 < former < count
    assert [offset for _, offset, _ in found] == [*range(len(found))]
    assert all(value.startswith(b"old") is (number < former) for number, (_, _, value) in enumerate(found))


def test_topic_recreated_and_shorter_ends_the_range_early_where_loss_is_tolerated(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture
) -> None:
    topic, count = make_topic(), 2_000
    produce(bootstrap_servers, topic, numbered(count, b"old" * KIB), batch_size=32 * KIB)
    whole = OffsetRange(TopicPartition(topic, 0), 0, count)
    reading = read(bootstrap_servers, whole, fail_on_data_loss=False, max_bytes_per_fetch=128 * KIB)
    found = [next(reading)]
    make_again(bootstrap_servers, topic, numbered(1, b"new"))
    found.extend(reading)
    assert {value[:3] for _, _, value in found} == {b"old"}
    recreated, skipped = warnings_of(warnings, ON_EXECUTOR)
    assert "TOPIC_RECREATED" in recreated
    assert f"Offsets [{len(found)}, {count}) of {topic}-0 [0, {count}) cannot be read: " in skipped
    assert f"; {count - len(found)} offsets are lost." in skipped


def rows_of(stream: KafkaMicroBatchStream, tasks: Sequence[InputPartition]) -> int:
    factory, rows = stream.createReaderFactory(), 0
    for task in tasks:
        reader = factory.createReader(task)
        while reader.next():
            rows += reader.get().num_rows
        reader.close()
    return rows


@EITHER
@pytest.mark.parametrize("records", [0, 30])
def test_topic_recreated_between_plan_and_task(
    bootstrap_servers: str,
    make_topic: TopicMaker,
    warnings: pytest.LogCaptureFixture,
    *,
    fail_on_data_loss: bool,
    records: int,
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(10))
    stream = stream_of(bootstrap_servers, topic, fail_on_data_loss=fail_on_data_loss)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    tasks = stream.planInputPartitions(start, end)
    make_again(bootstrap_servers, topic, numbered(records))
    if fail_on_data_loss:
        # The second attempt knows no less than the first.
        for _ in range(3):
            with pytest.raises(DataLossError, match=r"TOPIC_RECREATED\].* recreated after .* was planned"):
                rows_of(stream, tasks)
    else:
        assert rows_of(stream, tasks) == 0
        after = stream.latestOffset(end, ReadAllAvailable())
        assert rows_of(stream, stream.planInputPartitions(end, after)) == records
    # What this process knows of the former topic is not a loss of a query that begins with the new one.
    warnings.clear()
    later = stream_of(bootstrap_servers, topic)
    first = later.initialOffset()
    assert rows_of(later, later.planInputPartitions(first, later.latestOffset(first, ReadAllAvailable()))) == records
    assert warnings_of(warnings, ON_EXECUTOR) == []


@EITHER
def test_topic_deleted_between_plan_and_task(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    gone, kept = make_topic(), make_topic()
    for topic in (gone, kept):
        produce(bootstrap_servers, topic, numbered(10))
    stream = stream_of(bootstrap_servers, gone, kept, fail_on_data_loss=fail_on_data_loss)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    tasks = stream.planInputPartitions(start, end)
    delete(bootstrap_servers, gone)
    if fail_on_data_loss:
        for _ in range(2):
            with pytest.raises(
                DataLossError, match=rf"PARTITIONS_DELETED\] Topic '{gone}' \(id .*\) was deleted after"
            ):
                rows_of(stream, tasks)
        return
    assert rows_of(stream, tasks) == 10
    (warning,) = warnings_of(warnings, ON_EXECUTOR)
    assert "No record of the range was handed out; the 10 offsets [0, 10) are gone." in warning
    # The next batch has what is left, and what comes back from its beginning.
    after = stream.latestOffset(end, ReadAllAvailable())
    assert rows_of(stream, stream.planInputPartitions(end, after)) == 0
    with borrow_client(options_for(bootstrap_servers)) as client:
        create_topic(client, gone)
    produce(bootstrap_servers, gone, numbered(4))
    last = stream.latestOffset(after, ReadAllAvailable())
    assert rows_of(stream, stream.planInputPartitions(after, last)) == 4


@EITHER
@pytest.mark.parametrize("first", [0, 6])
def test_log_that_ends_before_a_batch_that_was_planned(
    bootstrap_servers: str,
    make_topic: TopicMaker,
    warnings: pytest.LogCaptureFixture,
    *,
    fail_on_data_loss: bool,
    first: int,
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(4))
    # As a run without `checkpointLocation` plans the batch of a former one, which saw a longer topic of that name.
    reading = read(
        bootstrap_servers,
        OffsetRange(TopicPartition(topic, 0), first, 10),
        fail_on_data_loss=fail_on_data_loss,
        poll_timeout_ms=6_000,
    )
    text = (
        f"Offsets [{max(first, 4)}, 10) of {topic}-0 [{first}, 10) cannot be read: the log of {topic}-0 is now [0, 4)"
    )
    if fail_on_data_loss:
        with pytest.raises(DataLossError) as caught:
            list(reading)
        assert str(caught.value).startswith(f"[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] {text}")
    else:
        assert [offset for _, offset, _ in reading] == [*range(first, 4)]
        (warning,) = warnings_of(warnings, ON_EXECUTOR)
        assert warning.startswith(text)


@EITHER
def test_subscribed_topic_deleted_under_a_query(
    bootstrap_servers: str, make_topic: TopicMaker, warnings: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    gone, kept = make_topic(), make_topic()
    for topic in (gone, kept):
        produce(bootstrap_servers, topic, numbered(10))
    options = StreamReadOptions(
        # So that it is looked for often, and not for long.
        options_for(bootstrap_servers, retry_backoff_ms=5, retry_backoff_max_ms=20),
        Subscription("subscribe", (gone, kept)),
        starting=Earliest(),
        fail_on_data_loss=fail_on_data_loss,
    )
    stream = KafkaMicroBatchStream(options, SOURCE_SCHEMA)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    assert rows_of(stream, stream.planInputPartitions(start, end)) == 20
    delete(bootstrap_servers, gone)
    produce(bootstrap_servers, kept, numbered(5))
    text = (
        f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED] Topic '{gone}' does not exist any more, or this user may not describe "
        "it now: the brokers answer UNKNOWN_TOPIC_OR_PARTITION (3). The query has read partition 0 up to 10; "
    )
    if fail_on_data_loss:
        with pytest.raises(DataLossError) as caught:
            stream.latestOffset(end, ReadAllAvailable())
        assert str(caught.value).startswith(text)
        return
    second = stream.latestOffset(end, ReadAllAvailable())
    assert rows_of(stream, stream.planInputPartitions(end, second)) == 5
    assert warnings_of(warnings, ON_DRIVER)[0].startswith(text)
    # Should it come back, it is a new one.
    with borrow_client(options_for(bootstrap_servers)) as client:
        create_topic(client, gone)
    produce(bootstrap_servers, gone, numbered(3))
    third = stream.latestOffset(second, ReadAllAvailable())
    assert rows_of(stream, stream.planInputPartitions(second, third)) == 3
    assert stream.latestOffset(third, ReadAllAvailable()) == third


# -- through Spark


def test_a_query_whose_next_records_are_gone_fails_or_goes_on_behind_them(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - after the session has found Java

    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"%d" % number, 0) for number in range(10)])

    def run(**options: str) -> int:
        reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
        rows = reader.options(subscribe=topic, startingOffsets="earliest", **options).load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress.numInputRows for progress in query.recentProgress)

    assert run(maxOffsetsPerTrigger="4") == 10
    produce(bootstrap_servers, topic, [Record(None, b"%d" % number, 0) for number in range(10, 30)])
    trim(bootstrap_servers, TopicPartition(topic, 0), 25)
    with pytest.raises(StreamingQueryException, match=r"COULD_NOT_READ_OFFSET_RANGE\] Offsets \[10, 25\).*15 offsets"):
        run()
    assert run(failOnDataLoss="false") == 5


# -- what is not data loss, and fails with both settings


@EITHER
def test_a_topic_that_is_deleted_while_a_task_reads_it_fails_the_task(
    bootstrap_servers: str, make_topic: TopicMaker, *, fail_on_data_loss: bool
) -> None:
    topic, count = make_topic(), 2_000
    produce(bootstrap_servers, topic, numbered(count, b"old" * KIB), batch_size=32 * KIB)
    # Its time for metadata is short: a topic that is not there is waited for.
    options = options_for(bootstrap_servers, api_timeout_ms=2_000)
    whole = OffsetRange(TopicPartition(topic, 0), 0, count)
    reading = read(options, whole, fail_on_data_loss=fail_on_data_loss, max_bytes_per_fetch=128 * KIB)
    next(reading)
    delete(bootstrap_servers, topic)
    with pytest.raises(BrokerError, match=rf"\[UNKNOWN_TOPIC\].*'{topic}'"):
        list(reading)


@EITHER
def test_a_topic_that_does_not_exist_fails_the_planning(bootstrap_servers: str, *, fail_on_data_loss: bool) -> None:
    options = StreamReadOptions(
        options_for(bootstrap_servers, api_timeout_ms=2_000),
        Subscription("subscribe", topics=("never-made",)),
        starting=Earliest(),
        fail_on_data_loss=fail_on_data_loss,
        fetch_offset_attempts=1,
    )
    with pytest.raises(BrokerError, match=r"\[UNKNOWN_TOPIC\].*'never-made'"):
        KafkaMicroBatchStream(options, SOURCE_SCHEMA).initialOffset()


@EITHER
def test_brokers_that_cannot_be_reached_fail_the_planning(
    nobody: ConnectionOptions, *, fail_on_data_loss: bool
) -> None:
    stream = stream_of(nobody, "t", fail_on_data_loss=fail_on_data_loss)
    with pytest.raises((TransportError, DeadlineError), match=str(nobody.bootstrap_servers[0][1])):
        stream.latestOffset(KafkaSourceOffset({TopicPartition("t", 0): 5}), ReadAllAvailable())


@EITHER
def test_brokers_that_cannot_be_reached_fail_the_task(nobody: ConnectionOptions, *, fail_on_data_loss: bool) -> None:
    asked = OffsetRange(TopicPartition("t", 0), 5, 9)
    with pytest.raises(DeadlineError, match=r"\[FETCH_NO_PROGRESS\] Reading t-0 \[5, 9\)"):
        list(read(nobody, asked, fail_on_data_loss=fail_on_data_loss, poll_timeout_ms=1_000))


@EITHER
def test_records_that_do_not_become_visible_in_time_fail_the_task(
    bootstrap_servers: str, make_topic: TopicMaker, *, fail_on_data_loss: bool
) -> None:
    topic = make_topic()
    with transaction(bootstrap_servers, topic) as producer:
        producer.send(topic, b"x", partition=0).get(timeout=PATIENCE_S)
        waiting = read(
            bootstrap_servers,
            OffsetRange(TopicPartition(topic, 0), 0, 1),
            fail_on_data_loss=fail_on_data_loss,
            isolation_level=IsolationLevel.READ_COMMITTED,
            poll_timeout_ms=3_000,
        )
        with pytest.raises(DeadlineError, match=r"FETCH_NO_PROGRESS.*an open transaction"):
            list(waiting)
        producer.abort_transaction()
