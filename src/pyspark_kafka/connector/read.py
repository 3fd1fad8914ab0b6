"""Contracts of a source on the driver, and of its readers on executors."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from pyspark_kafka.connector.contract import ConnectorContract
from pyspark_kafka.connector.limits import ReadAllAvailable
from pyspark_kafka.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.connector.limits import ReadLimit
    from pyspark_kafka.connector.offsets import Offset

# The fate of the rows if a call of a reader fails.
ROWS_DROPPED = "The task failed, and its rows are dropped; a new attempt reads them again."


class InputPartition:
    """The input of one task: plain picklable data, created on the driver, sent to an executor.

    Pickled once, and unpickled by each attempt of its task, which has only this and the factory. PySpark does not
    support preferred locations of a Python source.

    Source: Spark `org.apache.spark.sql.connector.read.InputPartition`.
    """

    __slots__ = ()


class PartitionReader(ConnectorContract):
    """Reads one input partition, a batch of rows at a time.

    Life cycle: `next`, `get`, `next`, `get`, …, until `next` returns False, raises, or the engine needs no more rows;
    then `close`, once. An attempt whose process is killed gets no further call.

    Runs on: executor; one for each task attempt, on one thread; `next` may block, with a deadline; never pickled.

    Source: Spark `org.apache.spark.sql.connector.read.PartitionReader`.
    """

    @abstractmethod
    def next(self) -> bool:
        """Move to the next batch of rows.

        Returns:
            False if the partition is read to its end. Errors are raised, never returned as False.
        """

    @abstractmethod
    def get(self) -> pa.RecordBatch:
        """Return the batch that the last `next()` moved to. Called once for each `next()` that returned True.

        Every batch has the schema of `Scan.readSchema`, nullability included. Must not block.
        """

    @abstractmethod
    def close(self) -> None:
        """Release what the reader holds. Called once, also after an error and if a task ends early."""


class PartitionReaderFactory(ConnectorContract):
    """Builds readers on executors.

    Must pickle: it is created and pickled on the driver, once for each batch or run of a query; each task unpickles it.

    Source: Spark `org.apache.spark.sql.connector.read.PartitionReaderFactory`.
    """

    @abstractmethod
    def createReader(self, partition: InputPartition) -> PartitionReader:
        """Build the reader of one input partition. Executor; once for each task attempt; may block, with a deadline."""


class Batch(ConnectorContract):
    """One bounded read.

    Runs on: driver; one for each batch query, each method called once. Only the factory is pickled, not the batch.

    Source: Spark `org.apache.spark.sql.connector.read.Batch`.
    """

    @abstractmethod
    def planInputPartitions(self) -> Sequence[InputPartition]:
        """Split the read into tasks. Driver, once; may block on look-ups, with a deadline. May be empty."""

    @abstractmethod
    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory that executors read with. Driver, once for a batch or each micro-batch; must not block."""


