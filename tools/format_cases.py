"""What tools/make_format_fixtures.py has other programs write: schemas, and rows of them as plain Python values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

FORMATS = Path(__file__).parents[1] / "tests" / "golden" / "formats"
UTC = dt.timezone.utc

_INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [{"name": "x", "type": "double"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "number", "type": "int"},
    {"name": "name", "type": "string"},
    {"name": "ratio", "type": "double"},
    {"name": "share", "type": "float"},
    {"name": "ok", "type": "boolean"},
    {"name": "raw", "type": "bytes"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NONE", "SOME", "ALL"], "default": "NONE"}},
    {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
    {"name": "inner", "type": _INNER},
    {"name": "others", "type": {"type": "array", "items": "golden.Inner"}},
    {"name": "counts", "type": {"type": "map", "values": "long"}},
    {"name": "maybe", "type": ["null", "int"], "default": None},
    {"name": "either", "type": ["null", "string", "long"], "default": None},
]
AVRO: dict[str, Any] = {"type": "record", "name": "Order", "namespace": "golden", "fields": _FIELDS}
# An earlier schema of the same subject: without the last two fields, with one that was removed, and a smaller number.
EARLIER_AVRO: dict[str, Any] = {
    **AVRO,
    "fields": [{"name": "old", "type": "string"}, {"name": "id", "type": "int"}, *_FIELDS[1:-2]],
}

AVRO_ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "number": -1,
        "name": "first",
        "ratio": 0.1,
        "share": 0.5,
        "ok": True,
        "raw": b"\x00\xff\x7f",
        "at": dt.datetime(2026, 11, 22, 18, 30, 1, 234567, UTC),
        "seen": dt.datetime(2026, 11, 22, 18, 30, 1, 234000, UTC),
        "day": dt.date(2026, 11, 22),
        "price": Decimal("12.34"),
        "kind": "SOME",
        "hash": b"\x01\x02\x03\x04",
        "inner": {"x": 2.5, "note": "a note"},
        "others": [{"x": 0.0, "note": None}, {"x": -1e300, "note": ""}],
        "counts": {"one": 1, " ": -(1 << 63)},
        "maybe": 7,
        "either": "text",
    },
    {
        "id": (1 << 63) - 1,
        "number": -(1 << 31),
        "name": 'naïve € 日本 € \U0001f980 "quoted" \\ \n\t\x00 end',
        "ratio": 1.7976931348623157e308,
        "share": 3.4028234663852886e38,
        "ok": False,
        "raw": b"",
        "at": dt.datetime(1, 1, 1, tzinfo=UTC),
        "seen": dt.datetime(9999, 12, 31, 23, 59, 59, 999000, UTC),
        "day": dt.date(1, 1, 1),
        "price": Decimal("-99999999.99"),
        "kind": "ALL",
        "hash": b"\xff\xff\xff\xff",
        "inner": {"x": 5e-324, "note": None},
        "others": [],
        "counts": {},
        "maybe": None,
        "either": (1 << 40),
    },
    {
        "id": -(1 << 63),
        "number": (1 << 31) - 1,
        "name": "",
        "ratio": -0.0,
        "share": -1.5,
        "ok": True,
        "raw": bytes(range(256)),
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        "seen": dt.datetime(1970, 1, 1, tzinfo=UTC),
        "day": dt.date(1969, 12, 31),
        "price": Decimal("0.00"),
        "kind": "NONE",
        "hash": b"\x00\x00\x00\x00",
        "inner": {"x": 1.0, "note": "é"},
        "others": [{"x": float(number), "note": "n" * number} for number in range(40)],
        "counts": {f"key {number}": number for number in range(40)},
        "maybe": -(1 << 31),
        "either": None,
    },
]
EARLIER_AVRO_ROWS = [
    {"old": "removed", **{name: value for name, value in row.items() if name not in ("maybe", "either")}, "id": number}
    for number, row in enumerate(AVRO_ROWS, 100)
]
# What readers of the later schema see of the earlier rows.
EARLIER_AVRO_READ = [
    {**{name: value for name, value in row.items() if name != "old"}, "maybe": None, "either": None}
    for row in EARLIER_AVRO_ROWS
]

PROTO = """syntax = "proto3";
package golden;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Unused { string a = 1; }

