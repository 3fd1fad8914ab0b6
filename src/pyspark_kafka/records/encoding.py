"""Arrow columns to record batches, and what a producer patches into them later.

Rows are written by the kernel; here are the choice of buffers, the batch header and the text of errors.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from pyspark_kafka.errors import RecordError, SchemaError
from pyspark_kafka.records import _variant
from pyspark_kafka.records.arrow_bytes import bytes_column, list_column
from pyspark_kafka.records.batch_header import (
    ATTRIBUTES_START,
    CRC_START,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    PRODUCER_START,
    TRANSACTIONAL,
)
from pyspark_kafka.records.compression import CODEC_NAMES, compress

if TYPE_CHECKING:
    from typing_extensions import Buffer

_MAX_BATCH_BYTES = 2**31 - 1
# The most that a record takes beyond its bytes: length, attributes, time delta, offset delta, three lengths or counts.
_RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5
_HEADER_OVERHEAD = 5 + 5
# Of this number of rows, Python finds the extremes sooner than Arrow does.
_FEW = 256
_START = struct.Struct(">qiibI")
_COVERED = struct.Struct(">hiqqqhii")
# Beyond this many seconds from 1970, milliseconds do not fit in 64 bits.
_MAX_SECONDS = (2**63 - 1) // 1000


class PreparedHeaders:
    """Headers that many batches of rows have, made ready once. Immutable; any number of `RecordColumns` may use it.

    Runs on: executor.

    Args:
        headers: array of list<struct<key, value>>, not empty, without null lists; each row has as many bytes of headers
            as any other.

    Attributes:
        num_rows: how many rows can have them.
        columns: of the kernel: rows, keys, values.
        data_bytes: of one row's headers.
        max_bytes: an upper bound of the encoded size of one row's headers.

    Raises:
        SchemaError, RecordError: as `RecordColumns`.
    """

    __slots__ = ("columns", "data_bytes", "max_bytes", "num_rows")

    def __init__(self, headers: pa.Array[Any]) -> None:
        rows, keys, values, count, size = list_column(headers)
        self.num_rows = len(headers)
        self.columns = rows, keys, values
        self.data_bytes = size // self.num_rows
        self.max_bytes = (size + count * _HEADER_OVERHEAD) // self.num_rows


class RecordColumns:
    """Columns of records made ready for encoding: buffers of `key`, `value`, `headers` and `timestamp`.

    Build one a batch of rows and encode any number of selections from it. Not to be shared by threads: it owns the
    working space of its encodings.

    Runs on: executor.

    Args:
        key: string or binary array of any kind; no keys when None.
        value: likewise.
        headers: array of list<struct<key, value>>; no headers when None. A null list means no headers.
        timestamps: int64 milliseconds or an Arrow timestamp; a null takes the constant.
        timestamp_ms: the timestamp of all rows when there is no column; the current time when None.
        num_rows: how many rows there are, for when no column says it.
        prepared: headers of all rows, for when there is no array of them; for at least as many rows.

    Attributes:
        num_rows: how many rows there are.
        data_bytes: of keys, values and headers together.
        max_bytes: an upper bound of the encoded size of all rows together.

    Raises:
        SchemaError: a column has a type that cannot be sent, or columns differ in length.
        RecordError: a header key is null.
    """

    def __init__(
        self,
        key: pa.Array[Any] | None,
        value: pa.Array[Any] | None,
        *,
        headers: pa.Array[Any] | None = None,
        timestamps: pa.Array[Any] | None = None,
        timestamp_ms: int | None = None,
        num_rows: int | None = None,
        prepared: PreparedHeaders | None = None,
    ) -> None:
        kernel = _variant.kernel.writing
        lengths = {len(array) for array in (key, value, headers, timestamps) if array is not None}
        self.num_rows = num_rows if num_rows is not None else min(lengths, default=0)
        if lengths and lengths != {self.num_rows}:
            raise SchemaError("columns of records differ in length", condition="COLUMN_LENGTHS_DIFFER")
        keys, key_bytes = bytes_column(key, "key")
        values, value_bytes = bytes_column(value, "value")
        self._encoder = kernel.RowEncoder(keys, values)
        self.data_bytes = key_bytes + value_bytes
        self.max_bytes = self.num_rows * _RECORD_OVERHEAD + self.data_bytes
        if headers is not None and headers.null_count < len(headers):
            rows, header_keys, header_values, count, header_bytes = list_column(headers)
            self._encoder.set_headers(rows, header_keys, header_values)
            self.data_bytes += header_bytes
            self.max_bytes += header_bytes + count * _HEADER_OVERHEAD
        if prepared is not None:
            # The kernel looks at as many rows as it encodes, and does not compare lengths.
            if prepared.num_rows < self.num_rows:
                raise ValueError(f"headers of {prepared.num_rows} rows are too few for {self.num_rows} rows")
            self._encoder.set_headers(*prepared.columns)
            self.data_bytes += self.num_rows * prepared.data_bytes
            self.max_bytes += self.num_rows * prepared.max_bytes
        constant = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        self._encoder.set_constant_time(constant)
        if timestamps is not None:
            times = _milliseconds(timestamps, constant)
            self._encoder.set_times(memoryview(times.buffers()[1] or bytes(8)).cast("B").cast("q"), times.offset)
        self._scratch = memoryview(bytearray())
        self.checked: memoryview | None = None

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch, *, timestamp_ms: int | None = None) -> RecordColumns:
        """Take the columns named key, value, headers and timestamp of a batch; the others are not looked at."""

        def column(name: str) -> pa.Array[Any] | None:
            return batch.column(name) if name in batch.schema.names else None

        return cls(
            column("key"),
            column("value"),
            headers=column("headers"),
            timestamps=column("timestamp"),
            timestamp_ms=timestamp_ms,
            num_rows=batch.num_rows,
        )

    def check(self, indices: memoryview) -> None:
        """Refuse row numbers outside the columns: the kernel trusts them. They are `checked` then.

        Raises:
            ValueError: there is one.
        """
        if len(indices):
            lowest, highest = int32_extremes(indices)
            if lowest < 0 or highest >= self.num_rows:
                raise ValueError(f"indices lie outside the {self.num_rows} rows")
        self.checked = indices

    def write(self, indices: memoryview | None, start: int, stop: int, capacity: int) -> tuple[memoryview, Any]:
        """Write rows into the working space while they fit in `capacity` bytes; return the bytes and the counts."""
        room = min(capacity, self.max_bytes)
        slack = int(_variant.kernel.writing.SLACK)
        if len(self._scratch) < room + slack:
            self._scratch = memoryview(pa.allocate_buffer(room + slack)).cast("B")
        self._encoder.write(self._scratch, room, indices, start, stop)
        result = self._encoder.result()
        return self._scratch[: result[1]], result


def int32_extremes(numbers: memoryview) -> tuple[int, int]:
    """Return the lowest and the highest of int32 numbers, of which there must be one."""
    if len(numbers) <= _FEW:
        return min(numbers), max(numbers)
    found = pc.min_max(pa.Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)], 0))
    return found["min"].as_py(), found["max"].as_py()


def _milliseconds(times: Any, constant: int) -> Any:
    kind = times.type
    if pa.types.is_timestamp(kind):
        numbers = times.view(pa.int64())
        if kind.unit == "s":
            _refuse_times_beyond(numbers, _MAX_SECONDS)
            numbers = pc.multiply(numbers, pa.scalar(1000, pa.int64()))
        elif kind.unit != "ms":
            numbers = _floor_divide(numbers, 1000 if kind.unit == "us" else 1_000_000)
    elif pa.types.is_integer(kind):
        if kind == pa.uint64():
            _refuse_times_beyond(times, 2**63 - 1)
        numbers = times.cast(pa.int64())
    else:
        raise SchemaError(
            f"column 'timestamp' has type {kind}; expected a timestamp, or int64 milliseconds. Nothing was sent.",
            condition="COLUMN_TYPE",
            hint="Cast column 'timestamp'.",
            parameters={"column": "timestamp", "type": kind},
        )
    return numbers.fill_null(constant) if numbers.null_count else numbers


def _refuse_times_beyond(times: Any, limit: int) -> None:
    bounds = pc.min_max(times).as_py()
    if bounds["min"] is None or -limit <= bounds["min"] <= bounds["max"] <= limit:
        return
    row = next(row for row, time in enumerate(times.to_pylist()) if time is not None and abs(time) > limit)
    raise RecordError(
        f"row {row} has a timestamp that does not fit in 64 bits as milliseconds ({times[row].as_py()} as "
        f"{times.type}). The row was not sent.",
        condition="TIMESTAMP_OUT_OF_RANGE",
        hint="Correct the row's timestamp, or set null for the time of writing.",
        parameters={"row": row},
    )


def _floor_divide(numbers: Any, divisor: int) -> Any:
    """Divide towards the past, as Java's floorDiv: integer division alone goes towards 1970."""
    by = pa.scalar(divisor, pa.int64())
    quotient: Any = pc.divide(numbers, by)
    too_late = pc.greater(pc.multiply(quotient, by), numbers)
    return pc.subtract(quotient, too_late.cast(pa.int64()))


