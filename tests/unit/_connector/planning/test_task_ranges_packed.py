"""Ranges to tasks: every range in one task, in order, within the bounds, the same every time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.costs import processor_s
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._connector.planning import pack_ranges


def ranges_of(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", number), 100, 100 + size) for number, size in enumerate(sizes)]


def sizes_of(tasks: tuple[tuple[OffsetRange, ...], ...]) -> list[list[int]]:
    return [[offset_range.size for offset_range in task] for task in tasks]


def test_a_range_is_a_task_unless_told_otherwise() -> None:
    assert sizes_of(pack_ranges(ranges_of(1, 1, 5, 1))) == [[1], [1], [5], [1]]


@pytest.mark.parametrize(
    ("max_ranges", "max_offsets", "expected"),
    [
        (3, 100, [[1, 2, 3], [4, 50, 6], [7]]),
        (10, 10, [[1, 2, 3, 4], [50], [6], [7]]),
        (10, 1_000, [[1, 2, 3, 4, 50, 6, 7]]),
        (10, 0, [[1], [2], [3], [4], [50], [6], [7]]),
    ],
)
def test_small_ranges_share_a_task_within_both_bounds(
    max_ranges: int, max_offsets: int, expected: list[list[int]]
) -> None:
    tasks = pack_ranges(ranges_of(1, 2, 3, 4, 50, 6, 7), max_ranges=max_ranges, max_offsets=max_offsets)
    assert sizes_of(tasks) == expected


def test_ranges_of_one_partition_never_share_a_task() -> None:
    partition = TopicPartition("t", 0)
    splits = [OffsetRange(partition, start, start + 1) for start in range(3)]
    assert pack_ranges(splits, max_ranges=10, max_offsets=10) == tuple((split,) for split in splits)


@given(st.lists(st.integers(1, 100)), st.integers(1, 5), st.integers(0, 150))
def test_packing_loses_no_range_and_keeps_the_bounds(sizes: list[int], max_ranges: int, max_offsets: int) -> None:
    ranges = ranges_of(*sizes)
    tasks = pack_ranges(ranges, max_ranges=max_ranges, max_offsets=max_offsets)
    assert [offset_range for task in tasks for offset_range in task] == ranges
    for task in tasks:
        assert 1 <= len(task) <= max_ranges
        assert len(task) == 1 or sum(offset_range.size for offset_range in task) <= max_offsets
    assert pack_ranges(ranges, max_ranges=max_ranges, max_offsets=max_offsets) == tasks


@pytest.mark.parametrize("max_ranges", [1, 100, 10_000])
def test_ten_thousand_partitions_are_packed_in_no_time(max_ranges: int) -> None:
    ranges = [OffsetRange(TopicPartition("t", number), 0, 5) for number in range(10_000)]
    assert processor_s(lambda: pack_ranges(ranges, max_ranges=max_ranges, max_offsets=100_000)) < 0.2
    tasks = pack_ranges(ranges, max_ranges=max_ranges, max_offsets=100_000)
    assert len(tasks) == 10_000 // max_ranges
