"""Measures the decoders of typed values alone on one core: µs a value, beside what the libraries take without Arrow.

Values are flat (6 fields, about 100 bytes) or nested (8 fields, a list of 7 structs, a map, about 800 bytes), behind
Confluent's framing in Avro and Protobuf. `clean` is a batch without a fault; the columns behind it are that time with
1 in 10,000, 1 in 100 and all values bad: cut short, or in JSON also with a field of another type. `few fields` asks for
two fields. Figures are CPU time, the best of runs that take turns.
Run: PYTHONPATH=src python bench/decoders.py [--records N] [--seconds N] [--only NAME] [--output FILE]
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import numpy as np
import pyarrow as pa
from google.protobuf import message_factory
from grpc_tools import protoc
from json_readers import JsonReaders

from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.protobuf.by_schema import read_message
from pyspark_kafka._typed.codecs.protobuf.descriptors import build_handler
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

TIME = pa.timestamp("us", "UTC")
FLAT = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("score", pa.float64()),
        ("count", pa.int32()),
        ("active", pa.bool_()),
        ("at", TIME),
    ]
)
ITEM = pa.struct([("sku", pa.string()), ("quantity", pa.int32()), ("price", pa.float64())])
PLACE = pa.struct([("latitude", pa.float64()), ("longitude", pa.float64())])
ADDRESS = pa.struct([("street", pa.string()), ("city", pa.string()), ("place", PLACE)])
NESTED = pa.struct(
    [
        ("id", pa.int64()),
        ("customer", pa.string()),
        ("address", ADDRESS),
        ("items", pa.list_(pa.field("element", ITEM))),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("status", pa.string()),
        ("note", pa.string()),
        ("at", TIME),
    ]
)
SHAPES = {"flat": FLAT, "nested": NESTED}
FEW = {
    "flat": pa.struct([FLAT.field("name"), FLAT.field("score")]),
    "nested": pa.struct([NESTED.field("id"), NESTED.field("status")]),
}
STATUSES = ("NEW", "PAID", "SENT")


def rows(shape: str, count: int) -> list[dict[str, Any]]:
    """Return values as Python has them; times are milliseconds."""
    source = random.Random(7)

    def text(size: int) -> str:
        return "".join(source.choices("abcdefghijklmnop", k=size))

    def flat() -> dict[str, Any]:
        return {
            "id": source.randrange(10**12),
            "name": text(20),
            "score": source.random() * 100,
            "count": source.randrange(10**6),
            "active": source.random() < 0.5,
            "at": 1_700_000_000_000 + source.randrange(10**9),
        }

    def nested() -> dict[str, Any]:
        return {
            "id": source.randrange(10**12),
            "customer": text(30),
            "address": {
                "street": text(40),
                "city": text(20),
                "place": {"latitude": source.random() * 90, "longitude": source.random() * 180},
            },
            "items": [
                {"sku": text(45), "quantity": source.randrange(100), "price": source.random() * 1000} for _ in range(7)
            ],
            "tags": {text(8): text(12) for _ in range(4)},
            "status": source.choice(STATUSES),
            "note": None if source.random() < 0.5 else text(30),
            "at": 1_700_000_000_000 + source.randrange(10**9),
        }

    return [flat() if shape == "flat" else nested() for _ in range(count)]


def avro_schema(shape: str) -> dict[str, Any]:
    """Return the shape as a schema of Avro."""
    at = {"type": "long", "logicalType": "timestamp-millis"}
    item = {"type": "record", "name": "Item", "fields": _fields(sku="string", quantity="int", price="double")}
    place = {"type": "record", "name": "Place", "fields": _fields(latitude="double", longitude="double")}
    address = {"type": "record", "name": "Address", "fields": _fields(street="string", city="string", place=place)}
    fields = {
        "flat": _fields(id="long", name="string", score="double", count="int", active="boolean", at=at),
        "nested": _fields(
            id="long",
            customer="string",
            address=address,
            items={"type": "array", "items": item},
            tags={"type": "map", "values": "string"},
            status={"type": "enum", "name": "Status", "symbols": list(STATUSES)},
            note=["null", "string"],
            at=at,
        ),
    }
    return {"type": "record", "name": "Value", "fields": fields[shape]}


def _fields(**types: Any) -> list[dict[str, Any]]:
    return [{"name": name, "type": kind} for name, kind in types.items()]


PROTO = {
    "flat": """
message Value {
  int64 id = 1; string name = 2; double score = 3; int32 count = 4; bool active = 5;
  google.protobuf.Timestamp at = 6;
}""",
    "nested": """
