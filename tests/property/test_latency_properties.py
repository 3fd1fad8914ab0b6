"""Histograms of latencies: close to what they count, the same in any order, and of bounded size."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.continuous.epochs.latencies import LaneMetrics, LatencyHistogram, RecentTimes

# From microseconds to a month.
LATENCIES = st.floats(0, 3e9, allow_nan=False)
WEIGHTED = st.lists(st.tuples(LATENCIES, st.integers(1, 1000)), min_size=1, max_size=60)


def histogram_of(latencies: list[tuple[float, int]]) -> LatencyHistogram:
    made = LatencyHistogram()
    for latency, rows in latencies:
        made.add_latency(latency, rows)
    return made


def exact_percentile(latencies: list[tuple[float, int]], percent: float) -> float:
    rows = sum(count for _, count in latencies)
    seen = 0
    for latency, count in sorted(latencies):
        seen += count
        if seen >= rows * percent / 100:
            return latency
    raise AssertionError


@given(WEIGHTED, st.floats(1, 100))
def test_percentile_is_within_5_percent(latencies: list[tuple[float, int]], percent: float) -> None:
    found = histogram_of(latencies).percentile(percent)
    expected = exact_percentile(latencies, percent)
    assert found == pytest.approx(expected, rel=0.0501, abs=0.1)
    assert found <= max(latency for latency, _ in latencies)


@given(WEIGHTED, WEIGHTED)
def test_merged_histograms_are_those_of_all_rows(
    some: list[tuple[float, int]], others: list[tuple[float, int]]
) -> None:
    merged = histogram_of(some)
    merged.merge(histogram_of(others))
    assert merged.to_list() == histogram_of(some + others).to_list()
    assert merged.rows == sum(rows for _, rows in some + others)


@given(WEIGHTED, st.floats(0.001, 1e6))
def test_rows_that_took_longer_have_later_percentiles(latencies: list[tuple[float, int]], later_ms: float) -> None:
    before, after = histogram_of(latencies), LatencyHistogram()
    after.merge(before, later_ms)
    assert after.rows == before.rows
    assert after.greatest_ms == before.greatest_ms + later_ms
    for percent in (50, 99):
        expected = exact_percentile(latencies, percent) + later_ms
        # Counted twice: each time it is off by one half of a bucket at most.
        assert after.percentile(percent) == pytest.approx(expected, rel=0.103, abs=0.1)


@given(WEIGHTED, st.lists(st.text()).map(tuple), st.booleans())
def test_figures_survive_their_text(latencies: list[tuple[float, int]], latest: tuple[str, ...], since: bool) -> None:
    sent = histogram_of(latencies)
    text = LaneMetrics(latest, sent, LatencyHistogram(), 1.7e12, since).to_text()
    found = LaneMetrics.from_text(text)
    assert (found.latest, found.at_ms, found.since_record) == (latest, 1.7e12, since)
    assert found.sent.to_list() == sent.to_list()
    assert found.sent.rows == sent.rows


@given(st.recursive(st.none() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=6)))
def test_other_text_is_refused_as_a_value_error(data: object) -> None:
    try:
        found = LaneMetrics.from_text(json.dumps(data))
    except ValueError:
        return
    assert found.sent.rows >= 0
    assert all(math.isfinite(value) for value in found.sent.summary().values())


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 100)), min_size=1, max_size=2000))
def test_recent_times_keep_all_rows_in_bounded_space(times: list[tuple[float, int]]) -> None:
    kept = RecentTimes(max_times=16)
    for pair in times:
        kept.add_times([pair])
    found = kept.until(2e6)
    assert found.rows == sum(rows for _, rows in times)
    assert len(kept._pairs) < 16
    assert found.percentile(50) * 1.06 >= 1e6
    assert found.percentile(99) <= 2e6