def encode_rows(
    columns: RecordColumns,
    indices: Buffer | None,
    start: int,
    stop: int,
    *,
    max_batch_bytes: int,
    compression: str = "none",
    compression_level: int | None = None,
) -> tuple[bytearray, int]:
    """Encode as many rows as fit into one record batch.

    Rows are `indices[start:stop]`, or `start` to `stop` themselves when there are no indices. The batch has base
    offset 0, deltas without holes, and no producer: `patch_header` sets one.

    Runs on: executor; does not block.

    Args:
        columns: the rows.
        indices: int32 row numbers, a buffer; an int32 view that is given again is taken to be unchanged.
        start: the first position.
        stop: the position after the last.
        max_batch_bytes: at most this number of bytes in a batch before compression, header included.
        compression: one of none, gzip, snappy, lz4, zstd.
        compression_level: the codec's level; None for its usual one.

    Returns:
        The batch's bytes, and how many positions were consumed: at least one, unless `start == stop`.

    Raises:
        RecordError: the first row alone exceeds `max_batch_bytes`; the text names its row.
        ValueError: an unknown codec, or positions outside the rows.
    """
    if compression not in CODEC_NAMES:
        raise ValueError(f"unknown compression {compression!r}; known are {', '.join(CODEC_NAMES)}")
    view = None if indices is None else _int32_view(indices)
    if not 0 <= start <= stop <= (columns.num_rows if view is None else len(view)):
        raise ValueError(f"positions [{start}, {stop}) lie outside the rows")
    if view is not None and view is not columns.checked:
        columns.check(view)
    capacity = min(max_batch_bytes, _MAX_BATCH_BYTES) - HEADER_BYTES
    section, (rows, _, base_time, max_time, needed) = columns.write(view, start, stop, capacity)
    if rows == 0 and start < stop:
        row = start if view is None else view[start]
        raise RecordError(
            f"row {row} needs {needed + HEADER_BYTES} bytes as a record, more than the {max_batch_bytes} allowed for "
            "a batch. The row was not sent.",
            condition="RECORD_TOO_LARGE",
            hint="Raise kafka.max.request.size, and the topic's max.message.bytes, or send smaller values.",
            parameters={"row": row, "bytes": needed + HEADER_BYTES, "max_batch_bytes": max_batch_bytes},
        )
    encoded = _frame(section, rows, (base_time, max_time), compression=compression, level=compression_level)
    return encoded, rows


