"""Arrays as sources have them: large, sliced, of wide offsets, with bad values anywhere."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kit.costs import processor_s
from kit.protobuf_schema import everything, file_set
from pyspark_kafka._typed.codecs.avro import _variant
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder, DecodedColumn
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.parts import concat_parts
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka._typed.codecs.wire_format import confluent_prefix
from pyspark_kafka._typed.codecs.zigzag import put_zigzag
from pyspark_kafka.errors import RecordError

ROW = pa.struct([("i", pa.int64()), ("s", pa.string())])
AVRO = '{"type":"record","name":"r","fields":[{"name":"i","type":"long"},{"name":"s","type":"string"}]}'
PROTO = base64.b64encode(file_set().SerializeToString()).decode()
COLUMNS = {
    "string": ColumnFormat("string", "confluent", pa.string()),
    "json": ColumnFormat("json", "confluent", ROW),
    "avro": ColumnFormat("avro", "confluent", ROW, RegisteredSchema("AVRO", AVRO)),
    "protobuf": ColumnFormat(
        "protobuf",
        "confluent",
        pa.struct([("l", pa.int64()), ("s", pa.string())]),
        RegisteredSchema("PROTOBUF", PROTO),
        "kit.Everything",
    ),
}


def avro_value(number: int) -> bytes:
    out, text = bytearray(), str(number).encode()
    put_zigzag(number, out)
    put_zigzag(len(text), out)
    return bytes(out) + text


VALUES: dict[str, Callable[[int], bytes]] = {
    "string": lambda number: str(number).encode(),
    "json": lambda number: b'{"i":%d,"s":"%d"}' % (number, number),
    "avro": avro_value,
    "protobuf": lambda number: b"\x02\x02" + everything()[1](l=number, s=str(number)).SerializeToString(),
}
# What no decoder takes, each for a reason of its own.
FAULTS: dict[str, list[bytes]] = {
    "string": [b"\xff"],
    "json": [b'{"i":"x"}', b'{"i":1', b"[]", b'{"s":"\xff"}', b'{"s":1}', b'{"i":1e30}', b""],
    "avro": [b"\x02", b"\x02\x02\xff", b"\xff" * 11, b"\x02\x02xx"],
    "protobuf": [b"\x02\x02\x08", b"\x02\x02\x42\x01\xff", b"\x02", b"\x00"],
}


def framed(value: bytes) -> bytes:
    return confluent_prefix(1) + value


def expected(name: str, number: int) -> Any:
    first = "l" if name == "protobuf" else "i"
    return str(number) if name == "string" else {first: number, "s": str(number)}


def decode(name: str, values: pa.Array) -> DecodedColumn:
    found = ColumnDecoder(COLUMNS[name], None).decode(values)
    found.column.validate(full=True)
    assert found.column.type == COLUMNS[name].arrow_type
    return found


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 2047, 2049, 5000])
def test_bad_values_leave_the_others_in_their_rows_at_every_edge(name: str, count: int) -> None:
    faults = FAULTS[name]
    bad = {row for row in (0, 1, 127, 1023, 1024, 2047, 2048, 4095, count - 1) if row < count}
    nulls = {row for row in (5, 1022, 2050) if row < count - 1}
    texts = [
        framed(faults[row % len(faults)] if row in bad else VALUES[name](row)) if row not in nulls else None
        for row in range(count)
    ]
    around = [b"before", *texts, b"behind"]
    for kind in (pa.binary(), pa.large_binary()):
        found = decode(name, pa.array(around, kind).slice(1, count))
        assert [each.row for each in found.bad] == sorted(bad)
        rows = [None if row in bad or row in nulls else expected(name, row) for row in range(count)]
        assert found.column.to_pylist() == rows
        assert found.schema_ids is not None
        assert found.schema_ids.to_pylist() == [None if row in nulls else "1" for row in range(count)]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_that_are_all_bad_take_a_bounded_time(name: str) -> None:
    if not _variant.kernel.compiled:
        pytest.skip("the times of the uncompiled kernel are its own")
    count = 1000
    good = pa.array([framed(VALUES[name](row)) for row in range(count)], pa.binary())
    clean = _seconds(name, good)
    for fault in FAULTS[name]:
        bad = pa.array([framed(fault)] * count, pa.binary())
        assert len(decode(name, bad).bad) == count
        # JSON is bisected to the bad values, 70 to 100 µs for each; others take less than 20 µs. 30 ms are free.
        assert _seconds(name, bad) < (150 if name == "json" else 40) * clean + 0.03


def _seconds(name: str, values: pa.Array) -> float:
    return processor_s(lambda: ColumnDecoder(COLUMNS[name], None).decode(values))


def test_parts_beyond_what_a_column_holds_are_an_error() -> None:
    # Zeros that are not touched take no memory.
    content = pa.py_buffer(np.zeros(3 << 29, np.uint8))
    offsets = pa.py_buffer(np.array([0, 3 << 29], np.int32))
    part = pa.Array.from_buffers(pa.string(), 1, [None, offsets, content])
    with pytest.raises(RecordError, match="2 values have a column of more than 2 GiB") as caught:
        concat_parts([part, part], pa.string())
    assert caught.value.condition == "VALUES_TOO_LARGE"
