"""The data that the driver pickles for the tasks of a read: the ranges of each task, and the factory of readers.

Plain data. The processes of the driver import this, and not the reader, which loads the client and the codec.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.roles import Traced
from pyspark_kafka._connector.source.read_settings import ReadSettings
from pyspark_kafka.connector import (
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    InputPartition,
    PartitionReader,
    PartitionReaderFactory,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.model import OffsetRange, TopicPartition
    from pyspark_kafka._base.traces.roles import Tracer
    from pyspark_kafka._client.options import TraceOptions
    from pyspark_kafka._connector.planning.open_ends import OpenEnds
    from pyspark_kafka._connector.source.executor.header_sampler import HeaderSampler


@dataclass(frozen=True, slots=True)
class KafkaInputPartition(InputPartition):
    """The ranges of one task: one range `[start_offset, end_offset)`, or several of different topic-partitions.

    Attributes:
        offset_range: the range, or the first one.
        further_ranges: the others.
        open_ends: the ends of the range that are looked up when the task starts, in a batch read with this range
            only. None: the range is read as it is.
        topic_ids: the ids of the topics for which the ranges were planned, by name; brokers before Kafka 2.8 do not
            return them. If a task finds another id, its records are lost, in any attempt, on any worker.
        servers: addresses of brokers that the driver has learned: with them a new worker finds the cluster if the
            bootstrap servers are shut down. Here and not in the factory, which Spark pickles once for all batches.
        trace_parent: the span of the plan; empty: the read has no spans.
    """

    offset_range: OffsetRange
    further_ranges: tuple[OffsetRange, ...] = ()
    open_ends: OpenEnds | None = None
    # Tasks with the same ranges are equal, because only the ranges decide what is read.
    topic_ids: Mapping[str, str] = field(default_factory=dict, compare=False)
    servers: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    trace_parent: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.open_ends is not None and self.further_ranges:
            raise ValueError("a task of several ranges cannot have open ends")

    @property
    def offset_ranges(self) -> tuple[OffsetRange, ...]:
        """All ranges of the task."""
        return (self.offset_range, *self.further_ranges)


@dataclass(frozen=True, slots=True)
class KafkaPartitionReaderFactory(ReadSettings, PartitionReaderFactory):
    """Builds the readers of a batch on executors."""

    def createReader(self, partition: InputPartition) -> PartitionReader:
        """Build the reader of one input partition; it connects at the first `next()`."""
        if not isinstance(partition, KafkaInputPartition):
            raise TypeError(f"expected a KafkaInputPartition, got {type(partition).__name__}")
        return self._reader(partition) if self.trace is None else self._traced_reader(partition, self.trace)

    def _reader(self, partition: KafkaInputPartition, sampler: HeaderSampler | None = None) -> PartitionReader:
        from pyspark_kafka._connector.source.executor.partition_reader import KafkaPartitionReader  # noqa: PLC0415 - see above

        return KafkaPartitionReader(
            self.knowing(partition.servers),
            *partition.offset_ranges,
            open_ends=partition.open_ends,
            topic_ids=partition.topic_ids,
            sampler=sampler,
        )

    def _traced_reader(self, partition: KafkaInputPartition, trace: TraceOptions) -> PartitionReader:
        from pyspark_kafka._client.options import option_tracer  # noqa: PLC0415 - as above
        from pyspark_kafka._connector.source.executor.header_sampler import HeaderSampler  # noqa: PLC0415 - as above
        from pyspark_kafka._connector.source.executor.traced_reader import (  # noqa: PLC0415 - as above
            TracedPartitionReader,
            start_read,
        )

        tracer, sampler = option_tracer(), HeaderSampler(self.fetch)
        span = start_read(tracer, self.topic, parent=trace.parent, plan=partition.trace_parent)
        return TracedPartitionReader(self._reader(partition, sampler), sampler.sample, span, tracer)


@dataclass(frozen=True, slots=True)
class KafkaContinuousInputPartition(InputPartition):
    """The topic-partitions of one task of a continuous read, with their start offsets.

    Attributes:
        starts: the topic-partitions, each with the offset to read first.
        ends: the exclusive end of each of them; empty if they are read without an end.
        topic_ids: the ids of their topics by name, as in `KafkaInputPartition`.
        servers: addresses of brokers that the driver has learned, as in `KafkaInputPartition`.
    """

    starts: tuple[tuple[TopicPartition, int], ...]
    ends: tuple[tuple[TopicPartition, int], ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict, compare=False)
    servers: tuple[tuple[str, int], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class KafkaContinuousPartitionReaderFactory(ReadSettings, ContinuousPartitionReaderFactory, Traced):
    """Builds the readers of a continuous read on executors. A recreated topic is always left to the next plan."""

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        """Build the reader of one input partition; it connects at the first `next()`."""
        from pyspark_kafka._connector.source.executor.continuous_reader import (  # noqa: PLC0415 - see above
            KafkaContinuousPartitionReader,
        )

        if not isinstance(partition, KafkaContinuousInputPartition):
            raise TypeError(f"expected a KafkaContinuousInputPartition, got {type(partition).__name__}")
        return KafkaContinuousPartitionReader(
            self.knowing(partition.servers),
            dict(partition.starts),
            partition.topic_ids,
            dict(partition.ends),
            None if self.trace is None else self._sampler(),
        )

    def open_tracer(self) -> Tracer | None:
        """Return the tracer of this process; see `Traced`."""
        from pyspark_kafka._client.options import option_tracer  # noqa: PLC0415 - as above

        return None if self.trace is None else option_tracer()

    @property
    def trace_parent(self) -> str:
        """The span that runs the query."""
        return "" if self.trace is None else self.trace.parent

    def _sampler(self) -> HeaderSampler:
        from pyspark_kafka._connector.source.executor.header_sampler import HeaderSampler  # noqa: PLC0415 - as above

        return HeaderSampler(self.fetch)
