"""A transactional id against scripted brokers: faults that real ones cannot be made to show."""

from __future__ import annotations

import struct
import time
from functools import partial
from typing import Any

import pytest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

from kit.fakes.clock import Clock
from kit.fakes.handlers.transactions import add_partitions
from kit.fakes.scripts import Close, Raw, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.fakes.transactions import coordinator
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce.identity import ProducerIdentity, request_identity
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import ConnectionOptions

NOT_COORDINATOR = 16


def test_silent_broker_does_not_hold_up_the_search_for_the_coordinator() -> None:
    identity = InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=3)
    with TcpCluster(2) as cluster, KafkaClient(ConnectionOptions(cluster.bootstrap_servers)) as client:
        client.fetch_metadata(())
        cluster.script(FindCoordinatorRequest, Silence, broker_id=0)
        cluster.script(FindCoordinatorRequest, coordinator(1), broker_id=1)
        cluster.script(InitProducerIdRequest, identity, broker_id=1)
        began_at = time.monotonic()
        fenced = TransactionalId(client, "sink", 60_000).fence()
        # One that is waited for alone has 30 s for its answer.
        assert time.monotonic() - began_at < 20
        assert (fenced.identity.producer_id, fenced.identity.producer_epoch) == (7, 3)


@pytest.mark.parametrize(
    ("request_class", "response_class"),
    [(InitProducerIdRequest, InitProducerIdResponse), (EndTxnRequest, EndTxnResponse)],
    ids=lambda each: each.__name__,
)
def test_coordinator_that_has_moved_is_looked_up_and_asked_again(request_class: Any, response_class: Any) -> None:
    refusal = response_class(throttle_time_ms=0, error_code=NOT_COORDINATOR, producer_id=-1, producer_epoch=-1)
    with TcpCluster(2) as cluster, KafkaClient(cluster.options()) as client:
        cluster.add_topic("t", partitions=1)
        cluster.script(FindCoordinatorRequest, coordinator(0), coordinator(1))
        cluster.script(request_class, refusal, broker_id=0)
        owner = TransactionalId(client, "sink", 60_000)
        transaction = owner.fence()
        owner.join(transaction, [TopicPartition("t", 0)])
        owner.end(transaction, commit=True)
        asked = [each.broker_id for each in cluster.requests(request_class)]
        assert asked == [0, 1]


def test_coordinator_that_is_at_another_address_by_now_is_found_there() -> None:
    with TcpCluster(2) as cluster, KafkaClient(cluster.options()) as client:
        cluster.script(FindCoordinatorRequest, coordinator(1))
        # Nothing listens there.
        cluster.elsewhere[1] = ("127.0.0.1", 1)
        client.fetch_metadata(())
        del cluster.elsewhere[1]
        TransactionalId(client, "sink", 60_000).fence()
        assert [each.broker_id for each in cluster.requests(InitProducerIdRequest)] == [1]


def test_end_is_sent_later_if_its_coordinator_could_not_be_reached_before() -> None:
    with TcpCluster(2) as cluster, KafkaClient(cluster.options()) as client:
        cluster.add_topic("t", partitions=1)
        cluster.script(FindCoordinatorRequest, coordinator(0), coordinator(1))
        owner = TransactionalId(client, "sink", 60_000)
        transaction = owner.fence()
        owner.join(transaction, [TopicPartition("t", 0)])
        cluster.stop(0)
        client.connections.close()
        owner.end(transaction, commit=True)
        assert [each.broker_id for each in cluster.requests(EndTxnRequest)] == [1]


@pytest.mark.parametrize(
    ("generation", "commit", "sent"),
    [(Generation.V2, True, 2), (Generation.V2, False, 1), (Generation.V1, True, 1)],
    ids=["commit", "abort", "commit of the first generation"],
)
def test_commit_of_the_second_generation_is_sent_again_if_its_response_is_lost(
    generation: Generation, commit: bool, sent: int
) -> None:
    done = EndTxnResponse(throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=4)
    transaction = OpenTransaction("sink", TransactionIdentity(7, 3, generation))
    with TcpCluster() as cluster, KafkaClient(cluster.options()) as client:
        cluster.script(EndTxnRequest, Close, done)
        owner = TransactionalId(client, "sink", 60_000)
        if sent > 1:
            assert owner.end(transaction, commit=commit).identity.producer_epoch == 4
        else:
            with pytest.raises(TransactionInDoubtError):
                owner.end(transaction, commit=commit)
        assert len(cluster.requests(EndTxnRequest)) == sent


@pytest.mark.parametrize(
    ("code", "is_committed"),
    [
        (0, True),
        # INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, PRODUCER_FENCED.
        (47, False),
        (48, False),
        (90, False),
        # INVALID_PRODUCER_ID_MAPPING and UNKNOWN_PRODUCER_ID: brokers have forgotten the id.
        (49, None),
        (59, None),
    ],
)
def test_commit_that_was_decided_is_lost_only_if_its_coordinator_knows_the_id(
    code: int, is_committed: bool | None
) -> None:
    answer = EndTxnResponse(throttle_time_ms=0, error_code=code, producer_id=7, producer_epoch=4)
    transaction = OpenTransaction("task", TransactionIdentity(7, 3, Generation.V2))
    with TcpCluster() as cluster, KafkaClient(cluster.options()) as client:
        cluster.script(EndTxnRequest, answer)
        assert TransactionalId(client, "task", 60_000).commit_decided(transaction) is is_committed


