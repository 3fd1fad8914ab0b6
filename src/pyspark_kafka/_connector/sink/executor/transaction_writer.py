"""Writes the rows of one lane of a continuous query exactly once: a transaction for each epoch, with positions."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition, GroupPositions
from pyspark_kafka._client.client.transactions.open_transaction import Generation
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._connector.sink.commit_message import KafkaCommitMessage
from pyspark_kafka._connector.sink.executor.record_batch_encoder import RecordBatchEncoder
from pyspark_kafka._connector.sink.source_positions import UNKNOWN_ID, PositionNote
from pyspark_kafka.connector import SourceOffsetsWriter
from pyspark_kafka.errors import ConnectorError, RecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._connector.sink.executor.record_batch_encoder import EncodedBatch
    from pyspark_kafka._connector.sink.lane_settings import LaneSettings
    from pyspark_kafka.connector import PartitionOffset

_LOG = logging.getLogger(__name__)

# Brokers apply the end of a transaction within milliseconds; until then they refuse the next one. Java waits 20 ms.
_RETRY_MS = 5
# How long an abort waits for the responses to writes in flight; a lost packet is sent again within 2 s.
_SETTLE_SECONDS = 5
# Brokers forget positions, and transactional ids, that are not used for days; an idle lane renews them.
RENEWAL_SECONDS = 3_000.0


class KafkaTransactionWriter(SourceOffsetsWriter):
    """Sends the rows of one lane as they come, in a transaction that is committed at the end of the epoch.

    The positions of the reader are part of it. Under the identity that the driver has got, so that a lane of an older
    run is fenced: it never asks for another. A commit that stays without a response, or a transaction that someone
    else has ended, fails the lane; the driver's next takeover decides.

    Runs on: executor; one for each lane and run, on the lane's thread; blocks on the network. Memory: as
    `KafkaDataWriter`.

    Args:
        settings: what all lanes share.
        transaction: the lane's first one.
        clock: monotonic seconds.

    Raises:
        RecordError: a row cannot be sent.
        DeliveryError: rows were not acknowledged in time, or refused; or the transaction is lost.
        TransactionInDoubtError: it is unknown whether the epoch is committed.

    Source: KIP-98, KIP-447, KIP-890.
    """

    def __init__(
        self,
        settings: LaneSettings,
        transaction: OpenTransaction,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transaction = transaction
        self._topic_ids, self._query_id = settings.topic_ids, settings.query_id
        options = settings.options
        connection = replace(
            options.connection, retry_backoff_ms=min(_RETRY_MS, options.connection.retry_backoff_max_ms)
        )
        self._resources = ExitStack()
        # One for the records, and one for the coordinators: each has its own requests in flight.
        client, asking = (self._resources.enter_context(borrow_client(connection)) for _ in range(2))
        self._id = TransactionalId(asking, transaction.name, settings.timeout_ms)
        self._group = GroupPositions(asking, settings.group_id)
        self._producer = self._resources.enter_context(
            Producer(
                client,
                options.producer,
                transaction=transaction,
                buffer_bytes=options.max_unacknowledged_bytes,
                topic_timeout_ms=options.max_block_ms,
                outage_timeout_ms=options.outage_timeout_ms,
            )
        )
        self._encoder = RecordBatchEncoder(options, settings.columns, self._producer)
        # What the group has: offset and state.
        self._committed: dict[TopicPartition, tuple[int, str]] = dict(settings.positions)
        self._states: Mapping[str, str] = {}
        self._clock = clock
        self._renewed_at = clock()
        # Whether brokers may have the transaction; and whether it can be given up without further requests.
        self._is_open = False
        self._is_sound = True
        self._told = (0, 0)
        # The partitions that the transaction has records in: each gets a marker at its end.
        self._written: set[TopicPartition] = set()
        self._markers = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are sent when enough are gathered, at `flushNow`, or at the end of the epoch."""
        with self._asking():
            self._send(self._encoder.gather_rows(batch))

    def flushNow(self) -> None:
        """Send the gathered rows."""
        with self._asking():
            batches = list(self._encoder.finish())
            self._join(batches)
            self._producer.send_batches(batches)

    def setStates(self, states: Mapping[str, str]) -> None:
        """Keep the text of each topic-partition's state for its position."""
        self._states = states

    def commitEpoch(self, epoch_id: int, position: PartitionOffset) -> KafkaCommitMessage:
        """Commit rows, positions and states in one transaction; do nothing without rows if nothing has moved."""
        offsets, states = KafkaSourceOffset.from_json(position.json()).partitions, self._states
        positions = {tp: (offset, states.get(str(tp), "") if states else "") for tp, offset in offsets.items()}
        self._markers = 0
        with self._asking():
            self._send(self._encoder.finish())
            self._producer.flush()
            moved = positions
            if self._clock() - self._renewed_at < RENEWAL_SECONDS:
                moved = {tp: found for tp, found in positions.items() if self._committed.get(tp) != found}
            if moved:
                self._open()
                self._id.join_group(self._transaction, self._group.group_id)
                self._group.commit_within(
                    self._transaction,
                    {tp: GroupPosition(found[0], self._note(tp, epoch_id, found[1])) for tp, found in moved.items()},
                )
            if self._is_open:
                self._transaction = self._id.end(self._transaction, commit=True)
                self._is_open = False
                # One more for the positions: all positions of a group are in one partition.
                self._markers = len(self._written) + bool(moved)
                self._written.clear()
                self._producer.continue_in(self._transaction)
                self._committed.update(moved)
                if len(moved) == len(positions):
                    self._renewed_at = self._clock()
        records, encoded_bytes = self._encoder.records, self._encoder.encoded_bytes
        before, self._told = self._told, (records, encoded_bytes)
        return KafkaCommitMessage(records - before[0], encoded_bytes - before[1])

    def commitCost(self) -> int:
        """Return the number of markers that brokers write at the end of the last transaction."""
        return self._markers

    def abort(self) -> None:
        """Give up the transaction, so that readers of its topics do not wait until its time is over."""
        self._encoder.drop()
        if not (self._is_open and self._is_sound):
            # After an error of the brokers the driver's next takeover ends it, or its timeout.
            return
        self._is_open = False
        try:
            if self._is_settled():
                self._producer.close()
                self._id.end(self._transaction, commit=False)
                return
            reason: object = f"a write to it had no response within {_SETTLE_SECONDS} s"
        except ConnectorError as error:
            reason = error
        _LOG.warning(
            "The transaction of '%s' is left open until the next run of the query, or its timeout: %s",
            self._transaction.name,
            reason,
        )

    def _is_settled(self) -> bool:
        """Whether no write of the transaction can come after its end.

        In V2 an end raises the epoch, and brokers refuse what comes later. In V1 brokers before Kafka 3.6 append it,
        and the commit of a later transaction makes it visible. A takeover raises the epoch in both.
        """
        is_v2 = self._transaction.identity.generation is Generation.V2
        return is_v2 or self._producer.settle(_SETTLE_SECONDS)

    def close(self) -> None:
        """Return the connections. Safe to call again."""
        self._resources.close()

    def _open(self) -> None:
        self._is_open = True

    def _send(self, batches: Iterable[EncodedBatch]) -> None:
        if self._transaction.identity.generation is Generation.V1:
            # Partitions join before they are written to: all of what was gathered in one request.
            batches = list(batches)
            self._join(batches)
        for batch in batches:
            self._join((batch,))
            self._producer.send_batch(*batch)

    def _join(self, batches: Sequence[EncodedBatch]) -> None:
        """Have the partitions of record batches join the transaction, before any of them is sent."""
        partitions = {batch.topic_partition for batch in batches}
        if partitions <= self._written:
            return
        self._open()
        if self._transaction.identity.generation is Generation.V1:
            self._id.join(self._transaction, partitions)
        self._written |= partitions

    def _note(self, topic_partition: TopicPartition, epoch_id: int, state: str) -> str:
        topic_id = self._topic_ids.get(topic_partition.topic, UNKNOWN_ID)
        return PositionNote(self._query_id, topic_id, str(epoch_id), state).text()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except RecordError:
            # About a row; no request was sent.
            raise
        except BaseException:
            self._is_sound = False
            raise
