"""How records are fetched, as a value. Layer: options.values."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_kafka.model import IsolationLevel

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How records are fetched, and how many bytes a task may hold.

    Attributes:
        max_bytes_per_fetch: the maximum size of a fetch response (`kafka.fetch.max.bytes`).
        max_partition_fetch_bytes: the maximum size of one partition's part of it (`kafka.max.partition.fetch.bytes`).
        min_bytes: the broker responds when it has this many bytes (`kafka.fetch.min.bytes`).
        max_wait_ms: the broker responds after this time with what it has (`kafka.fetch.max.wait.ms`).
        check_crcs: whether checksums of record batches are verified.
        max_decompressed_bytes: the maximum size of a record batch once decompressed.
        max_buffered_bytes: the maximum of fetched bytes that a task holds at a time (`maxBufferedBytesPerTask`).
        poll_timeout_ms: the longest wait without any progress; then the task fails.
        outage_timeout_ms: replaces `poll_timeout_ms` during an outage of brokers, if it is longer; 0 in batch reads.
    """

    max_bytes_per_fetch: int = 8 * _MIB
    max_partition_fetch_bytes: int = 8 * _MIB
    min_bytes: int = 1
    max_wait_ms: int = 500
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    check_crcs: bool = True
    max_decompressed_bytes: int = 256 * _MIB
    max_buffered_bytes: int = 64 * _MIB
    poll_timeout_ms: int = 120_000
    outage_timeout_ms: int = 0
