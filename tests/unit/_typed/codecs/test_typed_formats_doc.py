"""The tables of types in docs/typed-formats.md: each row is what the decoders return."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from pyspark.sql.pandas.types import from_arrow_type

from kit.documented_protobuf import protobuf_file_set
from kit.typed_page import PAGE, types_of
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.json.schemas.json_schema import parse_json_schema
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message
from pyspark_kafka._typed.typed.arrow_types import spark_has
from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl

_QUOTED = re.compile(r"`([^`]+)`")


def spark_type(arrow: pa.DataType) -> str:
    return from_arrow_type(arrow).simpleString()


@pytest.mark.parametrize(("avro", "column"), types_of("Avro"))
def test_type_of_avro_becomes_the_column_that_the_page_names(avro: str, column: str) -> None:
    assert spark_type(spark_has(AvroDecoder(parse_schema(avro)).arrow_type)) == column


def protobuf_column(given: str) -> pa.DataType:
    """Return the type of a column of one field."""
    return ProtobufDecoder(find_message(protobuf_file_set(given), "M")).arrow_type[0].type


@pytest.mark.parametrize(("protobuf", "column"), types_of("Protobuf"))
def test_type_of_protobuf_becomes_the_column_that_the_page_names(protobuf: str, column: str) -> None:
    assert spark_type(spark_has(protobuf_column(protobuf))) == column


@pytest.mark.parametrize(("schema", "column"), types_of("JSON Schema"))
def test_type_of_json_schema_becomes_the_column_that_the_page_names(schema: str, column: str) -> None:
    assert spark_type(spark_has(parse_json_schema(schema))) == column


def documents() -> list[list[str]]:
    """Return the rows of the table of values in JSON."""
    _, _, table = PAGE.read_text().partition("| column | in the document | is read as |\n")
    lines = table.partition("\n\n")[0].splitlines()[1:]
    cells = [line.strip("|").split("|") for line in lines if "`null`" not in line]
    # Behind a value in backquotes may stand what it shows.
    return [[(*_QUOTED.findall(cell), cell.strip())[0] for cell in row] for row in cells]


@pytest.mark.parametrize(("column", "given", "wanted"), documents())
def test_value_in_json_is_read_as_the_page_says(column: str, given: str, wanted: str) -> None:
    decoder = JsonDecoder(parse_ddl(f"a {column}"))
    decoded = decoder.decode(pa.array([f'{{"a": {given}}}'.encode(), b'{"a": null}', b"{}"]))
    assert decoded.column.to_pylist()[1:] == [{"a": None}, {"a": None}]
    if wanted == "a bad record":
        assert [each.row for each in decoded.bad] == [0]
    else:
        assert decoded.bad == []
        found = decoded.column[0].as_py()["a"]
        assert (found.decode() if isinstance(found, bytes) else str(found)) == wanted


def test_enum_of_protobuf_becomes_its_name_or_its_number() -> None:
    made = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    made.enum_type.add(name="E").value.add(name="NONE", number=0)
    made.message_type.add(name="M").field.add(
        name="f", number=1, label=1, type=descriptor_pb2.FieldDescriptorProto.TYPE_ENUM, type_name=".E"
    )
    file_set = descriptor_pb2.FileDescriptorSet(file=[made]).SerializeToString()
    decoded = ProtobufDecoder(find_message(file_set, "M")).decode(pa.array([b"\x08\x00", b"\x08\x07"]))
    assert decoded.column.to_pylist() == [{"f": "NONE"}, {"f": "7"}]
