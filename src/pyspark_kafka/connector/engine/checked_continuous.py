"""Continuous reads whose every step is looked at: the same contracts, around a stream of someone else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.connector.continuous import (
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    ContinuousStream,
)
from pyspark_kafka.connector.engine.checked_read import CheckedReader
from pyspark_kafka.connector.engine.checks import (
    check_instance,
    check_not_backwards,
    check_offset,
    check_partitions,
    check_position,
    found,
)
from pyspark_kafka.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.connector.offsets import Offset, PartitionOffset
    from pyspark_kafka.connector.read import InputPartition


class CheckedContinuousReader(CheckedReader, ContinuousPartitionReader):
    """A continuous reader whose answers are looked at: those of every reader, and its positions."""

    def __init__(self, reader: ContinuousPartitionReader, schema: pa.Schema) -> None:
        super().__init__(reader, schema)
        self._continuous = reader

    def getOffset(self) -> PartitionOffset:
        """Return the position behind the last rows."""
        return check_position(self._continuous.getOffset(), self._continuous, "getOffset")

    def getLatestOffset(self) -> PartitionOffset | None:
        """Return the position behind the last row that the reader has heard of."""
        latest = self._continuous.getLatestOffset()
        return None if latest is None else check_position(latest, self._continuous, "getLatestOffset")

    def getRowTimes(self) -> Sequence[float]:
        """Return when rows of the batch came into being."""
        return self._continuous.getRowTimes()

    def describeRows(self) -> str:
        """Return where the rows of the last batch come from."""
        return check_instance(self._continuous.describeRows(), str, self._continuous, "describeRows")

    def hasEnded(self) -> bool:
        """Return whether nothing more will come."""
        ended = self._continuous.hasEnded()
        if type(ended) is not bool:
            raise ContractError.violated(
                self._continuous, "hasEnded", f"must return True or False, and {found(ended)}."
            )
        return ended

    def keyGroup(self) -> str | None:
        """Return the key group of the last rows."""
        return self._continuous.keyGroup()


class CheckedContinuousReaderFactory(ContinuousPartitionReaderFactory):
    """Makes continuous readers whose answers are looked at; pickles with the factory that it stands for."""

    def __init__(self, factory: ContinuousPartitionReaderFactory, schema: pa.Schema) -> None:
        self._factory = factory
        self._schema = schema

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        """Return the reader of one input partition."""
        reader = self._factory.createReader(partition)
        check_instance(reader, ContinuousPartitionReader, self._factory, "createReader")
        return CheckedContinuousReader(reader, self._schema)


class CheckedContinuousStream(ContinuousStream):
    """A continuous stream whose offsets, plans and readers are looked at."""

    def __init__(self, stream: ContinuousStream, schema: pa.Schema) -> None:
        self._stream = stream
        self._schema = schema
        self._reached: Offset | None = None

    def __repr__(self) -> str:
        return repr(self._stream)

    def initialOffset(self) -> Offset:
        """Return the offset that a new query starts from."""
        return check_offset(self._stream.initialOffset(), self._stream, "initialOffset")

    def deserializeOffset(self, json: str) -> Offset:
        """Return the offset of its JSON."""
        return check_offset(self._stream.deserializeOffset(json), self._stream, "deserializeOffset")

    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        """Return the position of a reader of its JSON."""
        return check_position(self._stream.deserializePartitionOffset(text), self._stream, "deserializePartitionOffset")

    def prepareForTriggerAvailableNow(self) -> None:
        """Have plans end at what is available now."""
        self._stream.prepareForTriggerAvailableNow()

    def prepareForTasks(self, tasks: int) -> None:
        """Pass on how many tasks run at the same time."""
        self._stream.prepareForTasks(tasks)

    def planInputPartitions(self, start: Offset) -> Sequence[InputPartition]:
        """Split the stream from `start` into tasks; positions are compared with `start` from here on."""
        self._reached = start
        return check_partitions(self._stream.planInputPartitions(start), self._stream)

    def plannedOffset(self) -> Offset | None:
        """Return the offset at which the readers begin."""
        planned = self._stream.plannedOffset()
        return None if planned is None else check_offset(planned, self._stream, "plannedOffset")

    def keyGroups(self, partition: InputPartition) -> Sequence[str]:
        """Return the names of the key groups of an input partition."""
        return self._stream.keyGroups(partition)

    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        """Return the factory of readers that are looked at."""
        factory = self._stream.createContinuousReaderFactory()
        method = "createContinuousReaderFactory"
        check_instance(factory, ContinuousPartitionReaderFactory, self._stream, method)
        return CheckedContinuousReaderFactory(factory, self._schema)

    def mergeOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        """Return the offset of the stream at the end of an epoch: not before that of the former one."""
        merged = check_offset(self._stream.mergeOffsets(offsets), self._stream, "mergeOffsets")
        if self._reached is not None:
            outcome = "The epoch was not committed, and its rows will be read again."
            check_not_backwards(merged, self._reached, self._stream, "mergeOffsets", outcome)
        self._reached = merged
        return merged

    def mergeLatestOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        """Return the offset of what readers have heard of; it may be behind that of a former epoch."""
        return check_offset(self._stream.mergeLatestOffsets(offsets), self._stream, "mergeLatestOffsets")

    def lagMetrics(self, position: Offset, latest: Offset) -> Mapping[str, str]:
        """Return how far a position is behind."""
        return self._stream.lagMetrics(position, latest)

    def latestOffset(self) -> Offset | None:
        """Return the offset behind every row that is readable now; None if the source does not know."""
        latest = self._stream.latestOffset()
        return None if latest is None else check_offset(latest, self._stream, "latestOffset")

    def hasReached(self, position: Offset, target: Offset) -> bool:
        """Return whether a position is at or behind a target."""
        return check_instance(self._stream.hasReached(position, target), bool, self._stream, "hasReached")

    def needsReconfiguration(self) -> bool:
        """Return whether the engine must plan again."""
        return check_instance(self._stream.needsReconfiguration(), bool, self._stream, "needsReconfiguration")

    def commit(self, end: Offset) -> None:
        """Pass on that everything below `end` is processed."""
        self._stream.commit(end)

    def stop(self) -> None:
        """Stop the stream."""
        self._stream.stop()
