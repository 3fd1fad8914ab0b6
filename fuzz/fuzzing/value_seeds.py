"""The inputs that fuzzing of values and of schemas begins with: those of the golden files, and small ones."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable

from fuzzing.schema_target import READERS
from fuzzing.value_targets import FORMATS, FRAMINGS, GLUE_ID, repeated
from kit.golden_formats import NAMES, GoldenFile
from kit.protobuf_schema import everything, file_set
from pyspark_kafka._typed.codecs.wire_format import confluent_prefix

_DDL = b"id BIGINT, `a b` STRING NOT NULL, d DECIMAL(10, 2), l ARRAY<STRUCT<x: DOUBLE>>, m MAP<STRING, TIMESTAMP_NTZ>"
_SPARK_JSON = (
    b'{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}},'
    b'{"name":"l","type":{"type":"array","elementType":"string","containsNull":true},"nullable":true,"metadata":{}}]}'
)
_JSON_SCHEMA = (
    b'{"type":"object","properties":{"a":{"type":"integer"},"b":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/x"}]}},'
    b'"$defs":{"x":{"type":"array","items":{"type":"string","format":"date-time"}}}}'
)
_AVRO = (
    b'{"type":"record","name":"r","fields":[{"name":"a","type":"long"},{"name":"b","type":["null",{"type":"enum",'
    b'"name":"e","symbols":["X"]}],"default":null},{"name":"c","type":{"type":"map","values":"r2"}}]}'
)


def _framed(*values: bytes | None) -> bytes:
    """Write values as the targets draw them."""
    parts = [b"\xff\xff" if value is None else struct.pack(">H", len(value)) + value for value in values]
    return bytes([len(values) - 1]) + b"".join(parts)


def _golden(kind: str) -> list[bytes | None]:
    files = [GoldenFile.read(name) for name in NAMES]
    return [
        value
        for file in files
        if file.format == kind and file.framing == "none"
        for value in file.values().to_pylist()
        if len(value) < 2000
    ]


def _json() -> list[bytes]:
    odd = [b"null", b"{}", b' {"id": 1.5}\n', b'{"raw":"AAE="}', b'{"at":"2026-11-22T18:30:00Z","day":"2026-11-22"}']
    deep = b'{"deep":[[{"a":[1,2]},{}],[]],"small":127,"share":1e38,"name":"\\ud83e\\udd80\\ud840"}'
    values = [_framed(*_golden("json")[:4]), _framed(None, *odd, deep), *(_framed(each) for each in _golden("json"))]
    nested = [
        repeated(b"["),
        repeated(b"[", b"]"),
        repeated(b'{"a":'),
        repeated(b'{"deep":', b"}", 500),
        repeated(b"1"),
    ]
    return values + [b"\0" + each for each in nested]


def _protobuf() -> list[bytes]:
    _, message = everything()
    full = message(
        i=-5, l=-6, u=7, w=8, f=0.5, d=1.5, t=True, s="é", b=b"\0", os=[{"x": 1.0}], m={"k": 1}, e=1, n=[1, -1], q="o"
    )
    full.at.FromMicroseconds(1)
    text = full.SerializeToString()
    values = [_framed(text), _framed(text, None, b"", text[:-1]), _framed(text + text), _framed(b"\x0b\x0c" + text)]
    # Groups in each other, of a known and of an unknown number, in a known field and in one in it; and many items.
    deep = [repeated(b"\x0b"), repeated(b"\xfb\xff\x07", b"\xfc\xff\x07"), repeated(b"\x0b", b"\x0c", 100)]
    deep += [repeated(b"\x0b", b"\x0c", tags=[b"\xa2\x01"]), repeated(b"\x0b", tags=[b"\x12", b"\xba\x01"])]
    wide = [
        repeated(b"\xb2\x01\x00"),
        repeated(b"\x80\x02\x01", b"\x8a\x02\x00"),
        repeated(b"\x00", tags=[b"\xfa\x01"]),
    ]
    return values + [b"\0" + each for each in (*deep, *wide)]


def _avro() -> list[bytes]:
    # A record of choices, a flag for a reader's schema, and values that most records read something from.
    values = _framed(b"\x02\x04ab\x00\x01", bytes(40), None, b"\xff" * 12, bytes(range(60)))
    choices = [bytes([4, *(number + shift for number in range(4))]) for shift in range(0, 22, 3)]
    nested = [b"\x03\x12\x02\x03\x07\x10\x03\x11\x07", b"\x02\x13\x01\x0b\x15\x10\x03", b"\x01\x10\x11\x12\x01\x0f\x02"]
    return [head + flag + values for head in (*choices, *nested) for flag in (b"\0", b"\1\2\3\1\4\5\1")]


def _framings() -> list[bytes]:
    found = []
    heads = {
        "confluent": confluent_prefix(1),
        "glue": b"\x03\x00" + bytes.fromhex(GLUE_ID.replace("-", "")),
        "confluentHeader": b"",
    }
    bodies = {"string": b"text", "avro": b"\x02\x00", "protobuf": b"\x02\x02\x08\x05", "json": b'{"id":1}'}
    id_header = b"\1\0\0\x11\x01" + bytes.fromhex(GLUE_ID.replace("-", ""))
    for number, framed in enumerate(FRAMINGS):
        for place, kind in enumerate(FORMATS):
            value = heads[framed] + bodies[kind]
            found.append(bytes([number, place]) + _framed(value, None, value[:3], value) + id_header * 4)
    zipped = next(file for file in map(GoldenFile.read, NAMES) if "zlib" in file.name).values()[0].as_py()
    found.append(bytes([FRAMINGS.index("glue"), 0]) + _framed(zipped, zipped[:-1]))
    return found


def _schemas() -> list[bytes]:
    texts = (_AVRO, _DDL, _SPARK_JSON, _JSON_SCHEMA, file_set().SerializeToString())
    golden = [file.schemas[-1].text for file in map(GoldenFile.read, NAMES) if file.schemas]
    more = [bytes([0]) + text.encode() for text in golden if text.startswith("{")]
    sets = [bytes([4]) + base64.b64decode(text) for text in golden if not text.startswith("{")]
    return [bytes([number % len(READERS)]) + text for number, text in enumerate(texts)] + more[:2] + sets[:1]


def _proto_texts() -> list[bytes]:
    item = (
        b'syntax = "proto3"; package shop; '
        b"message Item { string name = 1; map<string, int32> n = 2; oneof o { int64 a = 3; } }"
    )
    order = (
        b'syntax = "proto2"; import "item.proto"; import "google/protobuf/timestamp.proto";\n// An order.\n'
        b"message Order { optional shop.Item item = 1 [deprecated = true]; repeated google.protobuf.Timestamp at = 2; "
        b"enum Kind { A = 0; } required Kind k = 3; extensions 100 to 199; group G = 4 { } }"
    )
    alone = b"\0\0\0" + item
    named = bytes([10]) + b"item.proto" + struct.pack(">H", len(item)) + item + order
    edition = b"\0\0\0" + b'edition = "2023"; message M { int32 a = 1 [features.field_presence = IMPLICIT]; M m = 2; }'
    return [alone, named, edition, b"\0\0\0aGVsbG8="]


def _registry_answers() -> list[bytes]:
    schema = b'{"schema":"\\"long\\"","schemaType":"AVRO","id":7,"version":2,"subject":"s-value"}'
    needy = (
        b'{"schema":"{}","schemaType":"JSON","references":[{"name":"a","subject":"a","version":1}],"id":1,"version":1}'
    )
    unknown = b'{"error_code":40401,"message":"no such subject"}'
    ruled = b'{"schema":"{}","ruleSet":{"domainRules":[{"name":"r","kind":"CONDITION","type":"CEL","mode":"READ"}]}}'
    fits = b'{"is_compatible":false,"messages":["a","b"]}'
    glue = (
        b'{"SchemaVersionId":"u","SchemaDefinition":"{}","DataFormat":"JSON","VersionNumber":2,"Status":"AVAILABLE",'
        b'"Valid":true,"Compatibility":"NONE","SchemaVersionStatus":"AVAILABLE"}'
    )
    away = b'{"Code":"EntityNotFoundException","Message":"none"}'

    def of(kind: int, question: int, *answers: tuple[int, bytes]) -> bytes:
        parts = [bytes([status]) + struct.pack(">H", len(body)) + body for status, body in answers]
        return bytes([kind, question]) + b"".join(parts)

    ok, gone = 0, 1
    confluent = [
        of(0, number, *answers)
        for number in range(7)
        for answers in ([(ok, schema)], [(ok, needy), (ok, schema)], [(gone, unknown)], [(ok, fits)], [(ok, ruled)])
    ]
    of_glue = [of(1, number, *answers) for number in range(7) for answers in ([(ok, glue)], [(gone, away), (ok, glue)])]
    return [*confluent, *of_glue]


VALUE_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "json_values": _json,
    "avro_values": _avro,
    "protobuf_values": _protobuf,
    "framing": _framings,
    "schema_text": _schemas,
    "proto_text": _proto_texts,
    "registry_answer": _registry_answers,
}
