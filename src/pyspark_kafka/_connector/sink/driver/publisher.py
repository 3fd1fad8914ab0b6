"""Makes prepared record batches visible, together and once: fence, read the commit marker, write, commit."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka._client.client.transactions.inspection import TransactionState, describe_transaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.outage import OutageRetry, may_be_outage
from pyspark_kafka._client.client.waiting.stalls import contact_of, outage_s_here
from pyspark_kafka._connector.sink.commit_marker import MarkerFinding, judge_marker
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.marker_reader import MarkerReader
from pyspark_kafka.errors import ConnectorError, DeliveryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.transactions.inspection import TransactionDescription
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._client.client.waiting.retry import Backoff
    from pyspark_kafka._client.options import ExactlyOnceOptions, WriteOptions
    from pyspark_kafka._connector.sink.commit_marker import CommitMarker
    from pyspark_kafka._connector.sink.executor.outbox import Chunk
    from pyspark_kafka._connector.sink.spool import SpoolFiles

# How long brokers take to end a transaction whose time is over: they look every 10 s
# (transaction.abort.timed.out.transaction.cleanup.interval.ms), and then write a control record to each partition,
# which takes longer after an outage.
ENDED_AFTER_MS = 30_000

_LOG = logging.getLogger(__name__)

# The key under which all batch writes leave their commit markers: each has an id of its own, which never comes back.
_JOBS_KEY = "batch-writes"
# How often a publisher takes its id back from another driver that has ended its transaction: two drivers must not
# continue that for ever.
_MAX_TAKEN_BACK = 2
# Seconds of outage that must be new for that: to wait for an abort to be complete is not an outage of brokers.
_OUTAGE_S = 1.0
# How long another driver may take from its fence until its transaction is open: it reads the commit marker first.
_TIME_TO_BEGIN_S = 2.0
# Codes in response to writes of a transaction that the brokers, or another driver, have ended.
ENDED = frozenset(
    {
        "INVALID_PRODUCER_EPOCH",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "PRODUCER_FENCED",
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_PRODUCER_ID",
    }
)


class Publisher:
    """Publishes batches of one exactly-once sink.

    Runs on: driver; one thread; blocks. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        options: producer settings.
        settings: timeouts and names of the exactly-once write.
        transactional_id: the sink's name.
        spool: has the chunks that did not travel in commit messages.
        clock: milliseconds since 1970-01-01 UTC, for commit markers.

    Source: docs/internals/transaction-rules.md, T12 to T20; Java `KafkaProducer`.
    """

    def __init__(
        self,
        client: KafkaClient,
        options: WriteOptions,
        settings: ExactlyOnceOptions,
        transactional_id: str,
        spool: SpoolFiles | None,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._client = client
        self._options = options
        self._timeout_ms = settings.transaction_timeout_ms
        self._id = TransactionalId(client, transactional_id, settings.transaction_timeout_ms)
        self._topic = CommitTopic(client, settings.commit_topic)
        self._markers = MarkerReader(client, self._topic, settings.transaction_timeout_ms + ENDED_AFTER_MS)
        self._spool = spool
        self._clock = clock

    def check(self, ours: CommitMarker) -> None:
        """Check before any work whether this sink may write: rights, timeouts, whose the sink is.

        Args:
            ours: the sink's commit marker, of no batch.

        Raises:
            OptionError: the transaction timeout is above what the brokers allow.
            AccessError: rights are missing: the transactional id, the commit topic.
            CheckpointError: the sink is another query's.
        """
        self._topic.check()
        self._id.fence()
        found = self._markers.read(ours.sink_id)
        if found is not None and found.query_id != ours.query_id:
            judge_marker(found, ours)

    def publish(self, ours: CommitMarker, chunks: Sequence[Chunk]) -> MarkerFinding:
        """Make a micro-batch visible, unless it is already.

        Returns:
            COMMITTED if the batch was committed before, and there was nothing left to do.

        Raises:
            CheckpointError: by the commit marker neither writing nor skipping is right; or a spool file is missing.
            DeliveryError: the brokers refused records, or did not take them in time; or another driver has taken over.
                Nothing is visible.
            TransactionInDoubtError: it is unknown whether it is committed: no broker was reachable after the doubt.
            AccessError: rights are missing.
        """

        def look() -> MarkerFinding:
            return judge_marker(self._markers.read(ours.sink_id), ours)

        def attempt() -> MarkerFinding:
            self._topic.ensure()
            # After the fence only: before it a commit could still be in flight.
            transaction = self._id.fence()
            if look() is MarkerFinding.COMMITTED:
                return MarkerFinding.COMMITTED
            self._publish(transaction, ours.sink_id, ours, chunks, look)
            return MarkerFinding.NOT_COMMITTED

        # The sink was checked before its tasks began, so the query has reached it.
        contact = contact_of(self._client.options.bootstrap_servers)
        outage_retry = OutageRetry(self._options.outage_timeout_ms, contact, reached=lambda: True)
        step = f"committing batch {ours.batch_id} of sink '{ours.sink_id}'"
        return outage_retry.call(step, attempt, passes=self._passes)

    def publish_job(self, ours: CommitMarker, chunks: Sequence[Chunk]) -> None:
        """Make a batch write visible; its id is new, so it has no commit marker yet. See `publish`."""

        def look() -> MarkerFinding:
            found = self._markers.read(_JOBS_KEY, ours.query_id)
            return MarkerFinding.NOT_COMMITTED if found is None else MarkerFinding.COMMITTED

        self._topic.ensure()
        self._topic.check_rights()
        self._publish(self._id.fence(), _JOBS_KEY, ours, chunks, look)

    def _passes(self, error: ConnectorError) -> bool:
        """Whether a batch that failed is looked up and written again, for as long as an outage may last."""
        cause = error.__cause__
        # A delivery timeout that the user has set takes precedence.
        patient = self._options.patient_delivery_timeout_ms > self._options.producer.delivery_timeout_ms
        if patient and error.condition == "DELIVERY_TIMED_OUT" and isinstance(cause, ConnectorError):
            return may_be_outage(cause)
        return may_be_outage(error)

    def _publish(
        self,
        transaction: OpenTransaction,
        key: str,
        ours: CommitMarker,
        chunks: Sequence[Chunk],
        look: Callable[[], MarkerFinding],
    ) -> None:
        """Write and commit until the batch is known to be committed; `look` tells, once nothing is in flight."""
        options = self._options
        patient = options.outage_timeout_ms > 0
        longest_ms = options.patient_delivery_timeout_ms if patient else options.producer.delivery_timeout_ms
        attempts = _Attempts(Deadline(longest_ms), self._client.backoff())
        # Not `retry.attempts`: the pause comes before the look, which is made when time is over, too.
        while True:
            began, outage_s = time.monotonic(), outage_s_here()
            try:
                if self._write(transaction, key, ours, chunks) is MarkerFinding.COMMITTED:
                    self._give_up(transaction)
                    return
                self._id.end(transaction, commit=True)
            except (TransactionInDoubtError, TransactionLostError, DeliveryError) as error:
                if isinstance(error, DeliveryError) and error.condition not in ENDED:
                    self._give_up(transaction)
                    raise
                _LOG.warning(
                    "Batch %d of sink '%s' has to be looked at again after attempt %d (%s).",
                    ours.batch_id, ours.sink_id, attempts.backoff.attempts + 1, error.condition,
                )  # fmt: skip
                time.sleep(attempts.backoff.next_s())
                renewed = self._renew(transaction, attempts)
                if look() is MarkerFinding.COMMITTED:
                    return
                # The time of an outage is not counted: it does not show how long the batch takes.
                self._check_time(began + outage_s_here() - outage_s, error)
                if renewed is None:
                    if not (attempts.may_take_back and self._is_idle()):
                        raise self._taken_over(ours, error) from error
                    attempts.taken_back += 1
                    renewed = self._id.fence()
                    if look() is MarkerFinding.COMMITTED:
                        return
                if attempts.deadline.expired:
                    raise self._not_committed(ours, attempts, error) from error
                transaction = renewed
            except BaseException:
                self._give_up(transaction)
                raise
            else:
                return

    def _renew(self, transaction: OpenTransaction, attempts: _Attempts) -> OpenTransaction | None:
        """Abort a transaction and begin another; None if another driver has ended it, which is then left alone."""
        try:
            return self._id.renew(transaction)
        except TransactionLostError as lost:
            outage_s = outage_s_here()
            weather = self._options.outage_timeout_ms and outage_s - attempts.outage_s >= _OUTAGE_S
            if weather and attempts.may_take_back:
                # Requests of our own that a broker processes late, after it stood still, look like another driver's.
                # So does, in generation V1, the end of a transaction by its timeout. The commit marker tells whether
                # the batch was committed.
                attempts.outage_s = outage_s
                attempts.taken_back += 1
                return self._id.fence()
            _LOG.warning("%s", lost)
            return None

    def _write(
        self, transaction: OpenTransaction, key: str, ours: CommitMarker, chunks: Sequence[Chunk]
    ) -> MarkerFinding:
        """Write everything, the commit marker last; return COMMITTED if the batch turns out to be committed already."""
        marker_at = self._topic.partition_of(key)
        partitions = {batch.topic_partition for chunk in chunks for batch in chunk.batches}
        self._id.join(transaction, [*partitions, marker_at])
        with Producer(
            self._client,
            self._options.producer,
            transaction=transaction,
            buffer_bytes=self._options.max_unacknowledged_bytes,
            topic_timeout_ms=self._options.max_block_ms,
            bulk=True,
        ) as producer:
            for chunk in chunks:
                data = memoryview(chunk.load(self._spool))
                position = 0
                for batch in chunk.batches:
                    producer.send_batch(batch.topic_partition, data[position : position + batch.size], batch.records)
                    position += batch.size
            # Last: a marker without its records would be worse than records without their marker. The transaction
            # prevents both.
            producer.send_batch(marker_at, self._topic.encode(key, replace(ours, committed_at_ms=self._clock())), 1)
            producer.flush()
            offset = producer.last_offset(marker_at)
        if offset is None:
            return MarkerFinding.NOT_COMMITTED
        query_id = ours.query_id if key == _JOBS_KEY else None
        return judge_marker(self._markers.read_since(key, query_id, offset), ours)

    def _check_time(self, began: float, cause: ConnectorError) -> None:
        elapsed_ms = (time.monotonic() - began) * 1000
        if elapsed_ms < self._timeout_ms:
            return
        raise DeliveryError(
            f"Handing the batch to the brokers took {elapsed_ms:.0f} ms; they end a transaction after "
            f"{self._timeout_ms} ms (option 'kafka.transaction.timeout.ms'). Nothing of it is visible.",
            condition="TRANSACTION_TIMED_OUT",
            hint="Raise it, up to the brokers' transaction.max.timeout.ms, or make batches smaller "
            "(maxOffsetsPerTrigger of the source).",
            parameters={"timeout_ms": self._timeout_ms, "elapsed_ms": round(elapsed_ms)},
        ) from cause

    def _is_idle(self) -> bool:
        """Whether nobody has begun a transaction after ours was ended: as after an operator's abort.

        A driver that has only fenced so far looks the same, so it gets some time to begin. If it needs more, the id is
        taken from it; it reads the commit marker before it does anything else, so nothing is written twice.
        """
        first = self._look_at_id()
        if first is None or first.state is not TransactionState.EMPTY:
            return False
        time.sleep(_TIME_TO_BEGIN_S)
        return first.same_transaction(self._look_at_id())

    def _look_at_id(self) -> TransactionDescription | None:
        try:
            return describe_transaction(self._client, self._id.name)
        except ConnectorError as error:
            _LOG.warning("The state of transactional id '%s' cannot be seen: %s", self._id.name, error)
            return None

    def _taken_over(self, ours: CommitMarker, cause: ConnectorError) -> DeliveryError:
        return DeliveryError(
            f"Batch {ours.batch_id} of query {ours.query_id} was not committed: another driver has taken over the "
            f"transactional id '{self._id.name}' meanwhile. Nothing that this driver wrote is visible.",
            condition="SINK_TAKEN_OVER",
            hint="The query runs twice, or a former driver of it still did: let only one run. If these are two "
            "queries, set a 'kafka.transactional.id' of its own for each.",
            parameters={"sink_id": ours.sink_id, "batch_id": ours.batch_id, "cause": cause.condition},
        )

    @staticmethod
    def _not_committed(ours: CommitMarker, attempts: _Attempts, cause: ConnectorError) -> DeliveryError:
        return DeliveryError(
            f"Batch {ours.batch_id} of query {ours.query_id} could not be committed in {attempts.backoff.attempts} "
            f"attempts within {attempts.deadline.elapsed_ms()} ms. Nothing of it is visible. "
            f"Last failure: {cause.message}",
            condition="TRANSACTION_NOT_COMMITTED",
            hint=cause.hint or "See what the brokers' logs say of the transactional id; run the query again.",
            parameters={"sink_id": ours.sink_id, "batch_id": ours.batch_id, "cause": cause.condition},
        )

    def _give_up(self, transaction: OpenTransaction) -> None:
        """Abort our transaction, so that it does not hold readers back until its timeout.

        Another driver's transaction is left alone.
        """
        try:
            self._id.renew(transaction)
        except TransactionLostError as lost:
            _LOG.warning("%s", lost)
        except ConnectorError as error:
            _LOG.warning(
                "The transaction of '%s' could not be aborted; the brokers do it after %d ms: %s",
                self._id.name, self._timeout_ms, error,
            )  # fmt: skip


@dataclass(slots=True)
class _Attempts:
    """The attempts at one batch, and the steps against other drivers since the first one.

    Attributes:
        deadline: the end of all attempts.
        backoff: the pauses; its `attempts` are the failed attempts.
        taken_back: the number of times that the id was taken from another driver.
        outage_s: the seconds of outage until then.
    """

    deadline: Deadline
    backoff: Backoff
    taken_back: int = 0
    outage_s: float = 0.0

    @property
    def may_take_back(self) -> bool:
        """Whether the id may be taken from another driver once more."""
        return self.taken_back < _MAX_TAKEN_BACK
