"""What the driver sends to the tasks of a read: what each reads, and how. Plain data. Layer: source.

The driver's processes import this and not the reader, which brings the client and the codec along.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_kafka.connector import InputPartition, PartitionReader, PartitionReaderFactory

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyspark_kafka.model import OffsetRange
    from pyspark_kafka.options import ConnectionOptions, FetchOptions
    from pyspark_kafka.planning.late_binding import LateBinding


@dataclass(frozen=True, slots=True)
class KafkaInputPartition(InputPartition):
    """What one task reads: one range `[start_offset, end_offset)`, or several, each of another topic-partition.

    Attributes:
        offset_range: the range; mostly the only one.
        further_ranges: more of them.
        late: which ends of the range are looked up when the task starts, in a batch read; then it is the only one.
            None: the range is read as it is.
        topic_ids: the ids of the topics that the ranges were planned on, by name, where brokers tell them. A task
            that finds another one has lost its records, whichever attempt and whatever its worker knew before.
        servers: some brokers that the driver has learned of: a new worker finds the cluster by them where the bootstrap
            servers are gone. Here and not in the factory, which Spark takes over once for all batches of a stream.
    """

    offset_range: OffsetRange
    further_ranges: tuple[OffsetRange, ...] = ()
    late: LateBinding | None = None
    # What is read is said by the ranges: the same ranges are the same task.
    topic_ids: Mapping[str, str] = field(default_factory=dict, compare=False)
    servers: tuple[tuple[str, int], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.late is not None and self.further_ranges:
            raise ValueError("a task of several ranges cannot have open ends")

    @property
    def offset_ranges(self) -> tuple[OffsetRange, ...]:
        """All ranges of the task."""
        return (self.offset_range, *self.further_ranges)


@dataclass(frozen=True, slots=True)
class KafkaPartitionReaderFactory(PartitionReaderFactory):
    """Makes the readers of a batch on executors. Plain data: connections are made where they are used.

    Attributes:
        connection: how to reach the brokers.
        fetch: sizes, waits and isolation of the fetch requests.
        schema: the exact Arrow schema of the batches to give.
        fail_on_data_loss: whether records that are gone are an error or are skipped with a warning.
        leaves_recreated: whether a topic that was deleted and created again is left to a later batch, which begins it
            anew; otherwise, where loss is tolerated, a task goes on at the same offset in it.
    """

    connection: ConnectionOptions
    fetch: FetchOptions
    schema: pa.Schema
    fail_on_data_loss: bool
    leaves_recreated: bool = False

    def createReader(self, partition: InputPartition) -> PartitionReader:
        """Build the reader of one input partition; it connects at the first `next()`."""
        from pyspark_kafka.source.executor.partition_reader import KafkaPartitionReader  # noqa: PLC0415 - see above

        if not isinstance(partition, KafkaInputPartition):
            raise TypeError(f"expected a KafkaInputPartition, got {type(partition).__name__}")
        factory = self
        if partition.servers:
            factory = replace(self, connection=replace(self.connection, learned_servers=partition.servers))
        return KafkaPartitionReader(
            factory, *partition.offset_ranges, late=partition.late, topic_ids=partition.topic_ids
        )
