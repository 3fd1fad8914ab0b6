"""Values in Avro to columns: types, resolution, and what is wrong with values."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.avro import _variant
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.encoding import AvroEncoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka._typed.codecs.values import BadValue, Reason
from pyspark_kafka.errors import SchemaError

UTC = dt.timezone.utc
NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
}


def decoder(writer: Any, reader: Any = None) -> AvroDecoder:
    return AvroDecoder(parse_schema(json.dumps(writer)), None if reader is None else parse_schema(json.dumps(reader)))


def read(raw: bytes, writer: Any, reader: Any = None) -> Any:
    column, bad = decoder(writer, reader).decode(pa.array([raw], pa.binary()))
    column.validate(full=True)
    assert bad == []
    return column[0].as_py()


def reason(raw: bytes, writer: Any, reader: Any = None) -> str:
    column, bad = decoder(writer, reader).decode(pa.array([raw], pa.binary()))
    assert column.to_pylist() == [None]
    (found,) = bad
    return found.message.rpartition(", after ")[0]


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, **field} for name, field in fields.items()]}


@pytest.mark.parametrize(
    ("schema", "raw", "expected"),
    [
        (logical("int", "date"), b"\x02", dt.date(1970, 1, 2)),
        (logical("int", "time-millis"), b"\x02", dt.time(0, 0, 0, 1000)),
        (logical("long", "time-micros"), b"\x02", dt.time(0, 0, 0, 1)),
        (logical("long", "timestamp-millis"), b"\x02", dt.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
        (logical("long", "timestamp-micros"), b"\x02", dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        (logical("long", "local-timestamp-millis"), b"\x01", dt.datetime(1969, 12, 31, 23, 59, 59, 999000)),  # noqa: DTZ001
        (logical("bytes", "decimal", precision=5, scale=2), b"\x04\xff\x38", decimal.Decimal("-2.00")),
        (logical("bytes", "decimal", precision=5, scale=2), b"\x00", decimal.Decimal("0.00")),
        (logical("string", "uuid"), b"\x06abc", "abc"),
        (
            {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
            bytes(16),
            "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
        ),
        (
            {"type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "precision": 4},
            b"\x00\x07",
            decimal.Decimal(7),
        ),
        # A logical type that its type cannot have, or that nobody knows, is ignored.
        (logical("string", "date"), b"\x02a", "a"),
        (logical("long", "timestamp-nanos"), b"\x02", 1),
        (logical("bytes", "decimal", precision=0), b"\x02a", b"a"),
        ({"type": "fixed", "name": "U", "size": 8, "logicalType": "uuid"}, bytes(8), bytes(8)),
        (["int", "long"], b"\x00\x02", 1),
        (["null", "string", "long"], b"\x02\x02a", {"member0": "a", "member1": None}),
        (["null"], b"\x00", None),
    ],
)
def test_a_type_has_its_column(schema: Any, raw: bytes, expected: Any) -> None:
    assert read(raw, schema) == expected


@pytest.mark.parametrize(
    ("schema", "raw", "expected"),
    [
        ("int", b"\x80\x80\x80\x80\x80\x01", "a number is out of the range of its type"),
        ("long", b"\xff" * 11, "a number has more than ten bytes"),
        ("long", b"\x80", "it ends in the middle of a field"),
        ("double", b"\x00" * 7, "it ends in the middle of a field"),
        ("boolean", b"\x02", "a boolean is neither 0 nor 1"),
        ("string", b"\x04a", "it ends in the middle of a field"),
        ("string", b"\x01", "a length is negative"),
        ("string", b"\x02\xff", "a string is not UTF-8"),
        ("string", b"\x06\xed\xa0\x80", "a string is not UTF-8"),
        ("long", b"\x02\x02", "bytes follow the value"),
        ("long", b"", "it ends in the middle of a field"),
        (["null", "int"], b"\x04", "it names a branch that the union does not have"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "it names a symbol that the enum does not have"),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x0f", "an array or map has more items than can follow"),
        ({"type": "array", "items": "null"}, b"\x82\x80\x08\x00", "an array or map has more items than can follow"),
        (
            {"type": "array", "items": "int"},
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00",
            "an array or map has more items than can follow",
        ),
        (logical("bytes", "decimal", precision=2), b"\x02\x64", "a decimal has more digits than its precision"),
        (
            logical("bytes", "decimal", precision=38),
            b"\x22\x01" + bytes(16),
            "a decimal has more digits than its precision",
        ),
        (logical("int", "time-millis"), b"\x01", "a number is out of the range of its type"),
        (
            logical("long", "timestamp-millis"),
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "a number is out of the range of its type",
        ),
    ],
)
def test_a_bad_value_is_null_and_says_why(schema: Any, raw: bytes, expected: str) -> None:
    assert reason(raw, schema) == expected


def test_rows_beside_a_bad_one_keep_their_place() -> None:
    schema = record(a={"type": "string"}, b={"type": {"type": "array", "items": "long"}})
    good = b"\x02x\x04\x02\x04\x00"
    values = pa.array([good, good[:-1], None, b"\x02y\x00"], pa.binary())
    column, bad = decoder(schema).decode(values)
    column.validate(full=True)
    assert column.to_pylist() == [{"a": "x", "b": [1, 2]}, None, None, {"a": "y", "b": []}]
    assert bad == [BadValue(1, Reason.DECODE_FAILED, "it ends in the middle of a field, after 5 bytes")]


def test_a_prefix_is_skipped_and_a_slice_read() -> None:
    values = pa.array([b"no", None, b"id\x02", b"id\x04", b"i"], pa.binary()).slice(1)
    column, bad = decoder("long").decode(values, skipped=2)
    assert column.to_pylist() == [None, 1, 2, None]
    assert [each.row for each in bad] == [3]


def test_the_type_of_the_result_is_known_before() -> None:
    schema = record(a={"type": ["null", "long"]}, m={"type": {"type": "map", "values": "boolean"}})
    expected = pa.struct([pa.field("a", pa.int64()), pa.field("m", pa.map_(pa.string(), pa.bool_()))])
    assert decoder(schema).arrow_type == expected
    assert decoder(schema).decode(pa.array([], pa.binary()))[0].type == expected


def test_fields_are_found_by_name_alias_or_default() -> None:
    writer = record(a={"type": "int"}, gone={"type": {"type": "map", "values": NODE}}, old={"type": "string"})
    reader = record(
        new={"type": "string", "aliases": ["old"]},
        a={"type": "double"},
        e={"type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}, "default": "Y"},
        f={"type": {"type": "fixed", "name": "F", "size": 2}, "default": "\u00ff\u0000"},
        u={"type": ["null", "int"], "default": None},
        m={"type": {"type": "map", "values": "boolean"}, "default": {"k": True}},
        r={
            "type": {"type": "record", "name": "S", "fields": [{"name": "x", "type": "float", "default": 1.5}]},
            "default": {},
        },
    )
    raw = b"\x06" + b"\x02\x02k\x02\x02\x04\x00\x00" + b"\x02z"
    assert read(raw, writer, reader) == {
        "new": "z",
        "a": 3.0,
        "e": "Y",
        "f": b"\xff\x00",
        "u": None,
        "m": [("k", True)],
        "r": {"x": 1.5},
    }


def test_a_symbol_that_the_reader_lacks_is_its_default_or_a_bad_value() -> None:
    writer = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    assert read(b"\x02", writer, {"type": "enum", "name": "E", "symbols": ["A", "Z"], "default": "Z"}) == "Z"
    lacking = {"type": "enum", "name": "E", "symbols": ["A"]}
    assert reason(b"\x02", writer, lacking) == "the reader's schema has no place for its branch or symbol"


def test_a_branch_goes_to_the_same_type_before_one_that_it_could_become() -> None:
    assert read(b"\x02", "int", ["null", "string", "double", "int"]) == {"member0": None, "member1": None, "member2": 1}


def test_times_keep_their_meaning_when_the_unit_changes() -> None:
    writer, reader = logical("long", "timestamp-millis"), logical("long", "timestamp-micros")
    assert read(b"\x02", writer, reader) == dt.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)
    assert read(b"\x02", writer, "long") == 1


@pytest.mark.parametrize(
    ("writer", "reader", "text"),
    [
        ("string", "long", "at its top: the writer has string, the reader wants long"),
        ("long", "int", "the writer has long, the reader wants int"),
        (
            record(a={"type": "int"}),
            record(b={"type": "int"}),
            "at b: the writer has no such field, the reader wants int without",
        ),
        (
            record(),
            record(b={"type": {"type": "array", "items": "int"}, "default": ["x"]}),
            "array, whose default does not fit its type",
        ),
        (["null", "string"], "long", "the writer has a union, the reader wants long"),
        ("null", "long", "the writer has null, the reader wants long"),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            "fixed 'F' of 2 bytes, the reader wants fixed 'F' of 3 bytes",
        ),
        (
            logical("bytes", "decimal", precision=5, scale=2),
            logical("bytes", "decimal", precision=5, scale=1),
            "a decimal of scale 2, the reader wants one of scale 1",
        ),
        (
            logical("bytes", "decimal", precision=5, scale=1),
            logical("bytes", "decimal", precision=5, scale=2),
            "a decimal of scale 1, the reader wants one of scale 2",
        ),
    ],
)
def test_schemas_that_do_not_fit_say_where(writer: Any, reader: Any, text: str) -> None:
    with pytest.raises(SchemaError, match=r"\[SCHEMA_RESOLUTION_FAILED\]") as caught:
        decoder(writer, reader)
    assert text in str(caught.value)


def test_a_record_that_holds_itself_is_refused_and_can_be_skipped() -> None:
    with pytest.raises(SchemaError, match=r"record 'Node' holds itself"):
        decoder(NODE)
    skipping = record(n={"type": NODE}, a={"type": "int"})
    reader = record(a={"type": "int"})
    assert read(b"\x02\x02\x02\x00\x06", skipping, reader) == {"a": 3}
    deep = b"\x02\x02" * 200 + b"\x02\x00\x06"
    assert reason(deep, skipping, reader) == "it is nested more than 64 deep"


def test_many_rows_grow_every_kind_of_column() -> None:
    schema = record(
        i={"type": "int"},
        s={"type": "string"},
        f={"type": "float"},
        d={"type": "double"},
        b={"type": "boolean"},
        n={"type": ["null", "long"]},
        l={"type": {"type": "array", "items": "string"}},
        q={"type": logical("bytes", "decimal", precision=20, scale=3)},
        m={"type": {"type": "map", "values": "int"}},
    )
    rows = [
        {
            "i": n,
            "s": "s" * (n % 50),
            "f": n / 4,
            "d": n / 8,
            "b": n % 2 == 0,
            "n": None if n % 3 else n,
            "l": ["x"] * (n % 4),
            "q": decimal.Decimal(n * 7 - 1000).scaleb(-3),
            "m": [(str(k), k) for k in range(n % 3)],
        }
        for n in range(1000)
    ]
    parsed = parse_schema(json.dumps(schema))
    column = pa.array(rows, AvroDecoder(parsed).arrow_type)
    again, bad = AvroDecoder(parsed).decode(AvroEncoder(parsed).encode(column))
    again.validate(full=True)
    assert bad == []
    assert again.to_pylist() == rows


def test_a_column_of_more_than_2_gib_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _variant.kernel.reading
    monkeypatch.setattr(_variant, "kernel", _Overflowing(kernel))
    with pytest.raises(Exception, match=r"\[VALUES_TOO_LARGE\] 1 values in Avro have a column of more than 2 GiB"):
        decoder("long").decode(pa.array([b"\x02"], pa.binary()))


class _Overflowing:
    def __init__(self, reading: Any) -> None:
        self.reading = self
        self._reading = reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reading, name)

    def decode_rows(self, *_: Any) -> tuple[list[tuple[int, int, int]], int]:
        return [(0, self._reading.TOO_LARGE, 1)], 0


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, {"v": 1}), (2, {"v": 1, "next": {"v": 2}}), (3, {"v": 1, "next": {"v": 2, "next": None}})],
)
def test_a_record_that_holds_itself_is_read_as_deep_as_is_said(most: int, expected: Any) -> None:
    shallow = AvroDecoder(parse_schema(json.dumps(NODE)), recursive_field_max_depth=most)
    column, bad = shallow.decode(pa.array([b"\x02\x02\x04\x00", b"\x02\x02\x04\x02\x06\x02\x08\x00"], pa.binary()))
    column.validate(full=True)
    assert bad == []
    assert column[0].as_py() == expected
    deeper = {**expected, "next": {"v": 2, "next": {"v": 3}}} if most == 3 else expected
    assert column[1].as_py() == deeper


def test_a_record_that_holds_itself_is_skipped_down_to_64_records() -> None:
    shallow = AvroDecoder(parse_schema(json.dumps(NODE)), recursive_field_max_depth=1)
    lists = [b"\x02\x02" * (records - 1) + b"\x02\x00" for records in (64, 65)]
    column, bad = shallow.decode(pa.array(lists, pa.binary()))
    assert column.to_pylist() == [{"v": 1}, None]
    assert [each.message.rpartition(", after ")[0] for each in bad] == ["it is nested more than 64 deep"]


def test_recursion_in_lists_maps_and_unions_is_left_out_with_its_field() -> None:
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [
            {"name": "v", "type": "int"},
            {"name": "l", "type": {"type": "array", "items": "Tree"}},
            {"name": "m", "type": {"type": "map", "values": "Tree"}},
            {"name": "u", "type": ["null", "string", "Tree"]},
        ],
    }
    flat = AvroDecoder(parse_schema(json.dumps(tree)), recursive_field_max_depth=1)
    assert flat.arrow_type == pa.struct([("v", pa.int32())])
    column, bad = flat.decode(pa.array([b"\x02\x02\x04\x00\x00\x00\x00\x00\x02\x02x"], pa.binary()))
    assert (column.to_pylist(), bad) == ([{"v": 1}], [])
    wanted = pa.struct([("l", pa.list_(pa.struct([("v", pa.int32())])))])
    asked = AvroDecoder(parse_schema(json.dumps(tree)), wanted=wanted)
    column, bad = asked.decode(pa.array([b"\x02\x02\x04\x00\x00\x00\x00\x00\x02\x02x"], pa.binary()))
    assert (column.to_pylist(), bad) == ([{"l": [{"v": 2}]}], [])


def test_member_of_a_union_is_read_beside_one_that_holds_the_union() -> None:
    tree = {"type": "record", "name": "T", "fields": [{"name": "u", "type": ["null", "string", "T"]}]}
    wanted = pa.struct([("u", pa.struct([("member0", pa.string())]))])
    column, bad = AvroDecoder(parse_schema(json.dumps(tree)), wanted=wanted).decode(
        pa.array([b"\x02\x02x", b"\x04\x02\x02y", b"\x00"], pa.binary())
    )
    assert bad == []
    assert [each["u"] and each["u"]["member0"] for each in column.to_pylist()] == ["x", None, None]


def test_only_wanted_fields_are_built_and_the_others_are_skipped() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
    schema = record(a={"type": "string"}, b={"type": inner}, c={"type": "long"})
    wanted = pa.struct([("c", pa.int64()), ("b", pa.struct([("y", pa.string())]))])
    narrow = AvroDecoder(parse_schema(json.dumps(schema)), wanted=wanted)
    assert narrow.arrow_type == wanted
    column, bad = narrow.decode(
        pa.array([b"\x02\xff\x02\x02y\x04", b"\x02a\x02\x02\xff\x04", b"\x02a\x02"], pa.binary())
    )
    assert column.to_pylist() == [{"c": 2, "b": {"y": "y"}}, None, None]
    # Text that nobody wants is not looked at.
    assert [(each.row, each.message.rpartition(",")[0]) for each in bad] == [
        (1, "a string is not UTF-8"),
        (2, "it ends in the middle of a field"),
    ]
    with pytest.raises(SchemaError, match=r"Field 'value\.b\.z' is wanted as int32, and is no such field"):
        AvroDecoder(parse_schema(json.dumps(schema)), wanted=pa.struct([("b", pa.struct([("z", pa.int32())]))]))


def test_a_field_that_nobody_wants_need_not_resolve() -> None:
    writer, reader = record(a={"type": "string"}, b={"type": "int"}), record(a={"type": "int"}, b={"type": "long"})
    written, read_as = (parse_schema(json.dumps(each)) for each in (writer, reader))
    narrow = AvroDecoder(written, read_as, pa.struct([("b", pa.int64())]))
    assert narrow.decode(pa.array([b"\x02x\x06"], pa.binary())).column.to_pylist() == [{"b": 3}]


TIMES = [
    ("long", "timestamp-nanos"),
    ("long", "timestamp-micros"),
    ("long", "local-timestamp-millis"),
    ("int", "date"),
    ("int", "time-millis"),
]


@pytest.mark.parametrize("writer", TIMES)
@pytest.mark.parametrize("reader", [each for each in TIMES if each[0] == "long"])
def test_times_of_other_units_are_not_read_as_one_another(writer: tuple[str, str], reader: tuple[str, str]) -> None:
    if writer == reader:
        return
    schemas = [parse_schema(json.dumps({"type": kind, "logicalType": name})) for kind, name in (writer, reader)]
    with pytest.raises(SchemaError, match=rf"the writer has {writer[0]} \({writer[1]}\), the reader wants"):
        AvroDecoder(*schemas)


def test_nanoseconds_are_their_number() -> None:
    nanos = parse_schema('{"type": "long", "logicalType": "timestamp-nanos"}')
    for reader in (nanos, parse_schema('"long"')):
        assert AvroDecoder(nanos, reader).decode(pa.array([b"\x06"])).column.to_pylist() == [3]
