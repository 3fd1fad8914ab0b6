"""The exactly-once write jobs with `exactlyOnceCommit=driver`: identities of sinks and batches, the driver's commit."""

from __future__ import annotations

import logging
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.pool import borrow_client, learned_servers
from pyspark_kafka._client.client.wire.missing_rights import widen
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver.checked_sink import CheckedSinkWrite
from pyspark_kafka._connector.sink.driver.publisher import Publisher
from pyspark_kafka._connector.sink.executor.identity_headers import task_origin
from pyspark_kafka._connector.sink.executor.outbox import KafkaOutboxWriter, PreparedMessage
from pyspark_kafka._connector.sink.executor.task_options import options_of_task
from pyspark_kafka._connector.sink.spool import SpoolFiles
from pyspark_kafka._connector.sink.transactional_ids import default_id
from pyspark_kafka.connector import (
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    StreamingDataWriterFactory,
    WriterCommitMessage,
)
from pyspark_kafka.errors import AccessError, ConnectorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka.connector import PhysicalWriteInfo

_LOG = logging.getLogger(__name__)

_JOB_PREFIX = "batch"
# One in this many micro-batches that spooled nothing looks for what others have left in the spool.
_SWEEP_EVERY = 100


@dataclass(frozen=True, slots=True)
class KafkaOutboxWriterFactory(DataWriterFactory, StreamingDataWriterFactory):
    """Builds the writers of an exactly-once write. Plain data, pickled to executors."""

    options: WriteOptions
    settings: ExactlyOnceOptions
    columns: SinkColumns
    spool: SpoolFiles | None = None
    job_id: str = ""
    query_id: str | None = None

    def of_query(self, query_id: str | None) -> KafkaOutboxWriterFactory:
        """Return the factory for the tasks of one query."""
        return replace(self, query_id=query_id)

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int = 0) -> DataWriter:
        """Build the writer of one task attempt."""
        task = f"{partition_id}-{task_id}"
        origin = task_origin(self.options, self.job_id or self.query_id, epoch_id, partition_id)
        options = options_of_task(self.options, epoch_id)
        return KafkaOutboxWriter(options, self.settings, self.columns, self.spool, epoch_id, task, origin)


class KafkaExactlyOnceStreamingWrite(CheckedSinkWrite):
    """Exactly once, a micro-batch at a time: visible to read_committed readers once and whole, or not at all.

    Tasks encode, and the driver publishes everything in one transaction that also holds a commit marker. The query's
    id, the number of the batch and a fingerprint of its source offsets identify a batch; all are from the checkpoint.
    So exactly-once holds with retried, killed or repeated attempts, with a driver that dies at any moment,
    with other drivers on the same checkpoint, and with a batch that is run again with other partitions or other rows.

    Runs on: driver; `commit` blocks. A new one is built for every micro-batch, and one more to commit.

    Args:
        options: of the write.
        settings: names and times.
        columns: the positions of the sink's columns.
        schemas: of its columns, to be kept in the checkpoint once the sink is known to be the query's.

    Raises:
        CheckpointError: the checkpoint cannot be read; or the commit marker of the sink does not fit it.
        OptionError: the transaction timeout is above what the brokers allow.
        AccessError: rights are missing: WRITE on the transactional id, on the topics, on the commit topic.
    """

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:  # noqa: ARG002 - any number of tasks
        """Return the factory that executors write with, after a check whether this sink may write at all."""
        spool = _spool(self._settings, self._check_sink().query_id)
        return KafkaOutboxWriterFactory(_with_learned_servers(self._options), self._settings, self._columns, spool)

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        """Publish one micro-batch; do nothing if it is published already."""
        prepared = _prepared(messages)
        marker = self._identity.marker(
            epoch_id,
            records=sum(message.records for message in prepared),
            encoded_bytes=sum(message.encoded_bytes for message in prepared),
        )
        spool = _spool(self._settings, marker.query_id)
        with _publisher(self._options, self._settings, marker.sink_id, spool) as publisher:
            found = publisher.publish(marker, [chunk for message in prepared for chunk in message.chunks])
        _LOG.info("Batch %d of '%s': %d records, was %s.", epoch_id, marker.sink_id, marker.records, found.value)
        if spool is not None:
            _clean_up(spool, epoch_id, spooled=_spooled(prepared))

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's contract
        """Remove the spool files of the tasks; none of their record batches was sent."""
        spooled = _spooled(messages)
        if spooled and (spool := _spool(self._settings, self._identity.query_id())) is not None:
            _remove(spool, spooled)

    def _check(self, client: KafkaClient, ours: CommitMarker) -> None:
        Publisher(client, self._options, self._settings, ours.sink_id, None).check(ours)


