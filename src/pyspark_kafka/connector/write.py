"""Contracts of a sink: write jobs on the driver, data writers on executors, commit messages."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pyspark_kafka.connector.contract import ConnectorContract
from pyspark_kafka.errors import CapabilityError, ContractError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PhysicalWriteInfo:
    """The description of a write when its tasks start.

    Attributes:
        numPartitions: the number of tasks; None if the engine does not name it, as PySpark.

    Source: Spark `org.apache.spark.sql.connector.write.PhysicalWriteInfo`.
    """

    numPartitions: int | None = None


class WriterCommitMessage:
    """The message of a task to the driver after its rows are written: plain picklable data.

    A continuous engine sends it as JSON, which `StreamingWrite.deserializeMessage` reads; it never unpickles data from
    the network.

    Source: Spark `org.apache.spark.sql.connector.write.WriterCommitMessage`.
    """

    __slots__ = ()

    def json(self) -> str:
        """Return the message as JSON; of a dataclass of plain data, its fields.

        Runs on: executor; called by a continuous engine only.

        Raises:
            ContractError: it is not a dataclass of plain data; a message with other content overrides this method.
        """
        try:
            # Raises TypeError for what is not a dataclass as well.
            return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))  # type: ignore[call-overload]
        except (TypeError, ValueError) as error:
            raise ContractError.violated(
                self,
                "json",
                f"must be implemented for a continuous query: the message is not a dataclass of plain data ({error}).",
                hint="Make the message a dataclass of numbers and text, or override json().",
            ) from error


class DataWriter(ConnectorContract):
    """Writes the rows of one task.

    Life cycle: `write` for each batch, then `commit`; `abort` if one of these calls raised, or if the rows could not be
    computed; `close` at the end in both cases. An attempt that is killed, or that loses against another attempt after
    its `commit`, gets no further call.

    Runs on: executor; one for each task attempt, on one thread; every method may block, with a deadline; never pickled.

    Source: Spark `org.apache.spark.sql.connector.write.DataWriter`.
    """

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch of rows. Every batch of one task has the schema of `LogicalWriteInfo.schema`."""

    def flushNow(self) -> None:
        """Send buffered rows, without waiting until they have arrived; `write` and `commit` may follow.

        Called by a continuous engine when the source has no more rows for the moment. Does nothing unless overridden.
        A writer that buffers rows only briefly, or whose rows become visible at the commit, need not override it.
        """

    @abstractmethod
    def commit(self) -> WriterCommitMessage:
        """Finish: after it returns, the rows have the guarantee of the sink. Called once, also for a task without rows.

        The message must pickle. Two attempts of a task can both call this method: rows that must become visible once
        become visible by the commit of the job.
        """

    @abstractmethod
    def abort(self) -> None:
        """Clean up after a failed `write` or `commit`. Its own error is logged and does not replace the first one."""

    @abstractmethod
    def close(self) -> None:
        """Release what the writer holds. Called once, after `commit` or `abort`."""


class DataWriterFactory(ConnectorContract):
    """Builds the writers of a batch write on executors.

    Must pickle: it is created and pickled on the driver, once for each write, and unpickled by each task.

    Source: Spark `org.apache.spark.sql.connector.write.DataWriterFactory`.
    """

    @abstractmethod
    def createWriter(self, partition_id: int, task_id: int) -> DataWriter:
        """Build the writer of one task attempt. Executor; may block, with a deadline.

        Args:
            partition_id: the number of the task, from 0; the same for each of its attempts.
            task_id: of this attempt alone.
        """


class StreamingDataWriterFactory(ConnectorContract):
    """Builds the writers of one micro-batch on executors.

    Must pickle: it is created and pickled on the driver, once for each micro-batch, and unpickled by each task.

    Source: Spark `org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory`.
    """

    def of_query(self, query_id: str | None) -> StreamingDataWriterFactory:  # noqa: ARG002 - most factories need no id
        """Return the factory for the tasks of one query, whose id is known only when it runs.

        Args:
            query_id: the id in the checkpoint; None if the engine does not know it.
        """
        return self

    def for_tasks(self) -> StreamingDataWriterFactory:
        """Return the factory that is sent to the tasks of a micro-batch; itself unless overridden.

        Driver; may block. Called once for each micro-batch, before its tasks, and in one process only: PySpark also
        builds a factory in the process that commits, and does not send it to tasks.
        """
        return self

    @abstractmethod
    def createWriter(self, partition_id: int, task_id: int, epoch_id: int) -> DataWriter:
        """Build the writer of one task attempt of the micro-batch `epoch_id`. Executor; may block, with a deadline.

        Args:
            partition_id: the number of the task, from 0; the same for each of its attempts.
            task_id: of this attempt alone.
            epoch_id: the number of the micro-batch; the same if it is run again.
        """


