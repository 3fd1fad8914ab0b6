"""Types of formats as Spark has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_kafka._typed.typed.arrow_types import spark_has


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pa.time64("us"), pa.int64()),
        (pa.time32("ms"), pa.int64()),
        (pa.timestamp("ms", "Europe/Paris"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.duration("ns"), pa.duration("us")),
        (pa.list_(pa.field("item", pa.time64("us"), nullable=False)), pa.list_(pa.field("element", pa.int64()))),
        (pa.large_list(pa.int32()), pa.list_(pa.field("element", pa.int32()))),
        (pa.map_(pa.string(), pa.field("x", pa.time64("us"), nullable=False)), pa.map_(pa.string(), pa.int64())),
        (pa.struct([pa.field("a", pa.int32(), nullable=False)]), pa.struct([("a", pa.int32())])),
        (pa.decimal128(5, 2), pa.decimal128(5, 2)),
    ],
    ids=str,
)
def test_type_is_one_that_spark_has(given: pa.DataType, expected: pa.DataType) -> None:
    assert spark_has(given) == expected
    assert str(spark_has(given)) == str(expected)
