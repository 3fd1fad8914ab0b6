"""The arguments of a continuous query's methods as values: tables, texts of options, schemas, intervals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from pyspark_kafka._connector.spark.compat import arrow_schema
from pyspark_kafka.connector import Table
from pyspark_kafka.errors import OptionError, described

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    Schema: TypeAlias = StructType | str | pa.Schema

_INTERVAL = re.compile(r"\s*(?:interval\s+)?([0-9]{1,9})\s*([a-z]+)\s*", re.IGNORECASE)
_UNITS_MS = {
    name: ms
    for names, ms in (
        ("ms millisecond milliseconds", 1),
        ("s sec second seconds", 1_000),
        ("m min minute minutes", 60_000),
        ("h hour hours", 3_600_000),
    )
    for name in names.split()
}
KAFKA = "pyspark_kafka"


def table_of(source: str | Table) -> Table:
    """Return a table, by its name if it is Kafka; Spark does not reveal the tables behind other names.

    Raises:
        OptionError: the name differs.
        TypeError: it is neither a table nor a name.
    """
    if isinstance(source, Table):
        return source
    if not isinstance(source, str):
        raise TypeError(f"format() takes a Table, or its name if it is Kafka, not {described(source)}: {source!r}")
    if source != KAFKA:
        raise OptionError(
            f"A continuous query knows no format {source!r}.",
            condition="FORMAT_UNKNOWN",
            hint=f"Use {KAFKA!r}, or pass the table itself, as to as_data_source().",
        )
    from pyspark_kafka._connector.table.kafka_table import KafkaTable  # noqa: PLC0415 - other tables need no Kafka

    return KafkaTable()


def text_of(value: Any) -> str:
    """Return the value of an option in Spark's text form."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_arrow_schema(schema: Schema) -> pa.Schema:
    """Return a schema that was given as DDL text, as Spark's or as Arrow's."""
    if isinstance(schema, pa.Schema):
        return schema
    from pyspark.sql.types import StructType  # noqa: PLC0415 - likewise

    parsed = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed, StructType):
        raise TypeError(f"a schema is DDL text, a StructType or an Arrow schema, not {schema!r}")
    return arrow_schema(parsed)


def interval_ms(text: str, problem: str | None = None, *, minimum: int = 1) -> int:
    """Return the milliseconds of an interval such as "1 second", "500 ms", "2 minutes".

    Args:
        text: the interval.
        problem: the text of the error; None: it is not a length of an epoch.
        minimum: of the number.

    Raises:
        OptionError: it is not an interval, or is below `minimum`.
    """
    found = _INTERVAL.fullmatch(text) if isinstance(text, str) else None
    unit = None if found is None else _UNITS_MS.get(found[2].lower())
    if found is None or unit is None or int(found[1]) < minimum:
        raise OptionError(
            problem or f"{text!r} is not a length of an epoch.",
            condition="OPTION_INVALID",
            hint='Write a number and a unit: "1 second", "500 milliseconds", "2 minutes".',
        )
    return int(found[1]) * unit
