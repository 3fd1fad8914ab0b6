"""Properties of splitting that hold whatever is read."""

from __future__ import annotations

from itertools import groupby, pairwise

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._connector.planning import split_ranges

sizes = st.one_of(st.integers(-3, 50), st.integers(0, 2**40))
layouts = st.lists(st.tuples(st.integers(0, 2**40), sizes), max_size=12)
tasks = st.one_of(st.none(), st.integers(1, 60))


def build(layout: list[tuple[int, int]]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", n), begin, begin + size) for n, (begin, size) in enumerate(layout)]


@given(layouts, tasks, st.one_of(st.none(), st.integers(2**36, 2**41)))
def test_parts_cover_their_ranges_in_order_without_gap_or_overlap(
    layout: list[tuple[int, int]], wanted: int | None, most: int | None
) -> None:
    ranges = build(layout)
    parts = split_ranges(ranges, min_partitions=wanted, max_records=most)
    assert all(part.size > 0 for part in parts)
    grouped = [list(group) for _, group in groupby(parts, key=lambda part: part.topic_partition)]
    for group in grouped:
        assert all(one.end_offset == other.start_offset for one, other in pairwise(group))
    joined = [OffsetRange(group[0].topic_partition, group[0].start_offset, group[-1].end_offset) for group in grouped]
    assert joined == [offset_range for offset_range in ranges if offset_range.size > 0]


@given(layouts, tasks, st.integers(2**36, 2**41))
def test_no_part_is_larger_than_asked_for(layout: list[tuple[int, int]], wanted: int | None, most: int) -> None:
    assert all(part.size <= most for part in split_ranges(build(layout), min_partitions=wanted, max_records=most))


@given(layouts, tasks)
def test_the_parts_of_a_range_differ_by_one_at_most_and_grow(layout: list[tuple[int, int]], wanted: int | None) -> None:
    parts = split_ranges(build(layout), min_partitions=wanted)
    for _, group in groupby(parts, key=lambda part: part.topic_partition):
        found = [part.size for part in group]
        assert found == sorted(found)
        assert found[-1] - found[0] <= 1


@given(layouts, st.integers(1, 60))
def test_the_number_of_tasks_is_near_what_was_asked_for(layout: list[tuple[int, int]], wanted: int) -> None:
    filled = sum(size > 0 for _, size in layout)
    offsets = sum(size for _, size in layout if size > 0)
    parts = len(split_ranges(build(layout), min_partitions=wanted))
    # Each range's share is rounded by less than one.
    assert min(wanted, offsets) - filled <= parts <= max(wanted, filled) + filled
    if wanted <= filled:
        assert parts == filled
