"""The options of one write, as a value. Layer: options.values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka.options.values.producer import ProducerOptions

if TYPE_CHECKING:
    from pyspark_kafka.options.values.connection import ConnectionOptions
    from pyspark_kafka.options.values.formats import TypedWriteOptions

_KIB = 1 << 10
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ExactlyOnceOptions:
    """How a write becomes visible once and whole.

    Attributes:
        transactional_id: the sink's name; None: made from the query's id.
        transaction_timeout_ms: how long a transaction may be open.
        commit_topic: the topic of the commit markers.
        checkpoint_location: the query's checkpoint; None in a batch write.
        spool_location: where tasks put encoded records beyond `spool_threshold_bytes`; None: nowhere.
        spool_threshold_bytes: how many encoded bytes a task returns to the driver.
        offsets_group_id: the consumer group of a continuous query; None: the query's id names it.
        max_markers_per_second: how many transaction markers brokers may write a second for a continuous query.
    """

    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
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
        max_unacknowledged_bytes: the maximum of encoded and unacknowledged bytes in a task (`kafka.buffer.memory`).
        identity_headers: whether each record has headers that identify its source.
        exactly_once: how the write becomes visible once and whole; None: at-least-once delivery.
        outage_timeout_ms: how long a stream that has run waits out an outage of brokers; 0 in a batch write.
        patient_delivery_timeout_ms: the deadline of a record batch in a stream that has run.
        typed: what keys and values are; None: bytes.
        checkpoint_location: the query's checkpoint, which keeps the schemas that it writes with; None in a batch write.
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
    notes: tuple[str, ...] = ()
