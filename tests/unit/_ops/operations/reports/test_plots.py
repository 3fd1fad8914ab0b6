"""What the plots of a page show."""

from __future__ import annotations

import pytest

from pyspark_kafka._ops.operations.reports.plots import MAX_POINTS, phases_plot, rate_plot, rows_plot
from pyspark_kafka._ops.operations.reports.timeline import BatchStats, Gap, thinned

_MINUTE = 60_000


@pytest.mark.parametrize("count", [2, 1_000])
def test_rate_leaves_out_the_time_between_batches(count: int) -> None:
    batches = [BatchStats(n, n * _MINUTE, n * _MINUTE + 1_000, True, 5_000) for n in range(count)]
    (rates,) = rate_plot(thinned(batches, MAX_POINTS), []).data
    assert set(rates.y) == {0.0, 5_000.0}


def test_rate_of_a_batch_that_is_not_finished_is_not_shown() -> None:
    (rates,) = rate_plot([BatchStats(0, 0, None, False, 10), BatchStats(1, 0, 1, True, None)], []).data
    assert not rates.y


def batches_with(largest: int) -> list[BatchStats]:
    """Return 100 batches of 100 to 199 rows, a second for each 100, of which one has that many."""
    rows = [largest if number == 50 else 100 + number for number in range(100)]
    return [BatchStats(n, 0, each * 10, True, each, {"addBatch": each * 10}) for n, each in enumerate(rows)]


def test_bar_that_would_flatten_the_others_is_cut_and_named() -> None:
    rows, phases = rows_plot(batches_with(90_000)), phases_plot(batches_with(90_000))
    assert rows.layout.title.text == "rows of each batch, by its number; 1 bar is cut, the largest is 90,000"
    assert rows.layout.yaxis.range == pytest.approx((0, 1.1 * 199))
    assert phases.layout.title.text.endswith("; 1 bar is cut, the largest is 900")
    assert phases.layout.yaxis.range == pytest.approx((0, 1.1 * 1.99))
    assert 90_000 in rows.data[0].y


@pytest.mark.parametrize("largest", [150, 900])
def test_bar_near_the_others_is_not_cut(largest: int) -> None:
    for figure in (rows_plot(batches_with(largest)), phases_plot(batches_with(largest))):
        assert "cut" not in figure.layout.title.text
        assert figure.layout.yaxis.range is None


def test_plots_of_empty_and_unknown_batches_are_not_cut() -> None:
    batches = [BatchStats(number, None, None, True, None if number else 10) for number in range(100)]
    for figure in (rows_plot(batches), phases_plot(batches), rows_plot([])):
        assert figure.layout.yaxis.range is None


def test_longest_pause_is_named_in_the_plot() -> None:
    gaps = [Gap(1, 2, 0, 47 * _MINUTE, 5, None), Gap(3, 4, 50 * _MINUTE, 52 * _MINUTE, 5, None)]
    (named,) = rate_plot([], gaps).layout.annotations
    assert named.text == "pause of 47 m"
