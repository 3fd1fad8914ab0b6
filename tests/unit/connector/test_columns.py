"""Columns that say which type they have in the engine."""

from __future__ import annotations

import pickle

import pyarrow as pa

from pyspark_kafka.connector.columns import type_name, with_type_name


def test_type_name_is_the_engine_s_and_survives_a_pickle() -> None:
    schema = pa.schema([with_type_name(pa.field("n", pa.int64(), nullable=False, metadata={"k": "v"}), "bigint")])
    field = pickle.loads(pickle.dumps(schema)).field(0)  # noqa: S301 - our own bytes
    assert type_name(field) == "bigint"
    assert field.metadata[b"k"] == b"v"
    assert not field.nullable


def test_type_name_is_arrow_s_if_the_engine_noted_none() -> None:
    assert type_name(pa.field("n", pa.int64())) == "int64"


def test_schema_with_type_names_equals_one_without() -> None:
    """Rows have none: a sink may compare the two."""
    plain = pa.field("n", pa.int64())
    assert pa.schema([with_type_name(plain, "bigint")]) == pa.schema([plain])
