"""Writes whose every step is looked at: the same contracts, around a write job of someone else's."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from pyspark_kafka.connector.engine.checks import check_instance, check_message, named
from pyspark_kafka.connector.write import (
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    StreamingDataWriterFactory,
    StreamingWrite,
    WriterCommitMessage,
)
from pyspark_kafka.errors import CallError, ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from pyspark_kafka.connector.table import PhysicalWriteInfo

    # How the engine pickles commit messages.
    Pickler = Callable[[Any], bytes]

_TASK_FAILED = "The task failed and is aborted; a new attempt writes its rows again."
_JOB_FAILED = "The write is aborted."


def not_pickled(_: WriterCommitMessage) -> bytes:
    """Stand for the pickler of an engine that sends commit messages as JSON, which looks at them itself."""
    return b""


class CheckedWriter(DataWriter):
    """A data writer whose commit message is looked at: it is one, and it reaches the driver."""

    def __init__(self, writer: DataWriter, dumps: Pickler = pickle.dumps) -> None:
        self._writer = writer
        self._dumps = dumps

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one Arrow batch."""
        try:
            self._writer.write(batch)
        except ConnectorError:
            raise
        except Exception as error:
            raise CallError.raised(self._writer, "write", error, _TASK_FAILED) from error

    def flushNow(self) -> None:
        """Send what is held back."""
        self._writer.flushNow()

    def commit(self) -> WriterCommitMessage:
        """Finish."""
        with named(self._writer, "commit", _TASK_FAILED):
            message = self._writer.commit()
        return check_message(message, self._writer, self._dumps)

    def abort(self) -> None:
        """Give up."""
        self._writer.abort()

    def close(self) -> None:
        """Release what the writer holds."""
        self._writer.close()


class CheckedWriterFactory(DataWriterFactory):
    """Makes the writers of a batch write; pickles with the factory that it stands for."""

    def __init__(self, factory: DataWriterFactory, dumps: Pickler) -> None:
        self._factory = factory
        self._dumps = dumps

    def createWriter(self, partition_id: int, task_id: int) -> DataWriter:
        """Return the writer of one task attempt."""
        writer = self._factory.createWriter(partition_id, task_id)
        return CheckedWriter(check_instance(writer, DataWriter, self._factory, "createWriter"), self._dumps)


class CheckedStreamingWriterFactory(StreamingDataWriterFactory):
    """Makes the writers of one micro-batch; pickles with the factory that it stands for."""

    def __init__(self, factory: StreamingDataWriterFactory, dumps: Pickler) -> None:
        self._factory = factory
        self._dumps = dumps

    def of_query(self, query_id: str | None) -> StreamingDataWriterFactory:
        """Return the factory for the tasks of one query."""
        return CheckedStreamingWriterFactory(self._factory.of_query(query_id), self._dumps)

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int) -> DataWriter:
        """Return the writer of one task attempt."""
        writer = self._factory.createWriter(partition_id, task_id, epoch_id)
        return CheckedWriter(check_instance(writer, DataWriter, self._factory, "createWriter"), self._dumps)


class CheckedBatchWrite(BatchWrite):
    """A write job of a batch query whose factory and messages are looked at."""

    def __init__(self, job: BatchWrite, dumps: Pickler = pickle.dumps) -> None:
        self._job = job
        self._dumps = dumps

    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> DataWriterFactory:
        """Return the factory that executors write with."""
        factory = self._job.createBatchWriterFactory(info)
        check_instance(factory, DataWriterFactory, self._job, "createBatchWriterFactory")
        return CheckedWriterFactory(factory, self._dumps)

    def useCommitCoordinator(self) -> bool:
        """Return whether at most one attempt of each task may commit."""
        return check_instance(self._job.useCommitCoordinator(), bool, self._job, "useCommitCoordinator")

    def commit(self, messages: Sequence[WriterCommitMessage]) -> None:
        """Finish the job."""
        with named(self._job, "commit", _JOB_FAILED):
            self._job.commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Give up the job."""
        self._job.abort(messages)


class CheckedStreamingWrite(StreamingWrite):
    """The write jobs of a streaming query whose factory and messages are looked at.

    Args:
        job: of the sink.
        dumps: how the engine pickles commit messages.
        unit: what is committed, for errors.
    """

    def __init__(self, job: StreamingWrite, dumps: Pickler = pickle.dumps, unit: str = "Micro-batch") -> None:
        self._job = job
        self._dumps = dumps
        self._unit = unit

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:
        """Return the factory that executors write with."""
        factory = self._job.createStreamingWriterFactory(info)
        check_instance(factory, StreamingDataWriterFactory, self._job, "createStreamingWriterFactory")
        return CheckedStreamingWriterFactory(factory, self._dumps)

    def useCommitCoordinator(self) -> bool:
        """Return whether at most one attempt of each task may commit."""
        return check_instance(self._job.useCommitCoordinator(), bool, self._job, "useCommitCoordinator")

    def deserializeMessage(self, text: str) -> WriterCommitMessage:
        """Return the commit message of its JSON."""
        message = self._job.deserializeMessage(text)
        return check_instance(message, WriterCommitMessage, self._job, "deserializeMessage")

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        """Finish one epoch."""
        with named(self._job, "commit", f"{self._unit} {epoch_id} is not committed; a restart runs it again."):
            self._job.commit(epoch_id, messages)

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Give up one epoch."""
        self._job.abort(epoch_id, messages)
