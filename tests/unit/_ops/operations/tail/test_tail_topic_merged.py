"""The order of records of several partitions."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.tail.shown import ShownRecord
from pyspark_kafka._ops.operations.tail.tail_topic import merge_by_time


def records(number: int, times: Sequence[int | None]) -> list[ShownRecord]:
    return [ShownRecord(TopicPartition("t", number), offset, time) for offset, time in enumerate(times)]


def test_records_are_shown_by_time() -> None:
    by_partition = {TopicPartition("t", n): records(n, times) for n, times in enumerate([[1, 4], [2, 3], []])}
    assert [each.timestamp_ms for each in merge_by_time(by_partition)] == [1, 2, 3, 4]


def test_record_with_a_late_time_holds_back_only_its_own_partition() -> None:
    by_partition = {TopicPartition("t", n): records(n, times) for n, times in enumerate([[9, 1], [2, 3]])}
    assert [each.timestamp_ms for each in merge_by_time(by_partition)] == [2, 3, 9, 1]


@given(st.lists(st.lists(st.none() | st.integers(0, 99)), max_size=5))
def test_records_of_a_partition_stay_in_the_order_of_their_offsets(times: list[list[int | None]]) -> None:
    by_partition = {TopicPartition("t", number): records(number, each) for number, each in enumerate(times)}
    merged = list(merge_by_time(by_partition))
    assert len(merged) == sum(map(len, times))
    for where, expected in by_partition.items():
        assert [each for each in merged if each.topic_partition == where] == expected
