"""Dead letters: the records of a typed read that could not be read, as rows for the sink."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_kafka._connector.spark.dead_letters.error_headers import error_headers
from pyspark_kafka._connector.spark.dead_letters.sql import (
    HEADERS_TYPE,
    NO_HEADERS,
    check_columns,
    check_topic,
    column_types,
    quoted,
    text,
)
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from pyspark_kafka._connector.spark.dead_letters.error_headers import ErrorHeaders, HeaderStyle

_CORRUPT = "_corrupt_record"
# What the corrupt column must have; a typed read adds the id of the schema.
_FIELDS = {"column": "string", "reason": "string", "message": "string", "rawKey": "binary", "rawValue": "binary"}
_LETTER = "__pyspark_kafka_letter"
_LETTER_TOPIC = re.compile(r"named_struct\('topic', CAST\(X'([0-9a-f]*)' AS STRING\)")
_HOW_TO_READ = (
    'Read with .option("mode", "PERMISSIVE"), keep the columns topic, partition, offset and the corrupt one, and name '
    "the latter with corrupt_column=... if option 'columnNameOfCorruptRecord' is set."
)


def dead_letters(
    df: DataFrame, *, topic: str, headers: HeaderStyle = "connect", corrupt_column: str = _CORRUPT
) -> DataFrame:
    """Return the records that could not be read, as rows for `format("pyspark_kafka")`.

    ```python
    bad = pyspark_kafka.dead_letters(orders, topic="orders.dead")
    bad.write.format("pyspark_kafka").options(**servers).mode("append").save()
    ```

    A row stands for each row of `df` whose corrupt column is not null, and for no other. Key and value are the bytes
    that Kafka has. The headers of the record come first, if `df` has them (`includeHeaders`), then the headers of the
    fault, all of them text:

    | connect: `__connect.errors.` and | streams: `__streams.errors.` and | holds |
    | --- | --- | --- |
    | `topic`, `partition`, `offset` | the same | which record it was |
    | `timestamp` | the same | its time in ms since 1970, if `df` has the column |
    | `stage` | | `KEY_CONVERTER` or `VALUE_CONVERTER` |
    | `class.name` | | `pyspark_kafka` |
    | `exception.class.name` | `exception` | the reason, such as `DECODE_FAILED` |
    | `exception.message` | `message` | the fault in words, at most 1024 bytes, with nothing of the record's content |

    The sink writes with the time of writing, so the time of the record is in a header only.
    A record that was a dead letter before, as its headers say, keeps its first coordinates.

    Runs on: driver, or the client of Spark Connect; the expressions run in Spark's engine, without Python. Nothing is
    read or written before the result is used.

    Args:
        df: a typed read in mode PERMISSIVE, batch or streaming, with its columns `topic`, `partition` and `offset`.
        topic: the topic of the dead letters.
        headers: whose names the headers have.
        corrupt_column: the name of the corrupt column, as in the option `columnNameOfCorruptRecord`.

    Returns:
        Columns `topic` string, `key` binary, `value` binary, `headers`.

    Raises:
        SchemaError: columns are missing or have other types.
        OptionError: an argument is not valid.
    """
    names = _check(df, topic, headers, corrupt_column)
    bad = df.where(f"{quoted(corrupt_column)} IS NOT NULL")
    letter = f"{_letter(df, topic, names, corrupt_column)} AS {quoted(_LETTER)}"
    return bad.selectExpr(letter).selectExpr(f"{quoted(_LETTER)}.*")


def with_dead_letters(
    df: DataFrame, good: Sequence[str], *, topic: str, headers: HeaderStyle = "connect", corrupt_column: str = _CORRUPT
) -> DataFrame:
    """Return good rows and dead letters together, so that one sink writes both, with `exactly_once` in one transaction.

    ```python
    rows = pyspark_kafka.with_dead_letters(
        orders, ["'orders.big' AS topic", "CAST(value.id AS STRING) AS key", "to_json(value) AS value"],
        topic="orders.dead",
    )
    rows.writeStream.format("pyspark_kafka").option("deliveryGuarantee", "exactly_once")...
    ```

    Each row of `df` becomes one row, in its place: a dead letter as `dead_letters` makes it, or what `good` makes of
    it. Records are read once; a union of two DataFrames reads them twice. Do not set the sink's option `topic`: it
    takes precedence over the column. Use `.where(...)` before to leave good rows out, and keep those whose corrupt
    column is not null.

    Runs on: driver, or the client of Spark Connect; the expressions run in Spark's engine.

    Args:
        df: see `dead_letters`.
        good: the sink's columns of a good row, each as SQL, as of `selectExpr`: `topic` and `value`, and `key`,
            `headers` and `partition` if wanted. Keys and values are text or bytes.
        topic: the topic of the dead letters.
        headers: whose names their headers have.
        corrupt_column: the name of the corrupt column.

    Returns:
        Columns `topic` string, `key` binary, `value` binary, `headers`, and `partition` int if `good` has it.

    Raises:
        SchemaError: columns are missing or have other types.
        OptionError: an argument is not valid.
    """
    names = _check(df, topic, headers, corrupt_column)
    if isinstance(good, str) or not all(isinstance(each, str) for each in good):
        raise OptionError(
            "Argument 'good' must be a list of SQL expressions, one for each column. Nothing was read or written.",
            condition="OPTION_INVALID",
            hint='Write good=["\'orders-out\' AS topic", "key", "to_json(value) AS value"].',
        )
    letter = f"IF({quoted(corrupt_column)} IS NULL, NULL, {_letter(df, topic, names, corrupt_column)})"
    rows = df.selectExpr(*good, f"{letter} AS {quoted(_LETTER)}")
    found = column_types(rows.schema)
    found.pop(_LETTER)
    payload = ("string", "binary")
    needed = {"topic": ("string",), "value": payload}
    optional = {"key": payload, "headers": (HEADERS_TYPE,), "partition": ("int",)}
    check_columns(
        found,
        needed | {name: types for name, types in optional.items() if name in found},
        "Writing good rows beside dead letters",
        "Argument 'good' makes the columns of good rows: name their topic, and encode values to text or bytes.",
    )
    is_bad = f"{quoted(_LETTER)} IS NOT NULL"

    def either(name: str, of_good: str) -> str:
        return f"CASE WHEN {is_bad} THEN {quoted(_LETTER)}.{quoted(name)} ELSE {of_good} END AS {quoted(name)}"

    columns = [
        either("topic", "`topic`"),
        either("key", "CAST(`key` AS BINARY)" if "key" in found else "NULL"),
        either("value", "CAST(`value` AS BINARY)"),
        either("headers", "`headers`" if "headers" in found else "NULL"),
    ]
    if "partition" in found:
        columns.append(f"CASE WHEN {is_bad} THEN NULL ELSE `partition` END AS `partition`")
    return rows.selectExpr(*columns)


def letter_topic(expression: str) -> str | None:
    """Return the topic of the dead letters that an expression of this module makes; None if it makes none."""
    found = _LETTER_TOPIC.search(expression) if expression.endswith(f"AS {quoted(_LETTER)}") else None
    return None if found is None else bytes.fromhex(found[1]).decode()


def _check(df: DataFrame, topic: str, headers: str, corrupt_column: str) -> ErrorHeaders:
    names = error_headers(headers)
    check_topic(topic, "topic")
    schema = df.schema
    found = column_types(schema)
    needed: dict[str, tuple[str, ...]] = {"topic": ("string",), "partition": ("int",), "offset": ("bigint",)}
    more = {"timestamp": ("timestamp",), "headers": (HEADERS_TYPE,)}
    needed |= {name: types for name, types in more.items() if name in found} | {corrupt_column: ()}
    check_columns(found, needed, "Making dead letters", _HOW_TO_READ)
    fields = column_types(schema[corrupt_column].dataType)
    check_columns(
        {f"{corrupt_column}.{name}": found for name, found in fields.items()},
        {f"{corrupt_column}.{name}": (expected,) for name, expected in _FIELDS.items()},
        "Making dead letters",
        _HOW_TO_READ,
    )
    return names


def _letter(df: DataFrame, topic: str, names: ErrorHeaders, corrupt_column: str) -> str:
    """Return SQL for the columns of a dead letter, as a struct."""
    corrupt = quoted(corrupt_column)
    origin = names.origin(timestamp="timestamp" in df.columns)
    given = f"coalesce(`headers`, {NO_HEADERS})" if "headers" in df.columns else NO_HEADERS
    all_headers = f"concat({names.without(given)}, {origin}, {names.fault(corrupt)})"
    if "headers" in df.columns:
        again = f"concat({names.without_fault(given)}, {names.fault(corrupt)})"
        all_headers = f"IF({names.has_origin(given)}, {again}, {all_headers})"
    values = {
        "topic": text(topic),
        "key": f"{corrupt}.`rawKey`",
        "value": f"{corrupt}.`rawValue`",
        "headers": f"CAST({all_headers} AS {HEADERS_TYPE})",
    }
    return f"named_struct({', '.join(f'{chr(39)}{name}{chr(39)}, {value}' for name, value in values.items())})"
