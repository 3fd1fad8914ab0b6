"""Topics of typed values to measure with: rows of two shapes, in JSON, Avro and Protobuf, the same bytes every time."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import dataclass

import pyarrow as pa
from google.protobuf import descriptor_pb2

from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

_ROWS = 20_000
_CITIES = ("Berlin", "Paris", "Madrid", "Rome", "Warsaw", "Oslo", "Lisbon", "Vienna")
_BAD_EVERY = 100
_FIELD = descriptor_pb2.FieldDescriptorProto


@dataclass(frozen=True)
class Shape:
    """Rows of one type, and the schemas that say so.

    Attributes:
        name: in the names of topics.
        arrow_type: of a row.
        ddl: the same for Spark.
        avro: the same as a schema of Avro, if it is measured in Avro.
        file_set: the same as a FileDescriptorSet, with its message.
    """

    name: str
    arrow_type: pa.DataType
    ddl: str
    avro: str = ""
    file_set: bytes = b""
    message: str = ""

    def column(self, kind: str) -> ColumnFormat:
        """Return the column in a format."""
        if kind == "json":
            return ColumnFormat("json", "none", self.arrow_type)
        if kind == "avro":
            return ColumnFormat("avro", "none", self.arrow_type, RegisteredSchema("AVRO", self.avro))
        text = base64.b64encode(self.file_set).decode()
        return ColumnFormat("protobuf", "none", self.arrow_type, RegisteredSchema("PROTOBUF", text), self.message)


def _flat_file_set() -> bytes:
    file = descriptor_pb2.FileDescriptorProto(name="bench.proto", package="bench", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Event")
    kinds = {
        "id": _FIELD.TYPE_INT64,
        "city": _FIELD.TYPE_STRING,
        "amount": _FIELD.TYPE_DOUBLE,
        "count": _FIELD.TYPE_INT32,
        "ok": _FIELD.TYPE_BOOL,
    }
    for number, (name, kind) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=_FIELD.LABEL_OPTIONAL)
    message.field.add(
        name="at",
        number=6,
        type=_FIELD.TYPE_MESSAGE,
        label=_FIELD.LABEL_OPTIONAL,
        type_name=".google.protobuf.Timestamp",
    )
    from google.protobuf import timestamp_pb2  # noqa: PLC0415 - what Spark's connector wants beside the file

    known = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(known)
    return bytes(descriptor_pb2.FileDescriptorSet(file=[known, file]).SerializeToString())


FLAT = Shape(
    "flat",
    pa.struct(
        [
            ("id", pa.int64()),
            ("city", pa.string()),
            ("amount", pa.float64()),
            ("count", pa.int32()),
            ("ok", pa.bool_()),
            ("at", pa.timestamp("us", "UTC")),
        ]
    ),
    "id BIGINT, city STRING, amount DOUBLE, count INT, ok BOOLEAN, at TIMESTAMP",
    json.dumps(
        {
            "type": "record",
            "name": "Event",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "city", "type": "string"},
                {"name": "amount", "type": "double"},
                {"name": "count", "type": "int"},
                {"name": "ok", "type": "boolean"},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            ],
        }
    ),
    _flat_file_set(),
    "bench.Event",
)
_PLACE = pa.struct([("street", pa.string()), ("point", pa.struct([("lat", pa.float64()), ("lon", pa.float64())]))])
_LINE = pa.struct([("sku", pa.string()), ("price", pa.float64()), ("count", pa.int32()), ("note", pa.string())])
NESTED = Shape(
    "nested",
    pa.struct(
        [
            ("id", pa.int64()),
            ("customer", pa.string()),
            ("place", _PLACE),
            ("lines", pa.list_(pa.field("element", _LINE))),
            ("tags", pa.map_(pa.string(), pa.string())),
            ("state", pa.string()),
            ("total", pa.float64()),
            ("comment", pa.string()),
        ]
    ),
    "id BIGINT, customer STRING, place STRUCT<street: STRING, point: STRUCT<lat: DOUBLE, lon: DOUBLE>>, "
    "lines ARRAY<STRUCT<sku: STRING, price: DOUBLE, count: INT, note: STRING>>, tags MAP<STRING, STRING>, "
    "state STRING, total DOUBLE, comment STRING",
)


def rows_of(shape: Shape) -> pa.Array:
    """Return 20,000 rows of a shape."""
    draw = random.Random(11)
    make = _flat_row if shape is FLAT else _nested_row
    return pa.array([make(number, draw) for number in range(_ROWS)], shape.arrow_type)


def _flat_row(number: int, draw: random.Random) -> dict[str, object]:
    return {
        "id": number + (1 << 40),
        "city": draw.choice(_CITIES),
        "amount": round(draw.random() * 1000, 2),
        "count": draw.randrange(100),
        "ok": draw.random() < 0.5,
        "at": 1_790_000_000_000_000 + number * 1_000_000 + draw.randrange(1000) * 1000,
    }


def _nested_row(number: int, draw: random.Random) -> dict[str, object]:
    return {
        "id": number,
        "customer": f"customer {draw.randrange(10**6)}",
        "place": {"street": f"{draw.choice(_CITIES)} street 5", "point": {"lat": draw.random(), "lon": draw.random()}},
        "lines": [
            {
                "sku": f"sku-{draw.randrange(10**9):09}",
                "price": round(draw.random() * 100, 2),
                "count": draw.randrange(10),
                "note": draw.randbytes(14).hex(),
            }
            for _ in range(7)
        ],
        "tags": [(f"tag{each}", draw.choice(_CITIES)) for each in range(4)],
        "state": draw.choice(("NEW", "PAID", "SENT")),
        "total": round(draw.random() * 1000, 2),
        "comment": None if number % 2 else draw.randbytes(20).hex(),
    }


def fill(bootstrap_servers: str, topic: str, shape: Shape, kind: str, *, records: int, bad: bool = False) -> float:
    """Write records of a shape in a format, with lz4; return the bytes of a value.

    Args:
        bootstrap_servers: of the broker.
        topic: an empty one.
        shape: of the rows.
        kind: the format.
        records: how many.
        bad: whether one of 100 is cut short.
    """
    values = ColumnEncoder(shape.column(kind)).encode(rows_of(shape))
    if bad:
        cut = [value[:-1] if row % _BAD_EVERY == 7 else value for row, value in enumerate(values.to_pylist())]
        values = pa.array(cut, pa.binary())
    keys = pa.array([b"k%09d" % row for row in range(_ROWS)], pa.binary())
    rows = pa.record_batch([keys, values], names=["key", "value"])
    options = parse_write_options(
        {"kafka.bootstrap.servers": bootstrap_servers, "topic": topic, "kafka.compression.type": "lz4"}, streaming=False
    )
    writer = KafkaDataWriter(options, SinkColumns(key=0, value=1))
    try:
        for first in range(0, records, _ROWS):
            writer.write(rows.slice(0, min(_ROWS, records - first)))
        writer.commit()
    finally:
        writer.close()
    return sum(map(len, values.to_pylist())) / _ROWS
