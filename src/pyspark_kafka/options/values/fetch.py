"""How records are fetched, as a value. Layer: options.values."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_kafka.model import IsolationLevel

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How records are fetched and how much a task may hold.

    Attributes:
        max_bytes_per_fetch: the most bytes of one fetch response (`kafka.fetch.max.bytes`).
        max_partition_fetch_bytes: the most bytes of one partition in a response (`kafka.max.partition.fetch.bytes`).
        min_bytes: the broker waits until it has so many (`kafka.fetch.min.bytes`)…
        max_wait_ms: …or so long (`kafka.fetch.max.wait.ms`).
        check_crcs: whether checksums of record batches are verified.
        max_decompressed_bytes: the most bytes one record batch may decompress to.
        buffer_bytes: the most fetched bytes a task holds at a time.
        poll_timeout_ms: the longest wait without any progress before the task fails…
        outage_timeout_ms: …and where brokers are away all the while, if it is longer; 0 in batch reads.
    """

    max_bytes_per_fetch: int = 8 * _MIB
    max_partition_fetch_bytes: int = 8 * _MIB
    min_bytes: int = 1
    max_wait_ms: int = 500
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    check_crcs: bool = True
    max_decompressed_bytes: int = 256 * _MIB
    buffer_bytes: int = 64 * _MIB
    poll_timeout_ms: int = 120_000
    outage_timeout_ms: int = 0
