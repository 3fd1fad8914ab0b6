"""One record batch to several, for topics that take smaller ones than were made."""

from __future__ import annotations

import struct

from pyspark_kafka.records.batch_header import CODEC_MASK, TRANSACTIONAL
from pyspark_kafka.records.compression import CODEC_NAMES
from pyspark_kafka.records.decoding import decode
from pyspark_kafka.records.encoding import RecordColumns, encode_rows, patch_header

_NO_BOUND = 2**31 - 1
# Attributes, two unused fields of the header, two times; then producer, epoch and sequence.
_IDENTITY = struct.Struct(">h4x8x8xqhi")
_IDENTITY_AT = 21
_SEQUENCE_LIMIT = 1 << 31


def split_batch(
    data: bytes | bytearray | memoryview, parts: int, *, compression_level: int | None = None
) -> list[tuple[bytearray, int]]:
    """Cut a record batch that a producer made into batches of about as many records each.

    They carry the producer, epoch and transactional mark of the whole, and its sequences: together they are to the
    broker what the whole would have been.

    Runs on: executor and driver; does not block. Memory: the decompressed records, twice.

    Args:
        data: one whole record batch.
        parts: how many are wanted; never more than it has records.
        compression_level: the codec's level; None for its usual one.

    Returns:
        Each part's bytes and its number of records, in order.

    Raises:
        CorruptRecordsError: it is no such batch.
    """
    columns = RecordColumns.from_batch(
        decode(
            data, start_offset=0, columns=("key", "value", "headers", "timestamp"), max_decompressed_bytes=_NO_BOUND
        ).batch
    )
    attributes, producer_id, epoch, sequence = _IDENTITY.unpack_from(data, _IDENTITY_AT)
    rows = columns.num_rows
    parts = max(1, min(parts, rows))
    found = []
    for part in range(parts):
        start, stop = rows * part // parts, rows * (part + 1) // parts
        encoded, _ = encode_rows(
            columns,
            None,
            start,
            stop,
            max_batch_bytes=_NO_BOUND,
            compression=CODEC_NAMES[attributes & CODEC_MASK],
            compression_level=compression_level,
        )
        patch_header(
            encoded,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence if sequence < 0 else (sequence + start) % _SEQUENCE_LIMIT,
            transactional=bool(attributes & TRANSACTIONAL),
        )
        found.append((encoded, stop - start))
    return found