def encode(
    batch: pa.RecordBatch,
    *,
    compression: str = "none",
    compression_level: int | None = None,
    timestamp_ms: int | None = None,
    base_offset: int = 0,
) -> bytes:
    """Encode all rows of an Arrow batch into one record batch; nothing for a batch without rows.

    Runs on: executor; does not block.

    Args:
        batch: columns key, value, headers, timestamp, each optional; see `RecordColumns`.
        compression: one of none, gzip, snappy, lz4, zstd.
        compression_level: the codec's level; None for its usual one.
        timestamp_ms: the timestamp of all rows when there is no column; the current time when None.
        base_offset: the offset of the first record; brokers want 0 and assign their own.

    Raises:
        RecordError: the rows need more than 2 GiB.
        SchemaError: a column has a type that cannot be sent.
        ValueError: an unknown codec.
    """
    columns = RecordColumns.from_batch(batch, timestamp_ms=timestamp_ms)
    if columns.num_rows == 0:
        return b""
    encoded, rows = encode_rows(
        columns,
        None,
        0,
        columns.num_rows,
        max_batch_bytes=_MAX_BATCH_BYTES,
        compression=compression,
        compression_level=compression_level,
    )
    if rows < columns.num_rows:
        raise RecordError(
            f"{columns.num_rows} rows need more than the 2 GiB of one record batch. Nothing was encoded.",
            condition="BATCH_TOO_LARGE",
            hint="Use encode_rows, which cuts into batches.",
            parameters={"rows": columns.num_rows},
        )
    struct.pack_into(">q", encoded, 0, base_offset)
    return bytes(encoded)


def patch_header(
    batch: bytearray, *, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool = False
) -> None:
    """Write a producer's identity into an encoded batch, in place, and set its checksum right.

    The records are not read again: the checksum follows from the header's change.

    Runs on: executor and driver; does not block.

    Args:
        batch: one record batch, as `encode_rows` gave it.
        producer_id: -1 for none.
        producer_epoch: -1 for none.
        base_sequence: the sequence number of the first record; -1 for none.
        transactional: whether the batch is part of a transaction.
    """
    old = bytes(batch[CRC_START:HEADER_BYTES])
    (crc,) = struct.unpack_from(">I", batch, CRC_START - 4)
    (attributes,) = struct.unpack_from(">h", batch, ATTRIBUTES_START)
    attributes = attributes | TRANSACTIONAL if transactional else attributes & ~TRANSACTIONAL
    struct.pack_into(">h", batch, ATTRIBUTES_START, attributes)
    struct.pack_into(">qhi", batch, PRODUCER_START, producer_id, producer_epoch, base_sequence)
    new = bytes(batch[CRC_START:HEADER_BYTES])
    struct.pack_into(">I", batch, CRC_START - 4, _crc_of_new_prefix(crc, old, new, len(batch) - HEADER_BYTES))


