"""Contracts of a continuous read: readers that never end, and how their positions become one offset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pyspark_kafka.connector.read import PartitionReader, PartitionReaderFactory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.connector.offsets import Offset, PartitionOffset
    from pyspark_kafka.connector.read import InputPartition


class ContinuousPartitionReader(PartitionReader):
    """Reads one input partition without an end.

    `next` blocks until rows are there and returns True; it returns False only if nothing has arrived within a time that
    the reader chooses (about 100 ms), so that an engine can act between rows. It never means the end.

    Runs on: executor, for as long as the query runs; `next` blocks; never pickled. `getOffset` is called on the same
    thread, between two calls of `next`.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ContinuousPartitionReader`.
    """

    @abstractmethod
    def getOffset(self) -> PartitionOffset:
        """Return the position behind the last batch that `get` returned; before the first, the start."""


class ContinuousPartitionReaderFactory(PartitionReaderFactory):
    """Makes continuous readers on executors.

    Runs on: pickled on the driver each time that the query is planned; `createReader` once for each input partition.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ContinuousPartitionReaderFactory`.
    """

    @abstractmethod
    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        """Return the reader of one input partition."""


class ContinuousStream(ABC):
    """A stream that an engine reads without pause, in epochs that end while the readers continue.

    Runs on: driver; one for each run of a query; every method may block on look-ups, with a deadline.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ContinuousStream` and `SparkDataStream`.
    """

    @abstractmethod
    def initialOffset(self) -> Offset:
        """Return the offset that a new query starts from. Not called if a checkpoint says where to continue."""

    @abstractmethod
    def deserializeOffset(self, json: str) -> Offset:
        """Return the offset of its JSON.

        Raises:
            CheckpointError: the text is no offset of this source.
        """

    @abstractmethod
    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        """Return the position of a reader of its JSON. Called for each reader and epoch.

        Raises:
            CheckpointError: the text is no position of this source.
        """

    @abstractmethod
    def planInputPartitions(self, start: Offset) -> Sequence[InputPartition]:
        """Split the stream from `start` into tasks that read without an end."""

    @abstractmethod
    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        """Return the factory that executors read with."""

    @abstractmethod
    def mergeOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        """Return the offset of the stream for the positions of all its readers at the end of an epoch."""

    def needsReconfiguration(self) -> bool:
        """Return whether the input partitions have changed, so that the engine must plan again.

        Called about once a second while the query runs; should not block. The engine ends the epoch, stops the readers
        and calls `planInputPartitions` with the offset that they have reached.
        """
        return False

    @abstractmethod
    def commit(self, end: Offset) -> None:
        """Take note that everything below `end` is processed and will not be asked for again."""

    @abstractmethod
    def stop(self) -> None:
        """Release what the stream holds. May be called more than once."""
