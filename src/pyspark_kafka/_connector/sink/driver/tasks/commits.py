"""Decides that the transactions of a micro-batch's tasks are committed, ends them, and finishes what others began.

The steps and their order; `TaskCommitCalls` sends the requests to brokers.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka._client.client.transactions.open_transaction import Generation
from pyspark_kafka._connector.sink.commit_marker import CommitMarker, MarkerFinding, incomplete, judge_marker
from pyspark_kafka._connector.sink.tasks.transactions import (
    CommitDecision,
    Planning,
    continue_pool,
    is_abandoned,
    is_of_pool,
    new_pool,
)
from pyspark_kafka._connector.sink.transactional_ids import task_prefix
from pyspark_kafka.errors import ConnectorError, DeliveryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._connector.sink.tasks.transactions import TaskTransaction

_LOG = logging.getLogger(__name__)

# How often a marker is written whose transaction ends without a clear response.
_MAX_ATTEMPTS = 5


class TaskCommitCalls(ABC):
    """The requests to brokers. Runs on: driver; one thread; every method blocks, with a deadline."""

    @abstractmethod
    def fence(self) -> OpenTransaction:
        """Take the sink's transactional id over: an earlier planner can no longer decide."""

    @abstractmethod
    def renew(self, transaction: OpenTransaction) -> OpenTransaction:
        """Give up a transaction of the sink's id, and begin another one.

        Raises:
            TransactionLostError: someone has taken over.
        """

    @abstractmethod
    def was_aborted(self, transaction: OpenTransaction) -> bool:
        """Return whether brokers have aborted a transaction of the sink's id, and nobody has taken over since."""

    @abstractmethod
    def read(self) -> CommitMarker | None:
        """Return the newest marker of the sink. Shows whoever wrote before the last `fence` or `renew`."""

    @abstractmethod
    def write(self, transaction: OpenTransaction, marker: CommitMarker) -> OpenTransaction:
        """Write a marker and commit it; return the next transaction of the sink's id.

        A decision is not committed after its `until_ms`; only a request that is in flight then may still arrive.

        Raises:
            TransactionInDoubtError: it is unknown whether it is committed; or it was too late to commit it.
            TransactionLostError: someone has taken over, and it may be committed nevertheless; or there is a marker
                that `read` has not shown, and this one is not committed.
        """

    @abstractmethod
    def verify(self, transaction: OpenTransaction) -> OpenTransaction:
        """Check that `read` has shown the newest marker; return the next transaction of the sink's id.

        One broker has shown it, which may have been cut off from the others. A record is written, which all replicas
        acknowledge, and given up.

        Raises:
            TransactionLostError: someone has taken over; or there is a marker that `read` has not shown.
        """

    @abstractmethod
    def commit_tasks(self, tasks: Sequence[TaskTransaction]) -> list[bool | None]:
        """Commit the transactions of tasks; return of each whether it is committed, now or before; None: not known."""

    @abstractmethod
    def open_tasks(self, prefix: str) -> dict[str, tuple[int, int]]:
        """Return producer id and epoch of open transactions whose ids begin with a prefix."""

    @abstractmethod
    def abort_tasks(self, names: Sequence[str]) -> None:
        """Take transactional ids over: open transactions are aborted, and former owners can write no more."""

    @abstractmethod
    def now_ms(self) -> int:
        """Return the driver's clock, milliseconds since 1970-01-01 UTC."""


