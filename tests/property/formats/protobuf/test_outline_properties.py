"""Messages that are cut short: what a walk over the fields says, and what ptars and Google's parser do with them."""

from __future__ import annotations

from array import array
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import empty_pb2
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st

from kit.protobuf_schema import everything
from kit.protobuf_schemas import files, message_of, messages_of
from pyspark_kafka import compiled
from pyspark_kafka.formats.protobuf import _variant
from pyspark_kafka.formats.protobuf.decoding import ProtobufDecoder

DESCRIPTOR, MESSAGE = everything()
DECODER = ProtobufDecoder(DESCRIPTOR)
VARIANTS = (_variant.outline, compiled.load_source("pyspark_kafka.formats.protobuf", "_kernel_outline"))


def is_cut_short(value: bytes) -> bool:
    offsets = array("q", [0, 1, 1 + len(value), 2 + len(value)])
    (found,) = {tuple(each.find_cut_short(b"\x08" + value + b"\x08", offsets, 1, 1, None)) for each in VARIANTS}
    return bool(found)


def is_read(decoder: Any, value: bytes) -> bool:
    return decoder._try(pa.array([value], pa.binary())) is not None


def has_an_outline(value: bytes) -> bool:
    try:
        empty_pb2.Empty.FromString(value)
    except DecodeError:
        return False
    return True


@given(st.data())
def test_a_message_is_cut_short_where_google_finds_no_end(data: st.DataObject) -> None:
    descriptor, _ = message_of(data.draw(files()))
    value = data.draw(messages_of(descriptor)).SerializeToString()
    decoder = ProtobufDecoder(descriptor)
    for end in range(len(value) + 1):
        cut = value[:end]
        assert is_cut_short(cut) is not has_an_outline(cut)
        if is_cut_short(cut):
            assert not is_read(decoder, cut)


@given(st.lists(st.binary(max_size=24), min_size=5, max_size=5))
@example(
    [
        b"\x08" + 9 * b"\xff",
        b"\x08" + 10 * b"\xff",
        b"\x08" + 9 * b"\xff" + b"\x7f\x12\x09",
        b"\x12" + 9 * b"\xff" + b"\x01",
        b"\x0b\x0c\x12\x09",
        b"\x00\x12\x09",
        b"\x0a\x05\x08",
    ]
)
def test_no_bytes_that_are_called_cut_short_are_read(values: list[bytes]) -> None:
    for value in values:
        if is_cut_short(value):
            assert not is_read(DECODER, value)


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_that_are_not_asked_for_or_null_are_left_out(variant: Any) -> None:
    offsets = array("q", [0, 1, 2, 3, 4])
    assert variant.find_cut_short(b"\x08\x08\x08\x08", offsets, 1, 3, bytes([1, 1, 0, 1])) == [1, 3]
