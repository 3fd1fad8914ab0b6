"""How records are produced, as a value. Layer: options.values."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """How records are batched, compressed and acknowledged.

    Attributes:
        acks: -1 all in-sync replicas, 1 the leader alone, 0 none.
        idempotence: whether brokers drop duplicates of retried requests; needs acks -1.
        compression: none, gzip, snappy, lz4 or zstd.
        compression_level: None for the codec's default.
        batch_size: target size of a record batch before compression; a batch never exceeds `max_request_size`.
        max_request_size: the maximum size of a record batch on the wire.
        delivery_timeout_ms: deadline for a record batch, retries included.
        request_timeout_ms: longest wait for a response.
        max_in_flight: maximum number of requests in flight on one connection, at most 5.
    """

    acks: int = -1
    idempotence: bool = True
    compression: str = "none"
    compression_level: int | None = None
    batch_size: int = _MIB
    max_request_size: int = _MIB
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    max_in_flight: int = 5
