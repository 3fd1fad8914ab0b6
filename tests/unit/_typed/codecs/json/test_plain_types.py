"""The types of Arrow that JSON is written from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.json.encoding import JsonEncoder
from pyspark_kafka._typed.codecs.json.plain_types import plain_type
from pyspark_kafka.errors import RecordError, SchemaError

_DATA = b"abcdef"
_BYTES: dict[str, pa.Array] = {
    "binary": pa.array([_DATA, None]),
    "large": pa.array([_DATA, None], pa.large_binary()),
    "fixed": pa.array([_DATA, None], pa.binary(6)),
    "view": pa.array([_DATA, None], pa.binary_view()),
    "dictionary": pa.array([_DATA, None]).dictionary_encode(),
    "dictionary of fixed": pa.array([_DATA, None], pa.binary(6)).dictionary_encode(),
}
_AROUND: dict[str, tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any], bytes]] = {
    "list": (pa.list_, lambda each: [each], b'["YWJjZGVm"]'),
    "large list": (pa.large_list, lambda each: [each], b'["YWJjZGVm"]'),
    "fixed list": (lambda kind: pa.list_(kind, 1), lambda each: [each], b'["YWJjZGVm"]'),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda each: [("k", each)], b'{"k":"YWJjZGVm"}'),
    "struct": (lambda kind: pa.struct([("s", kind)]), lambda each: {"s": each}, b'{"s":"YWJjZGVm"}'),
    "structs": (
        lambda kind: pa.list_(pa.struct([("s", kind)])),
        lambda each: [{"s": each}],
        b'[{"s":"YWJjZGVm"}]',
    ),
}


@pytest.mark.parametrize("name", _BYTES)
def test_bytes_are_base64_in_each_form(name: str) -> None:
    column = _BYTES[name]
    assert JsonEncoder(column.type).encode(column).to_pylist() == [b'"YWJjZGVm"', None]


@pytest.mark.parametrize("around", _AROUND)
@pytest.mark.parametrize(
    "kind", [pa.large_binary(), pa.binary(6), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())]
)
def test_bytes_are_base64_at_any_depth(kind: pa.DataType, around: str) -> None:
    make, value, expected = _AROUND[around]
    column = pa.array([None, value(_DATA), None, value(_DATA)], make(kind)).slice(1)
    assert JsonEncoder(column.type).encode(column).to_pylist() == [expected, None, expected]


def test_a_type_of_spark_stays_as_it_is() -> None:
    kind = pa.struct([pa.field("a", pa.list_(pa.binary()), nullable=False), ("m", pa.map_(pa.int32(), pa.date32()))])
    assert plain_type(kind).equals(kind, check_metadata=True)


def test_value_of_a_dictionary_is_checked_as_others() -> None:
    column = pa.array([1.5, float("nan")]).dictionary_encode()
    with pytest.raises(RecordError, match=r"Row 1 .* the number is not finite"):
        JsonEncoder(column.type).encode(column)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["a"], pa.string_view()), b'"a"'),
        (pa.array(["a"]).dictionary_encode(), b'"a"'),
        (pa.array([[("k", 1)]], pa.map_(pa.dictionary(pa.int8(), pa.string()), pa.int32())), b'{"k":1}'),
        (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), b"[1,2]"),
        (pa.array([dt.date(2026, 1, 2)]).dictionary_encode(), b'"2026-01-02"'),
        (pa.ExtensionArray.from_storage(pa.opaque(pa.binary(1), "t", "v"), pa.array([b"a"], pa.binary(1))), b'"YQ=="'),
    ],
)
def test_other_forms_are_written_as_what_they_hold(column: pa.Array, expected: bytes) -> None:
    assert JsonEncoder(column.type).encode(column).to_pylist()[0] == expected


@pytest.mark.parametrize(
    "kind",
    [
        pa.run_end_encoded(pa.int32(), pa.binary()),
        pa.list_view(pa.binary()),
        pa.struct([("a", pa.month_day_nano_interval())]),
        pa.dictionary(pa.int8(), pa.duration("s")),
    ],
)
def test_a_type_that_is_not_known_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="JSON has no form for"):
        plain_type(kind)
