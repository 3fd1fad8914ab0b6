"""Rows with typed keys and values: the bytes and headers that they become, and errors."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa
import pytest

from kit.texts import said
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor import typed_rows
from pyspark_kafka._connector.sink.executor.typed_rows import TypedRows
from pyspark_kafka._typed.codecs.column_format import ColumnFormat
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka.errors import RecordError

GUID = "0123abcd-0123-abcd-0123-abcd0123abcd"
ID_HEADER = ("__value_schema_id", b"\x01" + uuid.UUID(GUID).bytes)
VALUE = pa.struct([("a", pa.int64())])
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})


def avro(framing: str = "none", schema_id: Any = None, text: str = RECORD, kind: pa.DataType = VALUE) -> ColumnFormat:
    return ColumnFormat("avro", framing, kind, RegisteredSchema("AVRO", text, schema_id=schema_id))


def rows(**columns: tuple[list[Any], pa.DataType]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(*each) for each in columns.values()], names=list(columns))


def column(batch: pa.RecordBatch, position: int) -> list[Any]:
    found: list[Any] = batch.column(position).to_pylist()
    return found


def test_columns_become_bytes_and_others_stay() -> None:
    key = avro(text='"string"', kind=pa.string())
    typed = TypedRows(SinkColumns(2, 1, partition=0, key_format=key, value_format=avro("confluent", 7)))
    batch = rows(
        partition=([0, 1], pa.int32()), key=(["k", None], pa.string()), value=([None, {"a": 1}], VALUE),
        other=([1, 2], pa.int32()),
    )  # fmt: skip
    (found,) = typed.encode(batch)
    places = typed.columns
    assert (places.topic, places.headers, found.num_columns) == (-1, -1, 3)
    assert not places.is_typed
    assert column(found, places.key) == [b"\x02k", None]
    assert column(found, places.value) == [None, b"\0\0\0\0\x07\x02"]
    assert column(found, places.partition) == [0, 1]


def test_untyped_keys_beside_typed_values_stay_as_they_are() -> None:
    typed = TypedRows(SinkColumns(0, 1, value_format=avro()))
    (found,) = typed.encode(rows(value=([{"a": 1}], VALUE), key=(["k"], pa.string())))
    assert column(found, typed.columns.key) == ["k"]


@pytest.mark.parametrize("own", [False, True], ids=["no headers", "headers"])
def test_an_id_in_a_header_stands_behind_the_others_but_not_at_a_tombstone(own: bool) -> None:
    columns: dict[str, Any] = {"value": ([{"a": 1}, None], VALUE)}
    if own:
        columns["headers"] = ([[("h", b"1")], [("h", b"2")]], HEADERS)
    typed = TypedRows(SinkColumns(0, headers=1 if own else -1, value_format=avro("confluentHeader", GUID)))
    (found,) = typed.encode(rows(**columns))
    headers = [[(each["key"], each["value"]) for each in row] for row in column(found, typed.columns.headers)]
    assert headers == ([[("h", b"1"), ID_HEADER], [("h", b"2")]] if own else [[ID_HEADER], []])
    assert column(found, typed.columns.value) == [b"\x02", None]


def test_a_row_that_does_not_fit_is_counted_in_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = TypedRows(SinkColumns(0, value_format=avro()))
    good = rows(value=([{"a": 1}] * 10, VALUE))
    typed.encode(good)
    # Of a batch in several parts as well.
    monkeypatch.setattr(typed_rows, "_PIECE_BYTES", 24)
    assert len(typed.encode(good)) > 1
    with pytest.raises(RecordError) as caught:
        typed.encode(rows(value=([{"a": 1}] * 8 + [{"a": None}, {"a": 1}], VALUE)))
    assert said(caught.value) == (
        "[VALUE_NOT_ENCODABLE] Row 28 of the task, counted from 0, cannot be written: column 'value', field 'a': it is "
        "null, and the schema has no null there. Nothing of its Arrow batch was sent; earlier rows of the task may "
        "have been. Hint: Correct the column, or use a schema that has a place for such values."
    )
    assert caught.value.parameters["row"] == "28"
    assert caught.value.parameters["column"] == "value"


def test_a_key_that_does_not_fit_is_named_without_a_field() -> None:
    key = avro(text='"int"', kind=pa.int64())
    typed = TypedRows(SinkColumns(0, 1, key_format=key))
    with pytest.raises(RecordError, match=r"Row 1 of the task, .*: column 'key': the number is out of the range"):
        typed.encode(rows(value=(["v", "v"], pa.string()), key=([1, 2**40], pa.int64())))
