"""Adapters of sinks: a `BatchWrite` as PySpark's batch writer, a `StreamingWrite` as its stream writer."""

from __future__ import annotations

import logging
import secrets
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter
from pyspark.sql.datasource import WriterCommitMessage as SparkCommitMessage

from pyspark_kafka._connector.spark.compat import STREAM_ARROW_WRITER
from pyspark_kafka._connector.spark.processes.gc_freeze import freeze_gc
from pyspark_kafka._connector.spark.processes.process_log import spark_step
from pyspark_kafka.connector import PhysicalWriteInfo, WriterCommitMessage
from pyspark_kafka.connector.engine.checks import check_instance, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from pyspark_kafka.connector import (
        BatchWrite,
        DataWriter,
        DataWriterFactory,
        StreamingDataWriterFactory,
        StreamingWrite,
    )

_LOG = logging.getLogger(__name__)

_TASK_FAILED = "The task failed and is aborted; a new attempt writes its rows again."

# Local properties in which Spark tells the tasks of a micro-batch its number and its query; internal, hence probed.
_BATCH_ID_PROPERTY = "streaming.sql.batchId"
_QUERY_ID_PROPERTY = "sql.streaming.queryId"


class SparkMessage(SparkCommitMessage):
    """Carries one of our commit messages through Spark."""

    def __init__(self, message: WriterCommitMessage) -> None:
        self.message = message


def write_partition(writer: DataWriter, batches: Iterator[pa.RecordBatch]) -> SparkCommitMessage:
    """Drive a data writer over the rows of one task.

    Runs on: executor, in a reused Python worker.
    """
    with spark_step(freeze=True), closing(writer):
        try:
            for batch in batches:
                with named(writer, "write", _TASK_FAILED):
                    writer.write(batch)
            with named(writer, "commit", _TASK_FAILED):
                message = writer.commit()
            # A forgotten `return` would commit without these rows.
            return SparkMessage(check_instance(message, WriterCommitMessage, writer, "commit"))
        except BaseException:
            try:
                writer.abort()
            except Exception:  # noqa: BLE001 - logged
                # The reason of the failure matters more than the reason of the abort.
                _LOG.exception("The abort of a failed task failed; its rows are dropped.")
            raise


def _ids_of_task() -> tuple[int, int]:
    """Return the numbers of the partition and of the attempt; a random attempt on an engine without tasks, as Sail."""
    context = TaskContext.get()
    return (0, secrets.randbits(63)) if context is None else (context.partitionId(), context.taskAttemptId())


def _task() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("write() was called outside of a Spark task")
    return context


class BatchWriterAdapter(DataSourceArrowWriter):
    """Runs a `BatchWrite` as a PySpark batch writer; pickled whole to executors and to the committing process.

    PySpark knows no `PhysicalWriteInfo`: its `numPartitions` is None. It uses its commit coordinator whatever
    `useCommitCoordinator` returns, and asks it after `DataWriter.commit`.
    """

    def __init__(self, job: BatchWrite) -> None:
        self._job = job
        self._factory: DataWriterFactory = job.createBatchWriterFactory(PhysicalWriteInfo())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SparkCommitMessage:
        """Write the rows of one task."""
        return write_partition(self._factory.createWriter(*_ids_of_task()), iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        """Finish the job."""
        with spark_step("committing a batch write"), named(self._job, "commit", "The write is aborted."):
            self._job.commit([message.message for message in messages])

    def abort(self, messages: Sequence[Any]) -> None:
        """Abort the job."""
        with spark_step("aborting a batch write"):
            self._job.abort([None if message is None else message.message for message in messages])


class StreamWriterAdapter(STREAM_ARROW_WRITER):  # type: ignore[misc]
    """Runs a `StreamingWrite` as a PySpark stream writer; Spark builds one per micro-batch, and one more to commit.

    Of `PhysicalWriteInfo` and `useCommitCoordinator` the same holds as in `BatchWriterAdapter`.
    """

    def __init__(self, job: StreamingWrite) -> None:
        freeze_gc()
        self._job = job
        self._factory: StreamingDataWriterFactory = job.createStreamingWriterFactory(PhysicalWriteInfo())
        self._is_sent = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the writer for tasks. PySpark pickles it twice in the process that plans, and in no other."""
        if not self._is_sent:
            self._factory = self._factory.for_tasks()
            self._is_sent = True
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SparkCommitMessage:
        """Write the rows of one task of a micro-batch."""
        context = _task()
        batch_id = context.getLocalProperty(_BATCH_ID_PROPERTY)
        # Without a batch number, the query does not identify a row either.
        factory = self._factory.of_query(context.getLocalProperty(_QUERY_ID_PROPERTY) if batch_id else None)
        writer = factory.createWriter(context.partitionId(), context.taskAttemptId(), int(batch_id or 0))
        return write_partition(writer, iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Finish one micro-batch."""
        failed = f"Micro-batch {batchId} is not committed; a restart runs it again."
        with spark_step(f"committing batchId={batchId}"), named(self._job, "commit", failed):
            self._job.commit(batchId, [message.message for message in messages])

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """Abort one micro-batch."""
        with spark_step(f"aborting batchId={batchId}"):
            self._job.abort(batchId, [None if message is None else message.message for message in messages])
