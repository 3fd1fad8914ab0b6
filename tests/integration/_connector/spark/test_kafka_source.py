"""The source that a program drives itself, against the real broker and through Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyspark_kafka
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.run import run_program
from pyspark_kafka import KafkaMicroBatchStream, KafkaSource
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.spark.compat import spark_limits
from pyspark_kafka.connector import ReadAllAvailable, ReadMaxRows
from pyspark_kafka.errors import CheckpointError, DataLossError, OptionError, PlanningError
from pyspark_kafka.testing import EmbeddedKafka

MakeSource = Callable[..., KafkaSource]


@pytest.fixture
def source(spark: SparkSession, bootstrap_servers: str) -> MakeSource:
    def make(topic: str, metadata_path: Path | None = None, **options: Any) -> KafkaSource:
        subscription = {} if options.keys() & {"assign", "subscribePattern"} else {"subscribe": topic}
        given = {"kafka.bootstrap.servers": bootstrap_servers, "startingOffsets": "earliest", **subscription, **options}
        return KafkaSource(spark, given, None if metadata_path is None else str(metadata_path))

    return make


def records(first: int, last: int, partitions: int = 1) -> list[Record]:
    return [Record(b"k", b"%d" % i, partition=i % partitions) for i in range(first, last)]


def values(batch: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in batch.select("value").collect())


def offset(topic: str, *offsets: int) -> KafkaSourceOffset:
    return KafkaSourceOffset.from_json(
        json.dumps({topic: {str(number): value for number, value in enumerate(offsets)}})
    )


def test_batches_follow_each_other_without_gap_or_repetition(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, records(0, 6, 2))
    kafka_source = source(topic)
    first = kafka_source.getOffset()
    assert first == offset(topic, 3, 3)
    batch = kafka_source.getBatch(None, first)
    produce(bootstrap_servers, topic, records(6, 10, 2))
    second = kafka_source.getOffset()
    assert second == offset(topic, 5, 5)
    assert values(kafka_source.getBatch(first, second)) == [6, 7, 8, 9]
    # Whenever it is used, and however often.
    assert values(batch) == values(batch) == [0, 1, 2, 3, 4, 5]
    kafka_source.commit(second)
    kafka_source.stop()
    assert batch.count() == 6


def test_offsets_may_be_text_mappings_or_values(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 5))
    kafka_source = source(topic)
    one, four = offset(topic, 1), offset(topic, 4)
    for start, end in (
        (one, four),
        (one.json(), four.json()),
        (one.to_dict(), four.to_dict()),
    ):
        assert values(kafka_source.getBatch(start, end)) == [1, 2, 3]
    assert kafka_source.latestOffset(one.json()) == offset(topic, 5)
    assert kafka_source.deserializeOffset(four.json()) == four
    wrong: Any
    for wrong in ("no JSON", {"t": 3}, 7):
        with pytest.raises(CheckpointError, match="CHECKPOINT_OFFSET_INVALID"):
            kafka_source.getBatch(None, wrong)


def test_initial_offsets_are_kept_for_good(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 3))
    place = tmp_path / "sources" / "0"
    assert source(topic, place, startingOffsets="latest").initialOffset() == offset(topic, 3)
    assert (place / "0").read_bytes() == b'\0v1\n{"%s":{"0":3}}' % topic.encode()
    produce(bootstrap_servers, topic, records(3, 5))
    # Another run with another starting option; the kept offsets take precedence.
    again = source(topic, place, startingOffsets="earliest")
    end = again.latestOffset(None)
    assert end is not None
    assert values(again.getBatch(None, end)) == [3, 4]
    # Option checkpointLocation names the same place.
    by_option = source(topic, startingOffsets="earliest", checkpointLocation=str(tmp_path))
    assert by_option.initialOffset() == offset(topic, 3)
    with pytest.raises(OptionError, match="'checkpointLocation' and argument metadata_path are both given"):
        source(topic, place, checkpointLocation=str(tmp_path))


def test_initial_offsets_are_kept_in_memory_if_there_is_no_place_for_them(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 3))
    kafka_source = source(topic, startingOffsets="latest")
    assert kafka_source.initialOffset() == offset(topic, 3)
    produce(bootstrap_servers, topic, records(3, 5))
    end = kafka_source.latestOffset(None)
    assert end == offset(topic, 5)
    assert values(kafka_source.getBatch(None, end)) == [3, 4]
    assert source(topic, startingOffsets="latest").initialOffset() == offset(topic, 5)


def test_a_given_start_touches_no_kept_offsets(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 3))
    kafka_source = source(topic, tmp_path / "sources" / "0")
    assert values(kafka_source.getBatch(offset(topic, 1), offset(topic, 3))) == [1, 2]
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_a_first_batch_may_carry_its_start(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 5))
    kafka_source = source(topic, tmp_path / "sources" / "0")
    assert values(kafka_source.getBatch(None, f'{{"{topic}":{{"00":2,"0":4}}}}')) == [2, 3]
    assert list(tmp_path.iterdir()) == []
    # What follows does not begin there.
    assert kafka_source.getOffset() == offset(topic, 5)


def test_limits_are_those_of_the_options_or_of_the_call(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 10))
    kafka_source = source(topic, maxOffsetsPerTrigger=4)
    assert kafka_source.getDefaultReadLimit() == ReadMaxRows(4)
    ends = []
    for _ in range(4):
        end = kafka_source.getOffset()
        assert end is not None
        kafka_source.getBatch(None, end)
        ends.append(end)
    # The last is where it stands: there is nothing more.
    assert ends == [offset(topic, 4), offset(topic, 8), offset(topic, 10), offset(topic, 10)]
    assert kafka_source.latestOffset(None, ReadMaxRows(7)) == offset(topic, 7)
    assert kafka_source.latestOffset(None, ReadAllAvailable()) == offset(topic, 10)
    assert kafka_source.reportLatestOffset() == offset(topic, 10)


def test_limits_of_spark_are_taken_as_well(source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 10))
    kafka_source = source(topic)
    assert kafka_source.latestOffset(None, spark_limits.ReadMaxRows(7)) == offset(topic, 7)
    assert kafka_source.latestOffset(offset(topic, 8), spark_limits.ReadAllAvailable()) == offset(topic, 10)


def test_the_newest_offset_is_unknown_before_it_was_looked_up(source: MakeSource, make_topic: TopicMaker) -> None:
    assert source(make_topic()).reportLatestOffset() is None


def test_a_subscription_without_partitions_has_no_offset(source: MakeSource) -> None:
    kafka_source = source("", subscribePattern="^there-is-no-such-topic$")
    assert kafka_source.getOffset() is None


def test_available_now_ends_at_its_first_look(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 6))
    kafka_source = source(topic, maxOffsetsPerTrigger=4)
    kafka_source.prepareForTriggerAvailableNow()
    first = kafka_source.getOffset()
    assert first == offset(topic, 4)
    produce(bootstrap_servers, topic, records(6, 9))
    assert values(kafka_source.getBatch(None, first)) == [0, 1, 2, 3]
    second = kafka_source.latestOffset(first)
    assert second == offset(topic, 6)
    assert values(kafka_source.getBatch(first, second)) == [4, 5]
    assert kafka_source.latestOffset(second) == second
    with pytest.raises(PlanningError):
        kafka_source.getBatch(second, offset(topic, 9))


def test_an_empty_range_has_the_columns_and_no_rows(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 3))
    for options in ({}, {"includeHeaders": "true"}):
        kafka_source = source(topic, **options)
        full = kafka_source.getBatch(offset(topic, 0), offset(topic, 3))
        empty = kafka_source.getBatch(offset(topic, 3), offset(topic, 3))
        assert empty.schema == full.schema == kafka_source.schema()
        assert empty.collect() == []
        assert full.count() == 3


def test_a_deleted_topic_is_data_loss_or_left_out(
    source: MakeSource, make_topic: TopicMaker, kafka: EmbeddedKafka, bootstrap_servers: str, tmp_path: Path
) -> None:
    kept, gone = make_topic(), make_topic()
    for topic in (kept, gone):
        produce(bootstrap_servers, topic, records(0, 3))
    pattern = f"^({kept}|{gone})$"
    first = source("", tmp_path, subscribePattern=pattern).getOffset()
    kafka.delete_topic(gone)
    produce(bootstrap_servers, kept, records(3, 5))
    strict = source("", tmp_path, subscribePattern=pattern)
    for refused in (lambda: strict.latestOffset(first), lambda: strict.getBatch(first, offset(kept, 5))):
        with pytest.raises(DataLossError, match=rf"PARTITIONS_DELETED.*{gone}-0"):
            refused()
    lenient = source("", tmp_path, subscribePattern=pattern, failOnDataLoss="false")
    assert values(lenient.getBatch(first, lenient.latestOffset(first) or "")) == [3, 4]


def test_a_batch_is_split_as_the_options_say(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 12))
    start, end = offset(topic, 0), offset(topic, 12)
    for options, tasks in (({}, 1), ({"minPartitions": 4}, 4), ({"maxRecordsPerPartition": "5"}, 3)):
        batch = source(topic, **options).getBatch(start, end)
        assert batch.rdd.getNumPartitions() == tasks
        assert values(batch) == list(range(12))


def test_stream_only_options_do_not_reach_the_batch(
    source: MakeSource, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, records(0, 6, 2))
    kafka_source = source(
        "", assign=json.dumps({topic: [1]}), STARTINGOFFSETS="earliest", minOffsetsPerTrigger=1, maxTriggerDelay="1m",
        maxOffsetsPerTrigger=2, startingOffsetsByTimestampStrategy="latest", includeHeaders=True,
    )  # fmt: skip
    end = kafka_source.getOffset()
    assert end == KafkaSourceOffset.from_json(json.dumps({topic: {"1": 2}}))
    batch = kafka_source.getBatch(None, end)
    assert values(batch) == [1, 3]
    assert "headers" in batch.columns


def test_source_names_itself_as_the_one_of_spark(source: MakeSource, make_topic: TopicMaker) -> None:
    topic = make_topic()
    assert repr(source(topic)) == f"KafkaSourceV1[Subscribe[{topic}]]"


def test_wrong_options_are_refused_at_once(spark: SparkSession) -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        KafkaSource(spark, {"subscribe": "t"})


def test_the_public_names_are_where_they_are_said_to_be() -> None:
    for name in pyspark_kafka.__all__:
        assert getattr(pyspark_kafka, name) is not None
    assert KafkaMicroBatchStream.__module__ == "pyspark_kafka._connector.source.driver.micro_batch"
    with pytest.raises(AttributeError, match="no attribute 'KafkaTable'"):
        _ = pyspark_kafka.KafkaTable


_CONNECT = """
import sys
from pyspark.sql import SparkSession
from pyspark_kafka import KafkaSource

remote, servers, topic, place = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
source = KafkaSource(spark, options, place)
end = source.getOffset()
batch = source.getBatch(None, end)
print(type(batch).__module__, batch.count(), source.getBatch(end, end).count(), end.json())
spark.stop()
"""


@pytest.mark.full("Spark Connect")
def test_source_works_on_spark_connect(
    make_topic: TopicMaker, bootstrap_servers: str, connect_url: str, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, records(0, 3))
    kept = tmp_path / "sources" / "0"
    said = run_program(_CONNECT, connect_url, bootstrap_servers, topic, str(kept), place=tmp_path)
    assert f'pyspark.sql.connect.dataframe 3 0 {{"{topic}":{{"0":3}}}}' in said
    assert (kept / "0").read_bytes() == b'\0v1\n{"%s":{"0":0}}' % topic.encode()
