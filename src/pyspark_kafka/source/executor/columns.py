"""The columns of the source, and how decoded records become Arrow batches of them. Pure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.records import Decoded

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

SOURCE_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        # Never null; saying so spares the JVM its null checks.
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("headers", pa.list_(pa.field("element", _HEADER))),
    ]
)
"""All columns, in Spark's order. `headers` is there only with `includeHeaders`.

Source: Spark `KafkaRecordToRowConverter`, which declares every column nullable.
"""

# The times of this number of rows of a batch are looked at.
_SAMPLED = 4
_SAME_FOR_A_PARTITION = ("topic", "partition")


def source_schema(*, include_headers: bool, typed: Sequence[pa.Field] = ()) -> pa.Schema:
    """Return the schema of a read of all columns.

    Args:
        include_headers: whether there are headers.
        typed: the columns that are made of keys and values. Those of a name that there is stand in its place, others
            behind.
    """
    made = {field.name: field for field in typed}
    fields = [made.pop(field.name, field) for field in SOURCE_SCHEMA if include_headers or field.name != "headers"]
    return pa.schema([*fields, *made.values()])


def check_asked_columns(asked: pa.Schema, known: pa.Schema, typed: Collection[str] = ()) -> None:
    """Check a schema that the user gave: a subset of the source's columns, in any order, with their types.

    Args:
        asked: the schema.
        known: the source's.
        typed: the columns whose type is not checked here: keys and values that have a format.

    Raises:
        SchemaError: a column does not exist, is asked for twice, or has another type; all such columns are named.
    """
    problems: list[str] = []
    for field in asked:
        name, data_type = field.name, field.type
        if name == "headers" and name not in known.names:
            problems.append("column 'headers' needs option 'includeHeaders' set to true")
        elif name not in known.names:
            problems.append(f"there is no column '{name}'")
        elif name not in typed and not _same_type(data_type, known.field(name).type):
            problems.append(f"column '{name}' is {known.field(name).type}, not {data_type}")
    names = asked.names
    problems += [f"column '{name}' is asked for twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if problems:
        raise SchemaError(
            f"The schema given to the reader does not fit: {'; '.join(problems)}. "
            f"The source has the columns {', '.join(known.names)}.",
            condition="SCHEMA_MISMATCH.SOURCE",
            hint="Name a subset of these columns with their own types, in any order, or set no schema.",
        )


def _same_type(asked: pa.DataType, known: pa.DataType) -> bool:
    if pa.types.is_timestamp(known):
        return bool(pa.types.is_timestamp(asked) and asked.tz is not None)
    if pa.types.is_list(known) and pa.types.is_list(asked):
        return _named_types(asked.value_type) == _named_types(known.value_type)
    if pa.types.is_struct(known):
        # The column of corrupt records, of which a query may read some fields.
        return pa.types.is_struct(asked) and set(_named_types(asked)) <= set(_named_types(known))
    return bool(asked == known)


def _named_types(struct: pa.DataType) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in struct] if pa.types.is_struct(struct) else []


class BatchAssembler:
    """Puts decoded records and the two columns of the partition together in the requested order.

    Runs on: executor, one per reader.

    Shape: batches of exactly this schema, so that the engine's check of the first batch holds for all.
    """

    def __init__(self, topic_partition: TopicPartition, schema: pa.Schema) -> None:
        self._schema = schema
        self._constants = {"topic": _one_text(topic_partition.topic), "partition": _one_int(topic_partition.partition)}
        self._repeated: dict[str, pa.Array] = {}
        self.decoded_columns = tuple(name for name in schema.names if name not in _SAME_FOR_A_PARTITION)

    def assemble(self, decoded: Decoded) -> pa.RecordBatch:
        """Return one batch with as many rows as `decoded` has records."""
        rows = decoded.batch.num_rows
        if not self._schema.names:
            # Arrow counts the rows of a batch by its columns; the codec's batch without columns knows its rows.
            return decoded.batch
        columns = []
        for field in self._schema:
            if field.name in self._constants:
                columns.append(self._repeat(field.name, rows))
                continue
            column = decoded.batch.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _repeat(self, name: str, rows: int) -> pa.Array:
        # Grown and sliced: batches of one reader are mostly of one size.
        known = self._repeated.get(name)
        if known is None or len(known) < rows:
            known = self._repeated[name] = self._constants[name].take(_zeros(rows))
        return known.slice(0, rows)


def sample_times(timestamps: pa.Array) -> tuple[float, ...]:
    """Return the times of some evenly spaced rows in ms since 1970, of a column of `SOURCE_SCHEMA`: all of few rows."""
    rows = len(timestamps)
    # The numbers themselves: an Arrow scalar is an object, and this runs for each batch.
    numbers = memoryview(timestamps.buffers()[1]).cast("q")
    first = timestamps.offset
    if rows <= _SAMPLED:
        return tuple(number / 1000 for number in numbers[first : first + rows])
    last = rows - 1
    return tuple(numbers[first + last * each // (_SAMPLED - 1)] / 1000 for each in range(_SAMPLED))


# Columns of one value are built from their bytes. To build anything from a Python object, Arrow imports pandas if it is
# installed, and that takes longer than the whole rest of a worker's first read.


def _one_text(text: str) -> pa.Array:
    data = text.encode()
    return pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(struct.pack("=ii", 0, len(data))), pa.py_buffer(data)]
    )


def _one_int(number: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(struct.pack("=i", number))])


def _zeros(rows: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
