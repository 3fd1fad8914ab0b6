"""Every type of Protobuf in docs/typed-formats.md: what Spark has of a read is written back, and is the same."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import message_factory
from hypothesis import given
from hypothesis import strategies as st

from kit.documented_protobuf import protobuf_file_set
from kit.real_protobuf import check_row, values_of
from kit.spark_columns import SparkCodec, codec_of_spark
from kit.typed_page import types_of
from pyspark_kafka._client.options import FormatOptions
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

# The types that the page names by a word.
TYPES = [*(name for name, _ in types_of("Protobuf")), "Enum", "Node"]
WRAPPERS = [
    f"google.protobuf.{name}Value" for name in ("Double", "Float", "UInt64", "Int32", "UInt32", "Bool", "String")
]


@cache
def codec_of(kind: str) -> tuple[Any, SparkCodec]:
    """Return the class of a message that has a type in each place, and what reads and writes it."""
    places = [kind]
    if not kind.startswith(("repeated ", "map<")):
        places += [f"optional {kind}", f"repeated {kind}", f"oneof {kind}", "oneof int32", f"map<string, {kind}>"]
    if kind in ("int32", "uint32", "sint64", "fixed64", "sfixed32", "bool"):
        places.append(f"map<{kind}, bool>")
    data = protobuf_file_set(*places)
    schema = RegisteredSchema("PROTOBUF", base64.b64encode(data).decode())
    codec = codec_of_spark(FormatOptions("protobuf", "none", message="M"), schema)
    return message_factory.GetMessageClass(find_message(data, "M")), codec


@pytest.mark.parametrize("kind", [*TYPES, *WRAPPERS])
@given(data=st.data())
def test_values_of_each_documented_type_are_written_back_as_they_were_read(kind: str, data: st.DataObject) -> None:
    made, (decoder, encoder) = codec_of(kind)
    rows = data.draw(st.lists(st.none() | values_of(made), min_size=1, max_size=3))
    values = [None if each is None else each.SerializeToString() for each in rows]
    read = decoder.decode(pa.array(values, pa.binary()))
    read.column.validate(full=True)
    assert read.bad == []
    for found, wanted in zip(read.column.to_pylist(), rows, strict=True):
        check_row(found, wanted, decoder.arrow_type, "M")
    written = encoder.encode(read.column)
    assert [None if text is None else made.FromString(text) for text in written.to_pylist()] == rows
    assert decoder.decode(written).column.equals(read.column)
