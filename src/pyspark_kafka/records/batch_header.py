"""The 61-byte header of a format 2 record batch: parsing, and the walk over a fetch response's batches.

Only fields are read and checked here; records are the business of decoding.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from pyspark_kafka.errors import CorruptRecordsError

HEADER_BYTES = 61
# Base offset and length stand before the bytes that the length counts.
LENGTH_OVERHEAD = 12
MAGIC_END = 17
# Where fields begin; the checksum covers everything from the attributes on.
CRC_START = ATTRIBUTES_START = 21
PRODUCER_START = 43
MIN_LENGTH = HEADER_BYTES - LENGTH_OVERHEAD
MAX_OFFSET = 2**63 - 1
# The shortest record: its length and six fields of one byte each.
MIN_RECORD_BYTES = 7

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

_START = struct.Struct(">qiib")
_REST = struct.Struct(">Ihiqqqhii")
# Base offset, length, leader epoch, magic, last offset delta, record count.
_SCANNED = struct.Struct(">qiib6xi30xi")
_UPDATE_HINT = (
    "Start after these records with 'startingOffsets', or copy the topic with one of Java's clients: their format is "
    "older than Kafka 0.11's, and no broker rewrites it."
)


class BatchHeader(NamedTuple):
    """The fields of one batch's header and where its records section lies in the fetched bytes.

    A tuple, because one is created for every batch: small batches would notice the cost of a frozen dataclass.

    Attributes:
        start: where the batch begins.
        end: where it ends.
        base_offset: the offset that deltas count from.
        last_offset: the last offset of the batch, whether or not its record still exists.
    """

    start: int
    end: int
    base_offset: int
    last_offset: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def corrupt(reason: str, base_offset: int, position: int) -> CorruptRecordsError:
    """Build the error for a malformed batch; the caller that knows the topic-partition adds it."""
    return CorruptRecordsError(
        f"the record batch with base offset {base_offset} (byte {position} of the fetched records) is corrupt: "
        f"{reason}. Nothing was emitted from the corruption on.",
        condition="CORRUPT_RECORDS",
        hint="Read the partition again; if it fails at the same offset, the log or the network path is damaged.",
        parameters={"base_offset": base_offset, "position": position},
        whole_bytes=position,
    )


class HeaderWalk:
    """Walks over the complete batches of one response, checking length, magic, CRC and header fields.

    A cut-off tail ends the walk. So does a batch that begins at or after `stop_at`, which is not looked at.

    Attributes:
        at: where the next batch begins.
        floor: the last offset of the batch before it; -1 if there is none.
        reached_stop: whether the walk ended at `stop_at`: nothing below it can follow.
    """

    __slots__ = ("_check_crcs", "_data", "_stop_at", "at", "floor", "reached_stop")

    def __init__(self, data: memoryview, *, check_crcs: bool = True, stop_at: int = MAX_OFFSET) -> None:
        self.at = 0
        self.floor = -1
        self.reached_stop = False
        self._data = data
        self._check_crcs = check_crcs
        self._stop_at = stop_at

    def __iter__(self) -> Iterator[BatchHeader]:
        """Return the headers in order; see `next`."""
        while (header := self.next()) is not None:
            yield header

    def next(self, *, is_verified: bool = False) -> BatchHeader | None:
        """Return the header of the batch that begins `at`, and move behind it; None at the end.

        Args:
            is_verified: whether its checksum was verified already.

        Raises:
            CorruptRecordsError: when bytes are there but not one complete batch, or a batch is malformed.

        Source: docs/internals/fetch-rules.md, R1, R2, R3.
        """
        data, position = self._data, self.at
        total = len(data)
        if total - position >= MAGIC_END:
            base_offset, length, _epoch, magic = _START.unpack_from(data, position)
            if length < 0:
                raise corrupt(f"its length is negative ({length})", base_offset, position)
            if magic != 2:
                raise _wrong_magic(magic, base_offset, position)
            if length < MIN_LENGTH:
                raise corrupt(f"its length is {length} bytes, less than a header's {MIN_LENGTH}", base_offset, position)
            end = position + LENGTH_OVERHEAD + length
            if end <= total:
                # An offset that cannot be is no end: the base offset is not covered by the checksum.
                if self._stop_at <= base_offset < MAX_OFFSET:
                    self.reached_stop = True
                    return None
                fields: tuple[int, ...] = _REST.unpack_from(data, position + MAGIC_END)
                header = BatchHeader(position, end, base_offset, base_offset + fields[2], *fields)
                if self._check_crcs and not is_verified:
                    found = crc32c(data[position + CRC_START : end])
                    if found != header.crc:
                        reason = f"its CRC-32C is {found:#010x}, expected {header.crc:#010x}"
                        raise corrupt(reason, base_offset, position)
                _check(header, self.floor)
                self.floor, self.at = header.last_offset, end
                return header
        if position == 0 and total > 0:
            raise CorruptRecordsError(
                f"{total} bytes were fetched, but not one complete record batch. Nothing was emitted.",
                condition="NO_COMPLETE_RECORD_BATCH",
                hint="Read the partition again: brokers return whole batches, so the network cut the response.",
                parameters={"bytes": total},
            )
        return None


def _wrong_magic(magic: int, base_offset: int, position: int) -> CorruptRecordsError:
    if magic in {0, 1}:
        return CorruptRecordsError(
            f"the records at offset {base_offset} have message format {magic}; only format 2 can be read. "
            "Nothing was emitted from there on.",
            condition="UNSUPPORTED_MESSAGE_FORMAT",
            hint=_UPDATE_HINT,
            parameters={"magic": magic, "base_offset": base_offset, "position": position},
            whole_bytes=position,
        )
    return corrupt(f"its magic byte is {magic}, expected 2", base_offset, position)


def _check(header: BatchHeader, floor: int) -> None:
    """Check what the CRC covers, after the CRC was: the fields may steer offsets and allocation only then."""
    position, end, base, last_offset, _, attributes, last_delta, _, _, _, _, _, count = header
    if base < 0 or last_delta < 0 or last_offset >= MAX_OFFSET:
        raise corrupt(f"its last offset delta is {last_delta}", base, position)
    if base <= floor:
        raise corrupt(f"it goes back: the batch before it ends at offset {floor}", base, position)
    body = end - position - HEADER_BYTES
    if count < 0 or count > last_delta + 1:
        raise corrupt(f"it claims {count} records for {last_delta + 1} offsets", base, position)
    if (count == 0) != (body == 0):
        raise corrupt(f"it claims {count} records in {body} bytes", base, position)
    if attributes & CODEC_MASK == 0 and count > body // MIN_RECORD_BYTES:
        raise corrupt(f"it claims {count} records in {body} bytes", base, position)


class Jump(NamedTuple):
    """A batch that does not begin where the one before it, or the position, leads to; and what was found before it.

    Attributes:
        at: where the batch begins in the bytes.
        batches: how many batches come before it.
        records: the sum of their record counts.
        leader_epoch: of the last of them; -1 if there is none.
        expected: the offset at which it would follow; at least the position.
        ended: the offset after the batch before it; 0 if there is none. A batch that begins below it goes back.
        base_offset: where it begins.
        next_offset: the offset after it.
    """

    at: int
    batches: int
    records: int
    leader_epoch: int
    expected: int
    ended: int
    base_offset: int
    next_offset: int


class ScannedHeaders(NamedTuple):
    """The result of a cheap walk over batch headers.

    Attributes:
        next_offset: the position after the last complete batch; the requested position without one.
        complete_bytes: how many bytes the complete batches take; what follows is a cut-off tail.
        batches: how many complete batches there are.
        records: the sum of their record counts, control records and invisible records included.
        leader_epoch: the epoch of the leader that appended the last complete batch; -1 if unknown.
        jumps: batches that do not follow the one before them: where a compaction has left a gap, where the first batch
            begins before the position, and where a base offset is damaged. One that goes back is the last.
        tail_offset: the base offset of the batch that is cut off; -1 if it is not there.
    """

    next_offset: int
    complete_bytes: int
    batches: int
    records: int
    leader_epoch: int = -1
    jumps: Sequence[Jump] = ()
    tail_offset: int = -1


def scan(records: bytes | bytearray | memoryview, position: int) -> ScannedHeaders:
    """Walk over the batch headers of a fetch response, so that the next fetch can be sent before this one is decoded.

    No checksum is verified: a position found here is a guess that decoding confirms or refuses. Malformed bytes end
    the walk without an error, which is decoding's to raise. So does a batch that goes back.

    Runs on: executor, once a fetch response; does not block.

    Args:
        records: the record bytes of one partition.
        position: the offset that was fetched.
    """
    data = memoryview(records).cast("B")
    total = len(data)
    at = batches = count = ended = 0
    next_offset = position
    leader_epoch = -1
    jumps: list[Jump] = []
    while total - at >= HEADER_BYTES:
        base_offset, length, epoch, magic, last_delta, batch_count = _SCANNED.unpack_from(data, at)
        if magic != 2 or length < MIN_LENGTH or length + LENGTH_OVERHEAD > total - at or base_offset < 0:
            break
        end_offset = base_offset + last_delta + 1
        if last_delta < 0 or batch_count < 0 or end_offset > MAX_OFFSET:
            break
        if base_offset != next_offset:
            jumps.append(Jump(at, batches, count, leader_epoch, next_offset, ended, base_offset, end_offset))
            if base_offset < ended:
                break
            next_offset = max(next_offset, end_offset)
        else:
            next_offset = end_offset
        ended = end_offset
        at += LENGTH_OVERHEAD + length
        batches += 1
        count += batch_count
        leader_epoch = epoch
    tail_offset = -1
    if total - at >= MAGIC_END:
        tail_offset, _, _, magic = _START.unpack_from(data, at)
        if magic != 2:
            tail_offset = -1
    return ScannedHeaders(next_offset, at, batches, count, leader_epoch, jumps, tail_offset)
