"""The last records of a topic, found backwards."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._ops.operations.tail.last import LastRecords, first_window

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
# Times by offset, of the records that are shown.
Logs = dict[TopicPartition, dict[int, int]]


def search(
    logs: Logs, ends: dict[TopicPartition, tuple[int, int]], count: int, window: int, kept: int = 100
) -> tuple[Logs, int]:
    """Return the records from where the search says on, and the number of offsets that it looked through."""
    last = LastRecords(count, ends, window, kept)
    looked = 0
    for windows in last.groups():
        assert len(windows) == 1 or sum(min(each.size, count) for each in windows) <= max(kept, count)
        for each in windows:
            times = logs[each.topic_partition]
            inside = [
                (offset, times[offset]) for offset in range(each.start_offset, each.end_offset) if offset in times
            ]
            last.note_window(each, inside)
            looked += each.size
    starts = last.starts()
    return {
        where: {offset: time for offset, time in times.items() if offset >= starts[where]}
        for where, times in logs.items()
    }, looked


@st.composite
def topics(draw: st.DrawFn, latest: int = 30) -> tuple[Logs, dict[TopicPartition, tuple[int, int]]]:
    logs, ends = Logs(), {}
    for number in range(draw(st.integers(1, 4))):
        where = TopicPartition("t", number)
        begin = draw(st.integers(0, 50))
        end = begin + draw(st.integers(0, 40))
        offsets = draw(st.sets(st.integers(begin, end - 1))) if end > begin else set()
        logs[where] = {offset: draw(st.integers(0, latest)) for offset in sorted(offsets)}
        ends[where] = (begin, end)
    return logs, ends


@given(topics(), st.integers(1, 20), st.integers(1, 8), st.integers(1, 100))
def test_last_records_are_the_ends_of_partitions_with_the_latest_times(
    topic: tuple[Logs, dict[TopicPartition, tuple[int, int]]], count: int, window: int, kept: int
) -> None:
    logs, ends = topic
    found, _ = search(logs, ends, count, window, kept)
    assert sum(map(len, found.values())) == min(count, sum(map(len, logs.values())))
    # A record counts with the earliest time behind it: none that was left out is later than one that was taken.
    counted = {
        (where, offset): min(time for behind, time in times.items() if behind >= offset)
        for where, times in logs.items()
        for offset in times
    }
    taken = [counted[where, offset] for where, times in found.items() for offset in times]
    left = [time for (where, offset), time in counted.items() if offset not in found[where]]
    assert not taken or not left or max(left) <= min(taken)


# The search has as many records as are wanted before it meets the later one of the same time.
@example(({ONE: {8: 5, 9: 5}, TWO: {4: 5, 5: 5}}, {ONE: (0, 10), TWO: (0, 6)}), 2, 1, 100)
@given(topics(latest=2), st.integers(1, 20), st.integers(1, 8), st.integers(1, 100))
def test_offset_decides_between_records_of_one_time_however_the_search_goes(
    topic: tuple[Logs, dict[TopicPartition, tuple[int, int]]], count: int, window: int, kept: int
) -> None:
    logs, ends = topic
    found, _ = search(logs, ends, count, window, kept)
    order = sorted(
        (min(time for behind, time in times.items() if behind >= offset), offset, where)
        for where, times in logs.items()
        for offset in times
    )
    expected = [(where, offset) for _, offset, where in order[-count:]]
    assert sorted((where, offset) for where, times in found.items() for offset in times) == sorted(expected)


def test_search_ends_as_soon_as_nothing_can_be_later() -> None:
    old = dict.fromkeys(range(100_000), 0)
    new = {offset: 1_000 + offset for offset in range(100)}
    found, looked = search({ONE: old, TWO: new}, {ONE: (0, 100_000), TWO: (0, 100)}, 10, 10)
    assert (len(found[ONE]), list(found[TWO])) == (0, list(range(90, 100)))
    assert looked == 20


def test_holes_are_passed_in_windows_that_grow() -> None:
    times = {5: 1, 6: 2}
    last = LastRecords(10, {ONE: (0, 1_000_000)}, 10)
    rounds = 0
    while windows := last.next_windows():
        rounds += 1
        for each in windows:
            last.note_window(
                each, [(offset, times[offset]) for offset in times if each.start_offset <= offset < each.end_offset]
            )
    assert last.starts() == {ONE: 5}
    assert rounds < 15


def test_partition_without_records_begins_at_its_end() -> None:
    last = LastRecords(3, {ONE: (7, 7), TWO: (0, 2)}, 3)
    assert last.next_windows() == [OffsetRange(TWO, 0, 2)]
    last.note_window(OffsetRange(TWO, 0, 2), [])
    assert last.next_windows() == []
    assert last.starts() == {ONE: 7, TWO: 2}


def test_first_windows_have_about_as_many_offsets_as_are_asked_for() -> None:
    assert [first_window(10, each) for each in (1, 3, 10_000)] == [10, 10, 10]
    assert [first_window(100_000, each) for each in (1, 3, 1_000, 10_000)] == [100_000, 33_334, 100, 100]
    assert first_window(10, 0) == 10


def test_partition_that_is_dropped_is_looked_through_no_more_and_keeps_what_was_found() -> None:
    last = LastRecords(10, {ONE: (0, 100), TWO: (0, 100)}, 1, kept=1)
    seen = []
    for windows in last.groups():
        for each in windows:
            seen.append(each.topic_partition)
            last.note_window(each, [(each.start_offset, 1)] if each.end_offset == 100 else [])
        if len(seen) == 2:
            assert last.drop([TWO, TopicPartition("t", 7)]) == [TWO]
            assert last.drop([TWO]) == []
    assert seen.count(TWO) == 1
    assert seen.count(ONE) > 3
    assert last.starts() == {ONE: 99, TWO: 99}
