"""Times and durations as users write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._client.options.parse.times import Moment, duration_ms, looks_like_seconds, moment, moment_of_json

NOW = 1_800_000_000_000
NEW_YEAR = 1_767_225_600_000  # 2026-01-01T00:00:00Z
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        (" 1000 ", 1000),
        # A number is always epoch milliseconds, as with Spark's connector.
        ("2026", 2026),
        ("9223372036854775807", 2**63 - 1),
        ("2026-01-01", NEW_YEAR),
        ("2026-01-01T00:00", NEW_YEAR),
        ("2026-01-01 00:00:00", NEW_YEAR),
        ("2026-01-01t00:00:00z", NEW_YEAR),
        ("2026-01-01T00:00:00.5Z", NEW_YEAR + 500),
        ("2026-01-01T00:00:00,007 Z", NEW_YEAR + 7),
        ("2026-01-01T02:00:00+02:00", NEW_YEAR),
        ("2026-01-01T02:00:00+02", NEW_YEAR),
        ("2025-12-31T18:30-0530", NEW_YEAR),
        ("1970-01-01T00:00:00Z", 0),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ("now", NOW),
        ("NOW", NOW),
        ("2 hours ago", NOW - 2 * HOUR),
        ("1 Hour Ago", NOW - HOUR),
        ("90m ago", NOW - HOUR - HOUR // 2),
        ("1 day, 2 hours and 5 min ago", NOW - 26 * HOUR - 300_000),
        ("1w2d ago", NOW - 9 * 24 * HOUR),
        ("5 seconds ago", NOW - 5_000),
        ("250 ms ago", NOW - 250),
        ("0s ago", NOW),
    ],
)
def test_a_time_in_each_of_its_forms(text: str, expected: int) -> None:
    assert moment(text).at(NOW) == expected


@pytest.mark.parametrize(("fraction", "ms"), [("0001", 1), ("000000001", 1), ("0010000", 1), ("0010001", 2)])
def test_a_fraction_of_a_millisecond_is_rounded_up(fraction: str, ms: int) -> None:
    # A record of that very millisecond is before it.
    assert moment(f"2026-01-01T00:00:00.{fraction}Z").at(NOW) == NEW_YEAR + ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "1.5",
        "1e3",
        "9223372036854775808",
        "٣",
        "2026-1-1",
        "2026-13-01",
        "2026-02-30",
        "2026-01-01T24:00",
        "2026-01-01T10",
        "2026-01-01T10:00:60",
        "2026-01-01T10:00+19:00",
        "2026-01-01T10:00 Europe/Berlin",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00+01:00",
        "yesterday",
        "ago",
        "hours ago",
        "-2 hours ago",
        "1.5 hours ago",
        "2 fortnights ago",
        "2 hours",
        "1234567890123 days ago",
    ],
)
def test_text_that_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time: epoch milliseconds, ISO 8601"):
        moment(text)


def test_a_distance_stays_one_until_it_is_told_the_time() -> None:
    parsed = moment("2 hours ago")
    assert parsed == Moment(2 * HOUR, ago=True)
    assert (parsed.at(NOW), parsed.at(NOW + 1)) == (NOW - 2 * HOUR, NOW + 1 - 2 * HOUR)
    with pytest.raises(ValueError, match="must not be before 1970"):
        parsed.at(HOUR)


@pytest.mark.parametrize(("value", "expected"), [(5, 5), ("5", 5), ("2026-01-01", NEW_YEAR), ("1h ago", NOW - HOUR)])
def test_json_has_numbers_or_texts(value: object, expected: int) -> None:
    assert moment_of_json(value).at(NOW) == expected


@pytest.mark.parametrize("value", [True, 1.0, -1, 2**63, None, [1], {}])
def test_other_json_values_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        moment_of_json(value)


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001 - the zone is drawn apart
    st.integers(-18 * 60, 18 * 60),
)
def test_every_iso_time_is_what_python_makes_of_it(naive: datetime, minutes: int) -> None:
    at = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    exact_us = (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
    assert moment(at.isoformat()).at(NOW) == -(-exact_us // 1000)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_refused_with_a_sentence(text: str) -> None:
    try:
        assert moment(text).ms >= 0
    except ValueError as error:
        assert str(error).startswith("must be a time")  # noqa: PT017 - most texts are refused, some are not


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15m", 900_000),
        ("15min", 900_000),
        ("90s", 90_000),
        ("1h", HOUR),
        ("2d", 48 * HOUR),
        ("500ms", 500),
        ("1999us", 1),
        ("250", 250),
        (" 5 Minutes ", 300_000),
        ("0", 0),
    ],
)
def test_a_time_span_is_a_number_with_a_unit(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "m", "1.5m", "-1s", "5 fortnights", "1m30s", "9223372036854775808", "1 h ago"])
def test_text_that_is_not_a_time_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time span"):
        duration_ms(text)


def test_a_time_in_seconds_is_suspected() -> None:
    assert looks_like_seconds(1_767_225_600) == (
        "read as milliseconds it is 1970-01-21T10:53:45.600Z, as seconds it would be 2026-01-01T00:00:00.000Z"
    )
    # Small numbers are how tests write times, and Spark's own do.
    assert [looks_like_seconds(ms) for ms in (0, 1000, NEW_YEAR, 2**63 - 1)] == [None] * 4
