"""The options of one write, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_kafka._client.options.values.connection import ConnectionOptions
    from pyspark_kafka._client.options.values.formats import TypedWriteOptions
    from pyspark_kafka._client.options.values.traces import TraceOptions

_KIB = 1 << 10
_MIB = 1 << 20


_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """The batches, compression and acknowledgements of a producer.

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


@dataclass(frozen=True, slots=True)
class ExactlyOnceOptions:
    """The settings of a write that becomes visible once and whole.

    Attributes:
        transactional_id: the sink's name; None: made from the query's id.
        transaction_timeout_ms: how long a transaction may be open.
        task_timeout_ms: how long a transaction of a task may be open, if brokers allow that; None, or if they do not:
            `transaction_timeout_ms`.
        commit: who sends the records of a micro-batch and commits them: `driver`, or `tasks` in transactions of theirs.
        commit_topic: the topic of the commit markers.
        checkpoint_location: the query's checkpoint; None in a batch write.
        spool_location: where tasks put encoded records beyond `spool_threshold_bytes`; None: nowhere.
        spool_threshold_bytes: how many encoded bytes a task returns to the driver.
        offsets_group_id: the consumer group of a continuous query; None: the query's id names it.
        max_markers_per_second: how many transaction markers brokers may write a second for a continuous query.
    """

    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    task_timeout_ms: int | None = None
    commit: str = "driver"
    commit_topic: str = "pyspark_kafka_commits"
    checkpoint_location: str | None = None
    spool_location: str | None = None
    spool_threshold_bytes: int = 256 * _KIB
    offsets_group_id: str | None = None
    max_markers_per_second: int = 5_000


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """A batch or streaming write.

    Attributes:
        topic: the topic of every row, which takes precedence over a `topic` column; None: each row names its own.
        max_block_ms: how long a task waits for a topic that does not exist (`kafka.max.block.ms`).
        max_unacknowledged_bytes: the maximum of encoded and unacknowledged bytes in a task (`kafka.buffer.memory`);
            half of it bounds the rows that are gathered before they are cut into record batches.
        identity_headers: whether each record has headers that identify its source.
        exactly_once: how the write becomes visible once and whole; None: at-least-once delivery.
        outage_timeout_ms: how long a stream that has run waits out an outage of brokers; 0 in a batch write.
        patient_delivery_timeout_ms: the deadline of a record batch in a stream that has run.
        typed: what keys and values are; None: bytes.
        checkpoint_location: the query's checkpoint, which keeps the schemas that it writes with; None in a batch write.
        trace: the spans of the write; None: it has none.
        notes: sentences for the user's log, once for each query: options that are accepted and have no effect.
    """

    connection: ConnectionOptions
    topic: str | None = None
    producer: ProducerOptions = field(default_factory=ProducerOptions)
    max_block_ms: int = 15_000
    max_unacknowledged_bytes: int = 32 * _MIB
    identity_headers: bool = False
    exactly_once: ExactlyOnceOptions | None = None
    outage_timeout_ms: int = 0
    patient_delivery_timeout_ms: int = 120_000
    typed: TypedWriteOptions | None = None
    checkpoint_location: str | None = None
    trace: TraceOptions | None = None
    notes: tuple[str, ...] = ()
