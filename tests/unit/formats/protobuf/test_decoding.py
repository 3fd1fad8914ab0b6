"""Values in Protobuf to columns: types, and what is wrong with values."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from kit.protobuf_schema import everything
from pyspark_kafka.formats.protobuf.decoding import ProtobufDecoder
from pyspark_kafka.formats.protobuf.descriptors import find_message
from pyspark_kafka.formats.values import BadValue, Reason

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
    assert found.bad == [BadValue(1, Reason.DECODE_FAILED, "it is no message of its schema")]
    assert [row and row["i"] for row in found.column.to_pylist()] == [1, None, None, 1]


def test_a_prefix_is_skipped() -> None:
    values = pa.array([b"12345\x08\x01", None, b"123", b"12345"], pa.large_binary()).slice(0, 4)
    found = ProtobufDecoder(everything()[0]).decode(values, skipped=5)
    assert [row and row["i"] for row in found.column.to_pylist()] == [1, None, None, 0]
    assert found.bad == [BadValue(2, Reason.INCOMPLETE_HEADER, "it has 3 bytes, fewer than 5")]


def test_values_beyond_one_call_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_kafka.formats.protobuf.decoding._MOST_BYTES", 5)
    texts = [everything()[1](i=number).SerializeToString() for number in range(1, 9)]
    assert [row["i"] for row in rows(*texts)] == list(range(1, 9))


def test_messages_without_fields_are_rows_without_fields() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="empty.proto", syntax="proto3")
    file.message_type.add(name="Empty")
    decoder = ProtobufDecoder(find_message(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()))
    found = decoder.decode(pa.array([b"", None, b"\x08\x01", b"\xff"], pa.binary()))
    assert found.column.to_pylist() == [{}, None, {}, None]
    assert [each.row for each in found.bad] == [3]


def test_bad_values_are_the_same_beside_any_other_value() -> None:
    """Google's parser, which looks for the bad ones of a batch, refuses a number of a field that ptars skips."""
    decoder = ProtobufDecoder(everything()[0])
    odd = b"\x08\x05\xf8\xff\xff\xff\x7f\x01"
    alone = decoder.decode(pa.array([odd], pa.binary()))
    beside = decoder.decode(pa.array([odd, b"\xff"], pa.binary()))
    assert beside.column[0] == alone.column[0]
    assert ([each.row for each in alone.bad], [each.row for each in beside.bad]) == ([], [1])
