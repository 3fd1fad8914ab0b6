from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._ops.operations.checkpoints.forking.places import parse_offsets, parse_time
from pyspark_kafka.errors import OptionError

# 2026-01-01T00:00:00Z
NOW = 1_767_225_600_000
HOUR = 3_600_000
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("2 hours ago", NOW - 2 * HOUR),
        ("2h", NOW - 2 * HOUR),
        ("90 s", NOW - 90_000),
        ("1 hour 30 minutes ago", NOW - 5_400_000),
        ("now", NOW),
        ("2025-12-31T22:00:00Z", NOW - 2 * HOUR),
        ("2025-12-31T22:00:00+01:00", NOW - 3 * HOUR),
        (str(NOW - 7), NOW - 7),
        # Without a zone: local time, here two hours ahead of UTC.
        ("2026-01-01T00:00:00.250", NOW - 2 * HOUR + 250),
        ("2026-01-01 00:00", NOW - 2 * HOUR),
        ("2026-01-01", NOW - 2 * HOUR),
    ],
)
def test_time_is_read_in_each_form(text: str, at_ms: int) -> None:
    place = parse_time(text, NOW, EAST)
    assert place.timestamp_ms == at_ms
    assert ("local time" in place.said) == (text.startswith("2026-01-01"))
    assert not place.is_future


def test_time_that_has_not_come_is_marked() -> None:
    assert parse_time("2026-01-01T00:00:01Z", NOW).is_future


@pytest.mark.parametrize("text", ["", "yesterday", "2x", "9999999h", "-1h", "2026-13-01", "1900-01-01", "9" * 30, "h"])
def test_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"\[ARGUMENT_INVALID\] --at .* is not a time") as caught:
        parse_time(text, NOW)
    assert caught.value.hint == 'Write "2 hours ago", 2h, or 2026-01-31T22:15:00Z.'


def test_seconds_in_the_place_of_milliseconds_are_noticed() -> None:
    assert "as seconds it would be" in parse_time("1767225600", NOW).said


def test_offsets_are_those_of_the_option_startingoffsets() -> None:
    offsets = parse_offsets('{"t":{"0":5,"1":-2},"u":"latest"}').offsets
    assert offsets.partitions == {TopicPartition("t", 0): 5, TopicPartition("t", 1): Earliest()}
    assert offsets.topics == {"u": Latest()}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"t":{"0":-3}}', '{"t":{"0":1.5}}', '{"t":{"0":1,"0":2}}', "{" * 5000]
)
def test_offsets_that_are_malformed_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"\[ARGUMENT_INVALID\] --offsets does not hold offsets by partition"):
        parse_offsets(text)
