"""Rates, pauses and thinning of batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._ops.operations.reports.timeline import (
    BatchStats,
    Gap,
    Standstill,
    find_gaps,
    find_standstill,
    summarize,
    thinned,
)

_MINUTE = 60_000


def batch(
    number: int, begun_ms: int, finished_ms: int | None, rows: int | None = 10, run: str | None = None
) -> BatchStats:
    return BatchStats(number, begun_ms, finished_ms, finished_ms is not None, rows, run_id=run)


def test_figures_of_batches_are_summed() -> None:
    found = summarize([batch(0, 0, 1_000), batch(1, 2_000, 5_000, 50), batch(2, 9_000, None, 0)])
    assert (found.batches, found.rows, found.to_ms, found.median_ms) == (3, 60, 9_000, 2_000)
    assert found.rows_per_second == 60 / 9


def test_nothing_is_summed_of_nothing() -> None:
    found = summarize([])
    assert (found.batches, found.rows, found.to_ms, found.rows_per_second, found.median_ms) == (0, 0, None, None, None)


def test_sum_of_rows_is_unknown_if_no_batch_has_any() -> None:
    found = summarize([batch(0, 0, 1_000, None)])
    assert (found.rows, found.rows_per_second) == (None, None)
    assert summarize([batch(0, 0, 1_000, None), batch(1, 2_000, 3_000, 5)]).rows == 5


def test_pause_that_is_long_for_the_query_is_a_gap() -> None:
    batches = [batch(number, number * 1_000, number * 1_000 + 900) for number in range(10)]
    batches.append(batch(10, 9_900 + 5 * _MINUTE, 10_000 + 5 * _MINUTE, 7))
    assert find_gaps(batches) == [Gap(9, 10, 9_900, 9_900 + 5 * _MINUTE, 7, None)]


def test_batch_that_took_as_long_as_a_restart_is_a_gap_unless_its_run_says_how_long_it_worked() -> None:
    batches = [batch(number, number * 1_000, number * 1_000 + 900) for number in range(4)]
    (gap,) = find_gaps([*batches, batch(4, 4_000, 4_000 + _MINUTE, 50)])
    assert (gap.is_within, gap.after, gap.length_ms, gap.is_restart) == (True, 4, _MINUTE, None)
    assert find_gaps([*batches, batch(4, 4_000, 4_000 + _MINUTE, 50, "run")]) == []
    assert find_gaps([*batches, batch(4, 4_000, 4_000 + _MINUTE - 1, 50)]) == []
    assert find_gaps([batch(0, 0, 5 * _MINUTE)]) == []


def test_pauses_of_a_query_that_runs_every_hour_are_no_gaps() -> None:
    hour = 60 * _MINUTE
    assert find_gaps([batch(number, number * hour, number * hour + _MINUTE) for number in range(5)]) == []


def test_change_of_the_run_is_a_gap_however_short() -> None:
    found = find_gaps([batch(0, 0, 10, run="a"), batch(1, 20, 30, run="a"), batch(2, 40, 50, run="b")])
    assert [(each.after, each.before, each.is_restart) for each in found] == [(1, 2, True)]


def test_batch_whose_rows_explain_its_length_is_not_a_gap() -> None:
    batches = [batch(number, number * 1_000, number * 1_000 + 900, 9_000) for number in range(4)]
    after_outage = batch(4, 4_000, 94_000, 800_000)
    assert find_gaps([*batches, after_outage]) == []
    (gap,) = find_gaps([*batches, batch(4, 4_000, 94_000, 200_000)])
    assert (gap.is_within, gap.rows) == (True, 200_000)
    (gap,) = find_gaps([*batches, batch(4, 4_000, 94_000, None)])
    assert gap.is_within


def test_standstill_begins_after_ten_times_the_usual_time_between_batches() -> None:
    batches = [batch(number, number * 10_000, number * 10_000 + 900) for number in range(5)]
    assert find_standstill(batches, 40_900 + 100_000 - 1) is None
    assert find_standstill(batches, 40_900 + 100_000) == Standstill(100_000, None, 10_000, 10_000)


def test_standstill_is_at_least_a_minute() -> None:
    batches = [batch(number, number * 10, number * 10 + 9) for number in range(5)]
    assert find_standstill(batches, 49 + _MINUTE - 1) is None
    assert find_standstill(batches, 49 + _MINUTE) == Standstill(_MINUTE, None, 10, 10)


def test_query_that_runs_every_hour_stands_still_after_ten_hours() -> None:
    hour = 60 * _MINUTE
    batches = [batch(number, number * hour, number * hour + _MINUTE) for number in range(5)]
    assert find_standstill(batches, 7 * hour) is None


def test_standstill_of_an_unfinished_batch_counts_from_its_beginning() -> None:
    batches = [batch(0, 0, 10), batch(1, 1_000, None)]
    assert find_standstill(batches, 61_000) == Standstill(_MINUTE, 1, 1_000, 1_000)


def test_standstill_is_unknown_without_a_time() -> None:
    assert find_standstill([], _MINUTE) is None
    assert find_standstill([BatchStats(0, None, None, True, 1)], _MINUTE) is None
    # No query reads a batch that a rewind has passed over.
    over = BatchStats(1, 500, None, False, None, is_passed_over=True)
    assert find_standstill([batch(0, 0, 10), over], 10 + _MINUTE) == Standstill(_MINUTE, None, None, 0)


def test_thinned_batches_name_those_that_they_stand_for() -> None:
    batches = [batch(number, number * 10, number * 10 + 5, rows=number) for number in range(10)]
    found = thinned(batches, 4)
    assert [each.title for each in found] == ["0 to 2", "3 to 5", "6 to 8", "9"]
    assert [each.rows for each in found] == [3, 12, 21, 9]
    assert [each.duration_ms for each in found] == [15, 15, 15, 5]
    assert (found[1].begun_ms, found[1].finished_ms) == (30, 55)
    assert [each.rows_and_ms for each in found] == [(3, 15), (12, 15), (21, 15), (9, 5)]


def test_thinned_batches_rate_only_rows_whose_time_is_known() -> None:
    batches = [BatchStats(0, 0, 10, True, None), batch(1, 100, 110), batch(2, 200, None)]
    assert [each.rows_and_ms for each in batches] == [None, (10, 10), None]
    (found,) = thinned(batches, 1)
    assert (found.rows, found.duration_ms, found.rows_and_ms) == (20, 20, (10, 10))
    assert thinned([found, batch(3, 300, 330)], 1)[0].rows_and_ms == (20, 40)
    assert thinned([batches[0], batches[2]], 1)[0].rows_and_ms is None


@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 50), st.none() | st.integers(0, 50)), max_size=200),
    st.integers(1, 30),
)
def test_thinning_loses_no_rows(given_: list[tuple[int, int, int | None]], max_batches: int) -> None:
    batches = [
        BatchStats(number, wait, None if taken is None else wait + taken, taken is not None, rows, {"addBatch": rows})
        for number, (rows, wait, taken) in enumerate(given_)
    ]
    found = thinned(batches, max_batches)
    assert len(found) <= max_batches
    assert sum(each.rows or 0 for each in found) == sum(each.rows or 0 for each in batches)
    assert sum(each.phases_ms.get("addBatch", 0) for each in found) == sum(rows for rows, _, _ in given_)
    assert sum(each.duration_ms or 0 for each in found) == sum(each.duration_ms or 0 for each in batches)
    # Thinned again, they still name the first and the last of all.
    again = thinned(found, 1)
    assert [each.title for each in again] == ([] if not batches else [thinned(batches, 1)[0].title])
