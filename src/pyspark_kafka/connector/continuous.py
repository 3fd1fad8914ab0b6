"""Contracts of a continuous read: readers that never end, and how their positions become one offset.

PySpark runs no Python source in continuous mode; the engine of `pyspark_kafka.continuous` does. The life cycle:

1. The driver takes the offset of the checkpoint, or `initialOffset()`, and calls `planInputPartitions(start)` and
   `createContinuousReaderFactory()`.
2. One task for each input partition calls `createReader`, then `next`, `get`, `next`, `get` without an end.
3. At the end of an epoch each task calls `getOffset` between two calls of `next`, and sends the position to the driver.
   There `deserializePartitionOffset` reads it, and `mergeOffsets` makes one offset of one position of each reader. The
   driver writes the offset down, then calls `commit`.
4. If `needsReconfiguration()` returns True, the driver ends the epoch, closes the readers and plans again from there.

After a failure the engine plans again from the last offset that it wrote down.

A sink can keep the positions itself, together with the rows, `SupportsSourceOffsets`: then what a lane (one input
partition) has written becomes visible with the position of its reader, or not at all. Such a sink knows best where the
source continues, and the checkpoint may be behind it:

1. Before each run the driver calls `takeOver`: from then on nothing of an earlier run can become visible. Then it asks
   `committedOffset` where the source continues, plans from there, and calls `prepareLanes`.
2. Each lane has one `SourceOffsetsWriter` for the whole run. At the end of each epoch it gets the reader's position.
3. A lane that fails, or does not know whether its rows became visible, ends the run; the next `takeOver` finds out.

A query with the trigger available-now ends at what is there when it starts: the engine calls
`prepareForTriggerAvailableNow()` first, the input partitions have ends, and readers tell with `hasEnded` that they are
there. The query ends once all of them are, or if there is no input partition.
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
    """Reads one input partition without an end.

    Runs on: executor, for as long as the query runs; all its methods on one thread; never pickled.

    - `next` waits for rows, and returns True with them. It returns False if nothing has arrived within a time that the
      reader chooses (about 100 ms), so that the engine can act: end an epoch, plan again, close. False is never the
      end. In Spark `next` waits for ever and a thread is interrupted; Python has no such interrupt.
    - `close` is called once, after `next` has returned, also if rows never came.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ContinuousPartitionReader`.
    """

    @abstractmethod
    def getOffset(self) -> PartitionOffset:
        """Return the position behind the last batch that `get` returned; before the first, the start.

        Executor; between two calls of `next`, before the first one too, and as often as the engine likes. Must not
        block. Equal as long as the reader has not moved. A reader that continues here returns every row once.
        """

    def getLatestOffset(self) -> PartitionOffset | None:
        """Return the position behind the last row that the reader has heard of; None if it does not know.

        For progress reports, which say how far a query is behind. Executor; once for each epoch, after `getOffset`.
        Must not block: a reader that learns the end from each response remembers it.
        """
        return None

    def getRowTimes(self) -> Sequence[float]:
        """Return when rows of the batch that `get` returned came into being, in ms since 1970; empty if not known.

        For progress reports, which say how long rows take. Each time stands for an equal share of the rows, in their
        order, so a few are enough, such as those of the first and the last row. Executor; once after each `get`. Must
        not block.
        """
        return ()

    def describeRows(self) -> str:
        """Return where the rows of the batch that `get` returned last come from, for errors; empty if not known.

        Such as "orders-3 [500, 600)". Executor; after a reader, function or writer has failed. Must not block.
        """
        return ""

    def hasEnded(self) -> bool:
        """Return whether `next` will return no row any more; always False, unless the plan has ends.

        Executor; before each `next`. Must not block. A reader that has rows at hand has not ended.
        """
        return False

    def hasMore(self) -> bool:
        """Return whether `next` will return rows without waiting, as rows after those of `get` have arrived.

        A writer may then gather both before it sends. Executor; after `get`. Must not block. False is always right, and
        True where nothing comes holds rows up until `next` has returned.
        """
        return False

    def keyGroup(self) -> str | None:
        """Return the key group of the rows that `get` returned last: one of `ContinuousStream.keyGroups`.

        Executor; after `get`, only if functions keep state. Must not block. A reader of input partitions with one key
        group each returns None.
        """
        return None


class ContinuousPartitionReaderFactory(PartitionReaderFactory):
    """Makes continuous readers on executors.

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

    Runs on: driver; one for each run of a query, used by one thread at a time, but for `needsReconfiguration` and
    `latestOffset`; not pickled. Every method may block on look-ups, with a deadline, unless it says otherwise.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.ContinuousStream` and `SparkDataStream`.
    """

    @abstractmethod
    def initialOffset(self) -> Offset:
        """Return the offset that a new query starts from.

        Not called if a checkpoint says where to continue. The same until the first epoch is committed, also for a new
        object: a run that failed before it starts there again.
        """

    @abstractmethod
    def deserializeOffset(self, json: str) -> Offset:
        """Return the offset of its JSON, equal to the one that was written. Called once, when a query continues.

        Raises:
            CheckpointError: the text is not an offset of this source.
        """

    @abstractmethod
    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        """Return the position of a reader of its JSON, equal to what `getOffset` returned.

        Called once for each reader and epoch; must not block.

        Raises:
            CheckpointError: the text is not a position of this source.
        """

    def prepareForTasks(self, tasks: int) -> None:
        """Take note of how many tasks run at the same time; called before each `planInputPartitions`.

        A stream that can read several of its partitions with one reader plans that many input partitions at most. One
        that takes no note plans as many as it likes: a task then has several readers, on a thread each.
        """

    def prepareForTriggerAvailableNow(self) -> None:
        """Take note that the query ends at what is available now: no plan reads anything newer from here on.

        Called at most once, before any other method. The ends are those of this call or of the first plan; later plans,
        after a failure, have the same ones. A plan has either all input partitions, each with an end, or none if
        everything is read. Readers implement `hasEnded`.

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
        """Split the stream from `start` into tasks that read without an end. Called once for each plan."""

    def plannedOffset(self) -> Offset | None:
        """Return the offset at which the readers of the last plan begin, all of its input partitions included.

        Must not block. None if the source does not know; then no sink can keep its positions.
        """
        return None

    def keyGroups(self, partition: InputPartition) -> Sequence[str]:  # noqa: ARG002 - for those that can
        """Return the names of the key groups of an input partition: its parts that have a state of their own.

        All rows of a key are in one key group, such as a partition of the source. Its name stays, whatever the plan, so
        that its state is found again. A key group that no input partition of a plan has loses its state. Called on the
        driver for each planned input partition, only if functions keep state; must not block.

        Raises:
            CapabilityError: the source knows no such parts, so functions cannot keep state.
        """
        raise CapabilityError.missing_method(self, "keyGroups", "CONTINUOUS_READ")

    @abstractmethod
    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        """Return the factory that executors read with. Called once for each plan; must not block."""

    @abstractmethod
    def mergeOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        """Return the offset of the stream for the positions of all its readers at the end of an epoch.

        Called once for each epoch, with one position of each reader of the plan, in any order. A pure function: must
        not block. Never behind the offset of the former epoch.
        """

    def latestOffset(self) -> Offset | None:
        """Return the offset behind every row that is readable now; None if the source does not know.

        Called when someone waits for these rows, on the thread of `needsReconfiguration`, while others are called; may
        block on a look-up, with a deadline. What it raises goes to the one who waits. A source that returns an offset
        implements `hasReached` as well. For one that returns None, an engine takes the rows as read when every reader
        has had none for a while.
        """
        return None

    def hasReached(self, position: Offset, target: Offset) -> bool:  # noqa: ARG002 - for those that can
        """Return whether a position is at or behind a target that `latestOffset` returned.

        Raises:
            CapabilityError: the source returns None from `latestOffset`.
        """
        raise CapabilityError.missing_method(self, "hasReached", "CONTINUOUS_READ")

    def mergeLatestOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        """Return the offset of the stream for what `getLatestOffset` of its readers returned, for a progress report.

        Called once for each epoch, if any reader knows, with one position of each reader that does. A pure function:
        must not block.
        """
        return self.mergeOffsets(offsets)

    def lagMetrics(self, position: Offset, latest: Offset) -> Mapping[str, str]:  # noqa: ARG002 - for those that can
        """Return how far a position is behind the latest offset, as figures by name, for a progress report.

        Called once for each epoch, with what `mergeOffsets` and `mergeLatestOffsets` returned. A pure function: must
        not block. By default there are none.

        Source: Spark `ReportsSourceMetrics.metrics`, which has no argument for the latest offset.
        """
        return {}

    def needsReconfiguration(self) -> bool:
        """Return whether the input partitions have changed, so that the engine must plan again.

        Called about once a second while the query runs, on a thread of its own, never while the source is planned; the
        other methods are called meanwhile. May block on a look-up for a few seconds. The engine ends the epoch, stops
        the readers and calls `planInputPartitions` with the offset that they have reached.
        """
        return False

    @abstractmethod
    def commit(self, end: Offset) -> None:
        """Take note that everything below `end` is processed and will not be asked for again.

        Called after each epoch that the engine has written down. May be left out by a crash, and come again.
        """

    @abstractmethod
    def stop(self) -> None:
        """Release what the stream holds. Called when the query ends, also after an error, and maybe again."""


