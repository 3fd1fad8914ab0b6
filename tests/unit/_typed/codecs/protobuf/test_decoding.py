"""Values in Protobuf to columns: types, and what is wrong with values."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.message import DecodeError

from kit.protobuf_schema import everything
from pyspark_kafka._typed.codecs.bounds import TOO_MANY_CELLS
from pyspark_kafka._typed.codecs.protobuf import decoding, outline
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.codecs.protobuf.field_selection import narrow_message
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.codecs.values import BadValue, Reason

DEFAULTS = {
    "i": 0,
    "l": 0,
    "u": decimal.Decimal(0),
    "w": 0,
    "f": 0.0,
    "d": 0.0,
    "t": False,
    "s": "",
    "b": b"",
    "o": None,
    "at": None,
    "os": [],
    "m": [],
    "e": "NONE",
    "n": [],
    "p": None,
    "q": None,
}


def rows(*texts: bytes | None) -> Any:
    found = ProtobufDecoder(everything()[0]).decode(pa.array(texts, pa.binary()))
    found.column.validate(full=True)
    assert found.bad == []
    return found.column.to_pylist()


def test_fields_have_their_columns() -> None:
    message = everything()[1](
        i=-1,
        l=-(2**63),
        u=2**64 - 1,
        w=2**32 - 1,
        f=1.5,
        d=2.5,
        t=True,
        s="ä",
        b=b"\0",
        o={"x": 1.0},
        e=1,
        n=[1, -2],
        p=0,
    )
    message.at.FromDatetime(dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.timezone.utc))
    message.m["k"] = 7
    message.os.add(x=2.0)
    assert rows(message.SerializeToString()) == [
        {
            "i": -1,
            "l": -(2**63),
            "u": decimal.Decimal(2**64 - 1),
            "w": 2**32 - 1,
            "f": 1.5,
            "d": 2.5,
            "t": True,
            "s": "ä",
            "b": b"\0",
            "o": {"x": 1.0},
            "at": dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.timezone.utc),
            "os": [{"x": 2.0}],
            "m": [("k", 7)],
            "e": "SOME",
            "n": [1, -2],
            "p": 0,
            "q": None,
        }
    ]


def test_a_value_of_no_bytes_has_the_defaults_and_none_is_null() -> None:
    assert rows(b"", None) == [DEFAULTS, None]


def test_unknown_fields_are_skipped_and_unknown_names_are_numbers() -> None:
    assert rows(b"\xf8\x07\x01\xf0\x01\x63") == [{**DEFAULTS, "e": "99"}]


@pytest.mark.parametrize("text", [b"\x08", b"\x42\x01\xff", b"\x42\x7f", b"\x08" + b"\xff" * 11, b"\x00\x01"])
def test_a_bad_value_is_null_and_named(text: bytes) -> None:
    good = everything()[1](i=1).SerializeToString()
    found = ProtobufDecoder(everything()[0]).decode(pa.array([good, text, None, good], pa.binary()))
    assert found.bad == [BadValue(1, Reason.DECODE_FAILED, "it is not a message of its schema")]
    assert [row and row["i"] for row in found.column.to_pylist()] == [1, None, None, 1]


def test_a_prefix_is_skipped() -> None:
    values = pa.array([b"12345\x08\x01", None, b"123", b"12345"], pa.large_binary()).slice(0, 4)
    found = ProtobufDecoder(everything()[0]).decode(values, skipped=5)
    assert [row and row["i"] for row in found.column.to_pylist()] == [1, None, None, 0]
    assert found.bad == [BadValue(2, Reason.INCOMPLETE_HEADER, "it has 3 bytes, fewer than 5")]


def test_values_beyond_one_call_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_kafka._typed.codecs.protobuf.decoding._MAX_BYTES", 5)
    texts = [everything()[1](i=number).SerializeToString() for number in range(1, 9)]
    assert [row["i"] for row in rows(*texts)] == list(range(1, 9))


def test_messages_without_fields_are_rows_without_fields() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="empty.proto", syntax="proto3")
    file.message_type.add(name="Empty")
    decoder = ProtobufDecoder(find_message(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()))
    found = decoder.decode(pa.array([b"", None, b"\x08\x01", b"\xff"], pa.binary()))
    assert found.column.to_pylist() == [{}, None, {}, None]
    assert [each.row for each in found.bad] == [3]


def test_a_tag_of_more_than_32_bits_is_bad_whatever_stands_beside_it() -> None:
    """ptars skips such a field, Google's parsers refuse it."""
    odd = b"\x08\x05\xf8\xff\xff\xff\x7f\x01"
    for others in ([], [b"\xff"], [b""]):
        found = ProtobufDecoder(everything()[0]).decode(pa.array([odd, *others], pa.binary()))
        assert found.bad[0] == BadValue(0, Reason.DECODE_FAILED, "it is not a message of its schema")


