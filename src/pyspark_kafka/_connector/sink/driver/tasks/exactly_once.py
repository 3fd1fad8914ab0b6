"""Exactly-once micro-batches whose tasks publish: the driver plans, decides, and ends their transactions."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.pool import borrow_client, learned_servers
from pyspark_kafka._client.client.waiting.outage import OutageRetry
from pyspark_kafka._client.client.waiting.stalls import contact_of
from pyspark_kafka._connector.sink.driver.checked_sink import BatchIdentity, CheckedSinkWrite
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.tasks.commit_calls import BrokerTaskCommitCalls
from pyspark_kafka._connector.sink.driver.tasks.commits import TaskCommits
from pyspark_kafka._connector.sink.executor.identity_headers import task_origin
from pyspark_kafka._connector.sink.executor.task_options import options_of_task
from pyspark_kafka._connector.sink.executor.task_transaction_writer import (
    KafkaTaskTransactionWriter,
    TaskTransactionMessage,
)
from pyspark_kafka.connector import DataWriter, StreamingDataWriterFactory, WriterCommitMessage
from pyspark_kafka.errors import DeliveryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._connector.sink.commit_marker import CommitMarker
    from pyspark_kafka._connector.sink.tasks.transactions import Planning
    from pyspark_kafka.connector import PhysicalWriteInfo

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KafkaTaskTransactionWriterFactory(StreamingDataWriterFactory):
    """Builds the writers of one micro-batch. Plain data, pickled to executors once it is planned.

    Attributes:
        options: of the write.
        settings: names and times.
        columns: the positions of the sink's columns.
        planning: of the micro-batch; None until `for_tasks`.
        query_id: of the query, for identity headers.
    """

    options: WriteOptions
    settings: ExactlyOnceOptions
    columns: SinkColumns
    planning: Planning | None = None
    query_id: str | None = None

    def of_query(self, query_id: str | None) -> KafkaTaskTransactionWriterFactory:
        """Return the factory for the tasks of one query."""
        return replace(self, query_id=query_id)

    def for_tasks(self) -> KafkaTaskTransactionWriterFactory:
        """Plan the micro-batch: replace the driver before, and complete what it has decided."""
        identity = BatchIdentity(self.settings)
        ours = identity.marker_of_sink(identity.newest_batch())
        contact = contact_of(self.options.connection.bootstrap_servers)
        retry = OutageRetry(self.options.outage_timeout_ms, contact, reached=identity.has_run)

        def plan() -> Planning:
            with _commits(self.options, self.settings, ours.sink_id) as commits:
                return commits.plan(ours)

        planning = retry.call(f"planning a micro-batch of the sink '{ours.sink_id}'", plan)
        connection = replace(self.options.connection, learned_servers=learned_servers(self.options.connection))
        return replace(self, options=replace(self.options, connection=connection), planning=planning)

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int) -> DataWriter:  # noqa: ARG002 - of a task
        """Build the writer of one task attempt."""
        planning = self.planning
        if planning is None:
            raise RuntimeError("for_tasks() comes first")
        origin = task_origin(self.options, self.query_id, epoch_id, partition_id)
        return KafkaTaskTransactionWriter(
            options_of_task(self.options, epoch_id),
            self.settings,
            self.columns,
            planning,
            planning.transaction.name,
            origin,
        )


class KafkaTaskCommitStreamingWrite(CheckedSinkWrite):
    """Exactly once, a micro-batch at a time, with the throughput of all executors.

    Tasks write in transactions of their own; the driver writes down which of them are committed, and ends them. Each
    record is visible to read_committed readers once; a micro-batch becomes visible transaction by transaction.

    Runs on: driver; `commit` blocks. A new one is built for every micro-batch, and one more to commit.

    Args:
        options: of the write.
        settings: names and times.
        columns: the positions of the sink's columns.
        schemas: of its columns, to be kept in the checkpoint once the commit topic is known to be usable.

    Raises:
        CheckpointError: the checkpoint cannot be read; or the commit marker of the sink does not fit it.
        DeliveryError: another driver has taken over, the tasks took too long, or a part of a decided batch is lost.
        OptionError: the transaction timeout is above what the brokers allow.
        AccessError: rights are missing: WRITE on the transactional ids, on the topics, on the commit topic.

    Source: docs/decisions/tasks-as-publishers.md.
    """

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:  # noqa: ARG002 - any number of tasks
        """Return the factory, whose `for_tasks` plans the micro-batch: here nothing is taken over.

        PySpark calls this once more in the process that commits, when tasks have written under the planning.
        """
        self._check_sink()
        return KafkaTaskTransactionWriterFactory(self._options, self._settings, self._columns)

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        """Commit what the tasks have written; do nothing if the micro-batch is committed already."""
        told = _messages(messages)
        tasks = [message.task for message in told if message.task is not None]
        ours = self._identity.marker(
            epoch_id,
            records=sum(task.records for task in tasks),
            encoded_bytes=sum(task.encoded_bytes for task in tasks),
        )
        with _commits(self._options, self._settings, ours.sink_id) as commits:
            # A micro-batch without tasks has brought no planning.
            planning = told[0].planning if told else commits.plan(ours)
            found = commits.commit_batch(planning, ours, tasks)
        _LOG.info("Batch %d of '%s': %d records, was %s.", epoch_id, ours.sink_id, ours.records, found.value)

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's contract
        """Abort the transactions of the tasks; the next planning ends the transactions of a decided micro-batch."""
        told = _messages([message for message in messages if message is not None])
        if told:
            with _commits(self._options, self._settings, told[0].planning.transaction.name) as commits:
                commits.abort(told[0].planning)

    def _check(self, client: KafkaClient, ours: CommitMarker) -> None:  # noqa: ARG002 - the planning checks whose the sink is
        CommitTopic(client, self._settings.commit_topic).check()


@contextmanager
def _commits(options: WriteOptions, settings: ExactlyOnceOptions, sink_id: str) -> Iterator[TaskCommits]:
    with borrow_client(options.connection) as client:
        calls = BrokerTaskCommitCalls(client, options, settings, sink_id)
        yield TaskCommits(calls, sink_id, settings.transaction_timeout_ms)


def _messages(messages: Sequence[WriterCommitMessage | None]) -> list[TaskTransactionMessage]:
    told = []
    for message in messages:
        if not isinstance(message, TaskTransactionMessage):
            raise TypeError(f"a task of an exactly-once write returned {type(message).__name__}")
        told.append(message)
    if len({message.planning for message in told}) > 1:
        raise DeliveryError(
            "Tasks of one micro-batch were planned more than once. Nothing of it is visible.",
            condition="SINK_TAKEN_OVER",
            hint="Start the query again.",
        )
    return told
