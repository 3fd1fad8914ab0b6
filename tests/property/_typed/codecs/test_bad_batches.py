"""Batches of 10,000 values of which 1, 100 or all are bad: every good row at its own place, the bad ones located, in
bounded time. The places and the faults are random.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest
from hypothesis import settings

from kit.portable_columns import columns_of
from pyspark_kafka._typed.codecs.column_decoder import ColumnDecoder
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder

COUNT = 10_000
KIND = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("ratio", pa.float64()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("inner", pa.struct([("x", pa.int32()), ("at", pa.timestamp("us", "UTC"))])),
    ]
)
ROWS = pa.array(
    [
        {
            "id": number,
            "name": f"name {number}",
            "ratio": number / 7,
            "tags": ["a"] * (number % 3),
            "inner": None if number % 5 == 0 else {"x": number, "at": number * 1_000_003},
        }
        for number in range(COUNT)
    ],
    KIND,
)
COLUMNS = columns_of(KIND)
VALUES = {name: ColumnEncoder(column).encode(ROWS).to_pylist() for name, column in COLUMNS.items()}
# Seconds of the processor for a batch, on any machine; a batch of good values takes some milliseconds.
MAX_S = 20.0


def in_json(value: bytes, random: Random) -> bytes:
    return random.choice(
        (
            value[:-1],
            value + b"}",
            value + value,
            b"",
            b"[" * 10_000,
            value.replace(b'"name":"', b'"name":"\xff', 1),
            b'{"id":"not a number"}',
            b'{"inner":[1,2]}',
            b'{"tags":{"a":1}}',
            b'{"id":99999999999999999999}',
        )
    )


def in_avro(value: bytes, random: Random) -> bytes:
    # The union of the first field: an index that no branch has, among others.
    return random.choice((value[:-1], value + b"\0", b"", b"\x04" + value[1:], b"\xff" * 20))


def in_protobuf(value: bytes, random: Random) -> bytes:
    # Cut within a field, a field number of 0, a length beyond the end, text that is not UTF-8.
    return random.choice((value + b"\x08", value + b"\0", value + b"\x12\x7f", value + b"\x12\x01\xff", b"\xff" * 20))


# The profile decides how many seeds there are.
pytestmark = pytest.mark.property
FAULTS: dict[str, Callable[[bytes, Random], bytes]] = {"json": in_json, "avro": in_avro, "protobuf": in_protobuf}


# A batch with many bad values takes long, and has each fault many times: fewer seeds do.
@pytest.mark.parametrize(("count", "fewer"), [(1, 5), (100, 25), (COUNT, 100)])
@pytest.mark.parametrize("name", FAULTS)
def test_bad_values_are_located_and_good_ones_stay_in_their_rows(name: str, count: int, fewer: int) -> None:
    for seed in range(max(1, settings().max_examples // fewer)):
        check_batch(name, count, seed)


def check_batch(name: str, count: int, seed: int) -> None:
    random = Random(seed)
    wrong = sorted(random.sample(range(COUNT), count))
    values = list(VALUES[name])
    for row in wrong:
        values[row] = FAULTS[name](values[row], random)
    array = pa.array(values, pa.binary())
    decoder = ColumnDecoder(COLUMNS[name], None)
    began = time.process_time()
    found = decoder.decode(array)
    took = time.process_time() - began
    found.column.validate(full=True)
    assert [each.row for each in found.bad] == wrong
    located = set(wrong)
    assert found.column.is_null().to_pylist() == [row in located for row in range(COUNT)]
    good = pa.array([row for row in range(COUNT) if row not in located], pa.int64())
    assert found.column.take(good) == ROWS.take(good)
    assert took < MAX_S, f"{took:.1f} s for {count} bad values"
