"""Sums of sizes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.model import TopicPartition
from pyspark_kafka.operations.topics.sizes import LedLog, LogSizes, SizesBy

SIZES = LogSizes(
    {
        TopicPartition("a", 0): LedLog(1, 10),
        TopicPartition("a", 1): LedLog(2, None),
        TopicPartition("b", 0): LedLog(2, 30),
        TopicPartition("c", 0): LedLog(-1, None),
    },
    {1: "one:9092", 2: "two:9092"},
)


def test_sizes_by_topic_are_the_largest_first() -> None:
    assert [(row.name, row.size, row.partitions, row.unknown, row.leaders) for row in SIZES.rows("topic")] == [
        ("b", 30, 1, 0, (2,)),
        ("a", 10, 2, 1, (1, 2)),
        ("c", 0, 1, 1, (-1,)),
    ]


def test_sizes_by_broker_name_its_address() -> None:
    assert [(row.name, row.size, row.unknown) for row in SIZES.rows("broker")] == [
        ("2 (two:9092)", 30, 1),
        ("1 (one:9092)", 10, 0),
        ("no leader", 0, 1),
    ]


def test_sizes_by_partition_are_those_of_the_logs() -> None:
    assert [(row.name, row.size) for row in SIZES.rows("partition")] == [
        ("b-0", 30),
        ("a-0", 10),
        ("a-1", 0),
        ("c-0", 0),
    ]


_LOGS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 9)),
    st.builds(LedLog, st.integers(-1, 3), st.none() | st.integers(0, 1 << 62)),
)


@given(_LOGS, st.sampled_from(["topic", "broker", "partition"]))
def test_no_byte_and_no_partition_is_lost_in_sums(logs: dict[TopicPartition, LedLog], by: SizesBy) -> None:
    sizes = LogSizes(logs, {})
    rows = sizes.rows(by)
    assert sum(row.size for row in rows) == sizes.total
    assert sum(row.partitions for row in rows) == len(logs)
    assert sum(row.unknown for row in rows) == sum(log.size is None for log in logs.values())
    assert [row.size for row in rows] == sorted((row.size for row in rows), reverse=True)
