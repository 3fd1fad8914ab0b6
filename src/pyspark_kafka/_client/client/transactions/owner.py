"""Our transactional id: fence, join partitions, end. One method for each request, with the meaning of its response.

Which of them to send when is decided by `_connector/sink/driver/publisher.py`, and by
`_connector/sink/executor/transaction_writer.py` for continuous queries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.net.errors import lost
from pyspark_kafka._client.client.transactions.coordinator import CoordinatorCalls, find_coordinator
from pyspark_kafka._client.client.transactions.errors import (
    FORGOTTEN,
    NOT_OWNED,
    in_doubt,
    raise_for_code,
    raise_if_in_doubt,
)
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._client.client.wire.api_versions import MAX_ADD_OFFSETS_VERSION, MAX_ADD_VERSION, MAX_INIT_VERSION
from pyspark_kafka._client.client.wire.completeness import match_entries, response_incomplete
from pyspark_kafka._client.client.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    ErrorCode,
    InitProducerIdRequest,
    ProduceRequest,
)
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.errors import ConnectorError, DeadlineError, OptionError, ProtocolError, TransportError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.waiting.deadline import Deadline

# The first versions of transactions of the second generation (KIP-890), and the feature that switches them on.
_FIRST_PRODUCE_OF_V2 = 12
_FIRST_END_OF_V2 = 5
_FEATURE = "transaction.version"
_FEATURE_V2 = 2
# The first version in which InitProducerId names its owner (KIP-360, Kafka 2.5).
_FIRST_INIT_WITH_OWNER = 3
# The first version of InitProducerId for transactions without a timeout (KIP-939); Kafka 4.3 offers it only
# with unstable.api.versions.enable. Its keepPreparedTxn is refused there, and is not needed: whoever knows the identity
# of a transaction can end it.
_TWO_PHASE_INIT = 6

_NOBODY = TransactionIdentity(-1, -1, Generation.V1)
# Codes for partitions that can no longer be written to: no late write to them is appended.
_NOT_WRITABLE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})

# Conditions of errors that are raised before a request is sent.
_NOT_SENT = frozenset({"UNSUPPORTED_VERSION", "CONNECTION_BUSY"})


class TransactionalId:
    """One transactional id, for the one who owns it or is about to.

    The first transaction begins with `fence`: a previous owner can write no more, and what it left open is aborted. A
    later one begins with `renew`, which gives up what is open in whatever state it is, but only if nobody else has
    taken over: two owners who fence each other would never finish.

    Runs on: driver and executor; one thread; methods block, each for at most `api_timeout_ms`. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        name: the transactional id.
        timeout_ms: the coordinator aborts a transaction after this time.
        two_phase: whether `fence` requests transactions without a timeout; not done where brokers or rights refuse.

    Attributes:
        name: the transactional id.
        has_timeout: whether the coordinator aborts a transaction after `timeout_ms`.

    Source: KIP-939; KIP-98, KIP-360, KIP-890; Kafka `TransactionManager`.
    """

    def __init__(self, client: KafkaClient, name: str, timeout_ms: int, *, two_phase: bool = False) -> None:
        self._client = client
        self.name = name
        self.has_timeout = True
        self._may_be_two_phase = two_phase
        self._timeout_ms = timeout_ms
        self._right = Right("Write", "transactional-id", name)
        self._coordinator = CoordinatorCalls(client, lambda deadline: find_coordinator(client, name, deadline))
        # What is part of the transaction by request; of one that was given up, until late writes to it are refused.
        self._joined: set[TopicPartition] = set()
        self._joined_groups: set[str] = set()

    def fence(self) -> OpenTransaction:
        """Become the only owner; abort what was open, and wait until it is aborted, or its commit is complete.

        Raises:
            OptionError: the timeout is above what the brokers allow.
            AccessError: the user may not use this transactional id.
            ProtocolError: the brokers support no transactions.
            DeadlineError: not done in time: what was open is still being ended, or the coordinator is away.
            TransportError: no broker can be reached.
        """
        return self._begin(f"Taking over transactional id '{self.name}'", _NOBODY)

    def renew(self, transaction: OpenTransaction) -> OpenTransaction:
        """Give up a transaction of this owner and begin another one, unless someone else has taken over.

        What was open is aborted. A commit that is being applied is completed first, so that a look at what was written
        shows afterwards whether the transaction was committed. Writes in flight are refused.

        Raises:
            TransactionLostError: someone else has taken over, or (first generation) the coordinator has ended the
                transaction after its timeout. Nothing of theirs is touched.
            AccessError: the user may not use this transactional id.
            DeadlineError: not done in time.
            TransportError: no broker can be reached.

        Source: KIP-360. An InitProducerId with the own epoch alone would not do: if a transaction is open the
        coordinator aborts it before it compares epochs (`TransactionCoordinator.prepareInitProducerIdTransit`), even
        the transaction of a new owner. EndTxn compares first.
        """
        self._give_up(transaction)
        return self._begin(f"Renewing transactional id '{self.name}'", transaction.identity)

    def join(self, transaction: OpenTransaction, topic_partitions: Iterable[TopicPartition]) -> None:
        """Make partitions part of the transaction before they are written to; in V2 they join by being written to.

        Raises:
            TransactionLostError: someone else has fenced this owner, or the transaction was aborted.
            AccessError: the user may not write to one of them; it is named.
            DeadlineError: not done in time.
        """
        new = sorted(set(topic_partitions) - self._joined)
        if transaction.identity.generation is Generation.V2 or not new:
            return

        def attempt(connection: Connection, deadline: Deadline) -> None:
            self._raise_for_join(_request_join(connection, transaction, new, deadline), connection.address)

        self._coordinator.run(f"Joining {len(new)} partitions to the transaction of '{self.name}'", attempt)
        self._joined.update(new)

    def join_group(self, transaction: OpenTransaction, group_id: str) -> None:
        """Make the positions of a consumer group part of the transaction; in V2 they join by being committed in it.

        Raises:
            TransactionLostError: someone else has fenced this owner, or the transaction was aborted.
            AccessError: the user may not read the group.
            DeadlineError: not done in time.
        """
        if transaction.identity.generation is Generation.V2 or group_id in self._joined_groups:
            return
        request = AddOffsetsToTxnRequest(
            transactional_id=transaction.name,
            producer_id=transaction.identity.producer_id,
            producer_epoch=transaction.identity.producer_epoch,
            group_id=group_id,
        )

        def attempt(connection: Connection, deadline: Deadline) -> None:
            response = connection.call(request, deadline, max_version=MAX_ADD_OFFSETS_VERSION)
            what = f"Joining consumer group '{group_id}' to the transaction of"
            rights = (self._right, Right("Read", "group", group_id))
            raise_for_code(response.error_code, what, self.name, connection.address, rights=rights, owned=True)

        self._coordinator.run(f"Joining group '{group_id}' to the transaction of '{self.name}'", attempt)
        self._joined_groups.add(group_id)

    def end(self, transaction: OpenTransaction, *, commit: bool, deadline: Deadline | None = None) -> OpenTransaction:
        """Commit or abort; when it returns the decision is on disk, and readers see it soon.

        In V2 a commit whose response is lost is sent again: the coordinator knows by the epoch that it is done, and
        refuses a copy that arrives late. In V1 an end that is sent twice could end a later transaction. An abort is not
        worth a wait.

        Args:
            transaction: of this owner.
            commit: or abort it.
            deadline: for all attempts, none of which is sent after it; None takes `api_timeout_ms`.

        Returns:
            The next transaction of this owner. In V1 its sequences continue; in V2 it has another epoch, and they begin
            with 0. What it does first is retried while the brokers still apply the previous end.

        Raises:
            TransactionInDoubtError: the response is missing, or does not show it. Renew, then look whether it was
                committed.
            AccessError: the user may not use this transactional id.

        Source: KIP-890; Kafka `TransactionCoordinator.endTransaction`.
        """
        step = f"Ending the transaction of '{self.name}'"

        def attempt(connection: Connection, deadline: Deadline) -> OpenTransaction:
            deadline.check(step)
            response = _request_end(connection, transaction, deadline, commit=commit)
            raise_if_in_doubt(response.error_code, self.name, connection.address)
            what = "Ending the transaction of"
            raise_for_code(response.error_code, what, self.name, connection.address, rights=(self._right,))
            return _following(transaction, response)

        def lost(error: ConnectorError, was_sent: bool) -> ConnectorError | None:
            is_repeatable = transaction.identity.generation is Generation.V2 or not was_sent
            return None if commit and is_repeatable else self._no_response(error)

        try:
            following = self._coordinator.run(step, attempt, lost=lost, deadline=deadline)
        except (DeadlineError, TransportError) as error:
            raise self._no_response(error) from error
        self._joined, self._joined_groups = set(), set()
        return following

    def commit_decided(self, transaction: OpenTransaction) -> bool | None:
        """Commit a transaction that must become visible, as often as needed, whoever has begun it.

        Only for a transaction whose identity no other transaction has: a commit that is sent twice, or arrives late,
        then does nothing more, in either generation.

        Returns:
            Whether it is committed, now or before; False if the coordinator has no such transaction: it was aborted, or
            the id has had another owner since; None if the coordinator has forgotten the id, which proves nothing.

        Raises:
            AccessError: the user may not use this transactional id.
            BrokerError: the coordinator refused.
            DeadlineError: the coordinator did not respond in time; it may be committed.
            TransportError: no broker can be reached.

        Source: KIP-890; Kafka `TransactionCoordinator.endTransaction`.
        """

        def attempt(connection: Connection, deadline: Deadline) -> bool | None:
            code = int(_request_end(connection, transaction, deadline, commit=True).error_code)
            if code in FORGOTTEN:
                return None
            if code in NOT_OWNED:
                return False
            what = "Committing the transaction of"
            raise_for_code(code, what, self.name, connection.address, rights=(self._right,))
            return True

        return self._coordinator.run(f"Committing the transaction of '{self.name}'", attempt)

    def _begin(self, step: str, owner: TransactionIdentity) -> OpenTransaction:
        """Get the next epoch: for anyone, or for `owner` if it is still the owner."""
        self._joined_groups = set()

        def attempt(connection: Connection, deadline: Deadline) -> OpenTransaction:
            named = connection.api_version(InitProducerIdRequest) >= _FIRST_INIT_WITH_OWNER
            two_phase = self._may_be_two_phase and connection.api_version(InitProducerIdRequest) >= _TWO_PHASE_INIT
            request = InitProducerIdRequest(
                transactional_id=self.name,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=owner.producer_id if named else -1,
                producer_epoch=owner.producer_epoch if named else -1,
                enable2_pc=two_phase,
            )
            max_version = _TWO_PHASE_INIT if two_phase else MAX_INIT_VERSION
            response = connection.call(request, deadline, max_version=max_version)
            if two_phase and response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                # Brokers have it switched off, or the user lacks TwoPhaseCommit; or the right to write at all.
                self._may_be_two_phase = False
                return attempt(connection, deadline)
            self.has_timeout = not two_phase
            if response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise self._timeout_refused(connection.address)
            raise_for_code(
                response.error_code,
                "Taking over",
                self.name,
                connection.address,
                rights=(self._right,),
                owned=owner is not _NOBODY,
            )
            if response.producer_id < 0 or response.producer_epoch < 0:
                raise response_incomplete("InitProducerId", connection.address, "has no producer id")
            identity = TransactionIdentity(response.producer_id, response.producer_epoch, _generation(connection))
            return OpenTransaction(self.name, identity)

        # A commit that is being applied, or an abort, ends in about the time of a request to every leader.
        transaction = self._coordinator.run(step, attempt)
        if transaction.identity.generation is Generation.V1 and self._joined:
            self._refuse_late_writes(transaction)
            # A copy of that abort which arrives late must not end the next transaction.
            owner = transaction.identity
            transaction = self._coordinator.run(step, attempt)
        self._joined = set()
        return transaction

    def _give_up(self, transaction: OpenTransaction) -> None:
        """Abort a transaction of this owner, if it is open."""

        def attempt(connection: Connection, deadline: Deadline) -> None:
            code = int(_request_end(connection, transaction, deadline, commit=False).error_code)
            # Nothing is open: it was committed or aborted already, or nothing was written.
            if code != ErrorCode.INVALID_TXN_STATE:
                what = "Giving up the transaction of"
                raise_for_code(code, what, self.name, connection.address, rights=(self._right,), owned=True)

        self._coordinator.run(f"Giving up the transaction of '{self.name}'", attempt)

    def _refuse_late_writes(self, transaction: OpenTransaction) -> None:
        """Send the new epoch to the partitions of the previous transaction.

        In V1 an abort leaves the epoch of a partition as it is. A write that the network has delayed would be appended
        behind the abort by brokers that do not verify transactions (before Kafka 3.6), and the commit of a later
        transaction would make it visible. The abort marker of another epoch ends what has arrived, and has the leader
        refuse the rest.

        Source: KIP-890, "hanging transactions".
        """
        left = set(self._joined)

        def attempt(connection: Connection, deadline: Deadline) -> None:
            while left:
                codes = _request_join(connection, transaction, sorted(left), deadline)
                gone = {topic_partition for topic_partition, code in codes.items() if code in _NOT_WRITABLE}
                if not gone:
                    return self._raise_for_join(codes, connection.address)
                left.difference_update(gone)
            return None

        self._coordinator.run(f"Refusing late writes to {len(left)} partitions by '{self.name}'", attempt)
        self._give_up(transaction)

    def _raise_for_join(self, codes: Mapping[TopicPartition, int], address: str) -> None:
        # One refusal refuses all; the codes of the others are "not attempted", which explains nothing.
        for topic_partition in sorted(codes, key=lambda tp: codes[tp] == ErrorCode.OPERATION_NOT_ATTEMPTED):
            raise_for_code(
                codes[topic_partition],
                f"Joining {topic_partition} to the transaction of",
                self.name,
                address,
                rights=(self._right, Right("Write", "topic", topic_partition.topic)),
                topic_partition=topic_partition,
                owned=True,
            )

    def _no_response(self, error: ConnectorError) -> ConnectorError:
        return in_doubt(self.name, f"no response to its end arrived ({error.condition})")

    def _timeout_refused(self, address: str) -> OptionError:
        return OptionError(
            f"Option 'kafka.transaction.timeout.ms' is {self._timeout_ms}, more than the brokers allow: "
            f"{address} refused it. Nothing was written.",
            condition="TRANSACTION_TIMEOUT_TOO_LARGE",
            hint="Lower it, or raise the brokers' transaction.max.timeout.ms (15 minutes where it is not set).",
            parameters={"timeout_ms": self._timeout_ms, "broker": address},
        )


def _request_join(
    connection: Connection, transaction: OpenTransaction, topic_partitions: list[TopicPartition], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Send AddPartitionsToTxn and return the code of each partition."""
    response = connection.call(_build_join(transaction, topic_partitions), deadline, max_version=MAX_ADD_VERSION)
    codes = (
        (TopicPartition(topic.name, entry.partition_index), int(entry.partition_error_code))
        for topic in response.results_by_topic_v3_and_below
        for entry in topic.results_by_partition
    )
    return match_entries(topic_partitions, codes, "AddPartitionsToTxn", connection.address)