@pytest.mark.parametrize("generation", list(Generation))
def test_end_whose_time_is_over_is_not_sent(generation: Generation) -> None:
    transaction = OpenTransaction("sink", TransactionIdentity(7, 3, generation))
    clock = Clock()
    with TcpCluster() as cluster, KafkaClient(cluster.options()) as client:
        owner = TransactionalId(client, "sink", 60_000)
        cluster.script(FindCoordinatorRequest, coordinator(0))
        client.fetch_metadata(())
        late = Deadline(1_000, clock=clock, sleep=clock.sleep)
        find = owner._coordinator._find

        def stand_still(step: Deadline) -> int:
            found = find(step)
            clock.now += 1
            return found

        owner._coordinator._find = stand_still
        with pytest.raises(TransactionInDoubtError):
            owner.end(transaction, commit=True, deadline=late)
        assert not cluster.requests(EndTxnRequest)


@pytest.mark.parametrize(
    "unreadable",
    [Raw(struct.pack(">ii", 14, 99) + bytes(10)), Raw(b"\x7f\xff\xff\xff" + bytes(10)), Raw(bytes(8))],
    ids=["another correlation id", "a frame of 2 GiB", "a frame of no bytes"],
)
@pytest.mark.parametrize(("generation", "sent"), [(Generation.V2, 2), (Generation.V1, 1)])
def test_commit_whose_response_cannot_be_read_is_as_one_whose_response_is_lost(
    generation: Generation, sent: int, unreadable: Raw
) -> None:
    """It may be committed: neither a failure nor a success."""
    done = EndTxnResponse(throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=4)
    transaction = OpenTransaction("sink", TransactionIdentity(7, 3, generation))
    with TcpCluster() as cluster, KafkaClient(cluster.options()) as client:
        cluster.script(EndTxnRequest, unreadable, done)
        owner = TransactionalId(client, "sink", 60_000)
        if sent > 1:
            assert owner.end(transaction, commit=True).identity.producer_epoch == 4
        else:
            with pytest.raises(TransactionInDoubtError):
                owner.end(transaction, commit=True)
        assert len(cluster.requests(EndTxnRequest)) == sent


def test_join_whose_response_leaves_partitions_out_is_sent_again() -> None:
    """Otherwise their records would be written outside of the transaction."""
    empty = AddPartitionsToTxnResponse(throttle_time_ms=0, error_code=0, results_by_topic_v3_and_below=[])
    with TcpCluster() as cluster, KafkaClient(cluster.options()) as client:
        cluster.add_topic("t", partitions=2)
        owner = TransactionalId(client, "sink", 60_000)
        transaction = owner.fence()
        cluster.script(AddPartitionsToTxnRequest, empty, partial(add_partitions, cluster))
        owner.join(transaction, [TopicPartition("t", 0), TopicPartition("t", 1)])
        assert len(cluster.requests(AddPartitionsToTxnRequest)) == 2


def test_identity_without_a_producer_id_is_asked_for_again() -> None:
    nobody = InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=-1, producer_epoch=-1)
    given = InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=0)
    with TcpCluster() as cluster, KafkaClient(cluster.options()) as client:
        cluster.script(InitProducerIdRequest, nobody, given)
        assert request_identity(client, "t") == ProducerIdentity(7, 0)
        cluster.script(InitProducerIdRequest, nobody, given)
        assert TransactionalId(client, "sink", 60_000).fence().identity.producer_id == 7


def test_partition_joins_every_transaction_of_the_first_generation_anew() -> None:
    with TcpCluster() as cluster, KafkaClient(cluster.options()) as client:
        cluster.add_topic("t", partitions=1)
        owner = TransactionalId(client, "sink", 60_000)
        transaction = owner.fence()
        for joins in (1, 2):
            owner.join(transaction, [TopicPartition("t", 0)])
            owner.join(transaction, [TopicPartition("t", 0)])
            assert len(cluster.requests(AddPartitionsToTxnRequest)) == joins
            transaction = owner.end(transaction, commit=True)


def test_renewal_makes_the_epoch_known_to_partitions_that_are_still_there() -> None:
    gone, kept = TopicPartition("gone", 0), TopicPartition("kept", 0)
    with TcpCluster() as cluster, KafkaClient(cluster.options()) as client:
        for topic_partition in (gone, kept):
            cluster.add_topic(topic_partition.topic, partitions=1)
        owner = TransactionalId(client, "sink", 60_000)
        given_up = owner.fence()
        owner.join(given_up, [gone, kept])
        del cluster.logs["gone", 0]
        identity = owner.renew(given_up).identity
        known = cluster.logs["kept", 0].producers[identity.producer_id]
        assert known.epoch == given_up.identity.producer_epoch + 1
        # A late copy of the abort under that epoch ends no later transaction.
        assert identity.producer_epoch == known.epoch + 1
