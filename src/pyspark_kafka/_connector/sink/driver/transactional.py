"""The exactly-once write of a continuous query: lanes commit records and positions, the driver fences before runs."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._base.threads import side_by_side
from pyspark_kafka._base.traces.roles import Traced
from pyspark_kafka._client.client.cluster.pool import borrow_client, learned_servers
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition, GroupPositions
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.client.waiting.outage import OutageRetry
from pyspark_kafka._client.client.waiting.retry import Backoff, attempts
from pyspark_kafka._client.client.waiting.stalls import contact_of
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._client.client.wire.missing_rights import widen
from pyspark_kafka._client.options import option_tracer
from pyspark_kafka._connector.sink.driver.lane_record_file import LaneRecordFile
from pyspark_kafka._connector.sink.executor.task_options import options_of_task
from pyspark_kafka._connector.sink.lane_settings import LaneSettings
from pyspark_kafka._connector.sink.source_positions import (
    UNKNOWN_ID,
    LaneRecord,
    PositionNote,
    check_owned,
    committed_states,
    is_same,
    merge_positions,
    restored,
)
from pyspark_kafka._connector.sink.transactional_ids import default_id, lane_id, lane_prefix
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.connector import CommitLimit, DataWriter, StreamingDataWriterFactory, SupportsSourceOffsets
from pyspark_kafka.errors import AccessError, CapabilityError, DeliveryError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.traces.roles import Tracer
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._connector.sink.driver.write_schemas import PendingSchemas
    from pyspark_kafka.connector import Offset, PhysicalWriteInfo, WriterCommitMessage

# How many transactional ids are taken over side by side: each waits for the brokers to abort what was open.
_AT_A_TIME = 8
# An epoch ends by a message of the driver, which may be late. A transaction that lasts longer than its time is aborted.
_EPOCHS_A_TIMEOUT = 3
# The number of preparations if it is unknown whether the group has the starting positions.
_MAX_ATTEMPTS = 3
# So that group and coordinator forget nothing; less than brokers may be set to.
_IDLE_EPOCH_SECONDS = 3_600.0
# The epoch of lanes is not the first contact with the cluster: the driver has fetched their transactions from it.
_ANY_EPOCH = 1


@dataclass(frozen=True)
class KafkaTransactionWriterFactory(LaneSettings, StreamingDataWriterFactory, Traced):
    """A builder for the writers of one run's lanes."""

    def open_tracer(self) -> Tracer | None:
        """Return the tracer of this process; see `Traced`."""
        return None if self.options.trace is None else option_tracer()

    @property
    def trace_parent(self) -> str:
        """The span that runs the query, if an option or a variable names it."""
        return "" if self.options.trace is None else self.options.trace.parent

    def createWriter(self, partition_id: int, task_id: int, epoch_id: int) -> DataWriter:  # noqa: ARG002 - one a lane and run
        """Build the writer of one lane, for the whole run."""
        from pyspark_kafka._connector.sink.executor.transaction_writer import KafkaTransactionWriter  # noqa: PLC0415 - on executors

        return KafkaTransactionWriter(self, self.transactions[partition_id])


