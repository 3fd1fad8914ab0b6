"""What is written is read by other programs: Confluent's deserializers in Python, fastavro, Google's parser, json.

Rows are those of the golden files, as columns. Confluent's registry of tests opens no connection.
"""

from __future__ import annotations

import importlib
import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import message_factory

from kit.golden_formats import NAMES, GoldenFile, KnownSchemas, plain
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.protobuf.by_schema import read_message
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

TOPIC = "orders"
CONFLUENT = [name for name in NAMES if name.startswith("confluent-kafka")]


def rows_of(name: str) -> tuple[GoldenFile, ColumnFormat, pa.Array]:
    file = GoldenFile.read(name)
    column = file.column()
    return file, column, ColumnDecoder(column, KnownSchemas(file.schemas)).decode(file.values(), file.headers()).column


def encode(column: ColumnFormat, framing: str, schema_id: Any, rows: pa.Array) -> tuple[list[bytes], Any]:
    given = column.schema
    schema = None if given is None else RegisteredSchema(given.kind, given.text, (), schema_id)
    if schema is None and framing != "none":
        schema = RegisteredSchema("JSON", "{}", (), schema_id)
    encoder = ColumnEncoder(ColumnFormat(column.format, framing, column.arrow_type, schema, column.message))
    return encoder.encode(rows).to_pylist(), encoder.header


@pytest.mark.usefixtures("avro_variant")
@pytest.mark.parametrize("name", [name for name in CONFLUENT if "avro" in name])
def test_values_in_avro_are_read_by_confluent(name: str) -> None:
    registries = importlib.import_module("confluent_kafka.schema_registry")
    deserializers = importlib.import_module("confluent_kafka.schema_registry.avro")
    serialization = importlib.import_module("confluent_kafka.serialization")
    file, column, rows = rows_of(name)
    text = file.schemas[-1].text
    registry = registries.SchemaRegistryClient.new_client({"url": f"mock://written-{name}"})
    number = registry.register_schema(f"{TOPIC}-value", registries.Schema(text, "AVRO"))
    guid = registry.lookup_schema(f"{TOPIC}-value", registries.Schema(text, "AVRO")).guid
    in_header = file.framing == "confluentHeader"
    values, header = encode(column, file.framing, guid if in_header else number, rows)
    read = deserializers.AvroDeserializer(
        registry, conf={"schema.id.deserializer": registries.dual_schema_id_deserializer}
    )
    headers = [header] if header else []
    context = serialization.SerializationContext(TOPIC, serialization.MessageField.VALUE, headers)
    found = [read(value, context) for value in values]
    # Confluent's client reads with fastavro: the same Python values as it has of the program's own.
    schema = fastavro.parse_schema(json.loads(text))
    bare, _ = encode(column, "none", None, rows)
    assert found == [fastavro.schemaless_reader(io.BytesIO(each), schema, None) for each in bare]
    assert [each["id"] for each in found] == [each["id"] for each in file.rows]
    assert [each["name"] for each in found] == [each["name"] for each in file.rows]


@pytest.mark.parametrize("name", [name for name in CONFLUENT if "protobuf" in name])
def test_values_in_protobuf_are_read_by_confluent(name: str) -> None:
    registries = importlib.import_module("confluent_kafka.schema_registry")
    deserializers = importlib.import_module("confluent_kafka.schema_registry.protobuf")
    serialization = importlib.import_module("confluent_kafka.serialization")
    file, column, rows = rows_of(name)
    descriptor = read_message(file.schemas[-1], column.message)
    message = message_factory.GetMessageClass(descriptor)
    registry = registries.SchemaRegistryClient.new_client({"url": f"mock://written-{name}"})
    context = serialization.SerializationContext(TOPIC, serialization.MessageField.VALUE, [])
    # Its serializer registers the schema.
    deserializers.ProtobufSerializer(message, registry)(message(), context)
    known = registry.get_latest_version(f"{TOPIC}-value")
    in_header = file.framing == "confluentHeader"
    values, header = encode(column, file.framing, known.guid if in_header else known.schema_id, rows)
    read = deserializers.ProtobufDeserializer(
        message, {"schema.id.deserializer": registries.dual_schema_id_deserializer}, registry
    )
    context = serialization.SerializationContext(TOPIC, serialization.MessageField.VALUE, [header] if header else [])
    found = [read(value, context) for value in values]
    bare, _ = encode(column, "none", None, rows)
    assert in_header == (header is not None)
    assert found == [message.FromString(each) for each in bare]
    # As messages that the program wrote itself.
    assert found == [message.FromString(each) for each in GoldenFile.read(JAVA_PROTOBUF).values().to_pylist()]


JAVA_PROTOBUF = next(name for name in NAMES if name.startswith("java-protobuf"))


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("java-json")])
def test_values_in_json_are_read_by_python(name: str) -> None:
    file, column, rows = rows_of(name)
    values, _ = encode(column, "none", None, rows)
    found = [json.loads(value) for value in values]
    for row, written in zip(file.rows, found, strict=True):
        # Null fields are left out; a decimal is text or a number.
        left = {name: value for name, value in row.items() if value is not None}
        assert set(written) == set(left)
        for each in ("id", "name", "ratio", "ok", "counts"):
            assert written[each] == left[each]
        assert [one["x"] for one in written["others"]] == [one["x"] for one in left["others"]]
        assert float(written["price"]) == float(left["price"])


def test_golden_rows_differ_so_that_a_wrong_row_is_seen() -> None:
    for name in NAMES:
        file, column, rows = rows_of(name)
        assert len({str(plain(row, column.arrow_type)) for row in rows.to_pylist()}) == len(file.rows)
