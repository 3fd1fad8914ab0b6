"""The target of schemas as text: of columns as in SQL and in Spark's JSON, of JSON Schema, Avro, Protobuf."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pyarrow as pa

from fuzzing.draw import Draw
from fuzzing.oracles import outcome_of, require
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka._typed.codecs.json.schemas.json_schema import parse_json_schema
from pyspark_kafka._typed.codecs.protobuf.by_schema import read_message
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.typed.spark_schema.ddl import parse_ddl
from pyspark_kafka._typed.typed.spark_schema.schema_json import parse_schema_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.records._variant import Kernel


def _avro(data: bytes) -> pa.DataType:
    return AvroDecoder(parse_schema(data.decode("utf-8", "replace"))).arrow_type


def _ddl(data: bytes) -> pa.DataType:
    return parse_ddl(data.decode("utf-8", "replace"))


def _spark_json(data: bytes) -> pa.DataType:
    return parse_schema_json(data.decode("utf-8", "replace"))


def _json_schema(data: bytes) -> pa.DataType:
    return parse_json_schema(data.decode("utf-8", "replace"))


def _protobuf(data: bytes) -> pa.DataType:
    text = base64.b64encode(data).decode()
    return ProtobufDecoder(read_message(RegisteredSchema("PROTOBUF", text), None)).arrow_type


READERS = (_avro, _ddl, _spark_json, _json_schema, _protobuf)


def schema_text(data: bytes, _variants: Sequence[Kernel]) -> None:
    """Read a schema: it is the type of a column, or an error that says why not."""
    draw = Draw(data)
    read = draw.pick(READERS)
    text = draw.rest()
    found = outcome_of(lambda: read(text))
    if found.error is not None:
        require(len(str(found.error)) < 2000, "the error is long")
        return
    require(isinstance(found.value, pa.DataType), "there is no type")
    # A column of it can be made.
    pa.nulls(1, found.value).validate(full=True)
