"""Patterns of times; `tests/integration/_connector/spark/test_time_patterns.py` compares them with Spark's."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.json.time_patterns import time_pattern, time_patterns
from pyspark_kafka.errors import OptionError
from pyspark_kafka.formats import decode, encode

TIME = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "it must have 1 to 100 characters"),
        ("y" * 101, "it must have 1 to 100 characters"),
        ("yyyy-MM-dd z", "letter 'z' is not read here"),
        ("EEE yyyy", "letter 'E' is not read here"),
        ("YYYY", "letter 'Y' is not read here"),
        ("yyy", "yyy is none of the forms that letter 'y' has here"),
        ("XXXX", "XXXX is none of the forms"),
        ("SSSSSSSSSS", "is none of the forms that letter 'S' has here"),
        ("yyyyM", "no character stands between the year and M, which has any width"),
        ("dMM", "no character stands between MM and the number before it, which has any width"),
        ("yyyy'", "a quote is not closed"),
        ("[yyyy", "[ is not closed"),
        ("yyyy]", "] has no [ before it"),
        ("{yyyy}", "'{' must stand in quotes"),
        ("yy yyyy", "it has the year twice"),
        ("HH hh", "it has the hour twice"),
        ("XXX VV", "it has an offset and a zone"),
        ("HH:mm a", "a needs the hour as h or hh"),
        ("'yyyy'", "it has no part of a time"),
    ],
)
def test_pattern_that_is_not_read_here_is_refused_with_a_sentence(pattern: str, why: str) -> None:
    with pytest.raises(OptionError) as caught:
        time_pattern("timestampFormat", pattern, of_dates=False)
    shown = pattern[:100]
    assert f"Option 'timestampFormat' is {shown!r}, which cannot be used: " in str(caught.value)
    assert f"{why}" in str(caught.value)
    assert "Hint: Use the letters y M d H h a m s S X x Z VV" in str(caught.value)


def test_pattern_of_dates_has_no_part_of_the_day() -> None:
    with pytest.raises(
        OptionError, match="Option 'dateFormat' is 'yyyy HH', which cannot be used: HH is not a part of"
    ):
        time_patterns("yyyy HH", "yyyy HH")


def test_times_at_any_depth_are_read_and_written_by_their_pattern() -> None:
    schema = "at TIMESTAMP, l ARRAY<TIMESTAMP>, m MAP<STRING, STRUCT<d: DATE, n: TIMESTAMP_NTZ>>"
    texts = [
        b"{}",
        b'{"at":"5.3.2026 7h","l":["1.1.1970 0h",null],"m":{"k":{"d":"26w03","n":"2026-01-01T00:00:00"}}}',
        None,
        b'{"l":[],"m":null}',
    ]
    formats: dict[str, Any] = {"timestamp_format": "d.M.yyyy H'h'", "date_format": "yy'w'MM"}
    found = decode(pa.array(texts).slice(1), "json", schema=schema, **formats)
    utc = dt.timezone.utc
    inner = {"d": dt.date(2026, 3, 1), "n": dt.datetime(2026, 1, 1)}  # noqa: DTZ001 - a time without a zone
    assert found.column.to_pylist() == [
        {
            "at": dt.datetime(2026, 3, 5, 7, tzinfo=utc),
            "l": [dt.datetime(1970, 1, 1, tzinfo=utc), None],
            "m": [("k", inner)],
        },
        None,
        {"at": None, "l": [], "m": None},
    ]
    again = decode(encode(found.column, "json", **formats), "json", schema=schema, **formats)
    assert again.column.to_pylist() == found.column.to_pylist()


def test_text_that_is_no_time_of_the_pattern_makes_its_record_bad_and_no_other() -> None:
    texts = [
        b'{"l":["2026"]}',
        b'{"l":["2026","2026-01-01"]}',
        b'{"l":[2026]}',
        b'{"l":["0000"]}',
        b'{"l":["\xc2\xb2026"]}',
    ]
    found = decode(pa.array(texts), "json", schema="l ARRAY<TIMESTAMP>", timestamp_format="yyyy", on_bad="null")
    assert [each.is_valid for each in found.column] == [True, False, False, True, False]
    assert [(each.row, each.message) for each in found.bad] == [
        (1, "the value of field 'l' is not a time of its format"),
        (2, "the value of field 'l' has another type"),
        (4, "the value of field 'l' is not a time of its format"),
    ]


@pytest.mark.parametrize("zone", ["Europe/../Paris", "/etc/passwd", "Nowhere/City", "europe/paris/", "+25:00"])
def test_zone_that_there_is_not_is_no_time(zone: str) -> None:
    pattern = time_pattern("timestampFormat", "yyyy VV", of_dates=False)
    found, wrong = pattern.read(pa.array([f"2026 {zone}", "2026 Europe/Paris", "0000 Europe/Paris"]), TIME)
    assert found.to_pylist() == [None, dt.datetime(2025, 12, 31, 23, tzinfo=dt.timezone.utc), None]
    assert wrong == [0, 2]


@pytest.mark.parametrize(
    ("letters", "text", "minutes"),
    [
        ("XXX", "Z", 0),
        ("XXX", "+05:30", 330),
        ("XXX", "-03:30", -210),
        ("XX", "+0545", 345),
        ("x", "-08", -480),
        ("xxx", "+18:00", 1080),
        ("xxx", "+18:01", None),
        ("xxx", "-18:00", -1080),
        ("xxx", "+05:60", None),
    ],
)
def test_offset_is_hours_and_minutes_of_at_most_18_hours(letters: str, text: str, minutes: int | None) -> None:
    pattern = time_pattern("timestampFormat", f"yyyy HH{letters}", of_dates=False)
    found, wrong = pattern.read(pa.array([f"2026 12{text}"]), TIME)
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    assert found.to_pylist() == [None if minutes is None else noon - dt.timedelta(minutes=minutes)]
    assert wrong == ([0] if minutes is None else [])


def test_times_of_each_unit_are_written() -> None:
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array([0, None, -1], pa.timestamp(unit, "UTC"))
        written = time_pattern("timestampFormat", "ss.SSS", of_dates=False).write(column).to_pylist()
        assert written == ["00.000", None, "59.000" if unit == "s" else "59.999"]


def test_no_texts_are_no_times() -> None:
    pattern = time_pattern("timestampFormat", "yyyy-MM-dd hh:mm a VV", of_dates=False)
    for texts in (pa.array([], pa.string()), pa.array([None], pa.string())):
        found, wrong = pattern.read(texts, TIME)
        assert (found, wrong) == (pa.nulls(len(texts), TIME), [])
        assert pattern.write(found) == texts


def test_pattern_of_another_format_is_refused() -> None:
    with pytest.raises(OptionError, match="Option 'timestampFormat' is given, but neither keys nor values are json"):
        decode(pa.array([b"1"]), "string", timestamp_format="yyyy")
    with pytest.raises(OptionError, match="'json' with timestamp_format or date_format"):
        encode(pa.array(["1"]), "string", date_format="yyyy")