message Order {
  message Inner { double x = 1; optional string note = 2; }
  enum Kind { NONE = 0; SOME = 1; ALL = 7; }
  int64 id = 1;
  sint32 number = 2;
  string name = 3;
  double ratio = 4;
  float share = 5;
  bool ok = 6;
  bytes raw = 7;
  google.protobuf.Timestamp at = 8;
  Kind kind = 9;
  Inner inner = 10;
  repeated Inner others = 11;
  map<string, int64> counts = 12;
  optional int32 maybe = 13;
  oneof either { string text = 14; sint64 whole = 15; }
  repeated sint64 many = 16;
  fixed32 fixed = 17;
  sfixed64 signed_fixed = 18;
  uint32 unsigned = 19;
  uint64 widest = 20;
  google.protobuf.StringValue wrapped = 2000;
}
"""
PROTO_MESSAGE = "golden.Order"
PROTO_ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "number": -1,
        "name": "first",
        "ratio": 0.1,
        "share": 0.5,
        "ok": True,
        "raw": b"\x00\xff\x7f",
        "at": dt.datetime(2026, 11, 22, 18, 30, 1, 234567, UTC),
        "kind": "SOME",
        "inner": {"x": 2.5, "note": "a note"},
        "others": [{"x": 0.0, "note": None}, {"x": -1e300, "note": ""}],
        "counts": {"one": 1, "": -(1 << 63)},
        "maybe": 0,
        "text": "chosen",
        "whole": None,
        "many": [1, -1, (1 << 63) - 1],
        "fixed": (1 << 32) - 1,
        "signed_fixed": -(1 << 63),
        "unsigned": (1 << 32) - 1,
        "widest": (1 << 64) - 1,
        "wrapped": "in a message",
    },
    {
        "id": 0,
        "number": 0,
        "name": "",
        "ratio": 0.0,
        "share": 0.0,
        "ok": False,
        "raw": b"",
        "at": None,
        "kind": "NONE",
        "inner": None,
        "others": [],
        "counts": {},
        "maybe": None,
        "text": None,
        "whole": None,
        "many": [],
        "fixed": 0,
        "signed_fixed": 0,
        "unsigned": 0,
        "widest": 0,
        "wrapped": None,
    },
    {
        "id": -(1 << 63),
        "number": (1 << 31) - 1,
        "name": "naïve € 日本 € \U0001f980",
        "ratio": -1.5e-300,
        "share": -1.5,
        "ok": True,
        "raw": bytes(range(256)),
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        "kind": "ALL",
        "inner": {"x": 0.0, "note": ""},
        "others": [{"x": float(number), "note": "n" * number} for number in range(40)],
        "counts": {f"key {number}": number for number in range(40)},
        "maybe": -(1 << 31),
        "text": None,
        "whole": -5,
        "many": list(range(-20, 20)),
        "fixed": 1,
        "signed_fixed": (1 << 63) - 1,
        "unsigned": 1,
        "widest": 1,
        "wrapped": "",
    },
]

JSON_ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "name": "first",
        "ratio": 0.1,
        "ok": True,
        "price": Decimal("12.34"),
        "inner": {"x": 2.5, "note": "a note"},
        "others": [{"x": 0.0, "note": None}, {"x": -1e300, "note": ""}],
        "counts": {"one": 1, "two": -(1 << 63)},
        "maybe": 7,
    },
    {
        "id": (1 << 63) - 1,
        "name": 'naïve € 日本 € \U0001f980 "quoted" \\ / \n\t\x00\u2028 end',
        "ratio": 1.7976931348623157e308,
        "ok": False,
        "price": Decimal("-99999999.99"),
        "inner": None,
        "others": [],
        "counts": {},
        "maybe": None,
    },
    {
        "id": -(1 << 63),
        "name": "",
        "ratio": 5e-324,
        "ok": True,
        "price": Decimal("0.00"),
        "inner": {"x": 1.0, "note": "é"},
        "others": [{"x": float(number), "note": "n" * number} for number in range(40)],
        "counts": {f"key {number}": number for number in range(40)},
        "maybe": -(1 << 31),
    },
]
# The same as JSON Schema, for serializers that want one; and as the columns that a reader asks for.
JSON_SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "ratio": {"type": "number"},
        "ok": {"type": "boolean"},
        "price": {"type": "number"},
        "inner": {
            "type": ["object", "null"],
            "properties": {"x": {"type": "number"}, "note": {"type": ["string", "null"]}},
        },
        "others": {"type": "array"},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "maybe": {"type": ["integer", "null"]},
    },
}
