"""Transactions: what readers see of them, and which requests of a former owner are refused."""

from __future__ import annotations

import uuid

import pytest

from kit.brokers.requests import AskedBroker
from kit.record_batches import TRANSACTIONAL, offsets, plain_batch, whole
from kit.waiting import eventually
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition, GroupPositions
from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId

LATEST = -1
INVALID_PRODUCER_EPOCH = 47


@pytest.fixture
def owner(broker: AskedBroker) -> TransactionalId:
    return TransactionalId(broker.client, f"contract-{uuid.uuid4().hex}", 60_000)


def write(
    broker: AskedBroker, owner: TransactionalId, transaction: OpenTransaction, topic: str, sequence: int = 0
) -> int:
    """Write two records in a transaction; return the error code."""
    identity = transaction.identity
    data = plain_batch(
        0,
        2,
        attributes=TRANSACTIONAL,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        sequence=sequence,
    )
    return int(broker.produce(topic, data, transactional_id=owner.name).error_code)


def wait_for_end(broker: AskedBroker, topic: str, end: int) -> None:
    """Control records are written after EndTxn is answered."""
    eventually(lambda: broker.offset(topic, LATEST, committed=True).offset == end)


def visible(broker: AskedBroker, topic: str) -> list[int]:
    """Return the offsets of committed records; a broker need not return all of them at once."""
    position, found = 0, list[int]()
    while position < broker.offset(topic, LATEST, committed=True).offset:
        response = broker.fetch(topic, position, committed=True)
        aborted = [(each.producer_id, each.first_offset) for each in response.aborted_transactions or ()]
        table, next_offset = whole(
            bytes(response.records),
            position,
            columns=["offset"],
            isolation_level="read_committed",
            aborted_transactions=aborted,
        )
        found += table.column("offset").to_pylist()
        assert next_offset is not None
        position = next_offset
    return found


def test_open_transaction_keeps_readers_of_committed_records_before_it(
    broker: AskedBroker, owner: TransactionalId
) -> None:
    topic = broker.make_topic()
    broker.produce(topic, plain_batch(0, 3))
    transaction = owner.fence()
    owner.join(transaction, [TopicPartition(topic, 0)])
    assert write(broker, owner, transaction, topic) == 0
    assert (broker.offset(topic, LATEST).offset, broker.offset(topic, LATEST, committed=True).offset) == (5, 3)
    found = broker.fetch(topic, 0, committed=True)
    assert (found.high_watermark, found.last_stable_offset) == (5, 3)
    assert offsets(bytes(found.records)) == [0, 1, 2]
    assert offsets(bytes(broker.fetch(topic, 0).records)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("commit", [True, False])
def test_ended_transaction_leaves_a_control_record_and_is_seen_if_committed(
    broker: AskedBroker, owner: TransactionalId, *, commit: bool
) -> None:
    topic = broker.make_topic()
    transaction = owner.fence()
    owner.join(transaction, [TopicPartition(topic, 0)])
    assert write(broker, owner, transaction, topic) == 0
    owner.end(transaction, commit=commit)
    wait_for_end(broker, topic, 3)
    assert visible(broker, topic) == ([0, 1] if commit else [])
    aborted = broker.fetch(topic, 0, committed=True).aborted_transactions or ()
    identity = transaction.identity
    assert [(each.producer_id, each.first_offset) for each in aborted] == (
        [] if commit else [(identity.producer_id, 0)]
    )


def test_fetch_behind_an_aborted_transaction_does_not_name_it(broker: AskedBroker, owner: TransactionalId) -> None:
    topic = broker.make_topic()
    transaction = owner.fence()
    owner.join(transaction, [TopicPartition(topic, 0)])
    write(broker, owner, transaction, topic)
    owner.end(transaction, commit=False)
    wait_for_end(broker, topic, 3)
    assert broker.produce(topic, plain_batch(0, 2)).base_offset == 3
    wait_for_end(broker, topic, 5)
    assert not broker.fetch(topic, 3, committed=True).aborted_transactions
    assert visible(broker, topic) == [3, 4]


def test_next_owner_of_a_transactional_id_aborts_an_open_transaction_and_fences_its_owner(
    broker: AskedBroker, owner: TransactionalId
) -> None:
    topic = broker.make_topic()
    former = owner.fence()
    owner.join(former, [TopicPartition(topic, 0)])
    assert write(broker, owner, former, topic) == 0
    TransactionalId(broker.client, owner.name, 60_000).fence()
    wait_for_end(broker, topic, 3)
    assert visible(broker, topic) == []
    assert write(broker, owner, former, topic, sequence=2) == INVALID_PRODUCER_EPOCH
    with pytest.raises(TransactionInDoubtError):
        owner.end(former, commit=True)


def test_late_write_of_a_transaction_that_its_owner_gave_up_is_refused(
    broker: AskedBroker, owner: TransactionalId
) -> None:
    topic = broker.make_topic()
    given_up = owner.fence()
    owner.join(given_up, [TopicPartition(topic, 0)])
    assert write(broker, owner, given_up, topic) == 0
    owner.renew(given_up)
    # The network has delayed it; the end of the transaction came first.
    assert write(broker, owner, given_up, topic, sequence=2) == INVALID_PRODUCER_EPOCH
    assert visible(broker, topic) == []


def test_positions_of_a_group_count_once_their_transaction_is_committed(
    broker: AskedBroker, owner: TransactionalId
) -> None:
    where = TopicPartition(broker.make_topic(), 0)
    group = GroupPositions(broker.client, f"contract-{uuid.uuid4().hex}")
    transaction = owner.fence()
    for number, commit in ((3, True), (5, False)):
        owner.join_group(transaction, group.group_id)
        group.commit_within(transaction, {where: GroupPosition(number, "m")})
        transaction = owner.end(transaction, commit=commit)
        # Markers are written after EndTxn is answered, and brokers leave out a first position until then.
        eventually(lambda: group.fetch() == {where: GroupPosition(3, "m")})