class KafkaTransactionalWrite(SupportsSourceOffsets, Traced):
    """Exactly once from Kafka to Kafka: each lane commits its records and its positions in transactions of its own.

    The positions are in a consumer group that has no members, so that Kafka's own tools show the lag. It is right where
    it is ahead of the checkpoint. Which transactional ids and which positions there must be is in the checkpoint, in
    the file `continuous/transactions`, before any task runs.

    Runs on: driver; one thread; methods block. Does not pickle; its factory does.

    Args:
        options: of the write.
        settings: names and times.
        columns: the positions of the sink's columns.
        query_id: of the query.
        source: the connection to the source's cluster.
        epoch_ms: the length of an epoch.
        schemas: of its columns, to be kept in the checkpoint once a run is prepared.

    Raises:
        OptionError: an epoch does not fit in a transaction, or an option has no meaning here; or the names of
            transactions or group are others than before.

    Source: KIP-98, KIP-447, KIP-890; docs/decisions/continuous-exactly-once.md.
    """

    def __init__(
        self,
        options: WriteOptions,
        settings: ExactlyOnceOptions,
        columns: SinkColumns,
        *,
        query_id: str,
        source: ConnectionOptions,
        epoch_ms: int,
        schemas: PendingSchemas | None = None,
    ) -> None:
        if settings.checkpoint_location is None:
            raise ValueError("an exactly-once query needs its checkpoint")
        _check_options(options, settings, epoch_ms)
        self._options, self._source = options, source
        self._file = LaneRecordFile(CheckpointFiles(settings.checkpoint_location))
        self._sink_id = settings.transactional_id or default_id(query_id)
        self._factory = KafkaTransactionWriterFactory(
            options_of_task(options, _ANY_EPOCH),
            columns,
            settings.transaction_timeout_ms,
            query_id,
            settings.offsets_group_id or default_id(query_id),
        )
        self._schemas = schemas
        self._max_markers = settings.max_markers_per_second
        # The start of the query that takes over; a write without an engine has a name of its own.
        self._owner = uuid.uuid4().hex
        self._has_taken_over = False
        self._record: LaneRecord | None = None
        self._transactions: list[OpenTransaction] = []
        self._group: dict[TopicPartition, GroupPosition] = {}
        # Of `committedOffset`: what it was asked with, and the ids of the topics; of `prepareStates`: its texts.
        self._checkpoint: Mapping[TopicPartition, int] = {}
        self._ids_now: Mapping[str, str] = {}
        self._states: Mapping[str, str] = {}

    @property
    def columns(self) -> SinkColumns:
        """The columns of the sink, for reports."""
        return self._factory.columns

    def takeOver(self) -> None:
        """Fence every lane of earlier runs; what they left open is aborted, or its commit is completed.

        Raises:
            DeliveryError: another driver has taken over since this one did (condition SINK_TAKEN_OVER).
            CapabilityError: source and sink are in different clusters.
            CheckpointError: the group has positions of something else.
        """
        if not self._has_taken_over:
            self._owner = self._file.start() or self._owner
        self._record = record = self._own()
        query_id, group_id = self._factory.query_id, self._factory.group_id

        def attempt() -> None:
            if not self._has_taken_over:
                self._check_cluster()
            # The first lane's even if none has written: under it a driver that died may have begun to set the group.
            self._transactions = self._fence(range(max(1, record.lanes)))
            with borrow_client(self._options.connection) as client:
                self._group = GroupPositions(client, group_id).fetch()

        step = f"taking over the transactions of query {query_id}"
        self._outage_retry().call(step, attempt)
        check_owned(self._group, query_id, group_id)
        known = restored(record, self._group)
        if known != record:
            # Lanes that were not fenced yet may have committed since.
            self._record = record = known
            self._outage_retry().call(step, attempt)
        self._has_taken_over = True

    def committedOffset(self, start: Offset) -> str:
        """Return the later one of checkpoint and group, partition by partition."""
        self._checkpoint = KafkaSourceOffset.from_json(start.json()).partitions
        record = self._taken_over()
        self._ids_now = self._topic_ids({tp.topic for tp, _ in record.tracked(self._checkpoint)})
        return KafkaSourceOffset(merge_positions(self._checkpoint, self._group, record, self._ids_now)).json()

    def committedStates(self, epoch: int) -> Mapping[str, str | None]:
        """Return the states that lanes have committed with the positions of the group, by topic-partition."""
        found = committed_states(self._checkpoint, self._group, self._taken_over(), self._ids_now, epoch)
        return {str(topic_partition): state for topic_partition, state in found.items()}

    def prepareStates(self, states: Mapping[str, str]) -> None:
        """Keep the states at the start of the run for their positions."""
        self._states = states

    def prepareLanes(self, planned: Offset, lanes: int) -> None:
        """Fence further lanes, bring the group to where the readers begin, and write down what there is now."""
        self._taken_over()
        positions = KafkaSourceOffset.from_json(planned.json()).partitions
        topic_ids = self._topic_ids({tp.topic for tp in positions})
        query_id, states = self._factory.query_id, self._states
        notes = {
            tp: PositionNote(query_id, topic_ids.get(tp.topic, UNKNOWN_ID), state=states.get(str(tp), ""))
            for tp in positions
        }
        behind = {
            tp: GroupPosition(offset, notes[tp].text())
            for tp, offset in positions.items()
            if not _is_at(self._group.get(tp), offset, notes[tp])
        }

        def attempt() -> None:
            # The transactions of a former run with more lanes are fenced, too.
            known = self._transactions[:lanes]
            self._transactions = known + self._fence(range(len(known), lanes))
            if behind:
                self._set_group(behind)

        step = f"preparing {lanes} lanes of query {self._factory.query_id}"
        for number in attempts(Backoff.constant(0), max_attempts=_MAX_ATTEMPTS):
            try:
                self._outage_retry().call(step, attempt)
                break
            except (TransactionInDoubtError, TransactionLostError):
                # An outage, or another driver: which of them, the next takeover tells.
                if number == _MAX_ATTEMPTS:
                    raise
                self.takeOver()
        self._group.update(behind)
        partitions = {tp: note.topic_id for tp, note in notes.items()}
        # Read again: what another driver has written meanwhile must not be written over.
        found = self._own()
        self._record = found.planned(self._checkpoint, partitions, lanes)
        self._file.write(self._record)
        self._factory = replace(
            self._factory,
            transactions=tuple(self._transactions),
            topic_ids=topic_ids,
            positions={tp: (offset, notes[tp].state) for tp, offset in positions.items()},
        )

    def idleEpochSeconds(self) -> float:
        """Return an hour: brokers forget what is not renewed, after a week where they are not set otherwise."""
        return _IDLE_EPOCH_SECONDS

    def commitLimit(self) -> CommitLimit:
        """Return the limit of transaction markers; a longer epoch has no room in a transaction."""
        return CommitLimit(
            self._max_markers,
            "transaction markers",
            "maxTransactionMarkersPerSecond",
            self._factory.timeout_ms / 1000 / _EPOCHS_A_TIMEOUT,
            "Set fewer tasks, write to fewer partitions from each, or raise that option if the brokers can take it. "
            "Epochs can be as long as a third of kafka.transaction.timeout.ms.",
        )

    def createStreamingWriterFactory(self, info: PhysicalWriteInfo) -> StreamingDataWriterFactory:  # noqa: ARG002 - prepared
        """Return the factory that executors write with."""
        if self._schemas is not None:
            self._schemas.keep()
            self._schemas = None
        options = self._factory.options
        connection = replace(options.connection, learned_servers=learned_servers(options.connection))
        return replace(self._factory, options=replace(options, connection=connection))

    def useCommitCoordinator(self) -> bool:
        """Return False: brokers choose, by the identity of a lane."""
        return False

    def deserializeMessage(self, text: str) -> WriterCommitMessage:
        """Return the counts of a lane."""
        from pyspark_kafka._connector.sink.commit_message import KafkaCommitMessage  # noqa: PLC0415 - as in at_least_once

        return KafkaCommitMessage(**json.loads(text))

    def commit(self, epoch_id: int, messages: Sequence[WriterCommitMessage]) -> None:
        """Do nothing: each lane has committed its transaction before it reported."""

    def abort(self, epoch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: what lanes have committed stays, and the next run continues behind it."""

    def open_tracer(self) -> Tracer | None:
        """Return the tracer of this process; see `Traced`."""
        return self._factory.open_tracer()

    @property
    def trace_parent(self) -> str:
        """The span that runs the query, if an option or a variable names it."""
        return self._factory.trace_parent

    def _set_group(self, positions: Mapping[TopicPartition, GroupPosition]) -> None:
        """Set positions under the identity of the first lane: a driver that another one has replaced cannot."""
        first, group_id = self._transactions[0], self._factory.group_id
        with borrow_client(self._options.connection) as client:
            owner = TransactionalId(client, first.name, self._factory.timeout_ms)
            owner.join_group(first, group_id)
            GroupPositions(client, group_id).commit_within(first, positions)
            self._transactions[0] = owner.end(first, commit=True)

    def _own(self) -> LaneRecord:
        """Write this driver down as the owner, unless another one has done so since; return what there was.

        A start of the query that was replaced may write itself down late. It ends when it looks at the checkpoint the
        next time, so the start that owns the checkpoint takes over again.
        """
        found = self._file.read()
        group_id = self._factory.group_id
        if found is None:
            if self._has_taken_over:
                raise self._taken_by_other("its record in the checkpoint was removed")
            found = LaneRecord(self._owner, group_id, self._sink_id)
        for option, before, now in (
            ("kafka.transactional.id", found.prefix, self._sink_id),
            ("offsetsGroupId", found.group_id, group_id),
        ):
            if before != now:
                raise OptionError(
                    f"The checkpoint of query {self._factory.query_id} was written with '{option}' {before!r}, which "
                    f"is {now!r} now: what was written exactly once would be written again. Nothing was read.",
                    condition="OPTION_CONFLICT",
                    hint=f"Set '{option}' to {before!r}.",
                    parameters={"option": option, "before": before, "now": now},
                )
        if self._has_taken_over and found.owner != self._owner and self._file.start() != self._owner:
            raise self._taken_by_other("it has taken over since")
        record = replace(found, owner=self._owner)
        if record != found or not self._has_taken_over:
            self._file.write(record)
        return record

    def _taken_by_other(self, reason: str) -> DeliveryError:
        return DeliveryError(
            f"Another driver runs query {self._factory.query_id}: {reason}. This one ends; nothing that it wrote since "
            "is visible.",
            condition="SINK_TAKEN_OVER",
            hint="Let only one driver run the query.",
            parameters={"query_id": self._factory.query_id},
        )

    def _taken_over(self) -> LaneRecord:
        if self._record is None:
            raise RuntimeError("takeOver() comes first")
        return self._record

    def _check_cluster(self) -> None:
        with borrow_client(self._options.connection) as sink, borrow_client(self._source) as source:
            written, read = (client.fetch_metadata(()).cluster_id for client in (sink, source))
        if written != read:
            raise CapabilityError(
                f"The query reads cluster {read!r} and writes cluster {written!r}: a transaction cannot span both. "
                "Nothing was read.",
                condition="EXACTLY_ONCE_OTHER_CLUSTER",
                hint="Use deliveryGuarantee=at_least_once, or a micro-batch query, which is exactly once between "
                "clusters too.",
                parameters={"source": read, "sink": written},
            )

    def _fence(self, lanes: Iterable[int]) -> list[OpenTransaction]:
        """Become the owner of the transactional ids of lanes; return their first transactions, in order."""

        def fence(lane: int) -> OpenTransaction:
            try:
                with borrow_client(self._options.connection) as client:
                    return TransactionalId(client, lane_id(self._sink_id, lane), self._factory.timeout_ms).fence()
            except AccessError as error:
                # On the ids of all lanes, of which there may be more tomorrow.
                widen(error, lane_prefix(self._sink_id))
                raise

        return side_by_side(fence, lanes, _AT_A_TIME, "transactions")

    def _topic_ids(self, topics: set[str]) -> dict[str, str]:
        """Return the ids of the topics that exist."""
        if not topics:
            return {}

        def attempt() -> dict[str, str]:
            with borrow_client(self._options.connection) as client:
                return _topic_ids(client, topics)

        return self._outage_retry().call("looking up topics", attempt)

    def _outage_retry(self) -> OutageRetry:
        contact = contact_of(self._options.connection.bootstrap_servers)
        return OutageRetry(self._options.outage_timeout_ms, contact, reached=lambda: contact.known)


def _topic_ids(client: KafkaClient, topics: set[str]) -> dict[str, str]:
    found = client.fetch_metadata(topics).topics.values()
    for topic in found:
        # Without its id, a position would count as a position of the same topic.
        error = topic.error_for("Read")
        if isinstance(error, AccessError):
            raise error
    return {
        topic.name: UNKNOWN_ID if topic.topic_id is None else str(topic.topic_id)
        for topic in found
        if topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


def _is_at(position: GroupPosition | None, offset: int, expected: PositionNote) -> bool:
    if position is None or position.offset != offset:
        return False
    note = PositionNote.parse(position.metadata)
    return note is not None and is_same(note.topic_id, expected.topic_id) and note.state == expected.state


def _check_options(options: WriteOptions, settings: ExactlyOnceOptions, epoch_ms: int) -> None:
    timeout_ms = settings.transaction_timeout_ms
    if epoch_ms * _EPOCHS_A_TIMEOUT > timeout_ms:
        raise OptionError(
            f"An epoch of {epoch_ms} ms is too long for option 'kafka.transaction.timeout.ms', {timeout_ms} ms: a "
            f"transaction lasts for an epoch, and must have time for {_EPOCHS_A_TIMEOUT}. Nothing was read.",
            condition="OPTION_CONFLICT",
            hint="Make epochs shorter with trigger(continuous=…), or raise the option.",
            parameters={"epoch_ms": epoch_ms, "timeout_ms": timeout_ms},
        )
    if options.identity_headers:
        raise OptionError(
            "Option 'identityHeaders' does not go with exactly_once in a continuous query: an epoch that a failure "
            "has cut has other rows when it runs again, under the same numbers. Nothing was read.",
            condition="OPTION_CONFLICT",
            hint="Remove the option: no record is written twice.",
        )
