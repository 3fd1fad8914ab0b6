"""Arrow types as Spark's JSON, compared with what PySpark makes of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type

from pyspark_kafka._typed.typed.spark_json import type_json
from pyspark_kafka.errors import SchemaError

TYPES = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.decimal128(20, 3),
    pa.duration("us"),
    pa.null(),
    pa.list_(pa.field("element", pa.int32())),
    pa.map_(pa.string(), pa.list_(pa.binary())),
    pa.struct([("a", pa.int64()), ("b c`", pa.struct([("d", pa.map_(pa.int32(), pa.bool_()))]))]),
]


@pytest.mark.parametrize("given", TYPES, ids=str)
def test_types_are_those_that_pyspark_makes_of_them(given: pa.DataType) -> None:
    expected = from_arrow_type(given, prefer_timestamp_ntz=True).jsonValue()
    assert type_json(given) == expected


def test_types_that_spark_lacks_are_refused() -> None:
    with pytest.raises(SchemaError, match="Spark has no type for Arrow's uint64"):
        type_json(pa.struct([("a", pa.uint64())]))
