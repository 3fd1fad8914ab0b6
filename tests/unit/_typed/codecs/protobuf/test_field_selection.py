"""Messages with the wanted fields only."""

from __future__ import annotations

import pyarrow as pa
import pytest
from google.protobuf import message_factory

from kit.protobuf_schema import everything
from pyspark_kafka._typed.codecs.projection import project
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.field_selection import narrow_message

DESCRIPTOR, MESSAGE = everything()
WHOLE = ProtobufDecoder(DESCRIPTOR)


def value() -> bytes:
    message = MESSAGE(i=-1, s="ä", o={"x": 1.0}, e=1, n=[1, -2], q="q")
    message.at.FromMilliseconds(1_700_000_000_000)
    message.m["k"] = 7
    message.os.add(x=2.0)
    text: bytes = message.SerializeToString()
    return text


@pytest.mark.parametrize(
    "names",
    [
        ["s"],
        ["q"],
        ["p", "q"],
        ["at"],
        ["m", "i"],
        ["os"],
        ["e"],
        ["o", "os"],
        [],
        [each.name for each in DESCRIPTOR.fields],
    ],
)
def test_wanted_fields_have_the_values_that_they_have_among_all(names: list[str]) -> None:
    wanted = pa.struct([WHOLE.arrow_type.field(name) for name in names])
    narrow = ProtobufDecoder(narrow_message(DESCRIPTOR, wanted))
    assert set(narrow.arrow_type.names) == set(names)
    values = pa.array([value(), None, b""], pa.binary())
    found, whole = narrow.decode(values), WHOLE.decode(values)
    assert project(found.column, wanted).to_pylist() == project(whole.column, wanted).to_pylist()


def test_the_fields_of_messages_within_are_those_that_are_wanted_in_any_place() -> None:
    empty = pa.struct([])
    narrow = narrow_message(DESCRIPTOR, pa.struct([("o", empty), ("i", pa.int32())]))
    assert [each.name for each in narrow.fields_by_name["o"].message_type.fields] == []
    kept = narrow_message(DESCRIPTOR, pa.struct([("o", empty), ("os", pa.list_(pa.struct([("x", pa.float64())])))]))
    assert [each.name for each in kept.fields_by_name["o"].message_type.fields] == ["x"]


def test_a_message_of_which_all_is_wanted_is_itself() -> None:
    assert narrow_message(DESCRIPTOR, WHOLE.arrow_type) is DESCRIPTOR


def test_the_pool_of_the_message_is_left_as_it_is() -> None:
    narrow = narrow_message(DESCRIPTOR, pa.struct([("i", pa.int32())]))
    assert [each.name for each in narrow.fields] == ["i"]
    assert MESSAGE.DESCRIPTOR.fields_by_name["s"] is not None
    assert message_factory.GetMessageClass(narrow).FromString(value()).i == -1
