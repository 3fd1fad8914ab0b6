"""The targets of values in formats: JSON, Avro, Protobuf, and what stands before them.

Each input is a few values. Checked besides errors, time and memory: there is a row for each value; a value is read as
it is read alone, whatever stands beside it; the row of a bad one is null; the column is valid.
"""

from __future__ import annotations

import base64
import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuzzing.draw import Draw
from fuzzing.mutation import mutate_bytes
from fuzzing.oracles import outcome_of, require
from fuzzing.schema_draw import draw_evolution, draw_schema
from kit.golden_formats import JSON_TYPE, KnownSchemas
from kit.protobuf_schema import everything, file_set
from pyspark_kafka._typed.codecs.avro import _variant as avro_variant
from pyspark_kafka._typed.codecs.avro.decoding import AvroDecoder
from pyspark_kafka._typed.codecs.avro.schema import parse_schema
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.json.decoding import JsonDecoder
from pyspark_kafka._typed.codecs.protobuf.decoding import ProtobufDecoder
from pyspark_kafka._typed.codecs.protobuf.message_index import write_glue_index
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from pyspark_kafka._typed.codecs.column_decoder import DecodedColumn
    from pyspark_kafka._typed.codecs.values import DecodedValues
    from pyspark_kafka.records._variant import Kernel

    Decode = Callable[[list[bytes | None], list[Any]], DecodedValues | DecodedColumn]

FRAMINGS = ("confluent", "glue", "confluentHeader")
FORMATS = ("string", "avro", "protobuf", "json")
GLUE_ID = "0f8fad5b-d9cb-469f-a165-70867728950e"
_MAX_VALUES = 8
# In place of the size of a value: it is null, or made of a few bytes many times.
_NULL, _REPEATED = 0xFFFF, 0xFFFE
_MAX_TIMES, _MAX_BYTES = 200_000, 400_000
_MAX_START = 8
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_READER = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"], "default": None}],
}
_WRITER = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}


def json_values(data: bytes, _variants: Sequence[Kernel]) -> None:
    """Read documents as columns of many types."""
    draw = Draw(data)
    decoder = _json_decoder()
    _check(drawn_values(draw), lambda values, _: decoder.decode(pa.array(values, pa.binary())))


def protobuf_values(data: bytes, _variants: Sequence[Kernel]) -> None:
    """Read messages with a field of each kind."""
    draw = Draw(data)
    decoder = _protobuf_decoder()
    _check(drawn_values(draw), lambda values, _: decoder.decode(pa.array(values, pa.binary())))


def avro_values(data: bytes, variants: Sequence[Kernel]) -> None:
    """Read values of a drawn schema as another that it may have evolved to, with both variants where both run."""
    draw = Draw(data)
    writer = draw_schema(draw)
    reader = draw_evolution(draw, writer) if draw.flag() else writer
    values = drawn_values(draw)
    texts = json.dumps(writer), json.dumps(reader)
    kernels = [_kernels()[0]] if len(variants) == 1 else _kernels()
    before = avro_variant.kernel
    found: list[tuple[Any, list[Any], pa.Array | None]] = []
    try:
        for kernel in kernels:
            avro_variant.kernel = kernel
            built = outcome_of(lambda: AvroDecoder(parse_schema(texts[0]), parse_schema(texts[1])))
            decoder = built.value
            if decoder is None:
                found.append((built.told, [], None))
                continue
            read = _check(values, partial(_decode_with, decoder))
            found.append(((), read.bad, read.column))
    finally:
        avro_variant.kernel = before
    for told, bad, column in found[1:]:
        require(told == found[0][0] and bad == found[0][1], f"the variants differ: {found[0][:2]} and {told, bad}")
        same = str(column and column.to_pylist()) == str(found[0][2] and found[0][2].to_pylist())
        require(same, "the variants read other values")


def _decode_with(decoder: AvroDecoder, values: list[bytes | None], _: list[Any]) -> DecodedValues:
    return decoder.decode(pa.array(values, pa.binary()))


def framing(data: bytes, _variants: Sequence[Kernel]) -> None:
    """Read values of each format behind each wire format, of schemas that a registry has or has not."""
    draw = Draw(data)
    framed, kind = draw.pick(FRAMINGS), draw.pick(FORMATS)
    decoder = _framed_decoder(framed, kind)
    values = drawn_values(draw)
    headers = [_drawn_headers(draw) for _ in values]
    _check(
        values,
        lambda given, of_them: decoder.decode(pa.array(given, pa.binary()), pa.array(of_them, _HEADERS)),
        headers,
    )


def drawn_values(draw: Draw) -> list[bytes | None]:
    """Return values, each behind its length; the last may be all that is left."""
    values: list[bytes | None] = []
    for _ in range(draw.number(1) % _MAX_VALUES + 1):
        size = draw.number(2)
        values.append(None if size == _NULL else _drawn_repeated(draw) if size == _REPEATED else draw.taken(size))
    return values


