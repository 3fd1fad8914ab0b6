"""What the plots of a page show."""

from __future__ import annotations

import pytest

from pyspark_kafka.operations.reports.plots import MAX_POINTS, rate_plot
from pyspark_kafka.operations.reports.timeline import BatchStats, thinned

_MINUTE = 60_000


@pytest.mark.parametrize("count", [2, 1_000])
def test_rate_leaves_out_the_time_between_batches(count: int) -> None:
    batches = [BatchStats(n, n * _MINUTE, n * _MINUTE + 1_000, True, 5_000) for n in range(count)]
    (rates,) = rate_plot(thinned(batches, MAX_POINTS), []).data
    assert set(rates.y) == {0.0, 5_000.0}


def test_rate_of_a_batch_that_is_not_finished_is_not_shown() -> None:
    (rates,) = rate_plot([BatchStats(0, 0, None, False, 10), BatchStats(1, 0, 1, True, None)], []).data
    assert not rates.y
