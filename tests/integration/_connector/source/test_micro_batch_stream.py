"""Planning of micro-batches against a real broker, where what a fake answers would only repeat our beliefs."""

from __future__ import annotations

import pytest

from kit.independent_client import Record, commit_positions, produce
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset
from pyspark_kafka._client.options import ConnectionOptions, StreamReadOptions, Subscription
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.connector import ReadAllAvailable, ReadMaxRows
from pyspark_kafka.errors import DataLossError
from pyspark_kafka.testing import EmbeddedKafka


def stream_of(kafka: EmbeddedKafka, pattern: str, *, fail_on_data_loss: bool = True) -> KafkaMicroBatchStream:
    host, _, port = kafka.bootstrap_servers.rpartition(":")
    options = StreamReadOptions(
        ConnectionOptions(((host, int(port)),)),
        Subscription("subscribePattern", pattern=pattern),
        starting=Earliest(),
        fail_on_data_loss=fail_on_data_loss,
    )
    return KafkaMicroBatchStream(options, SOURCE_SCHEMA)


def test_a_topic_that_is_deleted_before_its_first_batch_is_planned_is_data_loss(kafka: EmbeddedKafka) -> None:
    kept, deleted = TopicPartition("gone-kept", 0), TopicPartition("gone-deleted", 0)
    for topic_partition in (kept, deleted):
        kafka.create_topic(topic_partition.topic)
        produce(kafka.bootstrap_servers, topic_partition.topic, [Record(None, b"v", 0)])
    start = KafkaSourceOffset({kept: 0})
    end = stream_of(kafka, "^gone-").latestOffset(start, ReadAllAvailable())
    assert end == KafkaSourceOffset({kept: 1, deleted: 1})
    kafka.delete_topic(deleted.topic)
    with pytest.raises(DataLossError, match=r"INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS\].* gone-deleted-0: "):
        stream_of(kafka, "^gone-").planInputPartitions(start, end)
    tolerant = stream_of(kafka, "^gone-", fail_on_data_loss=False)
    assert tolerant.planInputPartitions(start, end) == [KafkaInputPartition(OffsetRange(kept, 0, 1))]
    # And the one after it, which finds a partition missing that it knew.
    after = tolerant.latestOffset(end, ReadMaxRows(10))
    assert after == KafkaSourceOffset({kept: 1})
    assert tolerant.planInputPartitions(end, after) == []


def test_internal_topic_is_read_if_it_is_named_and_not_by_a_pattern(kafka: EmbeddedKafka) -> None:
    internal = "__consumer_offsets"
    kafka.create_topic("positions-of")
    commit_positions(kafka.bootstrap_servers, "any", {("positions-of", 0): 0})
    for options, is_read in (({"subscribe": internal}, True), ({"subscribePattern": "^__consumer"}, False)):
        stream = KafkaMicroBatchStream.from_options(
            {"kafka.bootstrap.servers": kafka.bootstrap_servers, "startingOffsets": "earliest", **options}
        )
        start = stream.initialOffset()
        tasks = stream.planInputPartitions(start, stream.latestOffset(start, ReadAllAvailable()))
        assert bool(tasks) == is_read
        for task in tasks:
            reader = stream.createReaderFactory().createReader(task)
            assert sum(reader.get().num_rows for _ in iter(reader.next, False)) > 0
            reader.close()


def test_a_pattern_that_matches_nothing_yet_stands_still_and_then_begins_at_the_beginning(kafka: EmbeddedKafka) -> None:
    stream = stream_of(kafka, "^born-later$")
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadAllAvailable()) == start
    assert stream.planInputPartitions(start, start) == []
    kafka.create_topic("born-later")
    produce(kafka.bootstrap_servers, "born-later", [Record(None, b"v", 0)] * 3)
    end = stream.latestOffset(start, ReadMaxRows(2))
    born = TopicPartition("born-later", 0)
    assert end == KafkaSourceOffset({born: 2})
    assert stream.planInputPartitions(start, end) == [KafkaInputPartition(OffsetRange(born, 0, 2))]
