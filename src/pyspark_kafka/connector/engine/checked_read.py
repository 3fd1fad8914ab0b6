"""Reads whose every step is looked at: the same contracts, around a batch or a stream of someone else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka.connector.engine.available_now import admission_control_of
from pyspark_kafka.connector.engine.checks import (
    check_instance,
    check_not_backwards,
    check_offset,
    check_partitions,
    check_read_offset,
    difference,
    found,
    named,
)
from pyspark_kafka.connector.limits import ReadLimit
from pyspark_kafka.connector.read import (
    ROWS_DROPPED,
    Batch,
    InputPartition,
    MicroBatchStream,
    PartitionReader,
    PartitionReaderFactory,
    SupportsTriggerAvailableNow,
)
from pyspark_kafka.errors import CallError, ConnectorError, ContractError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.connector.offsets import Offset


class CheckedReader(PartitionReader):
    """A reader whose answers are looked at: type of `next()`, type and schema of `get()`."""

    def __init__(self, reader: PartitionReader, schema: pa.Schema) -> None:
        self._reader = reader
        self._schema = schema

    def next(self) -> bool:
        """Move to the next rows."""
        try:
            more = self._reader.next()
        except ConnectorError:
            raise
        except Exception as error:
            raise CallError.raised(self._reader, "next", error, ROWS_DROPPED) from error
        if type(more) is not bool:
            raise ContractError.violated(self._reader, "next", f"must return True or False, and {found(more)}.")
        return more

    def get(self) -> pa.RecordBatch:
        """Return the rows."""
        with named(self._reader, "get", ROWS_DROPPED):
            batch = self._reader.get()
        if not isinstance(batch, pa.RecordBatch):
            raise ContractError.violated(self._reader, "get", f"must return a pyarrow.RecordBatch, and {found(batch)}.")
        if batch.schema is not self._schema and not batch.schema.equals(self._schema):
            raise ContractError.violated(
                self._reader,
                "get",
                f"returned rows of another schema than readSchema(): {difference(self._schema, batch.schema)}.",
            )
        return batch

    def close(self) -> None:
        """Release what the reader holds."""
        self._reader.close()


class CheckedReaderFactory(PartitionReaderFactory):
    """Makes readers whose answers are looked at; pickles with the factory that it stands for."""

    def __init__(self, factory: PartitionReaderFactory, schema: pa.Schema) -> None:
        self._factory = factory
        self._schema = schema

    def createReader(self, partition: InputPartition) -> PartitionReader:
        """Return the reader of one input partition."""
        with named(self._factory, "createReader", ROWS_DROPPED):
            reader = self._factory.createReader(partition)
        return CheckedReader(check_instance(reader, PartitionReader, self._factory, "createReader"), self._schema)


class CheckedBatch(Batch):
    """A batch read whose plan and readers are looked at."""

    def __init__(self, batch: Batch, schema: pa.Schema) -> None:
        self._batch = batch
        self._schema = schema

    def planInputPartitions(self) -> Sequence[InputPartition]:
        """Decide what each task reads."""
        return check_partitions(self._batch.planInputPartitions(), self._batch)

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory of readers that are looked at."""
        factory = self._batch.createReaderFactory()
        check_instance(factory, PartitionReaderFactory, self._batch, "createReaderFactory")
        return CheckedReaderFactory(factory, self._schema)


class CheckedMicroBatchStream(MicroBatchStream, SupportsTriggerAvailableNow):
    """A stream whose offsets, plans and readers are looked at; with admission control, its own or an engine's."""

    def __init__(self, stream: MicroBatchStream, schema: pa.Schema) -> None:
        self._stream = stream
        self._control = admission_control_of(stream)
        self._schema = schema

    def initialOffset(self) -> Offset:
        """Return the offset that a new query starts from."""
        return check_offset(self._stream.initialOffset(), self._stream, "initialOffset")

    def deserializeOffset(self, json: str) -> Offset:
        """Return the offset of its JSON; the same position must have the same text again."""
        return check_read_offset(self._stream.deserializeOffset(json), self._stream, "deserializeOffset")

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options ask for."""
        return check_instance(self._control.getDefaultReadLimit(), ReadLimit, self._stream, "getDefaultReadLimit")

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return the end of the next micro-batch."""
        end = check_offset(self._control.latestOffset(start, limit), self._stream, "latestOffset")
        check_not_backwards(end, start, self._stream, "latestOffset", "Nothing was read.")
        return end

    def reportLatestOffset(self) -> Offset | None:
        """Return the newest offset that the stream knows; None if it knows none."""
        newest = self._control.reportLatestOffset()
        return None if newest is None else check_offset(newest, self._stream, "reportLatestOffset")

    def prepareForTriggerAvailableNow(self) -> None:
        """End this run at what is available now."""
        self._control.prepareForTriggerAvailableNow()

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Split `[start, end)` into tasks."""
        return check_partitions(self._stream.planInputPartitions(start, end), self._stream)

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory of readers that are looked at."""
        factory = self._stream.createReaderFactory()
        check_instance(factory, PartitionReaderFactory, self._stream, "createReaderFactory")
        return CheckedReaderFactory(factory, self._schema)

    def commit(self, end: Offset) -> None:
        """Pass on that everything below `end` is processed."""
        self._stream.commit(end)

    def stop(self) -> None:
        """Stop the stream."""
        self._stream.stop()