message Value {
  message Item { string sku = 1; int32 quantity = 2; double price = 3; }
  message Place { double latitude = 1; double longitude = 2; }
  message Address { string street = 1; string city = 2; Place place = 3; }
  enum Status { NEW = 0; PAID = 1; SENT = 2; }
  int64 id = 1; string customer = 2; Address address = 3; repeated Item items = 4; map<string, string> tags = 5;
  Status status = 6; optional string note = 7; google.protobuf.Timestamp at = 8;
}""",
}


def proto_schema(shape: str) -> str:
    """Return the shape as a FileDescriptorSet of Protobuf, in Base64."""
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = Path(folder) / "value.proto", Path(folder) / "set"
        head = 'syntax = "proto3";\nimport "google/protobuf/timestamp.proto";\n'
        source.write_text(head + PROTO[shape])
        google = Path(protoc.__file__).with_name("_proto")
        protoc.main(["protoc", f"-I{folder}", f"-I{google}", f"--descriptor_set_out={compiled}", str(source)])
        return base64.b64encode(compiled.read_bytes()).decode()


class OneSchema:
    """A registry with one schema, whatever the id."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """Answer with a schema."""
        self.schema = schema

    def schema_by_id(self, schema_id: int | str) -> RegisteredSchema:
        """Return the schema."""
        del schema_id
        return self.schema

    def knows(self, schema_id: int | str) -> bool:
        """Return True: it is in memory."""
        del schema_id
        return True


@dataclass
class Case:
    """Values of one format and shape.

    Attributes:
        column: what they are read as.
        registry: the schemas of their writers.
        values: the values, none bad.
        faults: by name, what makes a value bad.
        beside: by name, what a library does with the same values, one at a time, without Arrow. Readers of JSON into
            columns leave out maps.
    """

    column: ColumnFormat
    registry: Any
    values: list[bytes]
    faults: dict[str, Callable[[bytes], bytes]]
    beside: dict[str, Callable[[], object]] = field(default_factory=dict)


def _cut(value: bytes) -> bytes:
    return value[:-9]


def json_case(shape: str, count: int) -> Case:
    """Return values in JSON."""
    values = []
    for row in rows(shape, count):
        at = np.datetime64(row["at"], "ms").item().isoformat(timespec="milliseconds") + "Z"
        values.append(json.dumps({**row, "at": at}, separators=(",", ":")).encode())
    wrong = {"flat": (b'"count":', b'"count":"x",":":'), "nested": (b'"items":[', b'"items":["x",')}[shape]
    decoder = msgspec.json.Decoder()
    beside: dict[str, Callable[[], object]] = {
        "json.loads": lambda: [json.loads(each) for each in values],
        "msgspec": lambda: [decoder.decode(each) for each in values],
        **JsonReaders(SHAPES[shape], values).works(),
    }
    faults = {"cut": _cut, "type": lambda value: value.replace(*wrong)}
    return Case(ColumnFormat("json", "none", SHAPES[shape]), None, values, faults, beside)


def avro_case(shape: str, count: int) -> Case:
    """Return values in Avro."""
    schema = avro_schema(shape)
    parsed = fastavro.parse_schema(schema)
    bare = []
    for row in rows(shape, count):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        bare.append(out.getvalue())
    given = RegisteredSchema("AVRO", json.dumps(schema))
    beside: dict[str, Callable[[], object]] = {
        "fastavro": lambda: [fastavro.schemaless_reader(io.BytesIO(each), parsed, None) for each in bare]
    }
    values = [bytes(4) + b"\7" + each for each in bare]
    column = ColumnFormat("avro", "confluent", SHAPES[shape], given)
    return Case(column, OneSchema(given), values, {"cut": _cut}, beside)


def protobuf_case(shape: str, count: int) -> Case:
    """Return values in Protobuf."""
    given = RegisteredSchema("PROTOBUF", proto_schema(shape))
    message = message_factory.GetMessageClass(read_message(given, "Value"))
    bare = []
    for row in rows(shape, count):
        at = row.pop("at")
        if row.get("note", "") is None:
            del row["note"]
        value = message(**row)
        value.at.FromMilliseconds(at)
        bare.append(value.SerializeToString())
    handler, array = build_handler(message.DESCRIPTOR), pa.array(bare, pa.binary())
    beside: dict[str, Callable[[], object]] = {
        "upb": lambda: [message.FromString(each) for each in bare],
        "upb, columns": lambda: upb_columns(message, bare),
        "ptars": lambda: handler.read(array),
    }
    if upb_columns(message, bare).num_rows != count:
        raise RuntimeError(f"{shape}: rows of upb are missing")
    values = [bytes(4) + b"\7\0" + each for each in bare]
    column = ColumnFormat("protobuf", "confluent", SHAPES[shape], given, "Value")
    return Case(column, OneSchema(given), values, {"cut": _cut}, beside)


def upb_columns(message: Any, values: list[bytes]) -> pa.RecordBatch:
    """Return columns of what Google's parser returns, with the quickest code in Python that was found."""
    parsed = [message.FromString(each) for each in values]
    return pa.RecordBatch.from_struct_array(_upb_struct(message.DESCRIPTOR, parsed))


