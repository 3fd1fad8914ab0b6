"""Typed reads of Avro and Protobuf beside other libraries: the same topic, read as bytes, has the same rows."""

from __future__ import annotations

import datetime as dt
import io
import json
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import fastavro
from pyspark.sql import DataFrame, SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.protobuf_schema import everything, file_set

UTC = dt.timezone.utc
ROWS = 300
PLACE = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "double"}, {"name": "n", "type": "int"}]}
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Everything",
    "fields": [
        {"name": "whole", "type": "long"},
        {"name": "small", "type": "int"},
        {"name": "share", "type": "float"},
        {"name": "exact", "type": "double"},
        {"name": "yes", "type": "boolean"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "fixed", "type": {"type": "fixed", "name": "Five", "size": 5}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}},
        {"name": "places", "type": {"type": "array", "items": ["null", PLACE]}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "either", "type": ["null", "int", "string", "Place"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "then", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}


def text_of(drawn: random.Random) -> str:
    return "".join(drawn.choice("aé€😀\0\n ") for _ in range(drawn.randrange(6)))


def place_of(drawn: random.Random) -> dict[str, Any]:
    return {"x": drawn.uniform(-1e9, 1e9), "n": drawn.randrange(-(1 << 31), 1 << 31)}


def avro_value(drawn: random.Random) -> dict[str, Any]:
    moment = dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=drawn.randrange(-(10**15), 10**15))
    return {
        "whole": drawn.choice([0, -1, (1 << 63) - 1, -(1 << 63), drawn.getrandbits(40)]),
        "small": drawn.randrange(-(1 << 31), 1 << 31),
        "share": drawn.randrange(-(1 << 20), 1 << 20) / 16,
        "exact": drawn.choice([0.1, -0.0, 1e308, float("inf"), drawn.random()]),
        "yes": drawn.random() < 0.5,
        "text": drawn.choice([None, text_of(drawn)]),
        "raw": drawn.randbytes(drawn.randrange(5)),
        "fixed": drawn.randbytes(5),
        "kind": drawn.choice("ABC"),
        "places": [drawn.choice([None, place_of(drawn)]) for _ in range(drawn.randrange(4))],
        "counts": {f"k{each}": drawn.randrange(1000) for each in range(drawn.randrange(4))},
        "either": drawn.choice([None, drawn.randrange(1000), text_of(drawn), place_of(drawn)]),
        "price": Decimal(drawn.randrange(-(10**20) + 1, 10**20)).scaleb(-3),
        "day": dt.date(1970, 1, 1) + dt.timedelta(days=drawn.randrange(-100_000, 100_000)),
        "at": moment,
        "then": moment.replace(microsecond=moment.microsecond // 1000 * 1000),
        "key": uuid.UUID(int=drawn.getrandbits(128)),
    }


def avro_row(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value of fastavro as Spark's columns have it: a union is a struct, and a UUID text."""
    either = value["either"]
    members = {
        "member0": either if isinstance(either, int) else None,
        "member1": either if isinstance(either, str) else None,
        "member2": either if isinstance(either, dict) else None,
    }
    return {
        **value,
        "counts": list(value["counts"].items()),
        "either": None if either is None else members,
        "key": str(value["key"]),
    }


def protobuf_row(message: Any) -> dict[str, Any]:
    """Return a message of google.protobuf as Spark's columns have it."""

    def plain(field: Any, value: Any) -> Any:
        if field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp":
            return value.ToDatetime(tzinfo=UTC)
        if field.type == field.TYPE_MESSAGE:
            return protobuf_row(value)
        if field.type == field.TYPE_ENUM:
            return field.enum_type.values_by_number[value].name
        return Decimal(value) if field.type in (field.TYPE_UINT64, field.TYPE_FIXED64) else value

    row: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            row[field.name] = sorted(value.items())
        elif field.is_repeated:
            row[field.name] = [plain(field, each) for each in value]
        elif field.has_presence and not message.HasField(field.name):
            row[field.name] = None
        else:
            row[field.name] = plain(field, value)
    return row


def read_both(
    spark: SparkSession, servers: str, topic: str, decode: Callable[[bytes], Any], **options: str
) -> tuple[list[Any], list[Any]]:
    """Return the typed values of a topic, and its bytes as another library decodes them, by offset."""

    def read(**more: str) -> DataFrame:
        reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
        return reader.options(subscribe=topic, **more).load().orderBy("offset").select("value")

    typed, raw = (frame.toArrow().column("value").to_pylist() for frame in (read(**options), read()))
    return typed, [decode(each) for each in raw]


def test_rows_of_avro_are_those_of_fastavro(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic, drawn, schema = make_topic(), random.Random(16), fastavro.parse_schema(AVRO)

    def written() -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, avro_value(drawn))
        return out.getvalue()

    def decode(data: bytes) -> dict[str, Any]:
        return avro_row(fastavro.schemaless_reader(io.BytesIO(data), schema, None))  # type: ignore[arg-type]

    produce(bootstrap_servers, topic, [Record(None, written()) for _ in range(ROWS)])
    options = {"valueFormat": "avro", "valueSchema": json.dumps(AVRO)}
    typed, expected = read_both(spark, bootstrap_servers, topic, decode, **options)
    assert len(typed) == ROWS
    for ours, theirs in zip(typed, expected, strict=True):
        assert ours == theirs


def test_rows_of_protobuf_are_those_of_google(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Any
) -> None:
    topic, drawn = make_topic(), random.Random(16)
    _, message = everything()

    def written() -> bytes:
        made = message()
        for field in message.DESCRIPTOR.fields:
            if drawn.random() < 0.3:
                continue
            draws: dict[int, Callable[[], Any]] = {
                field.TYPE_BOOL: lambda: drawn.random() < 0.5,
                field.TYPE_STRING: lambda: text_of(drawn),
                field.TYPE_BYTES: lambda: drawn.randbytes(3),
                field.TYPE_FLOAT: lambda: drawn.randrange(1000) / 8,
                field.TYPE_DOUBLE: drawn.random,
                field.TYPE_UINT32: lambda: drawn.getrandbits(32),
                field.TYPE_UINT64: lambda: drawn.getrandbits(64),
                field.TYPE_ENUM: lambda: drawn.randrange(2),
            }
            draw = draws.get(field.type, lambda: drawn.randrange(-1000, 1000))
            value = getattr(made, field.name)
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                value[text_of(drawn)] = drawn.randrange(1000)
            elif field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp":
                value.FromMicroseconds(drawn.randrange(-(10**15), 10**15))
            elif field.message_type is not None:
                (value.add() if field.is_repeated else value).x = drawn.random()
            elif field.is_repeated:
                value.extend(draw() for _ in range(drawn.randrange(4)))
            else:
                setattr(made, field.name, draw())
        return bytes(made.SerializeToString())

    def decode(data: bytes) -> dict[str, Any]:
        return protobuf_row(message.FromString(data))

    produce(bootstrap_servers, topic, [Record(None, written()) for _ in range(ROWS)])
    schema = tmp_path / "everything.desc"
    schema.write_bytes(file_set().SerializeToString())
    options = {"valueFormat": "protobuf", "valueSchema": f"file:{schema}", "valueMessage": "kit.Everything"}
    typed, expected = read_both(spark, bootstrap_servers, topic, decode, **options)
    assert len(typed) == ROWS
    for ours, theirs in zip(typed, expected, strict=True):
        assert ours == theirs
