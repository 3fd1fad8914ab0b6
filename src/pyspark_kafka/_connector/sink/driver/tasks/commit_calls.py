"""The requests to brokers that commit tasks' transactions."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.threads import side_by_side
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.errors import TransactionLostError
from pyspark_kafka._client.client.transactions.inspection import (
    TransactionState,
    describe_transaction,
    list_transactions,
)
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.outage import OutageRetry
from pyspark_kafka._client.client.waiting.stalls import contact_of
from pyspark_kafka._client.client.wire.missing_rights import widen
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.marker_reader import MarkerReader
from pyspark_kafka._connector.sink.driver.publisher import ENDED, ENDED_AFTER_MS
from pyspark_kafka._connector.sink.driver.tasks.commits import TaskCommitCalls
from pyspark_kafka._connector.sink.tasks.outcomes import find_outcome
from pyspark_kafka.errors import AccessError, DeliveryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
    from pyspark_kafka._connector.sink.tasks.transactions import TaskTransaction

    _A = TypeVar("_A")
    _B = TypeVar("_B")

# How many transactions are ended side by side: each waits for its coordinator to write.
_AT_A_TIME = 16
# The states in which the coordinator aborts, or has aborted, a transaction after its timeout.
_ABORTED = frozenset(
    {TransactionState.PREPARE_EPOCH_FENCE, TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT}
)


class BrokerTaskCommitCalls(TaskCommitCalls):
    """The requests for one exactly-once sink.

    Runs on: driver; one thread; methods block, each request for at most `api_timeout_ms`. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        options: connection and producer settings.
        settings: timeouts and names of the exactly-once write.
        sink_id: the sink's transactional id.

    Raises:
        AccessError: by every method: rights are missing.
        DeadlineError: by every method: brokers did not respond in time.
        TransportError: by every method: no broker can be reached.
        ProtocolError: brokers are older than Kafka 3.0, which cannot list transactions.
    """

    def __init__(self, client: KafkaClient, options: WriteOptions, settings: ExactlyOnceOptions, sink_id: str) -> None:
        self._client, self._options = client, options
        self._sink_id, self._timeout_ms = sink_id, settings.transaction_timeout_ms
        self._id = TransactionalId(client, sink_id, settings.transaction_timeout_ms)
        self._topic = CommitTopic(client, settings.commit_topic)
        # Whether a write has shown that `read` sees every marker: since then nobody else could write one.
        self._is_verified = False
        self._patience_ms = settings.transaction_timeout_ms + ENDED_AFTER_MS
        self._markers = MarkerReader(client, self._topic, self._patience_ms)

    def fence(self) -> OpenTransaction:
        """See `TaskCommitCalls`."""
        try:
            return self._id.fence()
        except AccessError as error:
            # The ids of tasks begin with it.
            widen(error, self._sink_id)
            raise

    def renew(self, transaction: OpenTransaction) -> OpenTransaction:
        """See `TaskCommitCalls`."""
        return self._id.renew(transaction)

    def was_aborted(self, transaction: OpenTransaction) -> bool:
        """See `TaskCommitCalls`."""
        found = describe_transaction(self._client, self._sink_id)
        identity = transaction.identity
        # Every owner raises the epoch once more.
        return (
            found is not None
            and found.state in _ABORTED
            and (found.producer_id, found.producer_epoch) == (identity.producer_id, identity.producer_epoch + 1)
        )

    def read(self) -> CommitMarker | None:
        """See `TaskCommitCalls`."""
        return self._markers.read(self._sink_id)

    def write(self, transaction: OpenTransaction, marker: CommitMarker) -> OpenTransaction:
        """See `TaskCommitCalls`."""
        self._append(transaction, marker)
        following = self._id.end(transaction, commit=True, deadline=self._deadline(marker))
        self._is_verified = True
        return following

    def verify(self, transaction: OpenTransaction) -> OpenTransaction:
        """See `TaskCommitCalls`."""
        self._append(transaction, CommitMarker(self._sink_id, "", -1, ""))
        self._is_verified = True
        return self._id.renew(transaction)

    def _append(self, transaction: OpenTransaction, marker: CommitMarker) -> None:
        at = self._topic.partition_of(self._sink_id)
        self._id.join(transaction, [at])
        try:
            with Producer(self._client, self._options.producer, transaction=transaction) as producer:
                stamped = replace(marker, committed_at_ms=self.now_ms())
                producer.send_batch(at, self._topic.encode(self._sink_id, stamped), 1)
                producer.flush()
                offset = producer.last_offset(at)
        except DeliveryError as error:
            if error.condition not in ENDED:
                raise
            raise TransactionLostError(
                f"The marker of batch {marker.batch_id} was refused: {error.message}",
                condition="TRANSACTION_LOST",
                parameters={"transactional_id": self._sink_id, "cause": error.condition},
            ) from error
        if self._is_verified or offset is None:
            return
        if self._markers.read_since(self._sink_id, None, offset) is not None:
            raise TransactionLostError(
                f"The broker that showed the newest commit marker of '{self._sink_id}' did not know all of them: it "
                "was cut off from the others. Nothing was committed.",
                condition="TRANSACTION_LOST",
                parameters={"transactional_id": self._sink_id, "cause": "STALE_READ"},
            )

    def commit_tasks(self, tasks: Sequence[TaskTransaction]) -> list[bool | None]:
        """See `TaskCommitCalls`. Outcomes that coordinators have forgotten are looked up in the log."""

        def commit_task(client: KafkaClient, task: TaskTransaction) -> bool | None:
            owner = TransactionalId(client, task.transaction.name, self._timeout_ms)
            done = owner.commit_decided(task.transaction)
            return find_outcome(client, task, Deadline(self._patience_ms)) if done is None else done

        # Once it is decided there is no other way: brokers abort what is not committed in time. Twice does no harm.
        contact = contact_of(self._options.connection.bootstrap_servers)
        retry = OutageRetry(self._options.outage_timeout_ms, contact, reached=lambda: True)
        step = f"committing {len(tasks)} transactions of the sink '{self._sink_id}'"
        return retry.call(step, lambda: self._side_by_side(commit_task, tasks))

    def open_tasks(self, prefix: str) -> dict[str, tuple[int, int]]:
        """See `TaskCommitCalls`."""
        found = list_transactions(self._client, prefix=prefix)
        return {
            each.transactional_id: (each.producer_id, each.producer_epoch)
            for each in found
            if each.state is TransactionState.ONGOING
        }

    def abort_tasks(self, names: Sequence[str]) -> None:
        """See `TaskCommitCalls`."""
        self._side_by_side(lambda client, name: TransactionalId(client, name, self._timeout_ms).fence(), names)

    def now_ms(self) -> int:
        """See `TaskCommitCalls`."""
        return time.time_ns() // 1_000_000

    def _deadline(self, marker: CommitMarker) -> Deadline | None:
        until_ms = None if marker.decision is None else marker.decision.until_ms
        if until_ms is None:
            return None
        left_ms = min(until_ms - self.now_ms(), self._client.options.api_timeout_ms)
        # By the clock that the age of the tasks is counted with: others stand still with the machine.
        return Deadline(left_ms, clock=time.time)

    def _side_by_side(self, call: Callable[[KafkaClient, _A], _B], values: Sequence[_A]) -> list[_B]:
        def one(value: _A) -> _B:
            try:
                with borrow_client(self._options.connection) as client:
                    return call(client, value)
            except AccessError as error:
                # On the ids of all tasks, of which there are others tomorrow.
                widen(error, self._sink_id)
                raise

        return side_by_side(one, values, _AT_A_TIME, "transactions")
