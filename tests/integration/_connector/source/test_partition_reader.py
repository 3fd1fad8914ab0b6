"""Reading ranges as an executor does, against real brokers: what a range means, what is lost, what a broker does."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaProducer

from kit import reading
from kit.administration import delete_records
from kit.fixtures.broker import MortalBroker, TopicMaker
from kit.independent_client import Record, consume, produce
from kit.reading import column_of, drain, options_for
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._base.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.options import ConnectionOptions, ProducerOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.executor.partition_reader import KafkaPartitionReader
from pyspark_kafka.errors import CorruptRecordsError, DataLossError, DeadlineError

# Also where a test has a broker of its own.
KIB, MIB = 1 << 10, 1 << 20
COLUMNS = ("value", "topic", "partition", "offset")


def reader_of(
    bootstrap_servers: str | ConnectionOptions,
    topic: str,
    start: int,
    end: int,
    *,
    columns: Sequence[str] = COLUMNS,
    fail_on_data_loss: bool = True,
    **fetch: Any,
) -> KafkaPartitionReader:
    """Build the reader of a range of partition 0."""
    offset_range = OffsetRange(TopicPartition(topic, 0), start, end)
    return reading.reader_of(
        bootstrap_servers, offset_range, columns=columns, fail_on_data_loss=fail_on_data_loss, **fetch
    )


def offsets(reader: KafkaPartitionReader) -> list[int]:
    return column_of(drain(reader), "offset")


def keep_offsets(running: Iterator[pa.RecordBatch], found: list[int]) -> None:
    """Add the offsets that come to `found`, which keeps them when an error ends it."""
    for batch in running:
        found += batch.column("offset").to_pylist()


def numbered(count: int, size: int = 0) -> list[Record]:
    return [Record(None, b"%d" % number + b"." * size, 0, timestamp_ms=1) for number in range(count)]


def end_of(bootstrap_servers: str, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    with borrow_client(options_for(bootstrap_servers)) as client:
        return list_offsets(client, {partition: Latest()})[partition]


def trim(bootstrap_servers: str, topic: str, before: int) -> None:
    """Remove the records below an offset, as retention does."""
    with borrow_client(options_for(bootstrap_servers)) as client:
        delete_records(client, {TopicPartition(topic, 0): before})


@pytest.fixture(scope="module")
def transactional_topic(bootstrap_servers: str, make_topic: TopicMaker) -> str:
    """A log of committed 0-2, marker 3, aborted 4-6, marker 7, committed 8-10, marker 11, aborted 12-14, marker 15."""
    topic = make_topic()
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=f"tx-{topic}")
    try:
        producer.init_transactions()
        for commit in (True, False, True, False):
            producer.begin_transaction()
            for _ in range(3):
                producer.send(topic, b"x", partition=0).get(timeout=PATIENCE_S)
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()
    # The broker writes the last marker after the producer has its answer.
    eventually(lambda: end_of(bootstrap_servers, topic) == 16)
    return topic


COMMITTED = [0, 1, 2, 8, 9, 10]
ALL = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14]


@pytest.mark.parametrize(
    ("level", "visible"), [(IsolationLevel.READ_COMMITTED, COMMITTED), (IsolationLevel.READ_UNCOMMITTED, ALL)]
)
def test_every_range_over_transactions_gives_its_visible_records_and_ends_at_its_end(
    bootstrap_servers: str, transactional_topic: str, level: IsolationLevel, visible: list[int]
) -> None:
    for start in range(16):
        for end in range(start + 1, 17):
            # Short, so that a reader that waits for records behind the end fails soon.
            reader = reader_of(
                bootstrap_servers, transactional_topic, start, end, isolation_level=level, poll_timeout_ms=5_000
            )
            assert offsets(reader) == [offset for offset in visible if start <= offset < end], (start, end)


def test_columns_come_in_the_order_asked_with_the_declared_schema(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(b"k", b"v", 0, 1_700_000_000_123, [("h", b"1"), ("h", b"")])])
    names = list(reversed(SOURCE_SCHEMA.names))
    (batch,) = drain(reader_of(bootstrap_servers, topic, 0, 1, columns=names))
    assert batch.schema.equals(pa.schema([SOURCE_SCHEMA.field(name) for name in names]))
    row = batch.to_pylist()[0]
    assert row.pop("timestamp").timestamp() == 1_700_000_000.123
    assert row == {
        "key": b"k",
        "value": b"v",
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": b""}],
    }


@pytest.mark.parametrize("columns", [(), ("topic",), ("partition", "topic")])
def test_rows_are_counted_where_no_column_of_the_records_is_asked_for(
    bootstrap_servers: str, make_topic: TopicMaker, columns: tuple[str, ...]
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(25))
    found = list(drain(reader_of(bootstrap_servers, topic, 5, 25, columns=columns)))
    assert sum(batch.num_rows for batch in found) == 20
    assert all(batch.schema.names == list(columns) for batch in found)


def test_records_of_a_log_append_topic_carry_the_brokers_time(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(config={"message.timestamp.type": "LogAppendTime"})
    before = time.time()
    produce(bootstrap_servers, topic, numbered(3))
    (batch,) = drain(reader_of(bootstrap_servers, topic, 0, 3, columns=("timestamp", "timestampType")))
    assert batch.column("timestampType").to_pylist() == [1, 1, 1]
    for written in batch.column("timestamp").to_pylist():
        # The record's own time is 1 ms after the epoch; brokers keep milliseconds.
        assert before - 0.001 <= written.timestamp() <= time.time()


def test_compaction_leaves_holes_that_are_passed_over(mortal_broker: MortalBroker) -> None:
    servers = mortal_broker.bootstrap_servers
    config = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
    mortal_broker.kafka.create_topic("compacted", 1, config)
    for start in range(0, 60, 20):
        produce(servers, "compacted", [Record(b"k%d" % (n % 10), b"%d" % n, 0) for n in range(start, start + 20)])
    # The active segment is not cleaned: this one makes room for it.
    produce(servers, "compacted", [Record(b"last", b"last", 0)])

    def left() -> list[int]:
        return offsets(reader_of(servers, "compacted", 0, 61))

    eventually(lambda: left() == [*range(50, 61)])
    assert offsets(reader_of(servers, "compacted", 7, 49)) == []
    assert offsets(reader_of(servers, "compacted", 7, 53)) == [50, 51, 52]


# -- lost records


@pytest.mark.parametrize("tolerated", [True, False])
def test_records_trimmed_while_the_range_is_read_are_the_only_ones_that_are_missing(
    bootstrap_servers: str, make_topic: TopicMaker, *, tolerated: bool
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(2_000, KIB), batch_size=16 * KIB)
    reader = reader_of(
        bootstrap_servers, topic, 0, 2_000, fail_on_data_loss=tolerated is False, max_bytes_per_fetch=64 * KIB
    )
    running = drain(reader)
    found = next(running).column("offset").to_pylist()
    trim(bootstrap_servers, topic, 1_900)
    if tolerated:
        keep_offsets(running, found)
    else:
        with pytest.raises(DataLossError) as caught:
            keep_offsets(running, found)
        assert f"Offsets [{len(found)}, 1900) of {topic}-0 [0, 2000) cannot be read" in str(caught.value)
        assert f"Records of the range before {len(found)} were emitted" in str(caught.value)
    kept = len(found) - (100 if tolerated else 0)
    assert 0 < kept < 1_900
    assert found == [*range(kept), *(range(1_900, 2_000) if tolerated else ())]


# -- damaged records


def record_of(batch: int, number: int) -> bytes:
    return b"batch-%d-record-%d" % (batch, number) + b"." * 100


def batch_starts(log: bytearray) -> list[int]:
    """Return where each batch of a segment begins, and where the last one ends."""
    starts = [0]
    while starts[-1] < len(log):
        starts.append(starts[-1] + 12 + int.from_bytes(log[starts[-1] + 8 : starts[-1] + 12], "big"))
    return starts


def test_a_batch_with_one_wrong_bit_is_an_error_and_only_what_lies_before_it_is_emitted(
    mortal_broker: MortalBroker,
) -> None:
    servers, topics = mortal_broker.bootstrap_servers, {"damaged-none": None, "damaged-lz4": "lz4"}
    for topic, compression in topics.items():
        mortal_broker.kafka.create_topic(topic)
        for batch in range(4):
            # One call, one batch.
            sent = [Record(None, record_of(batch, number), 0) for number in range(10)]
            produce(servers, topic, sent, compression_type=compression, linger_ms=60_000)
    # In order: a broker that was killed checks its segments when it starts, and cuts off what is damaged.
    mortal_broker.kafka.stop()
    for topic, compression in topics.items():
        (segment,) = (mortal_broker.data_dir / f"{topic}-0").glob("*.log")
        log = bytearray(segment.read_bytes())
        starts = batch_starts(log)
        assert len(starts) == 5
        at = log.find(b"batch-2-record-5") + 3 if compression is None else starts[3] - 20
        assert starts[2] + 61 < at < starts[3]
        log[at] ^= 1
        segment.write_bytes(log)
    mortal_broker.kafka.start()

    for topic in topics:
        found: list[int] = []
        with pytest.raises(CorruptRecordsError) as caught:
            keep_offsets(drain(reader_of(servers, topic, 3, 40)), found)
        assert found == [*range(3, 20)]
        text = str(caught.value)
        assert f"Reading {topic}-0 [3, 40), topic '{topic}', partition 0: " in text
        assert re.search(r"base offset 20\b", text)
        assert "CRC" in text
        # What lies behind it can be read.
        assert offsets(reader_of(servers, topic, 30, 40)) == [*range(30, 40)]
    # Who reads without checksums gets the damage.
    whole = [record_of(2, number) for number in range(10)]
    found_unchecked = column_of(drain(reader_of(servers, "damaged-none", 20, 30, check_crcs=False)), "value")
    assert [number for number in range(10) if found_unchecked[number] != whole[number]] == [5]


# -- brokers that go away


@pytest.mark.full("Waits for limits of time")
def test_a_broker_that_stays_away_ends_reads_with_the_place_and_its_address(mortal_broker: MortalBroker) -> None:
    mortal_broker.kafka.create_topic("away")
    produce(mortal_broker.bootstrap_servers, "away", numbered(3_000, KIB), batch_size=16 * KIB)
    connection = options_for(mortal_broker.bootstrap_servers, api_timeout_ms=1_000, connect_timeout_ms=1_000)
    reader = reader_of(connection, "away", 0, 3_000, max_bytes_per_fetch=256 * KIB, poll_timeout_ms=4_000)
    running = drain(reader)
    found = next(running).column("offset").to_pylist()
    mortal_broker.kafka.kill()
    began = time.monotonic()
    with pytest.raises(DeadlineError) as caught:
        keep_offsets(running, found)
    # Not after the time of a request, 30 s, nor that of a read by default, 120 s.
    assert time.monotonic() - began < 25
    assert found == [*range(len(found))]
    text = str(caught.value)
    assert text.startswith(f"[FETCH_NO_PROGRESS] Reading away-0 [0, 3000): no progress at offset {len(found)} for")
    assert mortal_broker.bootstrap_servers in text
    assert f"Records of the range before {len(found)} were handed out, none from there on." in text

    # And a reader that has never reached it.
    connection = options_for(
        mortal_broker.bootstrap_servers, api_timeout_ms=500, connect_timeout_ms=500, client_id="never"
    )
    began = time.monotonic()
    with pytest.raises(DeadlineError) as caught:
        offsets(reader_of(connection, "away", 0, 10, poll_timeout_ms=1_500))
    assert time.monotonic() - began < 25
    text = str(caught.value)
    assert text.startswith("[FETCH_NO_PROGRESS] Reading away-0 [0, 10): no progress at offset 0")
    assert mortal_broker.bootstrap_servers in text


# -- resources


def test_a_reader_closed_early_leaves_a_client_that_the_next_reader_is_quick_with(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(5_000, KIB), batch_size=16 * KIB)
    # A name of its own, so that the pool has no other client for it.
    connection = options_for(bootstrap_servers, client_id=f"early-{topic}")
    waits: list[float] = []
    clients: set[int] = set()
    for start in range(0, 2_000, 100):
        began = time.perf_counter()
        running = drain(reader_of(connection, topic, start, 5_000, max_bytes_per_fetch=256 * KIB))
        first = next(running)
        waits.append((time.perf_counter() - began) * 1000)
        assert first.column("offset")[0].as_py() == start
        running.close()
        with borrow_client(connection) as client:
            clients.add(id(client))
            assert client.cached_leader(TopicPartition(topic, 0)) is not None
    print(f"first records after {', '.join(f'{wait:.1f}' for wait in waits)} ms")  # noqa: T201 - the figure is wanted
    assert len(clients) == 1
    # The best of the warm ones: other work of the machine may hold up any of them.
    assert min(waits[1:]) < 50


def test_a_reader_that_failed_leaves_a_client_that_works(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(100))
    trim(bootstrap_servers, topic, 50)
    with pytest.raises(DataLossError):
        offsets(reader_of(bootstrap_servers, topic, 0, 100))
    assert offsets(reader_of(bootstrap_servers, topic, 50, 100)) == [*range(50, 100)]


@pytest.mark.full("Large batches")
def test_memory_stays_bounded_whatever_the_range_and_its_compression(
    bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    count = 200_000
    rows = pa.record_batch({"value": pa.array([b"x" * 1_000] * 10_000, pa.binary())})
    # Record batches of 8 MiB that compress to almost nothing: one fetch holds the whole topic.
    producer = ProducerOptions(compression="zstd", batch_size=8 * MIB, max_request_size=8 * MIB)
    writer = KafkaDataWriter(WriteOptions(options_for(bootstrap_servers), topic, producer), SinkColumns(value=0))
    for _ in range(count // rows.num_rows):
        writer.write(rows)
    written = writer.commit()
    writer.close()
    assert written.records == count
    assert written.encoded_bytes < 4 * MIB
    before = pa.total_allocated_bytes()
    peak = rows_read = largest = 0
    for batch in drain(reader_of(bootstrap_servers, topic, 0, count)):
        peak = max(peak, pa.total_allocated_bytes() - before)
        rows_read += batch.num_rows
        largest = max(largest, batch.nbytes)
    assert rows_read == count
    assert peak < 64 * MIB
    assert largest < 4 * MIB


def test_another_client_finds_the_same_records(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(1_000, 50), batch_size=2_000, compression_type="gzip")
    found = column_of(drain(reader_of(bootstrap_servers, topic, 0, 1_000)), "value")
    assert found == [record.value for record in consume(bootstrap_servers, topic, 1_000)]
