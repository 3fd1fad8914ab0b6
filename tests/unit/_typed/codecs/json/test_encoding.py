"""Columns to values in JSON."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import sys
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.json.encoding import JsonEncoder
from pyspark_kafka.errors import MissingDependencyError, RecordError, SchemaError
from pyspark_kafka.version import install_command


def encode(column: pa.Array, prefix: bytes = b"") -> list[bytes | None]:
    found: list[bytes | None] = JsonEncoder(column.type).encode(column, prefix).to_pylist()
    return found


def test_types_have_their_forms() -> None:
    row = {
        "i": 1,
        "s": 'x\n"',
        "b": b"\0\xff",
        "t": dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc),
        "q": decimal.Decimal("1.20"),
        "m": [("k", 1)],
        "l": [1, None],
        "n": None,
    }
    fields = [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("t", pa.timestamp("us", "UTC")),
        ("q", pa.decimal128(5, 2)),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("l", pa.list_(pa.int32())),
        ("n", pa.int32()),
    ]
    column = pa.array([row], pa.struct(fields))
    (text,) = encode(column)
    expected = '{"i":1,"s":"x\\n\\"","b":"AP8=","t":"2026-01-02T00:00:00Z","q":1.20,"m":{"k":1},"l":[1,null]}'
    assert text == expected.encode()
    assert JsonDecoder(column.type).decode(pa.array([text])).column.to_pylist() == [row]


def test_nulls_are_tombstones_in_their_place() -> None:
    column = pa.array([None, {"a": 1}, None, {"a": None}, {"a": 2}], pa.struct([("a", pa.int32())]))
    assert encode(column, b"id") == [None, b'id{"a":1}', None, b"id{}", b'id{"a":2}']
    assert encode(column.slice(1, 2)) == [b'{"a":1}', None]
    assert encode(column.slice(0, 1)) == [None]


def test_a_struct_without_fields_is_an_empty_object() -> None:
    assert encode(pa.array([{}, {}], pa.struct([]))) == [b"{}", b"{}"]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_named_with_its_row(number: float) -> None:
    with pytest.raises(RecordError, match=r"Row 1 of the batch .* field 'n.f': the number is not finite"):
        encode(pa.array([{"n": {"f": 1.0}}, {"n": {"f": number}}]))
    with pytest.raises(RecordError, match=r"A row of the batch .* field 'l\[\]': the number is not finite"):
        encode(pa.array([{"l": [1.0, 2.0]}, {"l": [number]}]))


DAY = 86_400
FIRST, LAST = -719_528, 2_932_896
US_UTC = pa.timestamp("us", "UTC")
RANGES: list[tuple[pa.DataType, int, int]] = [
    (pa.date32(), FIRST, LAST),
    (US_UTC, FIRST * DAY * 10**6, (LAST + 1) * DAY * 10**6 - 1),
    (pa.timestamp("us"), FIRST * DAY * 10**6, (LAST + 1) * DAY * 10**6 - 1),
    (pa.timestamp("ms", "UTC"), FIRST * DAY * 10**3, (LAST + 1) * DAY * 10**3 - 1),
    (pa.timestamp("s"), FIRST * DAY, (LAST + 1) * DAY - 1),
    (pa.time64("us"), 0, DAY * 10**6 - 1),
    (pa.time64("ns"), 0, DAY * 10**9 - 1),
    (pa.time32("ms"), 0, DAY * 10**3 - 1),
]


def numbers(kind: pa.DataType, values: list[int | None]) -> pa.Array:
    """Return dates or times by their numbers, also those that Python has no object for."""
    return pa.array(values, pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)


@pytest.mark.parametrize(("kind", "first", "last"), RANGES, ids=str)
def test_times_are_written_as_far_as_they_are_read_back(kind: pa.DataType, first: int, last: int) -> None:
    row_type = pa.struct([("t", kind)])
    column = pa.StructArray.from_arrays([numbers(kind, [first, None, last])], fields=list(row_type))
    found = JsonDecoder(row_type).decode(JsonEncoder(row_type).encode(column))
    assert found.bad == []
    assert found.column.equals(column)
    most = (1 << (kind.bit_width - 1)) - 1
    for wrong in (first - 1, last + 1, most, -most - 1):
        column = pa.StructArray.from_arrays([numbers(kind, [first, None, wrong])], fields=list(row_type))
        with pytest.raises(
            RecordError, match=r"Row 2 of the batch .* field 't': the (year|time) is not within"
        ) as error:
            JsonEncoder(row_type).encode(column)
        assert error.value.parameters["row"] == "2"
        assert error.value.parameters["field"] == "t"


def test_a_time_of_nanoseconds_is_written_whole() -> None:
    column = numbers(pa.timestamp("ns"), [-(1 << 63), (1 << 63) - 1])
    assert encode(column) == [b'"1677-09-21T00:12:43.145224192"', b'"2262-04-11T23:47:16.854775807"']


def test_only_times_that_are_written_are_refused() -> None:
    lost = numbers(US_UTC, [0, 2**63 - 1, 0, 0])
    good = b'"1970-01-01T00:00:00Z"'
    fields = [pa.field("t", US_UTC)]
    plain = pa.StructArray.from_arrays([lost], fields=fields)
    assert encode(plain.slice(2, 2)) == [b'{"t":%s}' % good] * 2
    beneath = pa.StructArray.from_arrays([lost], fields=fields, mask=pa.array([False, True, False, False]))
    assert encode(beneath) == [b'{"t":%s}' % good, None, *[b'{"t":%s}' % good] * 2]
    outer = pa.StructArray.from_arrays([beneath], names=["o"])
    assert encode(outer)[1] == b"{}"
    # Row 1 of the lists, and of the maps, has the time that cannot be written.
    offsets = pa.array([0, 1, 2, 4], pa.int32())
    for mask in (None, pa.array([False, True, False])):
        lists = pa.ListArray.from_arrays(offsets, lost, mask=mask)
        maps = pa.MapArray.from_arrays(offsets, pa.array(["a", "b", "c", "d"]), lost, mask=mask)
        for column in (lists, maps):
            assert len(encode(column.slice(2))) == 1
            if mask is not None:
                assert encode(column)[1] is None
                continue
            with pytest.raises(RecordError, match=r"A row of the batch .* field '\[\]': the year is not within 0000"):
                encode(column)
            # Two items in two rows: the place of an item is not a row.
            with pytest.raises(RecordError) as error:
                encode(column.slice(0, 2))
            assert error.value.parameters["row"] == "None"


@pytest.mark.parametrize(
    "kind",
    [
        pa.duration("s"),
        pa.struct([("a", pa.duration("s"))]),
        pa.struct([("a", pa.list_(pa.month_day_nano_interval()))]),
        pa.map_(pa.date32(), pa.int32()),
    ],
)
def test_a_type_without_a_form_is_refused(kind: Any) -> None:
    with pytest.raises(SchemaError, match="JSON has no form for"):
        JsonEncoder(kind)


def test_bytes_and_keys_of_maps_are_texts_at_any_depth_and_in_any_part() -> None:
    kind = pa.struct(
        [
            ("l", pa.list_(pa.struct([("b", pa.binary())]))),
            ("m", pa.map_(pa.int32(), pa.binary())),
        ]
    )
    rows: list[dict[str, Any] | None] = [
        {"l": [{"b": b"a"}, None], "m": [(1, b"x"), (-2, b"y")]},
        None,
        {"l": None, "m": []},
        {"l": [{"b": None}], "m": [(3, None)]},
    ]
    texts = [b'{"l":[{"b":"YQ=="},null],"m":{"1":"eA==","-2":"eQ=="}}', None, b'{"m":{}}', b'{"l":[{}],"m":{}}']
    column = pa.array(rows, kind)
    assert encode(column) == texts
    for start in range(4):
        assert encode(column.slice(start, 2)) == texts[start : start + 2]


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        (pa.string(), ['a"\n', None, ""], [b'"a\\"\\n"', None, b'""']),
        (pa.int64(), [1, None], [b"1", None]),
        (pa.binary(), [b"\0"], [b'"AA=="']),
        (pa.list_(pa.int32()), [[1, None], []], [b"[1,null]", b"[]"]),
        (pa.map_(pa.int64(), pa.bool_()), [[(1, True)], None], [b'{"1":true}', None]),
    ],
)
def test_a_column_that_is_no_struct_is_the_json_of_its_values(kind: Any, values: Any, texts: Any) -> None:
    assert encode(pa.array(values, kind)) == texts


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arro3.io", None)
    with pytest.raises(MissingDependencyError, match=re.escape(install_command("json"))):
        JsonEncoder(pa.struct([("a", pa.int32())]))
