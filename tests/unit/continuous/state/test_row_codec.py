"""Rows of a state: every type goes to bytes and back, with nulls; other types are refused."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.continuous.state.row_codec import RowCodec
from pyspark_kafka.errors import SchemaError

_MAKERS: dict[pa.DataType, Any] = {
    pa.bool_(): lambda r: r.random() < 0.5,
    pa.int8(): lambda r: r.randint(-(2**7), 2**7 - 1),
    pa.int16(): lambda r: r.randint(-(2**15), 2**15 - 1),
    pa.int32(): lambda r: r.randint(-(2**31), 2**31 - 1),
    pa.int64(): lambda r: r.choice([-(2**63), 2**63 - 1, 0]),
    pa.uint64(): lambda r: r.choice([0, 2**64 - 1]),
    pa.float32(): lambda r: float(r.randint(-1000, 1000)),
    pa.float64(): lambda r: r.choice([0.1, -1e300, float("inf")]),
    pa.decimal128(38, 2): lambda r: Decimal(r.randint(-(10**37), 10**37)) / 100,
    pa.date32(): lambda r: dt.date(1900, 1, 1) + dt.timedelta(days=r.randint(0, 100_000)),
    pa.timestamp("us", "UTC"): lambda r: (
        dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=r.randint(0, 10**16))
    ),
    pa.timestamp("ms"): lambda r: dt.datetime(2020, 1, 1) + dt.timedelta(seconds=r.randint(0, 10**8)),  # noqa: DTZ001
    pa.string(): lambda r: r.choice(["", "é", "a longer text"]),
    pa.binary(): lambda r: r.randbytes(r.randint(0, 20)),
}


@pytest.mark.parametrize("seed", range(30))
def test_rows_of_any_schema_go_to_bytes_and_back(seed: int) -> None:
    r = random.Random(seed)
    kinds = r.choices(list(_MAKERS), k=r.choice([1, 2, 7, 8, 9, 64]))
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(kinds)])
    rows = [
        {field.name: None if r.random() < 0.3 else _MAKERS[field.type](r) for field in schema}
        for _ in range(r.choice([0, 1, 20]))
    ]
    codec = RowCodec(schema)
    batch = pa.RecordBatch.from_pylist(rows, schema)
    encoded = codec.encode(batch.columns)
    assert codec.decode(encoded).to_pylist() == rows
    assert codec.decode(encoded).schema.types == schema.types


def test_key_without_a_value_is_null_in_every_column() -> None:
    codec = RowCodec(pa.schema([pa.field("n", pa.int64(), nullable=False), ("text", pa.string())]))
    (one,) = codec.encode([pa.array([5]), pa.array(["five"])])
    assert codec.decode([None, one, None]).to_pylist() == [
        {"n": None, "text": None},
        {"n": 5, "text": "five"},
        {"n": None, "text": None},
    ]


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([]),
        pa.schema([(str(number), pa.int8()) for number in range(65)]),
        pa.schema([("list", pa.list_(pa.int8()))]),
        pa.schema([("decimal", pa.decimal256(40, 2))]),
    ],
)
def test_schema_that_cannot_be_kept_is_refused(schema: pa.Schema) -> None:
    with pytest.raises(SchemaError) as caught:
        RowCodec(schema)
    assert caught.value.condition == "STATE_SCHEMA_INVALID"