def _request_end(connection: Connection, transaction: OpenTransaction, deadline: Deadline, *, commit: bool) -> Any:
    """Send EndTxn and return its response.

    Raises:
        TransportError: also for a response that cannot be read: like a lost one, it does not show what was done.
    """
    request = EndTxnRequest(
        transactional_id=transaction.name,
        producer_id=transaction.identity.producer_id,
        producer_epoch=transaction.identity.producer_epoch,
        committed=commit,
    )
    is_v2 = transaction.identity.generation is Generation.V2
    max_version = _FIRST_END_OF_V2 if is_v2 else _FIRST_END_OF_V2 - 1
    try:
        return connection.call(request, deadline, max_version=max_version)
    except ProtocolError as error:
        if error.condition in _NOT_SENT:
            raise
        raise lost(connection.address, "while the response to EndTxn was pending", error) from error


def _following(transaction: OpenTransaction, response: Any) -> OpenTransaction:
    """Return the transaction after one that has ended."""
    identity = transaction.identity
    if identity.generation is Generation.V1 or response.producer_id < 0:
        return transaction
    # The producer id changes when the epochs of the previous one are used up.
    return replace(
        transaction,
        identity=replace(identity, producer_id=response.producer_id, producer_epoch=response.producer_epoch),
    )


def _build_join(transaction: OpenTransaction, topic_partitions: Iterable[TopicPartition]) -> Any:
    by_topic: dict[str, list[int]] = {}
    for topic_partition in topic_partitions:
        by_topic.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    topic_class = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transaction.name,
        v3_and_below_producer_id=transaction.identity.producer_id,
        v3_and_below_producer_epoch=transaction.identity.producer_epoch,
        v3_and_below_topics=[topic_class(name=name, partitions=numbers) for name, numbers in by_topic.items()],
    )


def _generation(connection: Connection) -> Generation:
    able = (
        connection.features.get(_FEATURE, 0) >= _FEATURE_V2
        and connection.api_version(ProduceRequest) >= _FIRST_PRODUCE_OF_V2
        and connection.api_version(EndTxnRequest) >= _FIRST_END_OF_V2
    )
    return Generation.V2 if able else Generation.V1