@dataclass(frozen=True, slots=True)
class CommitLimit:
    """How much the commits of all lanes may cost a sink: epochs get longer instead.

    Attributes:
        per_second: how much they may cost a second, in the sink's own unit.
        unit: its name, in the plural.
        option: the name of the option that sets it.
        longest_s: an epoch is no longer, whatever it costs.
        hint: what a user can do, in a sentence.
    """

    per_second: int
    unit: str
    option: str
    longest_s: float
    hint: str


class SourceOffsetsWriter(DataWriter):
    """Writes the rows of one lane, epoch after epoch.

    Life cycle: `write` for each batch; at the end of each epoch `commitEpoch`, also if there were no rows; `abort` if a
    call raised, or the run ends within an epoch; `close` at the end of the run. `commit` is not called.

    A lane waits for no other one: while an epoch does not end, as another lane is slow, `commitEpoch` is called for its
    rows so far, with the same epoch. The message of the last call is that of the epoch.

    Runs on: executor; one for each lane and run, made by `createWriter` with the run's first epoch.
    """

    @abstractmethod
    def commitEpoch(self, epoch_id: int, position: PartitionOffset) -> WriterCommitMessage:
        """Make the rows since the last call visible, and with them the position behind those that they were made from.

        Executor; may block, with a deadline. An error of which the writer does not know whether they are visible ends
        the run.
        """

    def setStates(self, states: Mapping[str, str]) -> None:  # noqa: ARG002 - for those that can
        """Take the texts that the next `commitEpoch` keeps with its position, one for each key group of the lane.

        Executor; before each `commitEpoch`, only if functions keep state; see `SupportsSourceOffsets.committedStates`.
        A text that changes is committed although the position does not. Must not block.
        """
        raise CapabilityError.missing_method(self, "setStates", "STREAMING_WRITE")

    def commitCost(self) -> int:
        """Return what the last `commitEpoch` has cost the sink, in the unit of its `CommitLimit`. Must not block."""
        return 0

    def commit(self) -> WriterCommitMessage:
        """Raise: an engine calls `commitEpoch`."""
        raise ContractError.violated(self, "commit", "was called instead of commitEpoch(), which has the position.")


