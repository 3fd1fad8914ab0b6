"""Record batches built by hand, byte by byte.

The builder shares no code with the codec: it is what the codec is tested against.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import crc32c
import pyarrow as pa

from pyspark_kafka.records import HEADERS_TYPE, iter_decode

LOG_APPEND, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
ABORT, COMMIT = 0, 1


def varint(value: int) -> bytes:
    """Encode a zig-zag varint."""
    raw = value * 2 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while raw > 127:
        out.append(raw & 127 | 128)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def sized(data: bytes | None) -> bytes:
    """Encode bytes with their length, or null."""
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    offset_delta: int,
    value: bytes | None = b"v",
    *,
    key: bytes | None = None,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
    time_delta: int = 0,
    attributes: int = 0,
) -> bytes:
    """Encode one record."""
    body = bytes([attributes]) + varint(time_delta) + varint(offset_delta) + sized(key) + sized(value)
    body += varint(len(headers)) + b"".join(sized(name) + sized(content) for name, content in headers)
    return varint(len(body)) + body


def batch(
    records: Sequence[bytes] | bytes,
    *,
    base_offset: int = 0,
    last_delta: int | None = None,
    attributes: int = 0,
    base_time: int = 0,
    max_time: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    count: int | None = None,
    magic: int = 2,
) -> bytes:
    """Encode a batch with a right checksum; `records` may be the section's bytes, compressed or malformed."""
    if count is None:
        count = 1 if isinstance(records, bytes) else len(records)
    section = records if isinstance(records, bytes) else b"".join(records)
    if last_delta is None:
        last_delta = max(count - 1, 0)
    covered = struct.pack(
        ">hiqqqhii", attributes, last_delta, base_time, max_time, producer_id, producer_epoch, sequence, count
    )
    covered += section
    return struct.pack(">qiibI", base_offset, len(covered) + 9, 7, magic, crc32c.crc32c(covered)) + covered


def plain_batch(base_offset: int, count: int, **fields: Any) -> bytes:
    """Encode `count` records whose values are their offsets."""
    records = [record(delta, b"%d" % (base_offset + delta)) for delta in range(count)]
    return batch(records, base_offset=base_offset, **fields)


def control_batch(
    offset: int, producer_id: int, kind: int = ABORT, *, key: bytes | None = None, epoch: int = 0
) -> bytes:
    """Encode a transaction marker."""
    key = struct.pack(">hh", 0, kind) if key is None else key
    marker = record(0, struct.pack(">hi", 0, 0), key=key)
    flags = CONTROL | TRANSACTIONAL
    return batch([marker], base_offset=offset, attributes=flags, producer_id=producer_id, producer_epoch=epoch)


def resealed(data: bytes) -> bytes:
    """Set the checksum of a single batch right after its bytes were changed."""
    return data[:17] + struct.pack(">I", crc32c.crc32c(data[21:])) + data[21:]


def whole(records: bytes | bytearray, start_offset: int = 0, **arguments: Any) -> tuple[Any, int | None]:
    """Decode all pieces; return them as one table, and the last position (None if there was no piece)."""
    pieces = list(iter_decode(records, start_offset=start_offset, **arguments))
    if not pieces:
        return pa.table({}), None
    for piece in pieces:
        piece.batch.validate(full=True)
    return pa.Table.from_batches([piece.batch for piece in pieces]).combine_chunks(), pieces[-1].next_offset


def offsets(records: bytes, start_offset: int = 0, **arguments: Any) -> list[int]:
    """Return the offsets of the visible records."""
    table, _ = whole(records, start_offset, columns=["offset"], **arguments)
    found: list[int] = table.column("offset").to_pylist() if table.num_columns else []
    return found


def rows(
    keys: list[bytes | None],
    values: list[bytes | None],
    headers: list[Any] | None = None,
    times: list[int] | None = None,
) -> pa.RecordBatch:
    """Build a batch of rows to encode."""
    columns: dict[str, Any] = {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
    if headers is not None:
        columns["headers"] = pa.array(headers, HEADERS_TYPE)
    if times is not None:
        columns["timestamp"] = pa.array(times, pa.timestamp("ms", "UTC"))
    return pa.record_batch(columns)