def _crc_of_new_prefix(crc: int, old_prefix: bytes, new_prefix: bytes, rest_length: int) -> int:
    """Return the CRC-32C of a buffer after its first bytes were replaced, without reading the `rest_length` others.

    A CRC is linear: two messages of one length differ in their CRC by what the difference of their prefixes becomes
    when `rest_length` zero bytes follow it.
    """
    difference = crc32c(old_prefix) ^ crc32c(new_prefix)
    return crc ^ int(_variant.kernel.writing.shift_crc(difference, rest_length))


def murmur2_partitions(keys: pa.Array[Any], partition_count: int) -> pa.Array[Any]:
    """Return each key's partition as Java's default partitioner chooses it; -1 for a null key.

    Runs on: executor; does not block.

    Shape: int32, as long as `keys`, without nulls; `toPositive(murmur2(key)) % partition_count`.

    Raises:
        SchemaError: keys are neither strings nor binary.
        ValueError: `partition_count` is not positive.

    Source: Java `BuiltInPartitioner.partitionForKey`.
    """
    if not 0 < partition_count < 2**31:
        raise ValueError(f"there cannot be {partition_count} partitions")
    column, _ = bytes_column(keys, "key")
    out = pa.allocate_buffer(4 * len(keys))
    view = memoryview(out).cast("B").cast("i")
    if column is None:
        view[:] = memoryview(b"\xff" * (4 * len(keys))).cast("i")
    elif len(keys):
        _variant.kernel.writing.murmur2_partitions(column, partition_count, view)
    return pa.Array.from_buffers(pa.int32(), len(keys), [None, out], 0)


def group_by_partition(partitions: pa.Array[Any], partition_count: int) -> tuple[memoryview, tuple[int, ...]]:
    """Sort row numbers by their partition, keeping the order of rows inside each.

    Runs on: executor; does not block.

    Returns:
        Row numbers as an int32 view for `encode_rows`, and `partition_count + 1` bounds: partition p has the row
        numbers at positions [bounds[p], bounds[p + 1]).

    Raises:
        RecordError: a row's partition is null or not in [0, partition_count).
        ValueError: `partitions` is not an int32 array.
    """
    if partitions.type != pa.int32():
        raise ValueError(f"partitions have type {partitions.type}, expected int32")
    rows = len(partitions)
    numbers: Any = partitions.fill_null(-1) if partitions.null_count else partitions
    bounds = memoryview(bytearray(8 * (partition_count + 1))).cast("q")
    indices = memoryview(pa.allocate_buffer(4 * rows)).cast("B").cast("i")
    if rows:
        view = memoryview(numbers.buffers()[1]).cast("B").cast("i")[numbers.offset : numbers.offset + rows]
        cursors = memoryview(bytearray(8 * max(partition_count, 1))).cast("q")
        wrong = _variant.kernel.writing.group_by_partition(view, rows, partition_count, indices, bounds, cursors)
        if wrong >= 0:
            raise RecordError(
                f"row {wrong} is for partition {partitions[wrong].as_py()}, but the topic has {partition_count} "
                "partitions, counted from 0. The row was not sent.",
                condition="PARTITION_OUT_OF_RANGE",
                hint="Correct column 'partition', leave it out, or add partitions to the topic.",
                parameters={"row": wrong, "partition": partitions[wrong].as_py(), "partition_count": partition_count},
            )
    return indices, tuple(bounds.tolist())


def _int32_view(indices: Buffer) -> memoryview:
    if isinstance(indices, memoryview) and indices.format == "i":
        return indices  # itself, so that it is recognized as `checked`
    return memoryview(indices).cast("B").cast("i")


def _frame(section: memoryview, rows: int, times: tuple[int, int], *, compression: str, level: int | None) -> bytearray:
    """Put the header before a records section, compressed if requested."""
    codec = CODEC_NAMES.index(compression)
    body = memoryview(compress(compression, section, level)) if codec and rows else section
    if len(body) >= len(section):
        # What does not shrink goes as it is: grown, a full batch would be more than the broker takes.
        codec, body = 0, section
    covered = _COVERED.pack(codec, max(rows - 1, 0), *times, -1, -1, -1, rows)
    # Base offset 0 and leader epoch -1: the broker assigns both. The checksum covers what follows it.
    start = _START.pack(0, HEADER_BYTES - LENGTH_OVERHEAD + len(body), -1, 2, crc32c(body, crc32c(covered)))
    # join allocates without zeroing, which for a batch of a megabyte would cost more than encoding it did.
    return bytearray().join((start, covered, body))
