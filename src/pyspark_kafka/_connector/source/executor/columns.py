"""The columns of the source, and how decoded records become Arrow batches of them. Pure."""

from __future__ import annotations

import struct
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka.records import Decoded

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

SOURCE_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        # Never null; declared so, the JVM needs no null checks.
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

# The number of sampled times per batch.
_SAMPLED = 4
_TEXT, _INT32 = pa.string(), pa.int32()
# Places of the columns that the codec does not decode.
_TOPIC, _PARTITION = -1, -2
_OF_THE_PARTITION = {"topic": _TOPIC, "partition": _PARTITION}


def source_schema(*, include_headers: bool, typed: Sequence[pa.Field] = ()) -> pa.Schema:
    """Return the schema of a read with all columns.

    Args:
        include_headers: whether it has the column of headers.
        typed: the typed columns of keys and values. They replace columns of the same name; others are appended.
    """
    made = {field.name: field for field in typed}
    fields = [made.pop(field.name, field) for field in SOURCE_SCHEMA if include_headers or field.name != "headers"]
    return pa.schema([*fields, *made.values()])


def check_asked_columns(asked: pa.Schema, known: pa.Schema, typed: Collection[str] = ()) -> None:
    """Check a schema that the user gave: a subset of the source's columns, in any order, with their types.

    Args:
        asked: the requested schema.
        known: the schema of the source.
        typed: the columns whose type is not checked here: keys and values with a format.

    Raises:
        SchemaError: a column does not exist, is requested twice, or has another type; all such columns are named.
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

    Runs on: executor, one for each topic-partition of a reader. It keeps no columns: a reader may have thousands.

    Shape: batches of exactly this schema, so that the engine's check of the first batch holds for all.
    """

    __slots__ = ("_places", "_schema", "_topic_partition", "decoded_columns")

    def __init__(self, topic_partition: TopicPartition, schema: pa.Schema) -> None:
        self._topic_partition = topic_partition
        self._schema = schema
        self.decoded_columns = tuple(name for name in schema.names if name not in _OF_THE_PARTITION)
        self._places: tuple[tuple[int, pa.DataType | None], ...] = ()

    def assemble(self, decoded: Decoded) -> pa.RecordBatch:
        """Return one batch with as many rows as `decoded` has records.

        Args:
            decoded: records with `decoded_columns`; others may follow these.
        """
        batch = decoded.batch
        if not self._schema.names:
            # Arrow counts the rows of a batch by its columns; the codec's batch without columns knows its rows.
            return batch
        if not self._places:
            self._places = _places(self._schema, batch.schema)
        rows = batch.num_rows
        columns = []
        for position, cast_to in self._places:
            if position == _TOPIC:
                # For at most twice the number of rows, so that batches of all sizes share few columns.
                ends, data = _repeated_text(self._topic_partition.topic, 1 << (rows - 1).bit_length() if rows else 0)
                columns.append(pa.Array.from_buffers(_TEXT, rows, [None, ends, data], 0))
            elif position == _PARTITION:
                numbers = struct.pack("=i", self._topic_partition.partition) * rows
                columns.append(pa.Array.from_buffers(_INT32, rows, [None, pa.py_buffer(numbers)], 0))
            else:
                column = batch.column(position)
                columns.append(column if cast_to is None else column.cast(cast_to))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _places(schema: pa.Schema, decoded: pa.Schema) -> tuple[tuple[int, pa.DataType | None], ...]:
    """Return for each column its index in the decoded ones, and the type to cast it to; None without a cast."""
    places: list[tuple[int, pa.DataType | None]] = []
    for field in schema:
        if field.name in _OF_THE_PARTITION:
            places.append((_OF_THE_PARTITION[field.name], None))
        else:
            place = decoded.get_field_index(field.name)
            places.append((place, None if decoded.field(place).type == field.type else field.type))
    return tuple(places)


# Columns of one value are built from their bytes. To build anything from a Python object, Arrow imports pandas if it is
# installed, and that takes longer than the whole rest of a worker's first read.


@lru_cache(maxsize=4)
def _repeated_text(text: str, rows: int) -> tuple[pa.Buffer, pa.Buffer]:
    """Return ends and data of a column with one text."""
    data = text.encode()
    return pa.py_buffer(array("i", range(0, len(data) * rows + 1, len(data)))), pa.py_buffer(data * rows)


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
