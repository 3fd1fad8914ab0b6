"""Gaps and recoveries are found by what came through, and when it was there to read."""

from __future__ import annotations

import random

from chaos.timeline import Timeline


def test_gap_counts_only_while_there_was_a_record_to_read() -> None:
    times = [(0.0, 1.0), (1.0, 2.0), (9.0, 10.0), (9.5, 14.0), (9.6, 14.0)]
    # From 2 to 9 there was nothing to read; from 10 to 14 there was.
    assert Timeline(times).longest_gap(0.0, 20.0) == 4.0
    assert Timeline(times).longest_gap(0.0, 9.5) == 1.0
    assert Timeline(times[:1]).longest_gap(0.0, 20.0) == 0.0
    assert Timeline([]).longest_gap(0.0, 20.0) == 0.0


def test_time_to_recover_is_that_of_the_first_record_that_was_there_after_the_fault() -> None:
    timeline = Timeline([(0.0, 6.0), (5.5, 9.0), (5.6, 8.0)])
    assert timeline.time_to_recover(5.0) == 3.0
    assert timeline.time_to_recover(7.0) is None


def test_delays_are_those_of_records_that_were_there_later() -> None:
    assert Timeline([(0.0, 6.0), (5.5, 9.0), (5.6, 8.0)]).delays(1.0) == [8.0 - 5.6, 3.5]


def test_any_times_give_what_looking_at_each_record_gives() -> None:
    rng = random.Random(1)
    for _ in range(200):
        times = [(read := rng.randrange(40) / 2, read + rng.randrange(1, 20) / 2) for _ in range(rng.randrange(12))]
        timeline = Timeline(times)
        begin = rng.randrange(30) / 2
        end = begin + rng.randrange(20) / 2
        ordered = sorted(times, key=lambda each: each[1])
        gaps = [
            written - max(ordered[number - 1][1], min(read for read, _ in ordered[number:]))
            for number, (_, written) in enumerate(ordered)
            if number and written > begin and ordered[number - 1][1] < end
        ]
        assert timeline.longest_gap(begin, end) == max(gaps, default=0.0)
        after = [written - begin for read, written in times if read >= begin]
        assert timeline.time_to_recover(begin) == min(after, default=None)