class BatchWrite(ConnectorContract):
    """One write job of a batch query.

    Life cycle: `createBatchWriterFactory` once; when every task has succeeded, `commit`; if one has failed for good, or
    `commit` raised, `abort`. A driver that is killed calls neither.

    Runs on: driver; every method may block, with a deadline. Must pickle: under PySpark `commit` and `abort` run in
    another process than `createBatchWriterFactory`.

    Source: Spark `org.apache.spark.sql.connector.write.BatchWrite`.
    """

    @abstractmethod
    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> DataWriterFactory:
        """Return the factory that executors write with.

        Args:
            info: the description of the tasks.
        """

    def useCommitCoordinator(self) -> bool:
        """Return whether at most one attempt of each task may commit; True unless overridden.

        Driver; called before the tasks start. Does not block. How engines use the result:

        - Spark, for a sink in Java: if True, an attempt queries the driver before `DataWriter.commit`, and a refused
          attempt is aborted.
        - PySpark: Spark does not call this method of a Python sink. Its `PythonBatchWrite` always uses the coordinator,
          and calls it only when the writer in Python has ended, after `DataWriter.commit`. So the driver gets one
          message for each task, but two attempts of a task can both run `DataWriter.commit`, and the refused attempt
          is not aborted. Make rows visible in `BatchWrite.commit`, or so that they can be repeated.

        Source: Spark `org.apache.spark.sql.connector.write.BatchWrite#useCommitCoordinator`.
        """
        return True

    @abstractmethod
    def commit(self, messages: Sequence[WriterCommitMessage]) -> None:
        """Finish the job: every task succeeded, with one message each."""

    @abstractmethod
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort the job; the message of a task that failed is None."""


class StreamingWrite(ConnectorContract):
    """The write jobs of a streaming query, one per epoch (micro-batch).

    Life cycle: `createStreamingWriterFactory` once for each epoch; when its tasks have succeeded, `commit`; if one has
    failed for good, or `commit` raised, `abort`. `commit` must be idempotent by epoch: an engine that was killed before
    it stored the commit runs the epoch again, with other attempts, and commits it again.

    Runs on: driver; every method may block, with a deadline. Must pickle: under PySpark there is a new object for each
    epoch, and `commit` runs in another process than `createStreamingWriterFactory`.

    Source: Spark `org.apache.spark.sql.connector.write.streaming.StreamingWrite`.
    """

    @abstractmethod
    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:
        """Return the factory that executors write with.

        Args:
            info: the description of the tasks of this micro-batch.
        """

    def useCommitCoordinator(self) -> bool:
        """Return whether at most one attempt of each task may commit; True unless overridden.

        Driver; called before the tasks start. Does not block. How engines use the result:

        - Spark, for a sink in Java: if True, an attempt queries the driver before `DataWriter.commit`, and a refused
          attempt is aborted.
        - PySpark: Spark does not call this method of a Python sink. Its `PythonStreamingWrite` always uses the
          coordinator, and calls it only when the writer in Python has ended, after `DataWriter.commit`. So the driver
          gets one message for each task, but two attempts of a task can both run `DataWriter.commit`, and the refused
          attempt is not aborted. Make rows visible in `StreamingWrite.commit`, or so that they can be repeated.

        Source: Spark `org.apache.spark.sql.connector.write.streaming.StreamingWrite#useCommitCoordinator`.
        """
        return True

    def deserializeMessage(self, text: str) -> WriterCommitMessage:  # noqa: ARG002 - for overrides
        """Return the commit message of a JSON text.

        Called on the driver by a continuous engine, for each task and epoch; a micro-batch engine pickles messages.

        Raises:
            CapabilityError: the sink cannot be written by a continuous query.
        """
        name = type(self).__qualname__
        raise CapabilityError(
            f"{name} cannot be written by a continuous query: it has no method deserializeMessage(). Nothing was read.",
            condition="CAPABILITY_NOT_IMPLEMENTED",
            hint=f"Use a micro-batch query, or implement {name}.deserializeMessage().",
            parameters={"class": name, "method": "deserializeMessage"},
        )

    @abstractmethod
    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        """Finish one epoch: every task succeeded, with one message each."""

    @abstractmethod
    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort one epoch; the message of a task that failed is None."""
