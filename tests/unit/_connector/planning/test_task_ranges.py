"""How ranges are split into tasks."""

from __future__ import annotations

import pytest

from kit.texts import said
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._connector.planning import split_ranges
from pyspark_kafka.errors import OptionError

P = [TopicPartition("t", number) for number in range(5)]


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(P[number], 10, 10 + size) for number, size in enumerate(sizes)]


def split(*sizes: int, **options: int | None) -> list[tuple[int, int, int]]:
    return [
        (part.topic_partition.partition, part.start_offset - 10, part.end_offset - 10)
        for part in split_ranges(ranges(*sizes), **options)
    ]


def counts(*sizes: int, **options: int | None) -> list[int]:
    found = [partition for partition, _, _ in split(*sizes, **options)]
    return [found.count(number) for number in range(len(sizes))]


def test_filled_range_is_a_task_without_options() -> None:
    assert split(5, 0, 7) == [(0, 0, 5), (2, 0, 7)]
    assert split_ranges([OffsetRange(P[0], 5, 3)]) == ()
    assert split_ranges([], min_partitions=4, max_records=1) == ()


@pytest.mark.parametrize("wanted", [1, 2])
def test_ranges_stay_whole_if_there_are_as_many_as_wanted(wanted: int) -> None:
    assert split(5, 0, 700, min_partitions=wanted) == [(0, 0, 5), (2, 0, 700)]


def test_an_empty_range_does_not_count_as_a_task() -> None:
    assert split(6, 0, min_partitions=2) == [(0, 0, 3), (0, 3, 6)]


def test_the_last_part_takes_what_does_not_divide() -> None:
    assert split(10, min_partitions=3) == [(0, 0, 3), (0, 3, 6), (0, 6, 10)]
    assert split(11, min_partitions=4) == [(0, 0, 2), (0, 2, 5), (0, 5, 8), (0, 8, 11)]


def test_parts_are_in_proportion_to_sizes() -> None:
    assert counts(100, 100, min_partitions=4) == [2, 2]
    assert counts(300, 100, min_partitions=4) == [3, 1]


def test_small_ranges_stay_whole_and_leave_their_share_to_the_large_ones() -> None:
    # 1 of 10 tasks each would be 0.05 rounded up; the large range gets the eight that remain.
    assert counts(1, 1, 198, min_partitions=10) == [1, 1, 8]


def test_the_wish_for_tasks_is_a_hint() -> None:
    # 2.5 tasks each are rounded up: six instead of five.
    assert counts(100, 100, min_partitions=5) == [3, 3]
    # 1.33 tasks each are rounded down: three instead of four.
    assert counts(100, 100, 100, min_partitions=4) == [1, 1, 1]
    # The small one stays whole (1.14); 3.5 each of the seven that remain are rounded up.
    assert counts(300, 300, 100, min_partitions=8) == [4, 4, 1]
    # There are no more tasks than offsets.
    assert counts(2, min_partitions=10) == [2]


# Measured on spark-sql-kafka-0-10 4.2.0: sizes of the partitions, minPartitions, maxRecordsPerPartition, sizes of the
# tasks of each partition.
MEASURED = [
    ((300, 300, 100), 5, None, [[150] * 2, [150] * 2, [100]]),
    ((300, 300, 100), 8, None, [[75] * 4, [75] * 4, [100]]),
    ((300, 300, 100), 10, None, [[60] * 5, [60] * 5, [100]]),
    ((101, 11, 1), 8, None, [[16, 17, 17, 17, 17, 17], [11], [1]]),
    ((7, 7, 7, 50), 7, None, [[7], [7], [7], [12, 12, 13, 13]]),
    ((101, 11, 1), None, 9, [[8, 8, 8, 8, 8, 8, 8, 9, 9, 9, 9, 9], [5, 6], [1]]),
    ((101, 11, 1), 9, 30, [[12, 13, 12, 13, 12, 13, 13, 13], [11], [1]]),
    ((7, 7, 7, 50), 11, 20, [[7], [7], [7], [5, 5, 6, 5, 6, 6, 5, 6, 6]]),
    ((10, 4), None, 3, [[2, 2, 3, 3], [2, 2]]),
]


@pytest.mark.parametrize(("partitions", "wanted", "most", "expected"), MEASURED)
def test_tasks_are_those_of_sparks_connector(
    partitions: tuple[int, ...], wanted: int | None, most: int | None, expected: list[list[int]]
) -> None:
    parts = split(*partitions, min_partitions=wanted, max_records=most)
    sizes = [[end - start for number, start, end in parts if number == wished] for wished in range(len(partitions))]
    assert sizes == expected


def test_ranges_have_at_most_the_maximum_of_records() -> None:
    assert split(10, 4, 1, max_records=4) == [(0, 0, 3), (0, 3, 6), (0, 6, 10), (1, 0, 4), (2, 0, 1)]
    assert counts(10, max_records=10) == [1]
    assert counts(10, max_records=2**63 - 1) == [1]


def test_records_are_limited_first_and_tasks_added_then() -> None:
    assert counts(100, 10, max_records=50, min_partitions=2) == [2, 1]
    assert counts(100, 10, max_records=50, min_partitions=11) == [10, 1]


def test_sizes_beyond_floating_point_are_split_exactly() -> None:
    (first, second) = split_ranges([OffsetRange(P[0], 0, 2**63 - 1)], min_partitions=2)
    assert (first.end_offset, second.start_offset, second.end_offset) == (2**62 - 1, 2**62 - 1, 2**63 - 1)


def test_more_tasks_than_a_driver_can_plan_are_refused_before_they_are_made() -> None:
    with pytest.raises(OptionError) as caught:
        split_ranges([OffsetRange(P[0], 0, 2**62)], max_records=1)
    assert said(caught.value) == (
        "[TOO_MANY_TASKS] Options 'maxRecordsPerPartition' and 'minPartitions' would split 1 ranges of "
        "4611686018427387904 offsets into 4611686018427387904 tasks, more than the 1000000 that one read may have. "
        "Nothing was read. Hint: Raise 'maxRecordsPerPartition' or lower 'minPartitions'; a stream can also take less "
        "at a time by 'maxOffsetsPerTrigger'."
    )
