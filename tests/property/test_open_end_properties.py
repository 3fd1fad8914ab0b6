"""Planned, narrowed, split and closed when tasks start: together the tasks read what there is by then, once."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume, given
from hypothesis import strategies as st

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._connector.planning.open_ends import NO_END, OpenEnds, PlannedRange, split_planned

small = st.integers(0, 30)
bounds = st.one_of(st.just((0, NO_END)), st.tuples(small, small))
tasks_wanted = st.one_of(st.none(), st.integers(1, 9))


@dataclass(frozen=True)
class Log:
    """A partition when planned, and when its tasks start; `start` and `end` are what options say, None: open."""

    first: int
    end: int
    first_later: int
    end_later: int
    fixed_start: int | None
    fixed_end: int | None


@st.composite
def logs(draw: st.DrawFn) -> Log:
    first = draw(st.integers(0, 10))
    end = first + draw(st.integers(0, 20))
    end_later = end + draw(st.integers(0, 10))
    first_later = draw(st.one_of(st.just(first), st.integers(first, end_later)))
    fixed_start = draw(st.one_of(st.none(), st.integers(first, end)))
    fixed_end = draw(st.one_of(st.none(), st.integers(first if fixed_start is None else fixed_start, end)))
    return Log(first, end, first_later, end_later, fixed_start, fixed_end)


def planned(log: Log, topic_partition: TopicPartition) -> PlannedRange:
    start = log.first if log.fixed_start is None else log.fixed_start
    end = log.end if log.fixed_end is None else log.fixed_end
    open_ends = OpenEnds(
        start_from=0 if log.fixed_start is None else None, end_by=NO_END if log.fixed_end is None else None
    )
    is_open = log.fixed_start is None or log.fixed_end is None
    return PlannedRange(OffsetRange(topic_partition, start, end), open_ends if is_open else None)


@given(st.lists(logs(), max_size=4), bounds, tasks_wanted, tasks_wanted)
def test_tasks_read_what_there_is_when_they_start_each_offset_once(
    found: list[Log], kept: tuple[int, int], min_partitions: int | None, max_records: int | None
) -> None:
    # A log that has passed an end which an option fixed is an error: another test's.
    assume(all(log.fixed_end is None or log.first_later <= log.fixed_end for log in found))
    by_partition = {TopicPartition("t", number): log for number, log in enumerate(found)}
    narrowed = [planned(log, tp).narrow(*kept) for tp, log in by_partition.items()]
    tasks = split_planned(
        [part for part in narrowed if part is not None], min_partitions=min_partitions, max_records=max_records
    )
    read: dict[TopicPartition, list[int]] = {tp: [] for tp in by_partition}
    for task in tasks:
        topic_partition, open_ends = task.offset_range.topic_partition, task.open_ends
        log, offset_range = by_partition[topic_partition], task.offset_range
        if open_ends is not None:
            asks = open_ends.asks_first_offset(offset_range)
            offset_range = open_ends.close(offset_range, log.first_later if asks else None, log.end_later)
        read[topic_partition] += range(offset_range.start_offset, offset_range.end_offset)
    for topic_partition, log in by_partition.items():
        start = max(log.first_later if log.fixed_start is None else log.fixed_start, kept[0])
        end = min(log.end_later if log.fixed_end is None else log.fixed_end, kept[1])
        # What has aged out since is asked for by parts between; reading them finds out.
        left = [offset for offset in read[topic_partition] if offset >= log.first_later]
        assert left == [offset for offset in range(start, end) if offset >= log.first_later]
        if log.first_later == log.first:
            assert left == read[topic_partition]


@given(st.lists(logs(), max_size=4), tasks_wanted, tasks_wanted)
def test_a_plan_without_open_ends_is_split_as_ever(
    found: list[Log], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [OffsetRange(TopicPartition("t", number), log.first, log.end) for number, log in enumerate(found)]
    fixed = [PlannedRange(offset_range) for offset_range in ranges]
    tasks = split_planned(fixed, min_partitions=min_partitions, max_records=max_records)
    assert all(task.open_ends is None and task.offset_range.size > 0 for task in tasks)
    assert sum(task.offset_range.size for task in tasks) == sum(offset_range.size for offset_range in ranges)
