"""The at-least-once write jobs: tasks send their rows themselves, so the driver has nothing to commit."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka.connector import (
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    StreamingDataWriterFactory,
    StreamingWrite,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._client.options import WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._connector.sink.driver.write_schemas import PendingSchemas
    from pyspark_kafka.connector import PhysicalWriteInfo


@dataclass(frozen=True, slots=True)
class KafkaDataWriterFactory(DataWriterFactory, StreamingDataWriterFactory):
    """Builds the writers of a batch write or of a micro-batch. Plain data, pickled to executors."""

    options: WriteOptions
    columns: SinkColumns
    query_id: str | None = None

    def of_query(self, query_id: str | None) -> KafkaDataWriterFactory:
        """Return the factory for the tasks of one query."""
        return replace(self, query_id=query_id)

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int = 0) -> DataWriter:  # noqa: ARG002 - Spark's contract
        """Build the writer of one task attempt."""
        # The driver's processes pickle this factory and need no client and no codec.
        from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter  # noqa: PLC0415
        from pyspark_kafka._connector.sink.executor.identity_headers import task_origin  # noqa: PLC0415
        from pyspark_kafka._connector.sink.executor.task_options import options_of_task  # noqa: PLC0415

        origin = task_origin(self.options, self.query_id, epoch_id, partition_id)
        return KafkaDataWriter(options_of_task(self.options, epoch_id), self.columns, origin)


class KafkaBatchWrite(BatchWrite):
    """At least once: every task sends its rows and waits for their acknowledgements; there is nothing to commit.

    A task that fails and is tried again may leave duplicates.

    Runs on: driver.

    Source: Spark `KafkaBatchWrite`, whose commit and abort do nothing either.
    """

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._factory = KafkaDataWriterFactory(options, columns, f"batch{uuid.uuid4().hex}")

    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> DataWriterFactory:  # noqa: ARG002 - any number of tasks
        """Return the factory that executors write with."""
        return self._factory

    def useCommitCoordinator(self) -> bool:
        """Return False: rows are sent before any attempt commits, so there is nothing to choose between."""
        return False

    def commit(self, messages: Sequence[WriterCommitMessage]) -> None:
        """Do nothing: the rows are already acknowledged."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: what was acknowledged stays in the topic."""


class KafkaStreamingWrite(StreamingWrite):
    """At least once, a micro-batch at a time; a micro-batch that is run again may leave duplicates.

    Runs on: driver.

    Args:
        options: of the write.
        columns: the positions of the sink's columns.
        schemas: of its columns, to be kept in the checkpoint when the first factory is asked for.

    Source: Spark `KafkaStreamingWrite`, whose commit and abort do nothing either.
    """

    def __init__(self, options: WriteOptions, columns: SinkColumns, schemas: PendingSchemas | None = None) -> None:
        self._factory = KafkaDataWriterFactory(options, columns)
        self._schemas = schemas

    @property
    def columns(self) -> SinkColumns:
        """The columns of the sink, for reports."""
        return self._factory.columns

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:  # noqa: ARG002 - any number of tasks
        """Return the factory that executors write with."""
        if self._schemas is not None:
            self._schemas.keep()
            self._schemas = None
        return self._factory

    def useCommitCoordinator(self) -> bool:
        """Return False: rows are sent before any attempt commits, so there is nothing to choose between."""
        return False

    def deserializeMessage(self, text: str) -> WriterCommitMessage:
        """Return the counts of a task."""
        from pyspark_kafka._connector.sink.commit_message import KafkaCommitMessage  # noqa: PLC0415 - for continuous queries

        return KafkaCommitMessage(**json.loads(text))

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        """Do nothing: the rows are already acknowledged."""

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: what was acknowledged stays in the topic."""
