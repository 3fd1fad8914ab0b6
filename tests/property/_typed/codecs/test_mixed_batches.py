"""Batches of values of several schemas, tombstones and bad values, beside each other, as fastavro reads them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from kit.avro_schemas import evolved, schemas, values_of
from kit.golden_formats import KnownSchemas
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.codecs.values import Reason
from pyspark_kafka._typed.codecs.wire_format import confluent_prefix
from pyspark_kafka.errors import SchemaError


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def alone(writer: Any, reader: Any, value: bytes) -> Any:
    """What one value of a writer's schema becomes; "bad" if it cannot be read."""
    try:
        decoder = AvroDecoder(parse_schema(json.dumps(writer)), parse_schema(json.dumps(reader)))
    except SchemaError:
        return "bad"
    found = decoder.decode(pa.array([value], pa.binary()))
    return "bad" if found.bad else found.column.to_pylist()[0]


@given(st.data())
def test_a_value_in_a_mixed_batch_is_read_as_it_is_alone(data: st.DataObject) -> None:
    writer = data.draw(schemas(depth=2))
    reader = data.draw(evolved(writer))
    writers = {7: writer, 300: reader, (1 << 31) - 1: data.draw(evolved(writer))}
    try:
        kind = AvroDecoder(parse_schema(json.dumps(reader))).arrow_type
    except SchemaError:
        assume(False)
    registry = KnownSchemas(RegisteredSchema("AVRO", json.dumps(each), (), number) for number, each in writers.items())
    values: list[bytes | None] = []
    expected: list[Any] = []
    ids: list[str | None] = []
    for _ in range(data.draw(st.integers(1, 8))):
        number = data.draw(st.sampled_from((*writers, None, "short", "magic", "unknown")))
        if number is None:
            values.append(None)
            expected.append(None)
            ids.append(None)
        elif isinstance(number, str):
            bad = {"short": b"\0\0\0\0", "magic": b"\x01\0\0\0\7", "unknown": confluent_prefix(8)}[number]
            values.append(bad)
            expected.append("bad")
            ids.append("8" if number == "unknown" else None)
        else:
            value = encoded(writers[number], data.draw(values_of(writers[number])))
            if data.draw(st.integers(0, 4)) == 0:
                value = value[: data.draw(st.integers(0, len(value)))] + data.draw(st.binary(max_size=2))
            values.append(confluent_prefix(number) + value)
            expected.append(alone(writers[number], reader, value))
            ids.append(str(number))
    column = ColumnFormat("avro", "confluent", kind, RegisteredSchema("AVRO", json.dumps(reader)))
    found = ColumnDecoder(column, registry).decode(pa.array(values, pa.binary()))
    found.column.validate(full=True)
    assert [each.row for each in found.bad] == [row for row, each in enumerate(expected) if each == "bad"]
    assert found.column.to_pylist() == [None if each == "bad" else each for each in expected]
    assert found.schema_ids is not None
    assert found.schema_ids.to_pylist() == ids
    unknown = [each.row for each in found.bad if each.reason is Reason.SCHEMA_ID_NOT_FOUND]
    assert unknown == [row for row, number in enumerate(ids) if number == "8"]
