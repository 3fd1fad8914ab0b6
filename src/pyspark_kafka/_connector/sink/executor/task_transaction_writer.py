"""Writes the rows of one task of a micro-batch in a transaction of its own, which the driver ends."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.inspection import TransactionState, describe_transaction
from pyspark_kafka._client.client.transactions.open_transaction import Generation
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.client.wire.missing_rights import widen
from pyspark_kafka._connector.sink.executor.partition_lookup import PartitionLookup
from pyspark_kafka._connector.sink.executor.record_batch_encoder import RecordBatchEncoder
from pyspark_kafka._connector.sink.tasks.ids import TaskIds
from pyspark_kafka._connector.sink.tasks.transactions import TaskTransaction
from pyspark_kafka.connector import DataWriter, WriterCommitMessage
from pyspark_kafka.errors import AccessError, ConnectorError, DeliveryError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._connector.sink.executor.identity_headers import TaskOrigin
    from pyspark_kafka._connector.sink.executor.record_batch_encoder import EncodedBatch
    from pyspark_kafka._connector.sink.tasks.transactions import Planning

_LOG = logging.getLogger(__name__)

# How long an abort waits for the responses to writes in flight; a lost packet is sent again within 2 s.
_SETTLE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class TaskTransactionMessage(WriterCommitMessage):
    """The commit message of one task in a micro-batch.

    Attributes:
        planning: of the micro-batch.
        task: its transaction, which is open and holds all its records; None: it had no rows.
    """

    planning: Planning
    task: TaskTransaction | None


class KafkaTaskTransactionWriter(DataWriter):
    """Sends the rows of one task as they come, in a transaction under an id that no other attempt uses.

    It never commits: the driver does, once it has written down which attempts are. What an attempt leaves open that
    failed, lost against another one or still runs after its micro-batch, is aborted by the attempt or by the driver.

    Runs on: executor; one for each task attempt, on one thread; blocks on the network. Memory: as `KafkaDataWriter`.

    Args:
        options: topic, producer, sizes.
        settings: the times of the transaction.
        columns: the positions of the sink's columns.
        planning: of the micro-batch.
        sink_id: the sink's transactional id.
        origin: the task, for identity headers; None without them.

    Raises:
        RecordError: a row cannot be sent.
        DeliveryError: rows were not acknowledged in time, or refused; or the driver has given the micro-batch up.
        AccessError: rights are missing: on the transactional ids, on the topics.
    """

    def __init__(
        self,
        options: WriteOptions,
        settings: ExactlyOnceOptions,
        columns: SinkColumns,
        planning: Planning,
        sink_id: str,
        origin: TaskOrigin | None,
    ) -> None:
        self._options, self._settings, self._sink_id = options, settings, sink_id
        self._timeout_ms = settings.task_timeout_ms or settings.transaction_timeout_ms
        self._planning = planning
        self._ids = TaskIds(sink_id, planning.pool, planning.transaction.identity.producer_epoch)
        self._resources = ExitStack()
        self._topics = PartitionLookup(options)
        self._encoder = RecordBatchEncoder(options, columns, self._topics, origin)
        self._name = ""
        self._owner: TransactionalId | None = None
        self._producer: Producer | None = None
        self._transaction: OpenTransaction | None = None
        # The records in the last batch of each partition that was written to.
        self._last_batches: dict[TopicPartition, int] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are sent when enough are gathered, or at `commit`."""
        if self._producer is not None:
            self._producer.poll(everything=False)
        self._send(self._encoder.gather_rows(batch))

    def commit(self) -> TaskTransactionMessage:
        """Send what is left and wait for every acknowledgement; the transaction stays open."""
        self._send(self._encoder.finish())
        if self._producer is None or self._transaction is None:
            return TaskTransactionMessage(self._planning, None)
        self._producer.flush()
        self._check_undecided()
        offsets = {
            topic_partition: (first, last + records)
            for topic_partition, records in self._last_batches.items()
            if (first := self._producer.first_offset(topic_partition)) is not None
            and (last := self._producer.last_offset(topic_partition)) is not None
        }
        task = TaskTransaction(
            self._transaction,
            self._encoder.records,
            self._encoder.encoded_bytes,
            offsets,
            timeout_ms=self._timeout_ms if self._owner is None or self._owner.has_timeout else None,
        )
        return TaskTransactionMessage(self._planning, task)

    def _check_undecided(self) -> None:
        """Raise if the driver has decided without this attempt, or was replaced: nobody would end its transaction.

        Until then nothing was written under the driver's identity. What comes between this look and the decision is
        aborted by the driver.
        """
        planned = self._planning.transaction
        with borrow_client(self._options.connection) as client:
            found = describe_transaction(client, planned.name)
        if found is None or (found.state, found.producer_id, found.producer_epoch) != (
            TransactionState.EMPTY,
            planned.identity.producer_id,
            planned.identity.producer_epoch,
        ):
            raise DeliveryError(
                f"The micro-batch of this task was committed or given up meanwhile: the sink '{planned.name}' has gone "
                "on. What the task has written is aborted.",
                condition="TASK_TOO_LATE",
                hint="Nothing is to be done if another attempt of the task has succeeded.",
                parameters={"sink_id": planned.name},
            )

    def abort(self) -> None:
        """Abort the transaction, so that readers of its topics do not wait for the driver."""
        self._encoder.drop()
        if self._owner is None or self._producer is None or self._transaction is None:
            return
        try:
            is_v2 = self._transaction.identity.generation is Generation.V2
            # In V1 a write that comes after the abort would be appended.
            if is_v2 or self._producer.settle(_SETTLE_SECONDS):
                self._owner.end(self._transaction, commit=False)
                return
            reason: object = f"a write to it had no response within {_SETTLE_SECONDS} s"
        except ConnectorError as error:
            reason = error
        _LOG.warning(
            "The transaction of '%s' is left open until the driver aborts it, or its timeout: %s", self._name, reason
        )

    def close(self) -> None:
        """Return the connections and the transactional id. Safe to call again."""
        self._topics.close()
        self._resources.close()
        if self._name:
            # A task of a later micro-batch takes it over, when this one is committed or given up.
            self._ids.give_back(self._name)
            self._name = ""

    def _send(self, batches: Iterable[EncodedBatch]) -> None:
        left = iter(batches)
        for first in left:
            producer, transaction, owner = self._open()
            gathered = [first]
            if transaction.identity.generation is Generation.V1:
                # Partitions join before they are written to: all of what was gathered in one request.
                gathered.extend(left)
                owner.join(transaction, {batch.topic_partition for batch in gathered})
            for batch in gathered:
                producer.send_batch(*batch)
                self._last_batches[batch.topic_partition] = batch.record_count

    def _open(self) -> tuple[Producer, OpenTransaction, TransactionalId]:
        """Begin the transaction with the first record batch: a task without rows has none."""
        if self._producer is None or self._transaction is None or self._owner is None:
            # One for the records, and one for the coordinator: each has its own requests in flight.
            client, asking = (self._resources.enter_context(borrow_client(self._options.connection)) for _ in range(2))
            self._name = self._ids.take_id()
            self._owner, self._transaction = self._take_over(asking)
            self._producer = self._resources.enter_context(
                Producer(
                    client,
                    self._options.producer,
                    transaction=self._transaction,
                    buffer_bytes=self._options.max_unacknowledged_bytes,
                    topic_timeout_ms=self._options.max_block_ms,
                    outage_timeout_ms=self._options.outage_timeout_ms,
                )
            )
        return self._producer, self._transaction, self._owner

    def _take_over(self, client: KafkaClient) -> tuple[TransactionalId, OpenTransaction]:
        owner = TransactionalId(client, self._name, self._timeout_ms, two_phase=True)
        try:
            return owner, owner.fence()
        except AccessError as error:
            # On the ids of all tasks, of which there are others tomorrow.
            widen(error, self._sink_id)
            raise
        except OptionError as error:
            accepted_ms = self._settings.transaction_timeout_ms
            if error.condition != "TRANSACTION_TIMEOUT_TOO_LARGE" or self._timeout_ms == accepted_ms:
                raise
            # Brokers allow less than our default for tasks; they have accepted the sink's.
            self._timeout_ms = accepted_ms
            return self._take_over(client)