class TaskCommits:
    """Commits micro-batches whose tasks have written in transactions of their own.

    Of all who plan or commit a micro-batch of a sink only the last one that has taken over its transactional id can
    decide, and it takes over before it reads what was decided. A decision names the identity of each transaction, which
    no other transaction has: to commit them again, or late, or by two at once, does nothing more.

    Runs on: driver; one thread; methods block. Does not pickle.

    Args:
        calls: the requests to brokers.
        sink_id: the sink's transactional id.
        timeout_ms: after which brokers abort a transaction of the sink's id.

    Raises:
        CheckpointError: by every method: the newest marker does not fit; see `judge_marker`.
        DeliveryError: by every method: another driver has taken over (SINK_TAKEN_OVER), brokers have aborted the
            transaction of a decision (TRANSACTION_TIMED_OUT) or a part of a decided batch (SINK_COMMIT_INCOMPLETE).

    Source: docs/decisions/tasks-as-publishers.md; docs/internals/transaction-rules.md, T27 to T31.
    """

    def __init__(self, calls: TaskCommitCalls, sink_id: str, timeout_ms: int) -> None:
        self._calls = calls
        self._sink_id = sink_id
        self._timeout_ms = timeout_ms

    def plan(self, ours: CommitMarker) -> Planning:
        """Take over, finish decided transactions, and abort open transactions that other drivers' tasks have left.

        Args:
            ours: of the newest micro-batch in the checkpoint.
        """
        # Before the marker is read: whoever planned before can decide no more.
        transaction = self._calls.fence()
        planned = transaction.identity
        found = self._calls.read()
        if found is not None and found.query_id != ours.query_id:
            judge_marker(found, ours)
        decision = None if found is None else found.decision
        if found is not None and decision is not None and not decision.is_complete:
            transaction = self._verify(transaction, ours)
            # Its driver may be about to abort what is left open in its pool, however late: that one is not used again.
            found, transaction = self._complete(transaction, found, next_pool="")
            # Empty, as after a fence: by that tasks see that their batch is not decided yet.
            transaction = self._renew(transaction, found)
        if found is not None and found.batch_id == ours.batch_id and found.decision is not None and found.decision.lost:
            raise incomplete(found)
        continued = continue_pool(decision, planned)
        pool = continued or new_pool(planned)
        if continued is None:
            left = self._calls.open_tasks(f"{self._sink_id}-")
            abandoned = [name for name in left if is_abandoned(name, self._sink_id, planned, pool, decision)]
            if abandoned:
                # They may be part of a decision that a broker which was cut off has not shown.
                transaction = self._verify(transaction, ours)
                self._calls.abort_tasks(abandoned)
        # Last: no task has begun, and what was waited for above is not to be taken from their time.
        return Planning(transaction, pool, self._calls.now_ms())

    def commit_batch(self, planning: Planning, ours: CommitMarker, tasks: Sequence[TaskTransaction]) -> MarkerFinding:
        """Commit what tasks have written; do nothing if the micro-batch is committed already.

        Raises:
            DeliveryError: as by every method; or the transactions are too old (TRANSACTION_TIMED_OUT), or not open any
                more (TASK_TRANSACTION_LOST). Nothing is visible then.
        """
        transaction = planning.transaction
        found = self._calls.read()
        if self._finding(found, ours) is MarkerFinding.COMMITTED:
            self._abort_open(planning.pool)
            return MarkerFinding.COMMITTED

        def check_again(found: CommitMarker | None) -> None:
            try:
                if self._finding(found, ours) is MarkerFinding.COMMITTED:
                    # A broker that was cut off has not shown it before.
                    raise self._taken_over(ours, "it has committed the batch")
                self._check_open(planning, ours, tasks)
            except ConnectorError:
                # `abort` knows the identity only that was given up for this one.
                self._give_up(planning.pool)
                raise

        self._check_open(planning, ours, tasks)
        decision = CommitDecision(
            planning.pool, transaction.identity, tuple(tasks), until_ms=_latest_decision_ms(planning, tasks)
        )
        decided = replace(ours, decision=decision)
        # If this driver stood still, brokers may have aborted its decision, and transactions of tasks as well: with the
        # decision written again, the batch would be committed without these.
        transaction, decided = self._write(transaction, decided, check_again)
        if transaction.identity.generation is Generation.V1:
            # The epoch has stayed: another producer would begin with sequences that brokers have seen, and drop it.
            transaction = self._renew(transaction, decided)
        self._complete(transaction, decided, next_pool=planning.pool)
        return MarkerFinding.NOT_COMMITTED

    def resolve(self, found: CommitMarker) -> bool:
        """Record that the lost part of a micro-batch is dealt with, so that its query continues with the next one.

        Args:
            found: the newest marker, whose decision names the lost part.

        Returns:
            False if that is no longer the newest marker: nothing is recorded.
        """
        transaction = self._calls.fence()
        newest = self._calls.read()
        if newest != found or newest.decision is None or newest.decision != found.decision:
            return False
        # Drivers that were replaced by this may be about to abort what is open in the pool: it is not used again.
        self._write(transaction, replace(newest, decision=newest.decision.completed([], pool="")))
        return True

    def abort(self, planning: Planning) -> None:
        """Abort what tasks of a micro-batch have left open that is given up; nothing if it may be decided."""
        try:
            # A decision in flight is not applied any more.
            transaction = self._calls.renew(planning.transaction)
            found = self._calls.read()
            if found is None or found.decision is None or found.decision.is_complete:
                self._calls.verify(transaction)
                self._abort_open(planning.pool)
        except TransactionLostError as lost:
            # It was decided, or another driver has taken over: the next planning looks.
            _LOG.info("%s", lost)

    def _verify(self, transaction: OpenTransaction, ours: CommitMarker) -> OpenTransaction:
        try:
            return self._calls.verify(transaction)
        except TransactionLostError as lost:
            raise self._taken_over(ours, str(lost)) from lost

    def _complete(
        self, transaction: OpenTransaction, decided: CommitMarker, *, next_pool: str
    ) -> tuple[CommitMarker, OpenTransaction]:
        """End every transaction of a decision, and note that; return the new marker, and the sink's next transaction.

        Nobody may use an id of the pool after the note, so what is left open is aborted before it.
        """
        decision = decided.decision
        if decision is None:
            raise ValueError("the marker has no decision")
        committed = self._calls.commit_tasks(decision.tasks)
        lost = [
            replace(task, is_forgotten=is_committed is None)
            for task, is_committed in zip(decision.tasks, committed, strict=True)
            if not is_committed
        ]
        if lost:
            # Or another driver has completed it, and the ids are used again.
            found = self._calls.read()
            if found is not None and not _is_undone(found, decided):
                raise self._taken_over(decided, "it has completed the batch")
        self._abort_open(decision.pool)
        complete = replace(decided, decision=decision.completed(lost, pool=next_pool))
        transaction, complete = self._write(transaction, complete)
        if lost:
            raise incomplete(complete)
        return complete, transaction

    def _write(
        self,
        transaction: OpenTransaction,
        marker: CommitMarker,
        check: Callable[[CommitMarker | None], None] = lambda _: None,
    ) -> tuple[OpenTransaction, CommitMarker]:
        """Write a marker with a decision until it is known to be there; return the sink's next transaction.

        Args:
            transaction: of the sink's id.
            marker: with the decision.
            check: called with the newest marker before this one is written again; raises if it must not be.
        """
        for _ in range(_MAX_ATTEMPTS):
            if marker.decision is None:
                raise ValueError("the marker has no decision")
            marker = replace(marker, decision=replace(marker.decision, identity=transaction.identity))
            try:
                return self._calls.write(transaction, marker), marker
            except (TransactionInDoubtError, TransactionLostError) as error:
                _LOG.warning("Batch %d of sink '%s': %s", marker.batch_id, self._sink_id, error)
                cause = error
            transaction = self._renew(transaction, marker)
            found = self._calls.read()
            if found is not None and _is_same(found, marker):
                return transaction, marker
            check(found)
        raise DeliveryError(
            f"The decision on batch {marker.batch_id} of query {marker.query_id} could not be written in "
            f"{_MAX_ATTEMPTS} attempts. Last failure: {cause.message}",
            condition="TRANSACTION_NOT_COMMITTED",
            hint="Start the query again: it continues from what is decided.",
            parameters={"sink_id": self._sink_id, "batch_id": marker.batch_id},
        ) from cause

    def _renew(self, transaction: OpenTransaction, marker: CommitMarker) -> OpenTransaction:
        try:
            return self._calls.renew(transaction)
        except TransactionLostError as lost:
            # In V1 a timeout takes the transaction from its owner as well.
            if self._calls.was_aborted(transaction):
                raise self._timed_out(marker) from lost
            raise self._taken_over(marker, str(lost)) from lost

    def _finding(self, found: CommitMarker | None, ours: CommitMarker) -> MarkerFinding:
        if found is not None and found.decision is not None and not found.decision.is_complete:
            # Every planning completes what it finds: somebody has decided since.
            raise self._taken_over(ours, f"it has decided batch {found.batch_id}")
        return judge_marker(found, ours)

    def _check_open(self, planning: Planning, ours: CommitMarker, tasks: Sequence[TaskTransaction]) -> None:
        """Refuse a decision that could not be carried out: nothing is decided yet, and the batch can run again."""
        if not tasks:
            return
        found = self._calls.open_tasks(task_prefix(self._sink_id, planning.pool))
        # Afterwards: the list may be older than it looks.
        self._check_age(planning, ours, tasks)
        expected = {task.transaction.name: task.transaction.identity for task in tasks}
        gone = [
            name
            for name, identity in expected.items()
            if found.get(name) != (identity.producer_id, identity.producer_epoch)
        ]
        if gone:
            raise DeliveryError(
                f"Batch {ours.batch_id} of query {ours.query_id} is not committed: {len(gone)} of {len(tasks)} "
                f"transactions of its tasks are gone, {gone[0]} among them. Nothing of it is visible.",
                condition="TASK_TRANSACTION_LOST",
                hint="Someone has aborted them, or brokers have, after kafka.transaction.timeout.ms. Start the query "
                "again: it writes the batch again.",
                parameters={"sink_id": self._sink_id, "batch_id": ours.batch_id, "transactional_id": gone[0]},
            )

    def _check_age(self, planning: Planning, ours: CommitMarker, tasks: Sequence[TaskTransaction]) -> None:
        now_ms, until_ms = self._calls.now_ms(), _latest_decision_ms(planning, tasks)
        if until_ms is None or now_ms <= until_ms:
            return
        elapsed_ms, timeout_ms = now_ms - planning.planned_at_ms, _shortest_timeout_ms(tasks)
        raise DeliveryError(
            f"Batch {ours.batch_id} of query {ours.query_id} was planned {elapsed_ms} ms ago, and is not decided; "
            f"brokers abort the transactions of its tasks after {timeout_ms} ms (kafka.transaction.timeout.ms), and a "
            "quarter of it is kept for the commit. Nothing of the batch is visible.",
            condition="TRANSACTION_TIMED_OUT",
            hint="Raise it, up to the brokers' transaction.max.timeout.ms, or make batches smaller "
            "(maxOffsetsPerTrigger of the source). If the driver stood still, start the query again.",
            parameters={"timeout_ms": timeout_ms, "elapsed_ms": elapsed_ms},
        )

    def _abort_open(self, pool: str) -> None:
        left = self._calls.open_tasks(task_prefix(self._sink_id, pool))
        self._calls.abort_tasks(sorted(name for name in left if is_of_pool(name, self._sink_id, pool)))

    def _give_up(self, pool: str) -> None:
        try:
            self._abort_open(pool)
        except ConnectorError as error:
            _LOG.warning("Transactions of tasks are left open until the next planning, or their timeout: %s", error)

    def _timed_out(self, marker: CommitMarker) -> DeliveryError:
        if marker.decision is not None and marker.decision.is_complete:
            what = "The note that the commit is complete"
            fate = "The batch is committed as it was decided, and the next start writes the note."
        else:
            what, fate = "The decision to commit", "Nothing of the batch is visible."
        return DeliveryError(
            f"{what}, for batch {marker.batch_id} of query {marker.query_id}, was aborted by the brokers: the "
            f"transaction of the sink '{self._sink_id}' was open for longer than {self._timeout_ms} ms "
            f"(kafka.transaction.timeout.ms). {fate}",
            condition="TRANSACTION_TIMED_OUT",
            hint="Start the query again. Find out why the driver, or a broker, stood still for that time; raise the "
            "option if it can happen again.",
            parameters={"sink_id": self._sink_id, "batch_id": marker.batch_id, "timeout_ms": self._timeout_ms},
        )

    def _taken_over(self, marker: CommitMarker, reason: str) -> DeliveryError:
        return DeliveryError(
            f"Another driver has taken over the sink '{self._sink_id}' while batch {marker.batch_id} of query "
            f"{marker.query_id} was committed: {reason}. What is decided is completed by that one; nothing else that "
            "this driver wrote is visible.",
            condition="SINK_TAKEN_OVER",
            hint="The query runs twice, or a former driver of it still did: let only one run. If these are two "
            "queries, set a 'kafka.transactional.id' of its own for each.",
            parameters={"sink_id": self._sink_id, "batch_id": marker.batch_id},
        )