class KafkaExactlyOnceBatchWrite(BatchWrite):
    """All or nothing: the rows of one batch write become visible to read_committed readers together, or never.

    A write that is run again by the user is another write, and writes again.

    Runs on: driver; `commit` blocks. Pickled to the process that commits.
    """

    def __init__(self, options: WriteOptions, settings: ExactlyOnceOptions, columns: SinkColumns) -> None:
        self._options = options
        self._settings = settings
        self._columns = columns
        self._job_id = f"{_JOB_PREFIX}{uuid.uuid4().hex}"

    def createBatchWriterFactory(self, info: PhysicalWriteInfo) -> DataWriterFactory:  # noqa: ARG002 - any number of tasks
        """Return the factory that executors write with."""
        spool = _spool(self._settings, self._job_id)
        options = _with_learned_servers(self._options)
        return KafkaOutboxWriterFactory(options, self._settings, self._columns, spool, self._job_id)

    def commit(self, messages: Sequence[WriterCommitMessage]) -> None:
        """Publish everything."""
        prepared = _prepared(messages)
        sink_id = self._settings.transactional_id or default_id(self._job_id)
        marker = CommitMarker(
            sink_id=sink_id,
            query_id=self._job_id,
            batch_id=0,
            fingerprint=self._job_id,
            records=sum(message.records for message in prepared),
            encoded_bytes=sum(message.encoded_bytes for message in prepared),
        )
        try:
            with _publisher(self._options, self._settings, sink_id, _spool(self._settings, self._job_id)) as publisher:
                publisher.publish_job(marker, [chunk for message in prepared for chunk in message.chunks])
        except AccessError as error:
            # The id of the next batch write is another one.
            widen(error, default_id(_JOB_PREFIX))
            raise
        self._clean_up()

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - what is left is found by its place
        """Remove the spool files of the tasks; none of their record batches was sent."""
        self._clean_up()

    def _clean_up(self) -> None:
        spool = _spool(self._settings, self._job_id)
        if spool is None:
            return
        with _logged(spool):
            # Also what attempts have left that failed, or lost against another one: nobody else would find it.
            spool.remove_owner()
            spool.remove_dead()


@contextmanager
def _publisher(
    options: WriteOptions, settings: ExactlyOnceOptions, sink_id: str, spool: SpoolFiles | None
) -> Iterator[Publisher]:
    with borrow_client(options.connection) as client:
        yield Publisher(client, options, settings, sink_id, spool)


def _with_learned_servers(options: WriteOptions) -> WriteOptions:
    """Return the options of tasks: they find the cluster also if the bootstrap servers are gone by now."""
    return replace(options, connection=replace(options.connection, learned_servers=learned_servers(options.connection)))


def _spool(settings: ExactlyOnceOptions, owner: str) -> SpoolFiles | None:
    return None if settings.spool_location is None else SpoolFiles(settings.spool_location, owner)


@contextmanager
def _logged(spool: SpoolFiles) -> Iterator[None]:
    """Continue if files could not be removed: their record batches are published, or will be."""
    try:
        yield
    except ConnectorError as error:
        _LOG.warning("Spool files were left in %s: %s", spool.shown, error)


def _clean_up(spool: SpoolFiles, batch_id: int, *, spooled: Sequence[str]) -> None:
    """Remove the files of a published micro-batch, and now and then what attempts of earlier ones have left.

    Most micro-batches spool nothing: those ask the file system for nothing either.
    """
    now_and_then = batch_id % _SWEEP_EVERY == 0
    with _logged(spool):
        if spooled:
            spool.remove_batch(batch_id)
        if spooled or now_and_then:
            spool.remove_before(batch_id)
        if now_and_then:
            spool.remove_dead()


def _remove(spool: SpoolFiles, names: Sequence[str]) -> None:
    # By their names: another driver may be at work on the same micro-batch.
    with _logged(spool):
        spool.remove(names)


def _spooled(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    return [name for message in messages if isinstance(message, PreparedMessage) for name in message.spool_files()]


def _prepared(messages: Sequence[WriterCommitMessage]) -> list[PreparedMessage]:
    prepared = []
    for message in messages:
        if not isinstance(message, PreparedMessage):
            raise TypeError(f"a task of an exactly-once write returned {type(message).__name__}")
        prepared.append(message)
    return prepared
