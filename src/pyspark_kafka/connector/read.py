"""Contracts of a source: its methods on the driver, and those of its readers on executors. Layer: connector."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from pyspark_kafka.connector.contract import ConnectorContract
from pyspark_kafka.connector.limits import ReadAllAvailable
from pyspark_kafka.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyspark_kafka.connector.limits import ReadLimit
    from pyspark_kafka.connector.offsets import Offset


class InputPartition:
    """What one task reads: plain picklable data, made on the driver, sent to an executor.

    Source: Spark `org.apache.spark.sql.connector.read.InputPartition`.
    """

    __slots__ = ()


class PartitionReader(ConnectorContract):
    """Reads one input partition, a batch of rows at a time.

    Runs on: executor; one per task attempt; `next` may block; never pickled.

    Source: Spark `org.apache.spark.sql.connector.read.PartitionReader`.
    """

    @abstractmethod
    def next(self) -> bool:
        """Move to the next batch of rows.

        Returns:
            False if the partition is read to its end. An error is raised, and never returned as False.
        """

    @abstractmethod
    def get(self) -> pa.RecordBatch:
        """Return the batch that the last `next()` moved to. Every batch of one reader has the same schema."""

    @abstractmethod
    def close(self) -> None:
        """Release what the reader holds. Called once, also after an error and when a task ends early."""


class PartitionReaderFactory(ConnectorContract):
    """Builds readers on executors.

    Runs on: pickled on the driver once per batch; `createReader` once per task attempt.

    Source: Spark `org.apache.spark.sql.connector.read.PartitionReaderFactory`.
    """

    @abstractmethod
    def createReader(self, partition: InputPartition) -> PartitionReader:
        """Build the reader of one input partition."""


class Batch(ConnectorContract):
    """One bounded read.

    Runs on: driver. `planInputPartitions` may block on look-ups.

    Source: Spark `org.apache.spark.sql.connector.read.Batch`.
    """

    @abstractmethod
    def planInputPartitions(self) -> Sequence[InputPartition]:
        """Decide what each task reads."""

    @abstractmethod
    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory that executors read with."""


class MicroBatchStream(ConnectorContract):
    """A stream that an engine reads as a sequence of bounded batches `[start, end)`.

    It says where a micro-batch ends in one of two ways: by `latestOffset()`, or by `SupportsAdmissionControl`, which
    the engine can limit.

    Runs on: driver; one per query run; every method may block on look-ups, with a deadline.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.MicroBatchStream` and `SparkDataStream`.
    """

    @abstractmethod
    def initialOffset(self) -> Offset:
        """Return the offset at which a new query starts. Not called if the checkpoint has a position."""

    @abstractmethod
    def deserializeOffset(self, json: str) -> Offset:
        """Read an offset back from its JSON.

        Raises:
            CheckpointError: the text is no offset of this source.
        """

    def latestOffset(self, *args: Any, **kwargs: Any) -> Offset:  # noqa: ARG002 - with admission control: start, limit
        """Return the end of what there is; the last one again if there is nothing new.

        Called at each trigger, without arguments; with admission control `latestOffset(start, limit)` stands for it.
        """
        raise ContractError.violated(
            self, "latestOffset", "must be implemented: alone, or as SupportsAdmissionControl asks for it."
        )

    @abstractmethod
    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Split `[start, end)` into tasks.

        A pure function of its arguments, the options and what the source still holds, never of the size of the
        cluster: a batch that is run again must read the same records.
        """

    @abstractmethod
    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory that executors read with."""

    @abstractmethod
    def commit(self, end: Offset) -> None:
        """Learn that everything below `end` is processed and will not be asked for again."""

    @abstractmethod
    def stop(self) -> None:
        """Release what the stream holds. May be called more than once."""


class SupportsAdmissionControl(ConnectorContract):
    """A stream that lets the engine limit what the next batch takes.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl`.
    """

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the source's options set; everything that is available, unless overridden.

        Driver; called before each `latestOffset`. Must not block.
        """
        return ReadAllAvailable()

    @abstractmethod
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return the end of the micro-batch that begins at `start`; `start` itself if there is nothing to read."""

    def reportLatestOffset(self) -> Offset | None:
        """Return the newest known offset, for progress reports only; None if none is known."""
        return None


class SupportsTriggerAvailableNow(SupportsAdmissionControl):
    """A stream that can stop at the data that is there when the query starts.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow`.
    """

    @abstractmethod
    def prepareForTriggerAvailableNow(self) -> None:
        """Learn that this run ends at what is available now: `latestOffset` returns nothing newer from here on."""
