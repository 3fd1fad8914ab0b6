"""The columns a sink takes, and the check of a DataFrame's columns against them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark_kafka._typed.codecs.column_format import ColumnFormat
    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the rows to write.

    Attributes:
        name: its name; names are matched with their case, as Spark does.
        data_type: its Arrow type.
        type_name: its type as the user knows it (`bigint`, `array<int>`), for messages.
    """

    name: str
    data_type: pa.DataType
    type_name: str


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """The positions of the sink's columns in the rows to write; -1 if a column is absent or has no effect.

    Attributes:
        key_format: how the column of keys becomes bytes; None: it is text or bytes, and sent as it is.
        value_format: the same of values.
    """

    value: int
    key: int = -1
    topic: int = -1
    partition: int = -1
    headers: int = -1
    key_format: ColumnFormat | None = None
    value_format: ColumnFormat | None = None

    @property
    def is_typed(self) -> bool:
        """Whether keys or values are encoded before they are sent."""
        return self.key_format is not None or self.value_format is not None

    @property
    def schemas(self) -> Mapping[str, RegisteredSchema]:
        """The schemas that keys and values are encoded with, by column, for reports."""
        sides = {"key": self.key_format, "value": self.value_format}
        return {name: each.schema for name, each in sides.items() if each is not None and each.schema is not None}


def _is_string(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_text_or_binary(data_type: pa.DataType) -> bool:
    return bool(_is_string(data_type) or pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def _is_headers(data_type: pa.DataType) -> bool:
    if not (pa.types.is_list(data_type) or pa.types.is_large_list(data_type)):
        return False
    element = data_type.value_type
    if not pa.types.is_struct(element) or element.num_fields != 2:
        return False
    key, value = element.field(0), element.field(1)
    return bool(
        key.name == "key"
        and _is_string(key.type)
        and value.name == "value"
        and (pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type))
    )


_RULES: tuple[tuple[str, Callable[[pa.DataType], bool], str], ...] = (
    ("topic", _is_string, "string"),
    ("key", _is_text_or_binary, "string or binary"),
    ("value", _is_text_or_binary, "string or binary"),
    ("headers", _is_headers, "array<struct<key:string,value:binary>>"),
    ("partition", pa.types.is_int32, "int"),
)

SINK_COLUMN_NAMES = frozenset(name for name, _, _ in _RULES)
"""The columns that have an effect; Spark's own connector takes the same."""


def find_sink_columns(
    columns: Sequence[Column], *, topic_option: str | None, typed: AbstractSet[str] = frozenset()
) -> SinkColumns:
    """Find the sink's columns among the columns of a DataFrame, and check their types.

    With the option `topic` set, a column `topic` is neither used nor checked. Other columns have no effect.

    Args:
        columns: the columns of the DataFrame.
        topic_option: the topic of every row; None: each row names its own.
        typed: `key`, `value` or both, which are of any type here, and must be there.

    Raises:
        SchemaError: a needed column is missing or a column's type cannot be written; all such are named.

    Source: Spark `KafkaWriter.validateQuery`.
    """
    by_name = {column.name: (position, column) for position, column in enumerate(columns)}
    if topic_option is not None:
        by_name.pop("topic", None)
    problems = [
        f"column '{name}' is {by_name[name][1].type_name} and must be {expected}"
        for name, fits, expected in _RULES
        if name in by_name and name not in typed and not fits(by_name[name][1].data_type)
    ]
    problems += [
        f"column '{name}' is {by_name[name][1].type_name}, or has parts of a type, that has no form outside of Spark"
        for name in sorted(typed)
        if name in by_name and pa.types.is_null(by_name[name][1].data_type)
    ]
    if "key" in typed and "key" not in by_name:
        problems.append("the column 'key' is missing, for which there is the option 'keyFormat'")
    if "value" not in by_name:
        problems.append("the required column 'value' is missing")
    if topic_option is None and "topic" not in by_name:
        problems.append("no topic is given: there is neither the option 'topic' nor a column 'topic'")
    if problems:
        found = ", ".join(f"{column.name} {column.type_name}" for column in columns) or "none"
        raise SchemaError(
            f"The DataFrame cannot be written to Kafka: {'; '.join(problems)}. Its columns: {found}. "
            "Nothing was written.",
            condition="SCHEMA_MISMATCH.SINK",
            hint="Select the columns topic (string), key and value (string or binary), partition (int), headers "
            '(array<struct<key:string,value:binary>>), e.g. df.selectExpr("CAST(id AS STRING) AS key", '
            '"to_json(struct(*)) AS value"), and name the topic with .option("topic", …).',
        )
    positions = {name: by_name[name][0] if name in by_name else -1 for name, _, _ in _RULES}
    return SinkColumns(
        positions["value"], positions["key"], positions["topic"], positions["partition"], positions["headers"]
    )
