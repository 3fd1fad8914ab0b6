"""Figures in words."""

from __future__ import annotations

import math

import pytest

from pyspark_kafka._ops.cli.lag import words
from pyspark_kafka._ops.operations.lag.values import LagState, PartitionLag


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "?"),
        (0.0, "0 s"),
        (0.25, "250 ms"),
        (61.0, "1 m 1 s"),
        (90_000.0, "1 d 1 h"),
        (math.inf, "never"),
        (1e18, "never"),
    ],
)
def test_span_has_two_units_or_a_word(seconds: float | None, text: str) -> None:
    assert words.span(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "?"),
        (0, "0 B"),
        (1023, "~1023 B"),
        (1024, "~1.0 KiB"),
        (5 * 2**40, "~5.0 TiB"),
        (2**70, "~1048576.0 PiB"),
    ],
)
def test_size_is_an_estimate_in_the_largest_unit(value: int | None, text: str) -> None:
    assert words.size(value) == text


@pytest.mark.parametrize(("rate", "text"), [(None, "?"), (0.0, "0/s"), (0.5, "0.5/s"), (12_345.6, "12,346/s")])
def test_rate_is_a_whole_number_unless_it_is_small(rate: float | None, text: str) -> None:
    assert words.rate(rate) == text


def test_bar_is_as_long_as_its_share_and_never_longer() -> None:
    assert words.bar(10, 10, 4) == "████"
    assert words.bar(5, 10, 4) == "██"
    assert words.bar(1, 10_000, 4) == "▏"
    assert words.bar(99, 10, 4) == "████"
    assert words.bar(0, 10, 4) == words.bar(0, 0, 4) == ""


def test_sparkline_is_as_high_as_the_share_of_the_largest() -> None:
    assert words.sparkline([0, 1, 4, 8]) == "▁▁▄█"
    assert words.sparkline([0, 0]) == "▁▁"
    assert words.sparkline([]) == ""


def test_line_of_a_partition_has_what_is_known() -> None:
    found = PartitionLag(
        "orders",
        3,
        LagState.KNOWN,
        1,
        0,
        9,
        1_200,
        0,
        2_048,
        200.0,
        produced_per_s=20.0,
        consumed_per_s=5.0,
        headroom_s=math.inf,
    )
    assert words.partition_line(found) == (
        "orders-3: 1,200 records behind, ~2.0 KiB, 3 m 20 s old, 20/s written, 5/s read, headroom unlimited"
    )
    assert (
        words.partition_line(PartitionLag("orders", 3, LagState.KNOWN, records_behind=0)) == "orders-3: nothing behind"
    )
    assert words.partition_line(PartitionLag("orders", 3, LagState.GONE)) == "orders-3: gone"
    lost = PartitionLag("orders", 3, LagState.LOST, records_behind=5, records_lost=2)
    assert words.partition_line(lost) == "orders-3: 5 records behind, 2 lost"


def test_line_shows_no_control_characters_of_a_name() -> None:
    assert "\x1b" not in words.partition_line(PartitionLag("a\x1b[2J", 0))