@pytest.mark.parametrize("end", [b"", b"\x0c"])
@pytest.mark.parametrize("start", [b"\x0b", b"\xfb\xff\x07"])
def test_groups_without_end_are_bad_before_the_library_sees_them(
    start: bytes, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ptars skips groups by recursion: it ends the process."""
    decoder = ProtobufDecoder(everything()[0])
    read, seen = decoder._try, []

    def note(values: pa.Array) -> Any:
        seen.extend(values.to_pylist())
        return read(values)

    monkeypatch.setattr(decoder, "_try", note)
    for place in (b"%s", b"\xa2\x01\x83\x08%s"):
        value = place % (start * 1000 + end * 1000)
        found = decoder.decode(pa.array([b"\x08\x01", value, b"\x08\x02"], pa.binary()))
        assert [row and row["i"] for row in found.column.to_pylist()] == [1, None, 2]
        assert [each.row for each in found.bad] == [1]
    assert set(seen) == {b"\x08\x01", None, b"\x08\x02"}


NODE = """
syntax = "proto3";
message Node { string name = 1; Node next = 2; repeated Node kids = 3; map<string, Node> by = 4; }
"""


def nested(depth: int) -> bytes:
    """Return a node that has nodes in it, up to a depth."""
    value = b""
    for _ in range(depth):
        size = len(value)
        value = b"\x12" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + value
    return value


@pytest.mark.parametrize("value", [lambda depth: b"\x0b" * depth + b"\x0c" * depth, nested], ids=["groups", "messages"])
def test_nesting_is_as_deep_as_googles_parser_has_it(value: Any) -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", NODE)))
    made = message_factory.GetMessageClass(descriptor)
    made.FromString(value(100))
    with pytest.raises(DecodeError):
        made.FromString(value(101))
    found = ProtobufDecoder(descriptor).decode(pa.array([value(100), value(101)], pa.binary()))
    assert found.bad == [BadValue(1, Reason.DECODE_FAILED, "it is nested more than 100 deep")]


def test_the_last_member_of_a_oneof_counts() -> None:
    # p, then q; q, then p, then p; both in one that is not the first.
    (first, second) = rows(b"\x80\x02\x05\x8a\x02\x01x", b"\x8a\x02\x01x\x80\x02\x05\x80\x02\x06")
    assert (first["p"], first["q"]) == (None, "x")
    assert (second["p"], second["q"]) == (6, None)


def test_a_oneof_ends_with_a_member_that_is_not_read() -> None:
    few = narrow_message(everything()[0], pa.struct([("p", pa.int32())]))
    decoder = ProtobufDecoder(few, everything()[0])
    values = pa.array([b"\x80\x02\x05\x8a\x02\x01x", b"\x8a\x02\x01x\x80\x02\x05"], pa.binary())
    assert decoder.decode(values).column.to_pylist() == [{"p": None}, {"p": 5}]


TWICE = """
syntax = "proto3";
import "google/protobuf/wrappers.proto";
import "google/protobuf/timestamp.proto";
message A {
  google.protobuf.Int64Value w = 1; google.protobuf.Timestamp t = 2; A a = 3; repeated B bs = 4; map<int32, B> m = 5;
  repeated fixed32 f = 6; repeated double d = 7; int64 n = 8;
}
message B { A a = 1; oneof o { int64 x = 2; B b = 3; } }
"""


@pytest.mark.parametrize(
    "value",
    [
        b"\x0a\x02\x08\x05\x0a\x00",
        b"\x12\x02\x08\x05\x12\x02\x10\x00",
        b"\x1a\x04\x0a\x02\x08\x01\x1a\x02\x40\x05",
        # In an item of a list, and in a value of a map.
        b"\x22\x0a\x0a\x04\x0a\x02\x08\x07\x0a\x02\x40\x06",
        b"\x22\x04\x10\x05\x1a\x00",
        b"\x2a\x0a\x08\x01\x12\x02\x10\x05\x12\x02\x1a\x00",
    ],
)
def test_a_message_that_stands_twice_is_merged(value: bytes) -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", TWICE)))
    made = message_factory.GetMessageClass(descriptor)
    decoder = ProtobufDecoder(descriptor)
    found = decoder.decode(pa.array([value, made.FromString(value).SerializeToString()], pa.binary()))
    assert found.bad == []
    assert found.column[0] == found.column[1]


@pytest.mark.parametrize("value", [b"\x32\x06" + bytes(6), b"\x3a\x04" + bytes(4), b"\x0b\x14", b"\x0c", b"\x0b"])
def test_items_that_are_cut_short_and_groups_with_another_end_are_bad(value: bytes) -> None:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", TWICE)))
    with pytest.raises(DecodeError):
        message_factory.GetMessageClass(descriptor).FromString(value)
    found = ProtobufDecoder(descriptor).decode(pa.array([b"\x40\x01" + value, b"\x40\x01"], pa.binary()))
    assert [row and row["n"] for row in found.column.to_pylist()] == [None, 1]


WIDE = f"""
syntax = "proto3";
message R {{ repeated W w = 1; }}
message W {{ {" ".join(f"int64 f{number} = {number};" for number in range(1, 251))} }}
"""


def test_a_value_whose_items_have_too_many_cells_is_bad_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "FREE_CELLS", 5000)
    monkeypatch.setattr(decoding, "FREE_CELLS", 5000)
    decoder = ProtobufDecoder(find_message(read_file_set(RegisteredSchema("PROTOBUF", WIDE))))
    item = b"\x0a\x00"
    found = decoder.decode(pa.array([item * 10, item * 40, None, item], pa.binary()))
    assert [row and len(row["w"]) for row in found.column.to_pylist()] == [10, None, None, 1]
    assert [(each.row, each.reason) for each in found.bad] == [(1, Reason.DECODE_FAILED)]
    assert found.bad[0].message == TOO_MANY_CELLS
