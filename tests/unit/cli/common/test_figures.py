"""Bytes and bars for people."""

from __future__ import annotations

import pytest

from pyspark_kafka.cli.common.figures import bar_text, bytes_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (10_200, "9.96 KiB"),
        (10_240, "10.0 KiB"),
        (1_048_575, "1.00 MiB"),
        (999 << 30, "999 GiB"),
        (1 << 63, "8.00 EiB"),
    ],
)
def test_bytes_are_in_the_largest_unit_that_fits(count: int, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("part", "whole", "bar"),
    [(0, 5, ""), (5, 0, ""), (4, 4, "████"), (9, 4, "████"), (1, 2, "██"), (3, 32, "▍"), (1, 10**9, "▏")],
)
def test_bar_is_as_long_as_its_part(part: int, whole: int, bar: str) -> None:
    assert bar_text(part, whole, 4) == bar
    ascii_bar = bar_text(part, whole, 4, ascii_only=True)
    assert ascii_bar.strip("#") == ""
    assert bool(ascii_bar) == bool(bar)
    assert len(ascii_bar) <= 4
