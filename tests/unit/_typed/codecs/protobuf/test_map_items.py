"""Maps of messages with entries that have no value, as Google's parser reads them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import message_factory

from kit.protobuf_schemas import in_dictionaries, row_of
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

TEXT = """
syntax = "proto3";
message M {
  map<int32, N> m = 7; N n = 1000; repeated N ns = 3; map<string, string> plain = 4; int32 i = 5;
}
message N { int32 a = 1; optional string s = 2; map<string, Leaf> deep = 3; repeated int32 l = 4; Leaf leaf = 5; }
message Leaf { sint64 x = 1; map<int32, Empty> empty = 2; }
message Empty {}
"""
# An entry with a key and no value, one with nothing, one with a value.
ENTRIES = bytes.fromhex("3a020805 3a00 3a041202080c")
DEEP = b"\x1a\x03\x0a\x01k"


def message() -> tuple[Any, Any]:
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", TEXT)))
    return descriptor, message_factory.GetMessageClass(descriptor)


def within(tag: bytes, text: bytes) -> bytes:
    return tag + bytes([len(text)]) + text


@pytest.mark.parametrize(
    "text",
    [
        ENTRIES,
        within(b"\xc2\x3e", DEEP),
        within(b"\x1a", DEEP) + within(b"\x1a", b"") + within(b"\x1a", within(b"\x2a", b"\x12\x02\x08\x07")),
        within(b"\x3a", b"\x08\x01" + within(b"\x12", DEEP)) + ENTRIES,
        within(b"\x22", b"\x0a\x01k"),
    ],
)
def test_entry_without_a_value_has_an_empty_message(text: bytes) -> None:
    descriptor, made = message()
    good = made(m={1: {"a": 2}}, i=3).SerializeToString()
    values = [good, text, None, b"", good]
    found = ProtobufDecoder(descriptor).decode(pa.array(values, pa.binary()))
    found.column.validate(full=True)
    assert found.bad == []
    assert [in_dictionaries(row, descriptor) for row in found.column.to_pylist()] == [
        None if each is None else row_of(made.FromString(each)) for each in values
    ]


def test_entry_without_a_value_costs_no_other_value_a_call(capfd: pytest.CaptureFixture[str]) -> None:
    """What ptars refuses is read again value by value, and it prints a panic for each."""
    descriptor, _ = message()
    decoder = ProtobufDecoder(descriptor)
    calls = []
    read = decoder._try
    decoder._try = lambda values: calls.append(len(values)) or read(values)  # type: ignore[func-returns-value,method-assign]
    assert decoder.decode(pa.array([ENTRIES] * 100)).bad == []
    # The second is an empty message, read once.
    assert decoder.decode(pa.array([ENTRIES] * 50)).bad == []
    assert calls == [100, 1, 50]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("kind", "empty"),
    [
        ("google.protobuf.Timestamp", "1970-01-01 00:00:00+00:00"),
        ("google.protobuf.Duration", "0:00:00"),
        ("google.protobuf.Int64Value", "0"),
        ("google.protobuf.StringValue", ""),
        ("google.protobuf.Any", "{'type_url': '', 'value': b''}"),
        ("M", "b''"),
    ],
)
def test_entry_without_a_value_has_an_empty_message_of_google(kind: str, empty: str) -> None:
    imports = "".join(
        f'import "google/protobuf/{each}.proto"; ' for each in ("any", "duration", "timestamp", "wrappers")
    )
    text = f'syntax = "proto3"; {imports} message M {{ map<int32, {kind}> m = 1; }}'
    descriptor = find_message(read_file_set(RegisteredSchema("PROTOBUF", text)))
    found = ProtobufDecoder(descriptor).decode(pa.array([b"\x0a\x02\x08\x05", b""]))
    assert found.bad == []
    [(key, value)] = found.column[0].as_py()["m"]
    assert (key, str(value)) == (5, empty)
    assert found.column[1].as_py() == {"m": []}
