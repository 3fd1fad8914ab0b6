"""The way back: dead letters as rows that go where they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark_kafka._connector.spark.dead_letters.error_headers import error_headers
from pyspark_kafka._connector.spark.dead_letters.sql import (
    HEADERS_TYPE,
    NO_HEADERS,
    check_columns,
    column_types,
    is_topic,
    text,
)
from pyspark_kafka.errors import OptionError, RecordError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_kafka._connector.spark.dead_letters.error_headers import ErrorHeaders, HeaderStyle

_NEEDED = {
    "topic": ("string",),
    "partition": ("int",),
    "offset": ("bigint",),
    "key": ("binary",),
    "value": ("binary",),
    "headers": (HEADERS_TYPE,),
}
# Where the text of an error has what only a row knows.
_RECORD, _PROBLEM = "<record>", "<problem>"


def redrive(
    df: DataFrame,
    *,
    headers: HeaderStyle = "connect",
    keep_partition: bool = False,
    unknown: Literal["error", "skip", "only"] = "error",
) -> DataFrame:
    """Return dead letters as rows for `format("pyspark_kafka")` that go to the topics that they came from.

    ```python
    dead = spark.read.format("pyspark_kafka").options(**servers, subscribe="orders.dead", includeHeaders="true").load()
    back = pyspark_kafka.redrive(dead).where("topic = 'orders' AND reason = 'SCHEMA_ID_NOT_FOUND'")
    back.write.format("pyspark_kafka").options(**servers).mode("append").save()
    ```

    Dead letters are records of `dead_letters`, of Kafka Connect or of Kafka Streams. Key and value are sent as they
    are, headers without the headers of the fault. Nothing is taken from the topic of dead letters: rows that are
    redriven twice are sent twice. Records that are still bad come back as dead letters, so redrive a batch, and not a
    stream, until the cause is removed.

    Whoever writes to a topic can write these headers too, and so choose where a row is sent: name the topics in
    `.where("topic IN (...)")` if not all writers are trusted.

    Runs on: driver, or the client of Spark Connect; the expressions run in Spark's engine, without Python. Nothing is
    read or written before the result is used.

    Args:
        df: a read of the dead-letter topic, batch or streaming, with option `includeHeaders` and no format.
        headers: whose names the headers of faults have.
        keep_partition: send each record to the partition that it came from, and not to the partition of its key.
        unknown: the handling of unsendable records: records without the name of their original topic,
            records from the topic of dead letters itself, and with `keep_partition` records without a partition.
            `error`: the query fails when it meets one. `skip`: they are left out. `only`: only they are returned, with
            all columns of `df` and a column `problem`, to show or count them.

    Returns:
        Columns `topic`, `key`, `value`, `headers`, and `partition` with `keep_partition`. The sink ignores the others,
        which are for filters: `reason`, `message`, `origin_partition`, `origin_offset`, `dead_topic`,
        `dead_partition`, `dead_offset`, and `dead_timestamp` if `df` has the column `timestamp`.

    Raises:
        SchemaError: columns are missing or have other types.
        OptionError: an argument is not valid.
    """
    names = error_headers(headers)
    if unknown not in ("error", "skip", "only"):
        raise OptionError(
            f"Argument 'unknown' is {unknown!r}, and must be 'error', 'skip' or 'only'. Nothing was read or written.",
            condition="OPTION_INVALID",
            hint='Use "error" to fail, "skip" to omit such records, "only" to select them.',
        )
    types = column_types(df.schema)
    check_columns(
        types,
        _NEEDED,
        "Redriving dead letters",
        'Read the topic of dead letters with .option("includeHeaders", "true"), without valueFormat and keyFormat.',
    )
    problem = _problem(names, with_partition=keep_partition)
    if unknown == "only":
        return df.selectExpr("*", f"{problem} AS problem").where("problem IS NOT NULL")
    if unknown == "skip":
        df = df.where(f"{problem} IS NULL")
    origin = names.value_of("`headers`", "topic")
    failing = f"IF({problem} IS NULL, {origin}, {_refuse(problem)})" if unknown == "error" else origin
    partition = _number(names, "partition", "INT")
    columns = {
        "topic": failing,
        "key": "`key`",
        "value": "`value`",
        "headers": names.without(f"coalesce(`headers`, {NO_HEADERS})"),
        "reason": names.value_of("`headers`", names.reason),
        "message": names.value_of("`headers`", names.message),
        "origin_partition": partition,
        "origin_offset": _number(names, "offset", "BIGINT"),
        "dead_topic": "`topic`",
        "dead_partition": "`partition`",
        "dead_offset": "`offset`",
    }
    if keep_partition:
        columns["partition"] = partition
    if "timestamp" in types:
        columns["dead_timestamp"] = "`timestamp`"
    return df.selectExpr(*(f"{value} AS {name}" for name, value in columns.items()))


def _number(names: ErrorHeaders, name: str, sql_type: str) -> str:
    return f"try_cast({names.value_of('`headers`', name)} AS {sql_type})"


def _problem(names: ErrorHeaders, *, with_partition: bool) -> str:
    """Return SQL for why a row cannot be sent, as the end of a sentence; null if it can."""
    origin = names.value_of("`headers`", "topic")
    cases = [
        (f"coalesce({origin}, '') = ''", f"it has no header '{names.prefix}topic'"),
        (f"NOT {is_topic(origin)}", f"its header '{names.prefix}topic' holds no name of a topic"),
        (f"{origin} = `topic`", f"its header '{names.prefix}topic' names the topic of dead letters itself"),
    ]
    if with_partition:
        number = f"coalesce({_number(names, 'partition', 'INT')}, -1) < 0"
        cases.append((number, f"its header '{names.prefix}partition' is missing or holds no partition"))
    return f"CASE {' '.join(f'WHEN {found} THEN {text(reason)}' for found, reason in cases)} END"


def _refuse(problem: str) -> str:
    """Return SQL that fails with the text of an error."""
    error = RecordError(
        f"The dead letter {_RECORD} cannot be sent back: {_PROBLEM}. It was not sent.",
        condition="DEAD_LETTER_ORIGIN_UNKNOWN",
        hint='Select such records with redrive(..., unknown="only"), and leave them out with unknown="skip".',
    )
    before, _, rest = str(error).partition(_RECORD)
    between, _, after = rest.partition(_PROBLEM)
    record = "`topic`, '-', `partition`, ' at offset ', `offset`"
    return f"raise_error(concat({text(before)}, {record}, {text(between)}, {problem}, {text(after)}))"
