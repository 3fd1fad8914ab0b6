"""Numbers and time spans for people."""

from __future__ import annotations

import pytest

from pyspark_kafka._ops.operations.text import span_text

HOUR, DAY = 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (999.9, "999 ms"),
        (1_000, "1 s"),
        (1_349.5, "1.3 s"),
        (59_999, "59.9 s"),
        (60_000, "1 m"),
        (61_999, "1 m 1 s"),
        (HOUR, "1 h"),
        # Of the two largest units, the second one may be empty.
        (HOUR + 1_000, "1 h"),
        (3 * DAY + 4 * HOUR + 59_000, "3 d 4 h"),
        (400 * DAY, "400 d"),
    ],
)
def test_span_has_one_unit_below_a_minute_and_two_above_it(ms: float, text: str) -> None:
    assert span_text(ms) == text
