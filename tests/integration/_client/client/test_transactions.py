"""Transactions of both generations against real brokers: fencing, joining, ending, what readers see."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pyarrow as pa
import pytest

from kit.administration import create_topic
from kit.reading import client_of, read_range
from pyspark_kafka._base.model import IsolationLevel, OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import FetchOptions, ProducerOptions
from pyspark_kafka.errors import DeliveryError, OptionError
from pyspark_kafka.records import encode
from pyspark_kafka.testing import EmbeddedKafka


@pytest.fixture(scope="module", params=[Generation.V1, Generation.V2], ids=lambda generation: generation.name)
def cluster(request: pytest.FixtureRequest) -> tuple[EmbeddedKafka, Generation]:
    broker = request.getfixturevalue("kafka" if request.param is Generation.V2 else "older_kafka")
    return broker, request.param


@pytest.fixture
def client(cluster: tuple[EmbeddedKafka, Generation]) -> Iterator[KafkaClient]:
    with client_of(cluster[0]) as client:
        yield client


@pytest.fixture
def partitions(client: KafkaClient) -> list[TopicPartition]:
    topic = f"txn-{uuid.uuid4().hex[:8]}"
    create_topic(client, topic, partitions=2)
    return [TopicPartition(topic, 0), TopicPartition(topic, 1)]


def batch(*values: bytes) -> bytearray:
    return bytearray(encode(pa.RecordBatch.from_pydict({"value": list(values)})))


def write(client: KafkaClient, transaction: OpenTransaction, where: TopicPartition, *batches: list[bytes]) -> None:
    with Producer(client, ProducerOptions(), transaction=transaction) as producer:
        for values in batches:
            producer.send_batch(where, batch(*values), len(values))
        producer.flush()


def committed(client: KafkaClient, where: TopicPartition) -> list[bytes]:
    """Read what is committed, waiting for markers that are still being written."""
    end = list_offsets(client, {where: Latest()})[where]
    fetch = FetchOptions(isolation_level=IsolationLevel.READ_COMMITTED, poll_timeout_ms=20_000, max_wait_ms=50)
    return [row["value"] for rows in read_range(client, OffsetRange(where, 0, end), fetch) for row in rows]


def name() -> str:
    return f"id-{uuid.uuid4().hex}"


def test_transactions_follow_each_other_and_readers_see_what_was_committed(
    cluster: tuple[EmbeddedKafka, Generation], client: KafkaClient, partitions: list[TopicPartition]
) -> None:
    first, second = partitions
    owner = TransactionalId(client, name(), 60_000)
    for number in range(3):
        transaction = owner.fence()
        assert transaction.identity.generation is cluster[1]
        owner.join(transaction, partitions)
        write(client, transaction, first, [b"a%d" % number, b"b%d" % number], [b"c%d" % number])
        write(client, transaction, second, [b"d%d" % number])
        owner.end(transaction, commit=number != 1)
    # Both markers of the last one are there once the id can be taken over again.
    owner.fence()
    assert committed(client, first) == [b"a0", b"b0", b"c0", b"a2", b"b2", b"c2"]
    assert committed(client, second) == [b"d0", b"d2"]


def test_new_owner_ends_an_open_transaction_and_fences_the_former_owner(
    client: KafkaClient, partitions: list[TopicPartition]
) -> None:
    where = partitions[0]
    former, new = (TransactionalId(client, shared, 60_000) for shared in [name()] * 2)
    left_open = former.fence()
    former.join(left_open, [where])
    write(client, left_open, where, [b"left open"])
    transaction = new.fence()
    with pytest.raises(DeliveryError, match=r"INVALID_PRODUCER_EPOCH|PRODUCER_FENCED|INVALID_TXN_STATE"):
        write(client, left_open, where, [b"too late"])
    with pytest.raises(TransactionInDoubtError) as caught:
        former.end(left_open, commit=True)
    assert "[TRANSACTION_IN_DOUBT] Whether the transaction of" in str(caught.value)
    assert "another owner has taken over" in str(caught.value)
    new.join(transaction, [where])
    write(client, transaction, where, [b"new"])
    new.end(transaction, commit=True)
    new.fence()
    assert committed(client, where) == [b"new"]


def test_transaction_that_was_ended_already_is_in_doubt(client: KafkaClient, partitions: list[TopicPartition]) -> None:
    owner = TransactionalId(client, name(), 60_000)
    transaction = owner.fence()
    owner.join(transaction, partitions[:1])
    write(client, transaction, partitions[0], [b"v"])
    owner.end(transaction, commit=False)
    with pytest.raises(TransactionInDoubtError):
        owner.end(transaction, commit=True)
    owner.fence()
    assert committed(client, partitions[0]) == []


def test_commit_that_is_sent_again_is_known_to_be_done(client: KafkaClient, partitions: list[TopicPartition]) -> None:
    where = partitions[0]
    owner = TransactionalId(client, name(), 60_000)
    first = owner.fence()
    if first.identity.generation is Generation.V1:
        pytest.skip("a commit of the first generation is not sent again")
    write(client, first, where, [b"first"])
    second = owner.end(first, commit=True)
    # As if the response was lost.
    assert owner.end(first, commit=True).identity == second.identity
    write(client, second, where, [b"second"])
    # A copy that the network has delayed ends nothing.
    with pytest.raises(TransactionInDoubtError):
        owner.end(first, commit=True)
    third = owner.end(second, commit=False)
    assert third.identity.producer_epoch > second.identity.producer_epoch
    assert committed(client, where) == [b"first"]


def test_owner_renews_and_what_was_open_is_aborted(client: KafkaClient, partitions: list[TopicPartition]) -> None:
    where = partitions[0]
    owner = TransactionalId(client, name(), 60_000)
    first = owner.fence()
    owner.join(first, [where])
    write(client, first, where, [b"given up"])
    second = owner.renew(first)
    assert second.identity.producer_epoch > first.identity.producer_epoch
    owner.join(second, [where])
    write(client, second, where, [b"kept"])
    # The end of the first one, as if its answer was lost and it arrives only now.
    with pytest.raises(TransactionInDoubtError):
        owner.end(first, commit=False)
    owner.end(second, commit=True)
    # A commit that was not known to be one is complete when the owner has renewed.
    owner.renew(second)
    assert committed(client, where) == [b"kept"]


@pytest.mark.parametrize("begun", [False, True])
def test_fenced_owner_cannot_renew_and_leaves_the_new_owner_alone(
    client: KafkaClient, partitions: list[TopicPartition], begun: bool
) -> None:
    where = partitions[0]
    former, new = (TransactionalId(client, shared, 60_000) for shared in [name()] * 2)
    first = former.fence()
    former.join(first, [where])
    write(client, first, where, [b"former"])
    second = new.fence()
    if begun:
        new.join(second, [where])
        write(client, second, where, [b"new"])
    with pytest.raises(TransactionLostError, match=r"TRANSACTION_LOST\].*another owner has taken over"):
        former.renew(first)
    if not begun:
        new.join(second, [where])
        write(client, second, where, [b"new"])
    new.end(second, commit=True)
    new.renew(second)
    assert committed(client, where) == [b"new"]


def test_timeout_above_the_brokers_is_refused_before_anything_is_written(client: KafkaClient) -> None:
    with pytest.raises(OptionError) as caught:
        TransactionalId(client, name(), 900_001).fence()
    text = str(caught.value)
    assert text.startswith("[TRANSACTION_TIMEOUT_TOO_LARGE] Option 'kafka.transaction.timeout.ms' is 900001, more than")
    assert "transaction.max.timeout.ms" in text.split("Hint: ")[1]


def test_coordinator_that_was_away_is_looked_up_again(client: KafkaClient) -> None:
    owner = TransactionalId(client, name(), 60_000)
    first = owner.fence()
    client.close()
    second = owner.fence()
    assert second.identity.producer_id == first.identity.producer_id
    assert second.identity.producer_epoch > first.identity.producer_epoch
