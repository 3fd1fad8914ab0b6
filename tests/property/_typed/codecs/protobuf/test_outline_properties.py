"""What a walk over the fields says of values: the same in both variants, and as Google's parser has it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from kit.protobuf_schemas import broken, files, message_of, messages_of
from pyspark_kafka._base import compiled
from pyspark_kafka._typed.codecs.protobuf import _variant
from pyspark_kafka._typed.codecs.protobuf.descriptors import build_handler, find_message
from pyspark_kafka._typed.codecs.protobuf.outline import build_walk, check_values
from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

VARIANTS = (_variant.outline, compiled.load_source("pyspark_kafka._typed.codecs.protobuf", "_kernel_outline"))


def walks_of(descriptor: Any) -> list[Any]:
    kind = pa.struct(build_handler(descriptor).fields)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for each in VARIANTS:
            patch.setattr(_variant, "outline", each)
            found.append(build_walk(descriptor, kind))
    return found


NODE = RegisteredSchema("PROTOBUF", 'syntax = "proto3"; message Node { string name = 1; Node next = 2; }')


@cache
def node_walks() -> list[Any]:
    return walks_of(find_message(read_file_set(NODE)))


def said(walk: Any, value: bytes) -> tuple[int, int]:
    found = check_values(walk, pa.array([b"\x08", value, b"\x08"], pa.binary()).slice(1, 1))
    assert found.are_good == (found.verdicts[0] == _variant.outline.GOOD)
    return int(found.verdicts[0]), found.all_cells


@given(st.data())
def test_a_value_is_merged_to_one_message_that_google_finds_the_same(data: st.DataObject) -> None:
    descriptor, message = message_of(data.draw(files()))
    parts = data.draw(st.lists(messages_of(descriptor), min_size=1, max_size=3))
    value = b"".join(each.SerializeToString() for each in parts)
    walks = walks_of(descriptor)
    ((verdict, cells),) = {said(walk, value) for walk in walks}
    assert verdict in (_variant.outline.GOOD, _variant.outline.UNMERGED)
    (merged,) = {walk.merged(value) for walk in walks}
    assert message.FromString(merged) == message.FromString(value)
    assert said(walks[0], merged)[0] == _variant.outline.GOOD
    assert said(walks[0], merged)[1] <= cells
    if len(parts) == 1:
        assert verdict == _variant.outline.GOOD


@given(st.data())
def test_no_value_is_called_bad_that_google_reads(data: st.DataObject) -> None:
    descriptor, message = message_of(data.draw(files()))
    value = data.draw(broken(data.draw(messages_of(descriptor)).SerializeToString()))
    (found,) = {said(walk, value) for walk in walks_of(descriptor)}
    if found[0] in (_variant.outline.BAD, _variant.outline.TOO_DEEP):
        with pytest.raises(DecodeError):
            message.FromString(value)


@given(st.binary(max_size=6) | st.text(max_size=6).map(lambda text: text.encode(errors="surrogatepass")))
def test_text_in_a_message_within_itself_is_as_python_decodes_it(text: bytes) -> None:
    value = b"\x12" + bytes([2 + len(text)]) + b"\x0a" + bytes([len(text)]) + text
    is_text = True
    try:
        text.decode()
    except UnicodeDecodeError:
        is_text = False
    (found,) = {said(walk, value)[0] for walk in node_walks()}
    assert (found == _variant.outline.GOOD) is is_text
