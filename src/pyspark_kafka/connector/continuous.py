"""Contracts of a continuous read: readers that never end, and how their positions become one offset.

PySpark does not run Python sources in continuous mode; the engine of `pyspark_kafka.continuous` does. The life cycle:

1. The driver takes the offset of the checkpoint, or `initialOffset()`, and calls `planInputPartitions(start)` and
   `createContinuousReaderFactory()`.
2. One task for each input partition calls `createReader`, then `next`, `get`, `next`, `get` without end.
3. At the end of an epoch each task calls `getOffset` between two calls of `next`, and sends the position to the driver.
   There `deserializePartitionOffset` reads it, and `mergeOffsets` combines the positions of all readers into one
   offset. The driver stores the offset, then calls `commit`.
4. If `needsReconfiguration()` returns True, the driver ends the epoch, closes the readers and plans again from there.

After a failure the engine plans again from the last stored offset.

A sink can keep the positions itself, together with the rows: `SupportsSourceOffsets`. The rows of a lane (one input
partition) then become visible together with the position of its reader, or not at all. The positions of such a sink
take precedence over the checkpoint, which may be behind them:

1. Before each run the driver calls `takeOver`: from then on no row of an earlier run can become visible. Then it calls
   `committedOffset`, plans from the offset that it returns, and calls `prepareLanes`.
2. Each lane has one `SourceOffsetsWriter` for the whole run. At the end of each epoch it gets the reader's position.
3. A lane that fails, or that is in doubt about its commit, ends the run; the next `takeOver` resolves the doubt.

A query with the trigger available-now reads the rows that exist when it starts, and ends: the engine calls
`prepareForTriggerAvailableNow()` first, the input partitions have ends, and readers report with `hasEnded` that they
have reached them. The query ends when all readers have, or if there is no input partition.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.connector.contract import ConnectorContract
from pyspark_kafka.connector.read import PartitionReader, PartitionReaderFactory
from pyspark_kafka.connector.write import DataWriter, StreamingWrite, WriterCommitMessage
from pyspark_kafka.errors import CapabilityError, ContractError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka.connector.offsets import Offset, PartitionOffset
    from pyspark_kafka.connector.read import InputPartition


class ContinuousPartitionReader(PartitionReader):
    """Reads one input partition without end.

    Runs on: executor, for as long as the query runs; all its methods on one thread; never pickled.

    - `next` waits for rows, and returns True with them. It returns False if nothing has arrived within a time that the
      reader chooses (about 100 ms), so that the engine can act: end an epoch, plan again, close. False never means
      the end. In Spark `next` waits without limit and its thread is interrupted; Python cannot interrupt a thread.
    - `close` is called once, after `next` has returned, also if no row arrived.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ContinuousPartitionReader`.
    """

    @abstractmethod
    def getOffset(self) -> PartitionOffset:
        """Return the position after the last batch that `get` returned; before the first batch, the start.

        Executor; between two calls of `next`, also before the first call, any number of times. Must not block. Equal
        until the reader moves. A reader that continues from this position returns every row once.
        """

    def getLatestOffset(self) -> PartitionOffset | None:
        """Return the position after the last row known to exist; None if unknown.

        For the lag in progress reports. Executor; once for each epoch, after `getOffset`.
        Must not block: a reader that learns the end from each response remembers it.
        """
        return None

    def getRowTimes(self) -> Sequence[float]:
        """Return the creation times of rows of the batch that `get` returned, in ms since 1970; empty if not known.

        For the latency in progress reports. Each time represents an equal share of the rows, in their order, so a few
        are enough, such as the times of the first and the last row. Executor; once after each `get`. Must
        not block.
        """
        return ()

    def describeRows(self) -> str:
        """Return the origin of the rows in the last batch from `get`, for errors; empty if not known.

        For example "orders-3 [500, 600)". Executor; after a reader, function or writer has failed. Must not block.
        """
        return ""

    def hasEnded(self) -> bool:
        """Return whether `next` will never return a row again; always False, unless the plan has ends.

        Executor; before each `next`. Must not block. A reader with unread rows has not ended.
        """
        return False

    def hasMore(self) -> bool:
        """Return whether `next` will return rows without waiting, because rows after the last batch have arrived.

        A writer may then collect both before it sends. Executor; after `get`. Must not block. False is always correct.
        A wrong True delays rows until `next` has returned.
        """
        return False

    def keyGroup(self) -> str | None:
        """Return the key group of the rows that `get` returned last: one of `ContinuousStream.keyGroups`.

        Executor; after `get`, only if functions keep state. Must not block. A reader of input partitions that have
        one key group each returns None.
        """
        return None


class ContinuousPartitionReaderFactory(PartitionReaderFactory):
    """Creates continuous readers on executors.

    Runs on: pickled on the driver each time that the query is planned, so plain data; `createReader` on executors.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ContinuousPartitionReaderFactory`.
    """

    @abstractmethod
    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        """Return the reader of one input partition.

        Executor; once for each task attempt; may connect, with a deadline. Reads begin at the first `next`.
        """


class ContinuousStream(ConnectorContract):
    """A stream that an engine reads without pause, in epochs that end while the readers continue.

    Runs on: driver; one for each run of a query, used by one thread at a time, except `needsReconfiguration` and
    `latestOffset`; not pickled. Every method may block on look-ups, with a deadline, unless it says otherwise.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ContinuousStream` and `SparkDataStream`.
    """

    @abstractmethod
    def initialOffset(self) -> Offset:
        """Return the offset that a new query starts from.

        Not called if a checkpoint has an offset to continue from. Always the same until the first epoch is committed,
        also for a new object: a run that fails before that starts from it again.
        """

    @abstractmethod
    def deserializeOffset(self, json: str) -> Offset:
        """Return the offset of a JSON text, equal to the offset that was written. Called once, when a query continues.

        Raises:
            CheckpointError: the text is not an offset of this source.
        """

    @abstractmethod
    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        """Return the position of a reader from its JSON text, equal to the position that `getOffset` returned.

        Called once for each reader and epoch; must not block.

        Raises:
            CheckpointError: the text is not a position of this source.
        """

    def prepareForTasks(self, tasks: int) -> None:
        """Record the number of tasks that run at the same time; called before each `planInputPartitions`.

        A stream that can read several of its partitions with one reader plans at most this number of input partitions.
        A stream that plans more gets tasks with several readers, each on its own thread.
        """

    def prepareForTriggerAvailableNow(self) -> None:
        """Record that the query ends at the rows that are available now: later plans read nothing newer.

        Called at most once, before any other method. The ends are fixed by this call or by the first plan; later plans,
        after a failure, have the same ends. A plan has either all input partitions, each with an end, or no input
        partition if everything is read. Readers implement `hasEnded`.

        Raises:
            CapabilityError: the source cannot do it.
        """
        raise CapabilityError(
            f"{type(self).__qualname__} cannot be read with trigger(availableNow=True). Nothing was read.",
            condition="CAPABILITY_MISSING",
            hint=f"Use trigger(continuous=…), or implement {type(self).__qualname__}.prepareForTriggerAvailableNow().",
        )

    @abstractmethod
    def planInputPartitions(self, start: Offset) -> Sequence[InputPartition]:
        """Split the stream from `start` into tasks that read without end. Called once for each plan."""

    def plannedOffset(self) -> Offset | None:
        """Return the offset at which the readers of the last plan begin, all of its input partitions included.

        Must not block. None if the source does not know; sinks then cannot keep its positions.
        """
        return None

    def keyGroups(self, partition: InputPartition) -> Sequence[str]:  # noqa: ARG002 - for overrides
        """Return the names of the key groups of an input partition: its parts with separate states.

        All rows of a key are in one key group, such as a partition of the source. Its name is the same in every plan,
        so that its state is found again. A key group without an input partition in a plan loses its state. Called on
        the driver for each planned input partition, only if functions keep state; must not block.

        Raises:
            CapabilityError: the source does not have such parts, so functions cannot keep state.
        """
        raise CapabilityError.missing_method(self, "keyGroups", "CONTINUOUS_READ")

    @abstractmethod
    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        """Return the factory that executors read with. Called once for each plan; must not block."""

    @abstractmethod
    def mergeOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        """Return the stream's offset for all its readers' positions at the end of an epoch.

        Called once for each epoch, with one position of each reader of the plan, in any order. A pure function: must
        not block. Never before the offset of the previous epoch.
        """

    def latestOffset(self) -> Offset | None:
        """Return the offset after the last readable row; None if the source does not know.

        Called when a caller waits for these rows, on the thread of `needsReconfiguration`, at the same time as other
        methods; may block on a look-up, with a deadline. Its errors are raised to the waiting caller. A source that
        returns an offset also implements `hasReached`. If it returns None, an engine counts the rows as read when no
        reader has received a row for a while.
        """
        return None

    def hasReached(self, position: Offset, target: Offset) -> bool:  # noqa: ARG002 - for overrides
        """Return whether a position is at or past a target that `latestOffset` returned.

        Raises:
            CapabilityError: the source returns None from `latestOffset`.
        """
        raise CapabilityError.missing_method(self, "hasReached", "CONTINUOUS_READ")

    def mergeLatestOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        """Return the stream's offset for its readers' `getLatestOffset` results, for a progress report.

        Called once for each epoch, if any reader returned a position, with all returned positions. A pure function:
        must not block.
        """
        return self.mergeOffsets(offsets)

    def lagMetrics(self, position: Offset, latest: Offset) -> Mapping[str, str]:  # noqa: ARG002 - for overrides
        """Return metrics of the lag of a position behind the latest offset, by name, for a progress report.

        Called once for each epoch, with the results of `mergeOffsets` and `mergeLatestOffsets`. A pure function: must
        not block. Empty by default.

        Source: Spark `ReportsSourceMetrics.metrics`, which has no argument for the latest offset.
        """
        return {}

    def needsReconfiguration(self) -> bool:
        """Return whether the input partitions have changed, so that the engine must plan again.

        Called about once a second while the query runs, on a separate thread, never while the source is planned; the
        other methods are called at the same time. May block on a look-up for a few seconds. The engine ends the epoch,
        stops the readers and calls `planInputPartitions` with the offset of their positions.
        """
        return False

    @abstractmethod
    def commit(self, end: Offset) -> None:
        """Record that everything below `end` is processed and will not be read again.

        Called after each stored epoch. A crash may omit a call, and a call may be repeated.
        """

    @abstractmethod
    def stop(self) -> None:
        """Release what the stream holds. Called when the query ends, also after an error; may be repeated."""


@dataclass(frozen=True, slots=True)
class CommitLimit:
    """The maximum cost of the commits of all lanes for a sink: epochs get longer to stay within it.

    Attributes:
        per_second: the maximum cost per second, in the sink's own unit.
        unit: the name of the unit, in the plural.
        option: the name of the option that sets it.
        longest_s: the maximum length of an epoch, at any cost.
        hint: advice for users, in a sentence.
    """

    per_second: int
    unit: str
    option: str
    longest_s: float
    hint: str


class SourceOffsetsWriter(DataWriter):
    """Writes the rows of one lane, epoch after epoch.

    Life cycle: `write` for each batch; at the end of each epoch `commitEpoch`, also without rows; `abort` if a
    call raised, or if the run ends within an epoch; `close` at the end of the run. `commit` is not called.

    A lane does not wait for other lanes: while a slow lane keeps an epoch open, `commitEpoch` is called for the rows so
    far, with the same epoch. The message of the last call counts for the epoch.

    Runs on: executor; one for each lane and run, created by `createWriter` with the run's first epoch.
    """

    @abstractmethod
    def commitEpoch(self, epoch_id: int, position: PartitionOffset) -> WriterCommitMessage:
        """Make the rows since the last call visible, and with them the position after their source rows.

        Executor; may block, with a deadline. An error that leaves the commit in doubt ends the run.
        """

    def setStates(self, states: Mapping[str, str]) -> None:  # noqa: ARG002 - for overrides
        """Take the texts that the next `commitEpoch` keeps with its position, one for each key group of the lane.

        Executor; before each `commitEpoch`, only if functions keep state; see `SupportsSourceOffsets.committedStates`.
        A text that changes is committed although the position does not. Must not block.
        """
        raise CapabilityError.missing_method(self, "setStates", "STREAMING_WRITE")

    def commitCost(self) -> int:
        """Return the cost of the last `commitEpoch`, in the unit of the sink's `CommitLimit`. Must not block."""
        return 0

    def commit(self) -> WriterCommitMessage:
        """Raise: an engine calls `commitEpoch`."""
        raise ContractError.violated(self, "commit", "was called instead of commitEpoch(), which has the position.")


class SupportsSourceOffsets(StreamingWrite):
    """A streaming write whose lanes keep the positions of the source together with their rows.

    Its writers are `SourceOffsetsWriter`. Its `commit` and `abort` have no rows to commit or abort; a sink can use them
    to record epochs.

    Runs on: driver; every method blocks, with a deadline.
    """

    @abstractmethod
    def takeOver(self) -> None:
        """Fence earlier runs, and commit or abort their open transactions. The first call before each run.

        Raises:
            ConnectorError: another driver has taken over since; this query must end.
        """

    @abstractmethod
    def committedOffset(self, start: Offset) -> str:
        """Return the JSON of the offset from which the source continues: `start`, or a later one if rows are visible.

        Args:
            start: the offset of the checkpoint; of a new query, its initial offset.

        Raises:
            CheckpointError: the positions of the sink are lost, so that rows could become visible twice.
        """

    def committedStates(self, epoch: int) -> Mapping[str, str | None]:  # noqa: ARG002 - for overrides
        """Return the state texts that were committed with the positions in `committedOffset`, by key group.

        Called after `committedOffset`, only if functions keep state; a sink without this method is then refused. The
        files of a state are in the checkpoint before `setStates` gets their text: rows, position and state are
        committed together.

        Args:
            epoch: the last epoch of the checkpoint; -1 if it has none.

        Returns:
            Key groups whose state differs from the checkpoint: they were committed at a later position, or at the
            same position in a later epoch. An empty text: without a state. None: the state begins empty.
        """
        raise CapabilityError.missing_method(self, "committedStates", "STREAMING_WRITE")

    def prepareStates(self, states: Mapping[str, str]) -> None:  # noqa: ARG002 - for overrides
        """Take the text of each key group at the start of the run, for `prepareLanes`, which comes next.

        Only if functions keep state. A text has at most 3 KB, in ASCII, without spaces. Must not block.
        """
        raise CapabilityError.missing_method(self, "prepareStates", "STREAMING_WRITE")

    @abstractmethod
    def prepareLanes(self, planned: Offset, lanes: int) -> None:
        """Record the plan of this run, before `createStreamingWriterFactory` and before any task starts.

        Args:
            planned: the offset at which the readers begin; `ContinuousStream.plannedOffset`.
            lanes: the number of lanes, numbered from 0; `createWriter` gets the number as `partition_id`.
        """

    def idleEpochSeconds(self) -> float | None:
        """Return the maximum length of an epoch in which no position moves; None for no maximum. Must not block.

        For a sink that forgets positions which are not set again for a long time.
        """
        return None

    def commitLimit(self) -> CommitLimit | None:
        """Return the maximum cost of the commits of all lanes; None for no limit. Must not block."""
        return None
