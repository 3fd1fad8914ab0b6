"""Record batches to Arrow: the walk over batches, what a reader may see of them, and the cutting into pieces.

Bytes are read by the kernel, buffers are held by pieces.py; here is the order of things and the text of errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from crc32c import crc32c

from pyspark_kafka.errors import CorruptRecordsError, RecordError
from pyspark_kafka.records import _variant
from pyspark_kafka.records.abort_filter import AbortFilter
from pyspark_kafka.records.batch_header import (
    ATTRIBUTES_START,
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAX_OFFSET,
    MIN_RECORD_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    HeaderWalk,
    corrupt,
    scan,
)
from pyspark_kafka.records.compression import (
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    CodecError,
    Decompressor,
    translate,
)
from pyspark_kafka.records.pieces import COLUMN_NAMES, MAX_DATA_BYTES, Piece, record_schema

DEFAULT_TARGET_BYTES = 1 << 20
DEFAULT_TARGET_ROWS = 10_000
# `decode` cuts into pieces of this many rows too, since record counts are not to be trusted with an allocation.
_WHOLE_ROWS = 1 << 20

# Beyond this many milliseconds from 1970, microseconds do not fit in 64 bits.
_MAX_TIME_MS = (2**63 - 1) // 1000
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class Decoded(NamedTuple):
    """Decoded records and how far they reach.

    Attributes:
        batch: the visible records, in offset order, with the requested columns.
        next_offset: the position after them: where the next read begins.
    """

    batch: pa.RecordBatch
    next_offset: int


def decode(
    records: bytes | bytearray | memoryview,
    *,
    start_offset: int,
    end_offset: int | None = None,
    isolation_level: str = "read_uncommitted",
    aborted_transactions: Iterable[tuple[int, int]] = (),
    columns: Sequence[str] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    check_crcs: bool = True,
) -> Decoded:
    """Decode all complete batches of a fetch response into one Arrow batch.

    As `iter_decode`, which bounds memory and should be preferred for responses of any size.

    Runs on: executor; does not block.

    Shape: see `iter_decode`; one batch, maybe of zero rows. `next_offset` is `start_offset` when nothing was reached.

    Raises:
        CorruptRecordsError: as `iter_decode`.
        RecordError: as `iter_decode`; also when keys or values exceed the 2 GiB of a binary column.
    """
    names = COLUMN_NAMES if columns is None else tuple(columns)
    # Without columns rows take no memory, and pieces without columns could not be put together.
    target_rows = min(max(scan(records, start_offset).records, 1), _WHOLE_ROWS if names else 2**62)
    pieces = list(
        iter_decode(
            records,
            start_offset=start_offset,
            end_offset=end_offset,
            isolation_level=isolation_level,
            aborted_transactions=aborted_transactions,
            columns=names,
            max_decompressed_bytes=max_decompressed_bytes,
            check_crcs=check_crcs,
            target_bytes=MAX_DATA_BYTES,
            target_rows=target_rows,
        )
    )
    if not pieces:
        return Decoded(Piece(names, 1, 1).to_batch(), start_offset)
    if len(pieces) == 1:
        return pieces[0]
    whole = pa.Table.from_batches([piece.batch for piece in pieces]).combine_chunks().to_batches()
    if len(whole) != 1:
        raise RecordError(
            f"the records from offset {start_offset} on hold more than 2 GiB of keys or values, which one Arrow batch "
            "cannot hold. Nothing was emitted.",
            condition="BATCH_TOO_LARGE",
            hint="Use iter_decode, which returns several pieces.",
            parameters={"start_offset": start_offset},
        )
    return Decoded(whole[0], pieces[-1].next_offset)


def iter_decode(
    records: bytes | bytearray | memoryview,
    *,
    start_offset: int,
    end_offset: int | None = None,
    isolation_level: str = "read_uncommitted",
    aborted_transactions: Iterable[tuple[int, int]] = (),
    columns: Sequence[str] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    check_crcs: bool = True,
    target_bytes: int = DEFAULT_TARGET_BYTES,
    target_rows: int = DEFAULT_TARGET_ROWS,
) -> Iterator[Decoded]:
    """Decode the complete batches of a fetch response piece by piece.

    Visible are records in `[start_offset, end_offset)` that are not control records and, for read_committed, not part
    of an aborted transaction. A cut-off last batch is left out without an error. `next_offset` of the last piece comes
    from the last batch's header, not from its records, and is at most `end_offset`; nothing is given at all when no
    batch reached beyond `start_offset`.

    Runs on: executor; does not block. Holds one decompressed batch and one piece.

    Shape: the requested columns, in that order: key binary, value binary, offset int64 not null, timestamp
    timestamp[us, UTC] not null, timestampType int32 not null (0 create, 1 log append), headers
    list<struct<key: string not null, value: binary>>. A record without headers has null headers. A piece ends at about
    `target_bytes` of data or at `target_rows`; only the last may have no rows.

    Args:
        records: the record bytes of one partition, as fetched.
        start_offset: the first offset wanted; earlier records are dropped.
        end_offset: the first offset not wanted; None for no end.
        isolation_level: `read_uncommitted` or `read_committed`.
        aborted_transactions: (producer id, first offset) pairs, as the response lists them; used for read_committed.
        columns: names of columns; all when None.
        max_decompressed_bytes: at most this number of bytes per batch after decompression.
        check_crcs: whether to verify checksums.
        target_bytes: about how many bytes of keys, values and headers make a piece.
        target_rows: at most this number of rows in a piece.

    Raises:
        CorruptRecordsError: a checksum is wrong, bytes are malformed, a batch is too large, or its format is old.
        RecordError: a requested timestamp does not fit in microseconds.
        ValueError: an unknown column or isolation level.

    Source: docs/internals/fetch-rules.md, R1 to R13; Java `DefaultRecordBatch`, `CompletedFetch`.
    """
    names = COLUMN_NAMES if columns is None else tuple(columns)
    record_schema(names)
    if isolation_level not in {"read_uncommitted", "read_committed"}:
        raise ValueError(f"unknown isolation level {isolation_level!r}")
    abort_filter = AbortFilter(aborted_transactions) if isolation_level == "read_committed" else None
    decoding = _Decoding(
        memoryview(records).cast("B"),
        start_offset=start_offset,
        end_offset=MAX_OFFSET if end_offset is None else end_offset,
        abort_filter=abort_filter,
        columns=names,
        max_decompressed_bytes=max_decompressed_bytes,
        target_bytes=target_bytes,
        target_rows=max(target_rows, 1),
    )
    return decoding.run(check_crcs=check_crcs)


class _Decoding:
    """One pass over one response."""

    def __init__(
        self,
        data: memoryview,
        *,
        start_offset: int,
        end_offset: int,
        abort_filter: AbortFilter | None,
        columns: tuple[str, ...],
        max_decompressed_bytes: int,
        target_bytes: int,
        target_rows: int,
    ) -> None:
        self._data = data
        self._start_offset = start_offset
        self._end_offset = end_offset
        self._abort_filter = abort_filter
        self._columns = columns
        self._with_time = "timestamp" in columns
        self._max_decompressed_bytes = max_decompressed_bytes
        self._decompressor: Decompressor | None = None
        self._target_bytes = max(target_bytes, 1)
        self._target_rows = target_rows
        self._reader = _variant.kernel.reading.SectionReader()
        self._source: memoryview | None = None
        self._piece: Piece | None = None
        # How many fit into the piece.
        self._rows = 0
        self._position = start_offset

    def run(self, *, check_crcs: bool) -> Iterator[Decoded]:
        given = self._start_offset
        end_offset = self._end_offset
        if given >= end_offset:
            return
        kernel = _variant.kernel.reading
        walk = HeaderWalk(self._data, check_crcs=check_crcs, stop_at=end_offset)
        while True:
            # The usual case is the kernel's: batches may be small, and each step here costs as much as some records.
            status = self._read_batches(walk, crc32c if check_crcs else None)
            if walk.at == len(self._data):
                break
            header = walk.next(is_verified=status != kernel.OTHER)
            if header is None:
                break
            if status == kernel.OTHER:
                status = kernel.DONE
                if self._is_visible(header):
                    self._open(header)
                    status = self._fill(header.record_count)
            if status != kernel.DONE:
                for decoded in self._overflow(header, status):
                    given = decoded.next_offset
                    yield decoded
            self._position = max(self._position, min(header.last_offset + 1, end_offset))
        if walk.reached_stop:
            self._position = end_offset
        if self._position > given or (self._piece is not None and self._piece.rows):
            yield self._take()

    def _read_batches(self, walk: HeaderWalk, crc32c: Any) -> int:
        """Read the batches that need nothing but to be read, and return the kernel's status."""
        data, at, abort_filter = self._data, walk.at, self._abort_filter
        if len(data) - at < HEADER_BYTES or data[at + ATTRIBUTES_START + 1] & CODEC_MASK:
            return int(_variant.kernel.reading.OTHER)
        if abort_filter is not None and abort_filter.hides_any:
            return int(_variant.kernel.reading.OTHER)
        if self._source is not data:
            self._reader.set_source(data, len(data))
            self._source = data
        piece = self._piece or self._begin_piece(len(data) // MIN_RECORD_BYTES + 1)
        status, walk.at, walk.floor = self._reader.read_batches(
            piece.filled, at, walk.floor, self._start_offset, self._end_offset, self._rows, self._target_bytes,
            self._with_time, abort_filter is None, crc32c,
        )  # fmt: skip
        self._position = max(self._position, min(walk.floor + 1, self._end_offset))
        return int(status)

    def _is_visible(self, header: BatchHeader) -> bool:
        """Decide by the header, and note control records; false also for what lies below the position."""
        abort_filter = self._abort_filter
        if abort_filter is not None and header.producer_id >= 0:
            abort_filter.enter_batch(header.last_offset)
        if header.attributes & CONTROL:
            if abort_filter is not None and header.record_count:
                abort_filter.end_transaction(header.producer_id, self._marker_type(header))
            return False
        if header.last_offset < self._start_offset or not header.record_count:
            return False
        return not (
            abort_filter is not None and header.attributes & TRANSACTIONAL and abort_filter.hides(header.producer_id)
        )

    def _open(self, header: BatchHeader, *, whole: bool = False) -> None:
        """Point the reader at the batch's records, decompressed if they need to be; `whole` ignores the range."""
        start, end, base, last_offset, _, attributes, last_delta, base_time, max_time, _, _, _, count = header
        start += HEADER_BYTES
        codec = attributes & CODEC_MASK
        source = self._data
        if codec:
            if self._decompressor is None:
                self._decompressor = Decompressor(self._max_decompressed_bytes)
            try:
                source = self._decompressor.decompress(codec, source[start:end])
            except CodecError as error:
                raise translate(error, base, self._max_decompressed_bytes, header.start) from error
            start, end = 0, len(source)
        if source is not self._source:
            self._reader.set_source(source, len(source))
            self._source = source
        low = self._start_offset - base if base < self._start_offset and not whole else 0
        high = self._end_offset - base if last_offset >= self._end_offset and not whole else last_delta + 1
        log_append = attributes & LOG_APPEND_TIME
        if log_append:
            base_time = max_time
        time_low, time_high = _INT64_MIN, _INT64_MAX
        if self._with_time and not whole:
            time_low, time_high = _time_bounds(base_time, log_append=bool(log_append))
        self._reader.open(
            start, end, count, base, last_delta, low, high, base_time, time_low, time_high, bool(log_append)
        )

    def _fill(self, record_count: int) -> int:
        """Read records of the open batch into the piece, and return the kernel's status."""
        # A record has seven bytes or more, so a row for each byte is room for the rest of the response, too, unless it
        # is compressed well: that takes another piece.
        piece = self._piece or self._begin_piece(max(record_count, len(self._data)))
        status: int = self._reader.read(piece.filled, self._rows, self._target_bytes)
        return status

    def _begin_piece(self, rows: int) -> Piece:
        # Guesses; the response bounds them when small, and data that is larger when decompressed makes it grow.
        self._rows = min(self._target_rows, rows)
        self._piece = Piece(self._columns, self._rows, min(self._target_bytes, 2 * len(self._data)))
        return self._piece

    def _overflow(self, header: BatchHeader, status: int) -> Iterator[Decoded]:
        """Deal with a batch that the piece could not take whole, and return the pieces that become full."""
        kernel = _variant.kernel.reading
        grow = {
            kernel.GROW_KEY: Piece.grow_key,
            kernel.GROW_VALUE: Piece.grow_value,
            kernel.GROW_HEADERS: Piece.grow_headers,
        }
        while status != kernel.DONE:
            _, index, delta, _, needed = where = self._reader.where()
            piece = self._piece
            if status == kernel.CORRUPT or piece is None:
                raise _corrupt_record(where, header)
            if status == kernel.TIME_RANGE:
                raise _time_range(header.base_offset + delta)
            if status == kernel.LIMIT or not self._grown(piece, grow[status], needed):
                if not piece.rows:
                    raise _record_too_large(header.base_offset, index)
                self._position = max(self._position, header.base_offset + delta + 1)
                yield self._take()
            status = self._fill(header.record_count)

    def _grown(self, piece: Piece, grow: Any, needed: int) -> bool:
        """Make room for one more record, unless the piece is nearly full and better given away."""
        if piece.rows and piece.data_bytes + needed > self._target_bytes:
            return False
        return bool(grow(piece, needed))

    def _take(self) -> Decoded:
        piece = self._piece or Piece(self._columns, 1, 1)
        self._piece = None
        return Decoded(piece.to_batch(), self._position)

    def _marker_type(self, header: BatchHeader) -> int:
        """Read the type of a control batch's first record; the others mean nothing."""
        kernel = _variant.kernel.reading
        self._open(header, whole=True)
        body = header.end - header.start
        piece = Piece(("key",), 1, body)
        status = self._reader.read(piece.filled, 1, MAX_DATA_BYTES)
        if status == kernel.GROW_KEY and piece.grow_key(self._reader.where()[4]):
            status = self._reader.read(piece.filled, 1, MAX_DATA_BYTES)
        if status == kernel.CORRUPT:
            raise _corrupt_record(self._reader.where(), header)
        key = piece.to_batch().column(0)[0].as_py()
        if key is None or len(key) < 4:
            raise corrupt("its control record has a key shorter than 4 bytes", header.base_offset, header.start)
        return int.from_bytes(key[2:4], "big", signed=True)


def _time_bounds(base_time: int, *, log_append: bool) -> tuple[int, int]:
    """Return the time deltas whose sum with the base fits in microseconds; an empty range when none does."""
    if log_append:
        return (_INT64_MIN, _INT64_MAX) if -_MAX_TIME_MS <= base_time <= _MAX_TIME_MS else (1, 0)
    return max(-_MAX_TIME_MS - base_time, _INT64_MIN), min(_MAX_TIME_MS - base_time, _INT64_MAX)


def _corrupt_record(where: tuple[int, int, int, int, int], header: BatchHeader) -> CorruptRecordsError:
    kernel = _variant.kernel.reading
    problem, index, delta, at, _ = where
    reasons = {
        kernel.BAD_RECORD_LENGTH: "has a length that is malformed or exceeds what remains of the batch",
        kernel.BAD_VARINT: "has a malformed timestamp or offset delta",
        kernel.BAD_OFFSET_DELTA: (
            f"has offset delta {delta}, which goes back or lies outside the batch's [0, {header.last_offset_delta}]"
        ),
        kernel.BAD_KEY_LENGTH: "has a key length that is malformed or exceeds the record",
        kernel.BAD_VALUE_LENGTH: "has a value length that is malformed or exceeds the record",
        kernel.BAD_HEADER_COUNT: "has a header count that is malformed or exceeds the record",
        kernel.BAD_HEADER: "has a header that is malformed or exceeds the record",
        kernel.BAD_RECORD_END: "does not end at its stated length",
        kernel.TRAILING_BYTES: "is not there: bytes are left after the declared count of records",
    }
    return corrupt(
        f"record {index} of {header.record_count} (byte {at} of the records section) {reasons[problem]}",
        header.base_offset,
        header.start,
    )


def _time_range(offset: int) -> RecordError:
    return RecordError(
        f"the record at offset {offset} has a timestamp that does not fit in microseconds (more than "
        f"{_MAX_TIME_MS} ms from 1970). Nothing of its batch was emitted from this record on.",
        condition="TIMESTAMP_OUT_OF_RANGE",
        hint="Read without the timestamp column, or start after this record.",
        parameters={"offset": offset},
    )


def _record_too_large(base_offset: int, index: int) -> RecordError:
    return RecordError(
        f"record {index} of the batch with base offset {base_offset} has more than 2 GiB of data, which a binary "
        "column cannot hold. Nothing of the record was emitted.",
        condition="RECORD_TOO_LARGE",
        hint="Read without the column that is so large, or start after this record.",
        parameters={"base_offset": base_offset, "index": index},
    )