def _upb_struct(descriptor: Any, parsed: list[Any]) -> pa.StructArray:
    columns = {}
    for each in descriptor.fields:
        found = list(map(attrgetter(each.name), parsed))
        kind = each.message_type
        if kind is None:
            columns[each.name] = pa.array(found)
        elif kind.GetOptions().map_entry:
            columns[each.name] = pa.array([list(pairs.items()) for pairs in found], pa.map_(pa.string(), pa.string()))
        elif kind.full_name == "google.protobuf.Timestamp":
            seconds, nanos = (
                np.fromiter((getattr(at, part) for at in found), np.int64) for part in ("seconds", "nanos")
            )
            columns[each.name] = pa.array(seconds * 1_000_000 + nanos // 1000).cast(TIME)
        elif each.is_repeated:
            items = _upb_struct(kind, [item for some in found for item in some])
            columns[each.name] = pa.ListArray.from_arrays(np.cumsum([0, *map(len, found)]), items)
        else:
            columns[each.name] = _upb_struct(kind, found)
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


CASES = {"json": json_case, "avro": avro_case, "protobuf": protobuf_case}


def with_bad(values: Sequence[bytes], fault: Callable[[bytes], bytes], every: int) -> pa.Array:
    """Return the values with each of some number made bad."""
    return pa.array([fault(each) if at % every == every // 2 else each for at, each in enumerate(values)], pa.binary())


def best_cpu(works: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the shortest CPU time of each of some works, which take turns; at least three runs of each."""
    best = dict.fromkeys(works, float("inf"))
    started, runs = time.process_time(), 0
    while runs < 3 or time.process_time() - started < seconds:
        for name, work in works.items():
            begin = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - begin)
        runs += 1
    return best


def measure(name: str, shape: str, count: int, seconds: float) -> dict[str, float]:
    """Return µs a value of one format and shape, by what was done."""
    case = CASES[name](shape, count)
    clean = pa.array(case.values, pa.binary())
    decoder = ColumnDecoder(case.column, case.registry)
    found = decoder.decode(clean)
    if found.bad or found.column.null_count:
        raise RuntimeError(f"{name} {shape}: {found.bad[:3]}")
    narrow = ColumnFormat(case.column.format, case.column.framing, FEW[shape], case.column.schema, case.column.message)
    few = ColumnDecoder(narrow, case.registry)
    data = clean.buffers()[2]
    works: dict[str, Callable[[], object]] = {
        "copy": data.to_pybytes,
        "clean": lambda: decoder.decode(clean),
        "few fields": lambda: few.decode(clean),
        **case.beside,
    }
    for fault, break_value in case.faults.items():
        for label, every in (("1/10000", 10_000), ("1 %", 100), ("all", 1)):
            bad = with_bad(case.values, break_value, every)
            # Of its own: a decoder that has met bad values looks closer at the next.
            wary = ColumnDecoder(case.column, case.registry)
            if len(wary.decode(bad).bad) != len(range(every // 2, count, every)):
                raise RuntimeError(f"{name} {shape}: {fault} {label}: {wary.decode(bad).bad[:3]}")
            works[f"{fault} {label}"] = partial(wary.decode, bad)
    taken = best_cpu(works, seconds)
    return {"bytes": len(data) / count, **{each: 1e6 * took / count for each, took in taken.items()}}


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000, help="values of an array")
    parser.add_argument("--seconds", type=float, default=8.0, help="CPU time of a format and shape")
    parser.add_argument("--only", help="the format or shape to measure, such as json or json-flat")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    figures = {}
    for name in CASES:
        for shape in SHAPES:
            if arguments.only not in (None, name, f"{name}-{shape}"):
                continue
            figures[f"{name}-{shape}"] = found = measure(name, shape, arguments.records, arguments.seconds)
            clean = found["clean"]
            print(f"\n{name} {shape}: {found['bytes']:.0f} bytes a value")
            print(f"  {'':16}{'µs a value':>12}{'times clean':>14}")
            for each, took in found.items():
                if each != "bytes":
                    print(f"  {each:16}{took:12.3f}{took / clean:14.2f}", flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
