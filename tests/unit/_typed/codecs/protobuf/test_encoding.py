"""Columns to values in Protobuf: types, and what does not fit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory

from kit.protobuf_schema import everything
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.codecs.protobuf.encoding import ProtobufEncoder
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka.errors import RecordError, SchemaError


def encode(
    kind: list[tuple[str, pa.DataType]], *given: dict[str, Any] | None, prefix: bytes = b""
) -> list[bytes | None]:
    column = pa.array(given, pa.struct(kind))
    found: list[bytes | None] = ProtobufEncoder(everything()[0], column.type).encode(column, prefix).to_pylist()
    return found


def test_columns_that_were_read_are_written_again() -> None:
    descriptor, made = everything()
    texts = [made(i=1, u=2**64 - 1, o={"x": 1.0}, e=1, n=[1], q="q").SerializeToString(), None, b""]
    column = ProtobufDecoder(descriptor).decode(pa.array(texts, pa.binary())).column
    written = ProtobufEncoder(descriptor, column.type).encode(column).to_pylist()
    assert [None if text is None else made.FromString(text) for text in written] == [
        None if text is None else made.FromString(text) for text in texts
    ]


def test_nulls_are_tombstones_and_fields_that_are_not_set() -> None:
    kind = [("q", pa.string()), ("o", pa.struct([("x", pa.float64())])), ("i", pa.int64())]
    given: list[Any] = [{"q": None, "o": None, "i": 0}, None, {"q": None, "o": None, "i": 1}]
    assert encode(kind, *given, prefix=b"id") == [b"id", None, b"id\x08\x01"]


def test_fields_that_the_struct_lacks_are_not_set() -> None:
    kind = [("s", pa.string()), ("o", pa.struct([])), ("os", pa.list_(pa.struct([])))]
    assert encode(kind, {"s": "", "o": {}, "os": [{}]}) == [b"\xa2\x01\x00\xb2\x01\x00"]


def test_lists_and_maps_that_are_null_are_empty() -> None:
    kind = [("n", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int32()))]
    assert encode(kind, {"n": None, "m": None}) == [b""]


def test_minus_zero_keeps_its_sign_only_where_the_field_may_be_absent() -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", OPTIONAL)))
    kind = pa.struct([("d", pa.float64()), ("od", pa.float64())])
    encoder = ProtobufEncoder(descriptor, kind)
    assert encoder.encode(pa.array([{"d": -0.0, "od": -0.0}], kind)).to_pylist() == [b"\x11" + bytes(7) + b"\x80"]


OPTIONAL = """
syntax = "proto3";
message M { double d = 1; optional double od = 2; optional int32 oi = 3; Inner inner = 4; map<string, Inner> m = 5; }
message Inner { bool b = 1; optional string os = 2; }
"""


@pytest.mark.parametrize(
    ("kind", "good", "bad", "text"),
    [
        ([("i", pa.int32())], 0, None, "Row 1 .* field 'i': it is null, and the field is not optional"),
        ([("s", pa.string())], "", None, "Row 1 .* field 's': it is null, and the field is not optional"),
        ([("t", pa.bool_())], False, None, "Row 1 .* field 't': it is null, and the field is not optional"),
        ([("e", pa.string())], "NONE", None, "Row 1 .* field 'e': it is null, and the field is not optional"),
        ([("o", pa.struct([("x", pa.float64())]))], None, {"x": None}, r"Row 1 .* field 'o.x': it is null"),
        (
            [("os", pa.list_(pa.struct([("x", pa.float64())])))],
            [{"x": 1.0}],
            [{"x": 1.0}, {"x": None}],
            r"A row .* field 'os.x': it is null",
        ),
    ],
)
def test_null_in_a_field_that_is_always_there_is_an_error(kind: Any, good: Any, bad: Any, text: str) -> None:
    name = kind[0][0]
    assert len(encode(kind, {name: good}, None)) == 2
    with pytest.raises(RecordError, match=text):
        encode(kind, {name: good}, {name: bad})


def test_null_in_a_field_that_may_be_absent_leaves_it_out() -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", OPTIONAL)))
    inner = pa.struct([("b", pa.bool_()), ("os", pa.string())])
    kind = pa.struct([("oi", pa.int32()), ("inner", inner), ("m", pa.map_(pa.string(), inner))])
    encoder = ProtobufEncoder(descriptor, kind)
    rows: list[Any] = [
        {"oi": None, "inner": None, "m": [("k", {"b": True, "os": None})]},
        {"oi": 0, "inner": {"b": False, "os": ""}, "m": []},
    ]
    column = encoder.encode(pa.array(rows, kind))
    assert ProtobufDecoder(descriptor).decode(column).column.to_pylist() == [
        {"d": 0.0, "od": None, **row} for row in rows
    ]
    with pytest.raises(RecordError, match=r"A row .* field 'm.b': it is null, and the field is not optional"):
        encoder.encode(pa.array([{"oi": None, "inner": None, "m": [("k", {"b": None, "os": None})]}], kind))


def test_nulls_in_memory_below_a_null_are_none_of_the_column() -> None:
    """As a filter or `if_else` leaves them: a struct that is null, whose fields in memory are not."""
    inner = pa.StructArray.from_arrays([pa.array([None, 1.0], pa.float64())], ["x"])
    outer = pa.StructArray.from_arrays([inner], ["o"], mask=pa.array([True, False]))
    assert ProtobufEncoder(everything()[0], outer.type).encode(outer).to_pylist()[0] is None


NODE = """
syntax = "proto3";
import "google/protobuf/struct.proto";
message Node {
  string name = 1; Node next = 2; repeated Node kids = 3; map<string, Node> by = 4;
  oneof o { Node one = 5; int32 n = 6; }
  google.protobuf.Struct free = 7;
}
"""


def test_messages_within_themselves_are_written_as_they_were_read() -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", NODE)))
    made = message_factory.GetMessageClass(descriptor)
    leaf = made(name="leaf", n=0)
    tree = made(name="root", next=made(kids=[leaf, made()], next=leaf), kids=[made(), leaf], by={"": made(), "k": leaf})
    tree.free.update({"tags": ["a", None, [1.5]], "customer": {"id": 7, "more": {}}})
    rows = [tree, None, made(), made(one=made()), made(one=tree), made(next=made())]
    texts = [None if each is None else each.SerializeToString() for each in rows]
    column = ProtobufDecoder(descriptor).decode(pa.array(texts, pa.binary())).column
    written = ProtobufEncoder(descriptor, column.type).encode(column, b"").to_pylist()
    assert [None if text is None else made.FromString(text) for text in written] == rows


@pytest.mark.parametrize(
    ("name", "kind", "value", "place"),
    [
        ("next", pa.binary(), b"\x0a\x05", "Row 1 .* field 'next'"),
        ("next", pa.large_binary(), b"\x0c", "Row 1 .* field 'next'"),
        ("next", pa.binary(), b"\x12\x02\x12\x01", "Row 1 .* field 'next'"),
        ("kids", pa.list_(pa.binary()), [b"", b"\x0a"], "A row .* field 'kids'"),
        ("by", pa.map_(pa.string(), pa.binary()), [("", b"\x0b" * 101)], "A row .* field 'by'"),
    ],
)
def test_bytes_that_are_no_message_are_not_written_as_one(name: str, kind: Any, value: Any, place: str) -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", NODE)))
    column = pa.array([{name: None}, {name: value}], pa.struct([(name, kind)]))
    encoder = ProtobufEncoder(descriptor, column.type)
    with pytest.raises(RecordError, match=f"{place}: its bytes are not a message Node, or one nested"):
        encoder.encode(column)


def test_a_struct_in_place_of_a_message_within_itself_is_refused() -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", NODE)))
    with pytest.raises(
        SchemaError, match=r"Column 'next' has the type struct<name: string>, which .* Protobuf's binary"
    ):
        ProtobufEncoder(descriptor, pa.struct([("next", pa.struct([("name", pa.string())]))]))


def test_bytes_in_a_message_of_their_own_may_be_any() -> None:
    text = 'syntax="proto3"; import "google/protobuf/wrappers.proto"; message A { google.protobuf.BytesValue b = 1; }'
    encoder = ProtobufEncoder(
        find_message(read_file_set(RegisteredSchema("PROTOBUF", text))), pa.struct([("b", pa.binary())])
    )
    assert encoder.encode(pa.array([{"b": b"\xff"}], pa.struct([("b", pa.binary())]))).to_pylist() == [
        b"\x0a\x03\x0a\x01\xff"
    ]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_number_of_an_enum_without_a_name_is_written_as_it_was_read(syntax: str) -> None:
    label = "optional " if syntax == "proto2" else ""
    text = f'syntax = "{syntax}"; enum E {{ A = 0; B = 1; LOW = -5; }} message N {{ {label}E e = 1; {label}N n = 2; }} '
    text += f"message M {{ {label}E e = 1; repeated E r = 2; map<string, E> m = 3; {label}N n = 4; repeated N l = 5; }}"
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", text)), "M")
    made = message_factory.GetMessageClass(descriptor)
    lowest, highest = -(1 << 31), (1 << 31) - 1
    values = [
        b"\x08\x07",
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x22\x02\x08\x07\x2a\x02\x08\x08\x2a\x02\x08\x01",
        b"\x1a\x05\x0a\x01k\x10\x07",
        None,
    ]
    if syntax == "proto3":
        numbers = [1, 7, -5, lowest, highest]
        values.append(made(e=highest, r=numbers, m={"a": lowest}, l=[{"e": 9}]).SerializeToString())
    # What stands before the rows in memory is none of them.
    column = ProtobufDecoder(descriptor).decode(pa.array([b"", *values], pa.binary())).column[1:]
    assert column.field("e").to_pylist()[:2] == ["7", "-1"]
    assert ProtobufEncoder(descriptor, column.type).encode(column).to_pylist() == values


@pytest.mark.parametrize("text", ["07", "+7", "-0", " 7", "7 ", "7.0", "2147483648", "-2147483649", "9" * 30, "", "b"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_that_is_no_number_as_a_read_has_it_is_not_written(text: str, kind: pa.DataType) -> None:
    with pytest.raises(RecordError, match=r"Row 1 .* the text is not a name of the enum kit\.Kind, nor a number"):
        encode([("e", kind)], {"e": "7"}, {"e": text})


def test_text_of_an_enum_below_a_null_is_none_of_the_column() -> None:
    """As a filter or `if_else` leaves it in memory."""
    text = 'syntax = "proto3"; enum E { A = 0; } message N { E e = 1; repeated E r = 2; } message M { N n = 1; }'
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", text)), "M")
    lists = pa.array([["x"], ["A", "7"]])
    inner = pa.StructArray.from_arrays([pa.array(["x", "5"]), lists], ["e", "r"], mask=pa.array([True, False]))
    column = pa.StructArray.from_arrays([inner], ["n"])
    assert ProtobufEncoder(descriptor, column.type).encode(column).to_pylist() == [
        b"",
        b"\x0a\x06\x08\x05\x12\x02\x00\x07",
    ]


def test_a_struct_without_fields_is_an_empty_message() -> None:
    assert encode([], {}, None) == [b"", None]


@pytest.mark.parametrize(
    ("kind", "values", "text"),
    [
        (
            [("i", pa.int64())],
            [{"i": 1}, {"i": 2**40}, {"i": 2}],
            "Row 1 of the batch .* field 'i': a number or a time is out of the range of its field",
        ),
        (
            [("u", pa.int64())],
            [{"u": 1}, {"u": -1}],
            "Row 1 of the batch .* field 'u': .* out of the range of its field",
        ),
        (
            [("i", pa.int32()), ("m", pa.map_(pa.string(), pa.int64()))],
            [{"i": 1, "m": None}, {"i": 1, "m": [("k", 1), ("l", 1 << 40)]}],
            r"Row 1 of the batch .* field 'm\[\]': .* out of the range of its field",
        ),
        (
            [("at", pa.timestamp("s", "UTC"))],
            [{"at": 0}, {"at": None}, {"at": 1 << 60}],
            "Row 2 of the batch .* field 'at': .* out of the range of its field",
        ),
        (
            [("e", pa.string())],
            [{"e": "SOME"}, {"e": "MANY"}],
            "Row 1 .* field 'e': the text is not a name of the enum kit.Kind",
        ),
        (
            [("p", pa.int32()), ("q", pa.string())],
            [{"p": 1, "q": None}, {"p": None, "q": None}, {"p": 1, "q": ""}],
            "Row 2 .* field 'one': more than one member of the oneof is there",
        ),
        ([("n", pa.list_(pa.int64()))], [{"n": [1, None]}], "A row .* field 'n': a list or map has a null"),
        (
            [("m", pa.map_(pa.string(), pa.int32()))],
            [{"m": [("k", None)]}],
            "A row .* field 'm': a list or map has a null",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_row(kind: Any, values: Any, text: str) -> None:
    with pytest.raises(RecordError, match=text):
        encode(kind, *values)


def test_items_of_maps_outside_of_a_slice_are_none_of_the_column() -> None:
    kind = pa.struct([("m", pa.map_(pa.string(), pa.int64()))])
    column = pa.array([{"m": [("k", 1 << 40)]}, {"m": [("k", 1)]}, {"m": [("k", 1 << 40)]}], kind)
    encoder = ProtobufEncoder(everything()[0], kind)
    assert encoder.encode(column[1:2]).to_pylist() == [b"\xba\x01\x05\x0a\x01k\x10\x01"]
    with pytest.raises(RecordError, match=r"Row 1 of the batch .* field 'm\[\]'"):
        encoder.encode(column[1:])


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ([("zz", pa.int32())], "Column 'zz' .* message kit.Everything, which has no such field"),
        ([("i", pa.string())], "Column 'i' has the type string, which cannot be written as Protobuf's int32"),
        ([("f", pa.float64())], "Column 'f' has the type double"),
        ([("o", pa.struct([("y", pa.float64())]))], "Column 'o.y' .* which has no such field"),
        ([("at", pa.timestamp("us"))], "Column 'at' has the type timestamp"),
        ([("n", pa.list_(pa.string()))], r"Column 'n\[\]' has the type string"),
    ],
)
def test_a_column_of_another_type_is_refused(kind: Any, text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        ProtobufEncoder(everything()[0], pa.struct(kind))


def test_a_column_that_is_no_struct_is_refused() -> None:
    with pytest.raises(SchemaError, match="Column 'value' has the type int32"):
        ProtobufEncoder(everything()[0], pa.int32())


def required() -> Any:
    """Return a message of proto2 that requires a field, and has itself in a list."""
    file = descriptor_pb2.FileDescriptorProto(name="old.proto", package="old", syntax="proto2")
    message = file.message_type.add(name="Old")
    kind = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="a", number=1, type=kind.TYPE_INT32, label=kind.LABEL_REQUIRED)
    message.field.add(name="more", number=2, type=kind.TYPE_MESSAGE, label=kind.LABEL_REPEATED, type_name=".old.Inner")
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="b", number=1, type=kind.TYPE_INT32, label=kind.LABEL_REQUIRED)
    return find_message(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def test_fields_that_proto2_requires_are_there_in_each_row() -> None:
    descriptor = required()
    kind = pa.struct([("a", pa.int32()), ("more", pa.list_(pa.struct([("b", pa.int32())])))])
    encoder = ProtobufEncoder(descriptor, kind)
    good = {"a": 1, "more": [{"b": 2}]}
    assert encoder.encode(pa.array([good, None], kind)).to_pylist() == [b"\x08\x01\x12\x02\x08\x02", None]
    with pytest.raises(RecordError, match=r"Row 1 .* field 'a': it is null, and required"):
        encoder.encode(pa.array([good, {"a": None, "more": []}], kind))
    with pytest.raises(RecordError, match=r"A row .* field 'more.b': it is null, and required"):
        encoder.encode(pa.array([{"a": 1, "more": [{"b": None}]}], kind))
    with pytest.raises(SchemaError, match=r"Field 'a' is missing: Protobuf's message old.Old needs it"):
        ProtobufEncoder(descriptor, pa.struct([("more", kind.field(1).type)]))
    with pytest.raises(SchemaError, match=r"Field 'more.b' is missing: Protobuf's message old.Inner"):
        ProtobufEncoder(descriptor, pa.struct([("a", pa.int32()), ("more", pa.list_(pa.struct([])))]))
