"""Histograms of latencies, at the edges of their buckets."""

from __future__ import annotations

import json

import pytest

from pyspark_kafka.continuous.epochs.latencies import LaneMetrics, LatencyHistogram, RecentTimes


def test_summary_names_percentiles_and_the_greatest_as_measured() -> None:
    histogram = LatencyHistogram()
    histogram.add_latency(3.0, rows=98)
    histogram.add_latency(40.0)
    histogram.add_latency(1234.56)
    summary = histogram.summary()
    assert summary == {"p50": pytest.approx(3, rel=0.05), "p99": pytest.approx(40, rel=0.05), "max": 1235}


def test_histogram_without_rows_has_no_summary() -> None:
    assert LatencyHistogram().summary() == {}
    assert LatencyHistogram().percentile(50) == 0


def test_latency_of_clocks_that_differ_counts_as_none() -> None:
    histogram = LatencyHistogram()
    histogram.add_latency(-500.0)
    assert histogram.summary() == {"p50": 0, "p99": 0, "max": 0}


def test_metrics_of_every_bucket_take_a_few_kilobytes() -> None:
    metrics = LaneMetrics(('{"t":{"0":1}}',))
    for number in range(2_000):
        metrics.sent.add_latency(0.01 * 1.03**number, 1_000_000)
        metrics.ages.add_latency(0.01 * 1.03**number, 1_000_000)
    assert len(metrics.to_text()) < 8_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[null,[0.0],[0.0],0,1,[]]",
        "[[1],[0.0],[0.0],0,1,[]]",
        "[[],[],[0.0],0,1,[]]",
        "[[],[0.0,1],[0.0],0,1,[]]",
        "[[],[0.0,268,1],[0.0],0,1,[]]",
        "[[],[0.0,-1,1],[0.0],0,1,[]]",
        "[[],[0.0,1,1.5],[0.0],0,1,[]]",
        "[[],[0.0,1,1,1,1],[0.0],0,1,[]]",
        "[[],[0.0,true,1],[0.0],0,1,[]]",
        '[[],["x"],[0.0],0,1]',
        "[[],[NaN],[0.0],0,1,[]]",
        "[[],[0.0],[Infinity],0,1,[]]",
        "[[],[0.0],[0.0],NaN,1,[]]",
        "[[],[0.0],[0.0],0,1]",
        "[[],[0.0],[0.0],0,1,[[]]]",
        "[[],[0.0],[0.0],0,1,[7]]",
        "[[],[0.0],[0.0],0,1,{}1]",
        "[" * 100_000,
    ],
)
def test_malformed_metrics_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the metrics of a lane"):
        LaneMetrics.from_text(text)


def test_figures_are_plain_json() -> None:
    metrics = LaneMetrics()
    metrics.sent.add_latency(5.0, 2)
    assert json.loads(metrics.to_text()) == [[], [5.0, 42, 2], [0.0], 0.0, 1, []]


def test_merged_figures_are_those_of_both_lanes_when_the_later_one_ended() -> None:
    first, second = LaneMetrics(("a",), at_ms=1_000.0), LaneMetrics(("b",), at_ms=3_000.0, since_record=False)
    for metrics in (first, second):
        metrics.sent.add_latency(5.0, 2)
        metrics.ages.add_latency(100.0, 2)
    for one, other in ((first, second), (second, first)):
        merged = LaneMetrics.from_text(one.to_text())
        merged.merge(LaneMetrics.from_text(other.to_text()))
        assert set(merged.latest) == {"a", "b"}
        assert (merged.sent.rows, merged.sent.greatest_ms) == (4, 5.0)
        # The first lane's rows have waited for two seconds more.
        assert (merged.ages.rows, merged.ages.greatest_ms, merged.at_ms) == (4, 2_100.0, 3_000.0)
        assert not merged.since_record


def test_recent_times_that_are_many_become_fewer_with_the_same_mean() -> None:
    times = RecentTimes(max_times=4)
    for moment in (100.0, 0.0, 10.0, 110.0):
        times.add_times([(moment, 1)])
    assert sorted(times._pairs) == [(5.0, 2), (105.0, 2)]
    assert times.until(105.0).greatest_ms == 100.0
