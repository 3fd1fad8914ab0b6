"""A stream that is held and driven by hand, without Spark, against a real broker."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import drain
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka.connector import CompositeReadLimit, Offset, ReadMaxBytes, ReadMaxRows
from pyspark_kafka.errors import BrokerError, DataLossError
from pyspark_kafka.testing import EmbeddedKafka


def stream_of(servers: str, topic: str, **options: str) -> KafkaMicroBatchStream:
    return KafkaMicroBatchStream.from_options(
        {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest", **options}
    )


def read(stream: KafkaMicroBatchStream, start: Offset, end: Offset) -> list[bytes]:
    """Read a batch as an engine does."""
    found: list[bytes] = []
    factory = stream.createReaderFactory()
    for partition in stream.planInputPartitions(start, end):
        for batch in drain(factory.createReader(partition)):
            found += batch.column("value").to_pylist()
    return found


def numbered(first: int, last: int) -> list[Record]:
    return [Record(None, b"v%d" % number, 0) for number in range(first, last)]


def test_a_stream_is_driven_by_hand_batch_by_batch(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(bootstrap_servers, topic, numbered(0, 10))
    stream = stream_of(bootstrap_servers, topic, maxOffsetsPerTrigger="6", includeHeaders="true")
    assert repr(stream) == f"KafkaV2[Subscribe[{topic}]]"
    start = stream.initialOffset()
    assert start == KafkaSourceOffset({partition: 0})
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(6)

    first = stream.latestOffset(start, limit)
    assert read(stream, start, first) == [b"v%d" % number for number in range(6)]
    assert stream.reportLatestOffset() == KafkaSourceOffset({partition: 10})
    behind = {"minOffsetsBehindLatest": "4", "maxOffsetsBehindLatest": "4", "avgOffsetsBehindLatest": "4.0"}
    assert stream.metrics(first) == behind
    stream.commit(first)

    second = stream.latestOffset(stream.deserializeOffset(first.json()), limit)
    assert read(stream, first, second) == [b"v%d" % number for number in range(6, 10)]
    assert stream.latestOffset(second, limit) == second
    stream.stop()


def test_a_snapshot_of_available_now_ends_where_it_was_taken(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, numbered(0, 4))
    stream = stream_of(bootstrap_servers, topic)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    produce(bootstrap_servers, topic, numbered(4, 9))
    assert stream.latestOffset(end, stream.getDefaultReadLimit()) == end
    assert len(read(stream, start, end)) == 4


def test_a_batch_reads_about_the_bytes_of_its_limit(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    large, small = TopicPartition(topic, 0), TopicPartition(topic, 1)
    produce(
        bootstrap_servers,
        topic,
        [Record(None, b"." * 10_000, 0)] * 100 + [Record(None, b"." * 100, 1)] * 1_000,
    )
    stream = stream_of(bootstrap_servers, topic, maxBytesPerTrigger="200000", maxOffsetsPerTrigger="100000")
    limit = stream.getDefaultReadLimit()
    assert limit == CompositeReadLimit((ReadMaxRows(100_000), ReadMaxBytes(200_000)))
    position: Offset = stream.initialOffset()
    batches: list[int] = []
    while (end := stream.latestOffset(position, limit)) != position:
        values = read(stream, position, end)
        batches.append(sum(map(len, values)))
        position = end
    assert position == KafkaSourceOffset({large: 100, small: 1_000})
    # 1.1 MB of values.
    assert sum(batches) == 1_100_000
    assert len(batches) in (6, 7)
    assert max(batches) <= 210_000


@pytest.mark.parametrize("records", [2, 30])
def test_a_recreated_topic_is_noticed_by_the_next_run(
    kafka: EmbeddedKafka, make_topic: TopicMaker, tmp_path: Path, records: int
) -> None:
    topic = make_topic()
    produce(kafka.bootstrap_servers, topic, numbered(0, 10))
    options = {"checkpointLocation": str(tmp_path)}
    first_run = stream_of(kafka.bootstrap_servers, topic, **options)
    start = first_run.initialOffset()
    end = first_run.latestOffset(start, first_run.getDefaultReadLimit())
    assert len(read(first_run, start, end)) == 10

    kafka.delete_topic(topic)
    remake(kafka, topic)
    produce(kafka.bootstrap_servers, topic, numbered(0, records))

    strict = stream_of(kafka.bootstrap_servers, topic, **options)
    with pytest.raises(DataLossError, match=rf"TOPIC_RECREATED\] .*'{topic}' \(id .* before, .* now\)"):
        strict.latestOffset(end, strict.getDefaultReadLimit())
    tolerant = stream_of(kafka.bootstrap_servers, topic, failOnDataLoss="false", **options)
    after = tolerant.latestOffset(end, tolerant.getDefaultReadLimit())
    assert read(tolerant, end, after) == [b"v%d" % number for number in range(records)]
    # From then on it is the query's topic.
    produce(kafka.bootstrap_servers, topic, numbered(records, records + 3))
    later = stream_of(kafka.bootstrap_servers, topic, **options)
    last = later.latestOffset(after, later.getDefaultReadLimit())
    assert read(later, after, last) == [b"v%d" % number for number in range(records, records + 3)]


def remake(kafka: EmbeddedKafka, topic: str, timeout_s: float = 30.0) -> None:
    """Create a topic of the name of a deleted one, which the broker may still be removing."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            return kafka.create_topic(topic)
        except BrokerError as error:
            if error.condition != "TOPIC_ALREADY_EXISTS" or time.monotonic() > end:
                raise
            time.sleep(0.05)