def _drawn_repeated(draw: Draw) -> bytes:
    """Return bytes many times, others as often behind them, and fields of Protobuf around both."""
    start, end = draw.taken(draw.number(1) % _MAX_START + 1), draw.taken(draw.number(1) % 4)
    times = min(draw.number(3) % (_MAX_TIMES + 1), _MAX_BYTES // (len(start) + len(end) or 1))
    value = start * times + end * times
    for _ in range(draw.number(1) % 6):
        tag = draw.taken(draw.number(1) % 3 + 1)
        value = tag + write_glue_index(len(value)) + value
    return value


def repeated(start: bytes, end: bytes = b"", times: int = _MAX_TIMES, tags: Sequence[bytes] = ()) -> bytes:
    """Write a value of bytes many times as the targets draw it: at most 8 bytes, and 3, in fields of up to 3 bytes."""
    parts = [_REPEATED.to_bytes(2, "big"), bytes([len(start) - 1]), start, bytes([len(end)]), end]
    parts += [times.to_bytes(3, "big"), bytes([len(tags)]), *(bytes([len(each) - 1]) + each for each in tags)]
    return b"".join(parts)


def mutate_values(data: bytes, other: bytes, random: Random, head: int = 0) -> bytes:
    """Make changes as `mutate_bytes`, or repeat a few bytes of an input many times, alone or in fields around them.

    Args:
        data: an input.
        other: another one.
        random: decides.
        head: bytes of an input before its values.
    """
    if len(data) <= head or random.random() > 0.02:
        return mutate_bytes(data, other, random)

    def piece(most: int) -> bytes:
        at = random.randrange(len(data))
        return data[at : at + random.randint(1, most)]

    end = random.choice((b"", piece(3)))
    tags = [piece(3) for _ in range(random.randrange(6))]
    return data[:head] + b"\0" + repeated(piece(_MAX_START), end, random.choice((1, 100, 101, _MAX_TIMES)), tags)


def _drawn_headers(draw: Draw) -> list[dict[str, Any]] | None:
    count = draw.number(1) % 4
    if count == 0:
        return None
    names = ("__value_schema_id", "__key_schema_id", "other")
    return [
        {"key": draw.pick(names), "value": None if draw.flag() else draw.taken(draw.number(1) % 20)}
        for _ in range(count)
    ]


def _check(
    values: list[bytes | None],
    decode: Decode,
    headers: list[Any] | None = None,
) -> DecodedValues | DecodedColumn:
    """Read values together and alone, and compare."""
    of_them = headers or [None] * len(values)
    together = decode(values, of_them)
    _check_column(values, together)
    bad = {each.row: each for each in together.bad}
    for row, (value, header) in enumerate(zip(values, of_them, strict=True)):
        alone = decode([value], [header])
        _check_column([value], alone)
        require((row in bad) == bool(alone.bad), f"row {row} is bad: {row in bad} together, {bool(alone.bad)} alone")
        same = str(together.column[row].as_py()) == str(alone.column[0].as_py())
        require(same, f"row {row} is read in another way than alone")
    return together


def _check_column(values: list[bytes | None], found: DecodedValues | DecodedColumn) -> None:
    found.column.validate(full=True)
    require(len(found.column) == len(values), f"{len(found.column)} rows of {len(values)} values")
    rows = [each.row for each in found.bad]
    require(rows == sorted(set(rows)), f"the bad rows are not in order: {rows}")
    for row, value in enumerate(values):
        if value is None or row in rows:
            require(not found.column[row].is_valid, f"row {row} is not null")
    require(not any(values[row] is None for row in rows), "a tombstone is bad")
    require(all(each.message.isprintable() for each in found.bad), "a message is not printable")


@cache
def _json_decoder() -> JsonDecoder:
    more = [
        ("raw", pa.binary()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("small", pa.int8()),
        ("share", pa.float32()),
        ("deep", pa.list_(pa.list_(pa.map_(pa.string(), pa.list_(pa.int64()))))),
    ]
    return JsonDecoder(pa.struct([*JSON_TYPE, *more]))


@cache
def _protobuf_decoder() -> ProtobufDecoder:
    return ProtobufDecoder(everything()[0])


@cache
def _kernels() -> list[Any]:
    found = [avro_variant.load_compiled(), avro_variant.load_pure_python()]
    return [kernel for kernel in found if kernel is not None]


@cache
def _framed_decoder(framed: str, kind: str) -> ColumnDecoder:
    ids: list[Any] = [GLUE_ID] if framed in ("glue", "confluentHeader") else [1, 2]
    if kind == "string":
        return ColumnDecoder(ColumnFormat("string", framed, pa.string()), None)
    if kind == "json":
        return ColumnDecoder(ColumnFormat("json", framed, JSON_TYPE), None)
    if kind == "avro":
        reader = parse_schema(json.dumps(_READER))
        writers = [_WRITER, _READER]
        known = [RegisteredSchema("AVRO", json.dumps(each), (), own) for own, each in zip(ids, writers, strict=False)]
        given = RegisteredSchema("AVRO", json.dumps(_READER))
        column = ColumnFormat("avro", framed, AvroDecoder(reader).arrow_type, given)
        return ColumnDecoder(column, KnownSchemas(known))
    text = base64.b64encode(file_set().SerializeToString()).decode()
    known = [RegisteredSchema("PROTOBUF", text, (), own) for own in ids]
    column = ColumnFormat("protobuf", framed, _protobuf_decoder().arrow_type, known[0], "kit.Everything")
    return ColumnDecoder(column, KnownSchemas(known))
