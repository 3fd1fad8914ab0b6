"""The options of one read, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from pyspark_kafka._base.model import IsolationLevel
from pyspark_kafka._base.offsets import Earliest, Latest, RangeEdge

if TYPE_CHECKING:
    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options.values.connection import ConnectionOptions
    from pyspark_kafka._client.options.values.formats import TypedReadOptions
    from pyspark_kafka._client.options.values.traces import TraceOptions

SubscriptionKind: TypeAlias = Literal["subscribe", "assign", "subscribePattern"]


_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """The limits of fetches, and of the bytes that a task may hold.

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


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subject of a read. `kind` says which one of the three other fields is set.

    Attributes:
        kind: the option that the user gave.
        topics: sorted topic names (`subscribe`).
        topic_partitions: sorted partitions (`assign`).
        pattern: a regular expression that is searched anywhere in a topic's name (`subscribePattern`).
    """

    kind: SubscriptionKind
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    pattern: str | None = None

    @property
    def only_topic(self) -> str | None:
        """The topic, if the options name a single one; else None."""
        topics = {*self.topics, *(each.topic for each in self.topic_partitions)}
        return topics.pop() if len(topics) == 1 else None

    def describe(self) -> str:
        """Return the text for progress reports: `Subscribe[a, b]`, `Assign[t-0, t-2]`, `SubscribePattern[re]`.

        Source: Spark `org.apache.spark.sql.kafka010.ConsumerStrategy.toString`.
        """
        if self.kind == "subscribe":
            return f"Subscribe[{', '.join(self.topics)}]"
        if self.kind == "assign":
            return f"Assign[{', '.join(map(str, self.topic_partitions))}]"
        return f"SubscribePattern[{self.pattern}]"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of both kinds of read.

    Attributes:
        starting: where each partition starts.
        start_at_latest_without_match: whether a partition without a record at or after its starting timestamp starts
            at its end; if False, that is an error (`startingOffsetsByTimestampStrategy`).
        min_partitions: about how many tasks a read has at least, if there is enough to read; None: one for each
            topic-partition.
        max_records_per_partition: the maximum number of offsets in one task; None: no limit.
        max_partitions_per_task: the maximum number of topic-partitions with few offsets that share a task.
        fetch_offset_attempts: the number of attempts of an offset look-up, the first included
            (`fetchOffset.numRetries`).
        outage_timeout_ms: how long an outage of brokers is waited out, once the cluster has been reached.
        group_id_prefix: `groupIdPrefix`, which has no effect: there are no consumer groups.
        group_id: `kafka.group.id`, if given.
        typed: what keys and values are; None: bytes.
        trace: the spans of the read; None: it has none.
        notes: sentences for the user's log, once for each query: options that are accepted and have no effect.
    """

    connection: ConnectionOptions
    subscription: Subscription
    starting: RangeEdge = field(default_factory=Latest)
    start_at_latest_without_match: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_partitions_per_task: int = 1
    fail_on_data_loss: bool = True
    include_headers: bool = False
    fetch: FetchOptions = field(default_factory=FetchOptions)
    fetch_offset_attempts: int = 3
    fetch_offset_retry_interval_ms: int = 1_000
    outage_timeout_ms: int = 0
    group_id_prefix: str = "spark-kafka-source"
    group_id: str | None = None
    typed: TypedReadOptions | None = None
    trace: TraceOptions | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchReadOptions(ReadOptions):
    """A batch read.

    Attributes:
        starting: as in `ReadOptions`; never `Latest`.
        outage_timeout_ms: always 0: a batch read does not wait for an outage to end.
        ending: where each partition ends, exclusive; never `Earliest`.
        push_down_predicate: whether Spark's filters decide what is read.
    """

    starting: RangeEdge = field(default_factory=Earliest)
    group_id_prefix: str = "spark-kafka-relation"
    ending: RangeEdge = field(default_factory=Latest)
    push_down_predicate: bool = False


@dataclass(frozen=True, slots=True)
class StreamReadOptions(ReadOptions):
    """A streaming read.

    Attributes:
        starting: where each partition of a *new* query starts; a checkpoint takes precedence over it.
        max_offsets_per_trigger: about how many offsets a micro-batch has at most, over all partitions; None: no limit.
        min_offsets_per_trigger: how many offsets must be available for a micro-batch to start; None: any number.
        max_trigger_delay_ms: the longest wait for `min_offsets_per_trigger`.
        max_bytes_per_trigger: about how many bytes a micro-batch has at most, as brokers store them; None: no limit.
        checkpoint_location: the query's checkpoint, if the user gave it to the source as well.
        source_index: the number of this source of the query, from 0, or its name: a folder of the checkpoint.
        committed_group: the consumer group that the ends of finished micro-batches are committed to; None: none.
        warn_headroom_ms: brokers that may delete the next record sooner than that are warned of; None: no warning.
    """

    outage_timeout_ms: int = 600_000
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    max_bytes_per_trigger: int | None = None
    checkpoint_location: str | None = None
    source_index: str = "0"
    committed_group: str | None = None
    warn_headroom_ms: int | None = None
