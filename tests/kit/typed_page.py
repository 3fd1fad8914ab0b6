"""The tables of types in docs/typed-formats.md."""

from __future__ import annotations

import re

import pyarrow as pa

from kit.pointers import REPO
from pyspark_kafka._connector.spark.compat import arrow_schema, spark_schema

PAGE = REPO / "docs" / "typed-formats.md"
_QUOTED = re.compile(r"`([^`]+)`")


def types_of(language: str) -> list[tuple[str, str]]:
    """Return each type of the table of a language with the type of its column."""
    _, _, table = PAGE.read_text().partition(f"\n| {language} | Spark |\n")
    pairs = [line.strip("| ").rsplit(" | ", 1) for line in table.partition("\n\n")[0].splitlines()[1:]]
    return [(each, _QUOTED.findall(column)[0]) for given, column in pairs for each in _QUOTED.findall(given)]


def through_spark(column: pa.Array) -> pa.Array:
    """Return a column as Spark returns it: of a type that Spark has."""
    kind = arrow_schema(spark_schema(pa.schema([pa.field("value", column.type)]))).field(0).type
    return column.cast(kind)