class SupportsSourceOffsets(StreamingWrite):
    """A streaming write whose lanes keep the positions of the source together with their rows.

    Its writers are `SourceOffsetsWriter`. Its `commit` and `abort` find everything done: they are for what the sink
    wants to note of epochs.

    Runs on: driver; every method blocks, with a deadline.
    """

    @abstractmethod
    def takeOver(self) -> None:
        """Make it impossible for earlier runs to write, and decide what they left open. Before each run, first of all.

        Raises:
            ConnectorError: another driver has taken over meanwhile; this query must end.
        """

    @abstractmethod
    def committedOffset(self, start: Offset) -> str:
        """Return the JSON of the offset at which the source continues: `start`, or behind it where rows are visible.

        Args:
            start: where the checkpoint says that it continues; of a new query, its initial offset.

        Raises:
            CheckpointError: what the sink knew is lost, so that rows could become visible twice.
        """

    def committedStates(self, epoch: int) -> Mapping[str, str | None]:  # noqa: ARG002 - for those that can
        """Return the texts of states that were committed with the positions of `committedOffset`, by key group.

        Called after `committedOffset`, only if functions keep state; a sink without it is refused then. The files of a
        state are in the checkpoint before `setStates` gets their text: rows, position and state are committed together.

        Args:
            epoch: the last one of the checkpoint; -1 for none.

        Returns:
            Key groups whose state is not that of the checkpoint: they were committed at a later position, or at the
            same one in a later epoch. An empty text: without a state. None: the state begins empty.
        """
        raise CapabilityError.missing_method(self, "committedStates", "STREAMING_WRITE")

    def prepareStates(self, states: Mapping[str, str]) -> None:  # noqa: ARG002 - for those that can
        """Take the text of each key group at the start of the run, for `prepareLanes`, which comes next.

        Only if functions keep state. A text has at most 3 KB, in ASCII, without spaces. Must not block.
        """
        raise CapabilityError.missing_method(self, "prepareStates", "STREAMING_WRITE")

    @abstractmethod
    def prepareLanes(self, planned: Offset, lanes: int) -> None:
        """Take note of the plan of this run, before `createStreamingWriterFactory` and before any task starts.

        Args:
            planned: where the readers begin; `ContinuousStream.plannedOffset`.
            lanes: how many there are, numbered from 0; `createWriter` gets the number as `partition_id`.
        """

    def idleEpochSeconds(self) -> float | None:
        """Return after which time an epoch ends although nothing has moved; None for never. Must not block.

        For a sink that forgets positions which are not set again for long.
        """
        return None

    def commitLimit(self) -> CommitLimit | None:
        """Return how much the commits of all lanes may cost; None for no limit. Must not block."""
        return None