def _shortest_timeout_ms(tasks: Sequence[TaskTransaction]) -> int | None:
    """Return after which time brokers abort the first of the transactions; None: none of them."""
    return min((task.timeout_ms for task in tasks if task.timeout_ms is not None), default=None)


def _latest_decision_ms(planning: Planning, tasks: Sequence[TaskTransaction]) -> int | None:
    """Return until when the transactions can be decided to be committed; what is left of their time is for the ends."""
    timeout_ms = _shortest_timeout_ms(tasks)
    return None if timeout_ms is None else planning.planned_at_ms + timeout_ms * 3 // 4


def _is_same(found: CommitMarker, written: CommitMarker) -> bool:
    """Whether the marker that was read is the written marker, some values of which are not in the record."""
    read, wrote = found.decision, written.decision
    if read is None or wrote is None or (found.batch_id, found.fingerprint) != (written.batch_id, written.fingerprint):
        return False
    # Of one transaction of the sink.
    return (read.identity, read.is_complete) == (wrote.identity, wrote.is_complete)


def _is_undone(found: CommitMarker, decided: CommitMarker) -> bool:
    """Whether the newest marker is the decision still."""
    same = (found.batch_id, found.fingerprint) == (decided.batch_id, decided.fingerprint)
    return same and found.decision is not None and not found.decision.is_complete