class MicroBatchStream(ConnectorContract):
    """A stream that an engine reads as a sequence of bounded batches `[start, end)`.

    It returns the end of a micro-batch in one of two ways: by `latestOffset()`, or by `SupportsAdmissionControl`, which
    the engine can limit.

    Life cycle: `initialOffset`, or `deserializeOffset` of the offset in a checkpoint. At each trigger `latestOffset`,
    whose result the engine stores, then `planInputPartitions` and `createReaderFactory`. When the micro-batch is
    processed, `commit` of its end; at the end of the run `stop`. After a restart the engine plans the last micro-batch
    again, with the stored offsets.

    Runs on: driver; one for each run of a query, used by one thread at a time; every method may block on look-ups, with
    a deadline, because a query that stops waits for it. Not pickled once it has run.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.MicroBatchStream` and `SparkDataStream`.
    """

    @abstractmethod
    def initialOffset(self) -> Offset:
        """Return the offset at which a new query starts.

        Not called if the checkpoint has a position. After a run that fails before its first commit, the method is
        called again, on a new object, and must return the same offset.
        """

    @abstractmethod
    def deserializeOffset(self, json: str) -> Offset:
        """Return the offset of a JSON text, equal to the offset that was written.

        Called when a query continues; PySpark passes every offset as JSON, so it calls this method several times for
        each micro-batch. Must not block.

        Raises:
            CheckpointError: the text is not an offset of this source.
        """

    def latestOffset(self, *args: Any, **kwargs: Any) -> Offset:  # noqa: ARG002 - with admission control: start, limit
        """Return the end of the available rows; the last end again if there are no new rows.

        Called at each trigger, without arguments; with admission control `latestOffset(start, limit)` replaces it.
        """
        raise ContractError.violated(
            self, "latestOffset", "must be implemented: alone, or as SupportsAdmissionControl asks for it."
        )

    @abstractmethod
    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Split `[start, end)` into tasks.

        A pure function of its arguments, the options and the retained records, never of the size of the cluster: a
        repeated batch must read the same records. Called once for each micro-batch, and again after a restart; may
        block, with a deadline.
        """

    @abstractmethod
    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory that executors read with. Driver, once for a batch or each micro-batch; must not block."""

    @abstractmethod
    def commit(self, end: Offset) -> None:
        """Record that everything below `end` is processed and will not be read again.

        Called after the engine has stored that the micro-batch is done. A crash can omit a call; a later call then
        covers it. An error ends the query.
        """

    @abstractmethod
    def stop(self) -> None:
        """Release what the stream holds. Called when the run ends, also after an error; may be repeated."""


class SupportsAdmissionControl(ConnectorContract):
    """A stream whose next batch the engine can limit.

    Mixed into a `MicroBatchStream`. `latestOffset(start, limit)` then replaces `latestOffset()`, which is not called.

    Runs on: driver, as its stream.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl`.
    """

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the source's options set; all available rows, unless overridden.

        Driver; called before each `latestOffset`. Must not block.
        """
        return ReadAllAvailable()

    @abstractmethod
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return the end of the micro-batch that begins at `start`; `start` itself if there is nothing to read.

        Called at each trigger; may block, with a deadline. Never before `start`: the engine refuses that.

        Args:
            start: the end of the last micro-batch, or the initial offset.
            limit: `getDefaultReadLimit()`, or `ReadLimit.allAvailable()` if the trigger requires everything. A limit
                that the source cannot count may be treated as `allAvailable()`.
        """

    def reportLatestOffset(self) -> Offset | None:
        """Return the newest known offset, for progress reports only; None if none is known.

        Called after each trigger; must not block: the result of the last `latestOffset` is enough.
        """
        return None


class SupportsTriggerAvailableNow(SupportsAdmissionControl):
    """A stream that can stop at the data that exists when the query starts.

    Of a stream without it, an engine reads one micro-batch, up to the first `latestOffset`.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow`.
    """

    @abstractmethod
    def prepareForTriggerAvailableNow(self) -> None:
        """Record that this run ends at the rows available now: later calls of `latestOffset` return nothing newer.

        Called once, before any other method of the run, if the trigger is available-now; may block, with a deadline. A
        repeated micro-batch of an earlier run can come first.
        """


class ReportsSourceMetrics(ConnectorContract):
    """A stream with metrics of its own, such as the lag of a query.

    Caller: Spark, for a stream in Java, after each micro-batch, for `SourceProgress.metrics`. PySpark does not: its
    stream of a Python source (`PythonMicroBatchStream`, as of Spark 4.3) does not implement the interface, and no
    adapter can pass the metrics on. What reaches the progress events there is `reportLatestOffset`. For Kafka sources
    `pyspark_kafka.metrics` computes the same metrics from the offsets of these events; of tables of one's own it has
    none. A program that drives a stream itself can call `metrics`.

    Runs on: driver.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics`.
    """

    @abstractmethod
    def metrics(self, latestConsumedOffset: Offset | None) -> Mapping[str, str]:
        """Return metrics by name, as text. After each micro-batch; must not block.

        Args:
            latestConsumedOffset: the position of the query; None if it has read nothing.
        """
