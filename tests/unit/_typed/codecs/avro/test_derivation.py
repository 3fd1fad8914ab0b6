"""The schema of Avro that is made for columns."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pyspark_kafka._typed.codecs.avro.derivation import derive_schema
from pyspark_kafka._typed.codecs.column_encoder import ColumnEncoder
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka.errors import SchemaError

KIND = pa.struct(
    [
        ("b", pa.bool_()),
        ("i1", pa.int8()),
        ("i4", pa.int32()),
        ("i8", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("n", pa.decimal128(10, 2)),
        ("l", pa.list_(pa.struct([("x", pa.int32())]))),
        ("m", pa.map_(pa.string(), pa.list_(pa.string()))),
        ("o", pa.struct([("l", pa.struct([("y", pa.int64())]))])),
    ]
)
ROW = {
    "b": True,
    "i1": -1,
    "i4": 2,
    "i8": 3,
    "f": 0.5,
    "d": 0.25,
    "s": "é",
    "raw": b"\0",
    "day": dt.date(2026, 1, 2),
    "at": dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone.utc),
    "wall": dt.datetime(2026, 1, 2, 3),  # noqa: DTZ001 - a time without a zone
    "n": decimal.Decimal("-1.25"),
    "l": [{"x": 1}, None],
    "m": {"k": ["v", None]},
    "o": {"l": {"y": 5}},
}


def test_values_of_a_derived_schema_are_read_by_fastavro() -> None:
    import io  # noqa: PLC0415 - of this test alone

    text = derive_schema(KIND, "orders.v1", "value")
    column = ColumnFormat("avro", "none", KIND, RegisteredSchema("AVRO", text))
    nulls = dict.fromkeys(ROW)
    encoded = ColumnEncoder(column).encode(pa.array([{**ROW, "m": [("k", ["v", None])]}, nulls], KIND)).to_pylist()
    schema = fastavro.parse_schema(json.loads(text))
    assert [fastavro.schemaless_reader(io.BytesIO(each), schema, None) for each in encoded] == [ROW, nulls]


def test_records_are_named_by_their_place() -> None:
    kind = pa.struct([("a", pa.struct([("a", pa.struct([("x", pa.int32())]))]))])
    parsed = json.loads(derive_schema(kind, "2-orders.v1", "key"))
    first = parsed["fields"][0]["type"][1]
    second = first["fields"][0]["type"][1]
    names = [(each["namespace"], each["name"]) for each in (parsed, first, second)]
    assert names == [("_2_orders_v1", "key"), ("_2_orders_v1.key", "a"), ("_2_orders_v1.key.a", "a")]
    fastavro.parse_schema(parsed)


def test_fields_are_nullable_whatever_the_column_says() -> None:
    kind = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    (field,) = json.loads(derive_schema(kind, "t", "value"))["fields"]
    assert field == {"name": "a", "type": ["null", "long"], "default": None}


def test_a_column_that_is_no_struct_has_the_schema_of_its_type() -> None:
    assert derive_schema(pa.string(), "t", "key") == '"string"'


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.struct([("a-b", pa.int32())]), "column 'a-b' has a name that Avro does not allow"),
        (pa.struct([("a", pa.list_(pa.duration("us")))]), r"column 'a\[\]' has the type duration"),
        (pa.map_(pa.int32(), pa.int32()), "column 'value' has the type map<int32, int32>"),
    ],
)
def test_a_type_without_a_form_in_avro_is_refused(kind: Any, text: str) -> None:
    with pytest.raises(SchemaError, match=rf"No Avro schema can be made for the DataFrame: {text}"):
        derive_schema(kind, "t", "value")
