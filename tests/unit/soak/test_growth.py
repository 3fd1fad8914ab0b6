"""Whether a figure of a soak stayed flat: noise and settling are not growth, a leak is."""

from __future__ import annotations

import random

from soak.growth import Sample, chart, ends, grown, settled, summary


def hours(leak_an_hour: float, *, settling: float = 0.0) -> list[Sample]:
    """Return two hours of a figure that is about 100, with noise."""
    rng = random.Random(1)
    times = [float(at) for at in range(0, 7200, 10)]
    return [(at, {"n": 100 + rng.uniform(-8, 8) + at / 3600 * leak_an_hour - settling * (at < 600)}) for at in times]


def test_noise_is_not_growth() -> None:
    assert grown(hours(0.0), {"n": 5.0}) == []


def test_leak_is_growth() -> None:
    (found,) = grown(hours(20.0), {"n": 5.0})
    assert found.startswith("n: 10")


def test_leak_below_the_slack_is_not_growth() -> None:
    assert grown(hours(20.0), {"n": 50.0}) == []


def test_growth_in_the_first_minutes_is_left_out() -> None:
    samples = hours(0.0, settling=80.0)
    assert grown(samples, {"n": 5.0}) != []
    assert grown(settled(samples), {"n": 5.0}) == []


def test_peak_at_an_end_does_not_count_as_the_end() -> None:
    samples = hours(0.0)
    samples[-1] = (samples[-1][0], {"n": 900.0})
    assert ends(samples, "n")[1] < 110


def test_chart_has_as_many_points_as_fit_and_the_table_has_the_max() -> None:
    samples = [(float(at), {"n": 108.0 if at == 3600 else 100.0}) for at in range(0, 7200, 10)]
    (line,) = [text for text in chart(samples, ["n"], "Memory", "MiB").splitlines() if text.startswith("    line")]
    assert line.count(",") + 1 == 60
    assert "| n | 100 | 108 | 100 |" in summary(samples, ["n"])
