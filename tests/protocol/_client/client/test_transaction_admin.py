"""Listing and describing transactions, against scripted brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest

from kit.fakes.scripts import Close, Meeting, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.fakes.transactions import coordinator, describing, listing
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.transactions.inspection import (
    TransactionDescription,
    TransactionState,
    describe_transaction,
    list_transactions,
)
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.errors import AccessError, BrokerError, DeadlineError, ProtocolError

NOT_COORDINATOR, COORDINATOR_LOADING, ID_NOT_FOUND, ID_REFUSED = 16, 14, 105, 53


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: TcpCluster) -> Iterator[KafkaClient]:
    with cluster.client(api_timeout_ms=5_000) as client:
        yield client


def test_every_broker_is_asked_and_describes_its_own(cluster: TcpCluster, client: KafkaClient) -> None:
    cluster.script(ListTransactionsRequest, listing(("b", "Ongoing"), ("x", "Ongoing")), broker_id=0)
    cluster.script(ListTransactionsRequest, listing(("a", "PrepareCommit")), broker_id=1)
    cluster.script(DescribeTransactionsRequest, describing({"b": "Ongoing"}, {"x": ID_NOT_FOUND}), broker_id=0)
    cluster.script(DescribeTransactionsRequest, describing({"a": "PrepareCommit"}), broker_id=1)
    host_of = [f"{host}:{port}" for host, port in map(cluster.address, range(2))]
    held = (TopicPartition("t", 0), TopicPartition("t", 2))
    assert list_transactions(client) == [
        TransactionDescription("a", TransactionState.PREPARE_COMMIT, 7, 3, 1, host_of[1], 60_000, None, held),
        TransactionDescription("b", TransactionState.ONGOING, 7, 3, 0, host_of[0], 60_000, 1_000, held),
    ]
    asked = cluster.requests(ListTransactionsRequest)
    assert sorted(seen.broker_id for seen in asked) == [0, 1]
    assert asked[0].request.state_filters == ["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"]


def test_brokers_are_connected_to_side_by_side() -> None:
    with TcpCluster(12) as cluster, KafkaClient(ConnectionOptions(cluster.bootstrap_servers)) as client:
        client.fetch_metadata(())
        meeting = Meeting(8, cluster.api_versions)
        cluster.script(ApiVersionsRequest, meeting)
        cluster.script(ListTransactionsRequest, listing())
        assert list_transactions(client) == []
        assert len(cluster.requests(ListTransactionsRequest)) == 12
        assert meeting.took_place


def test_listing_leaves_out_ended_transactions_also_if_a_broker_does_not_filter(
    cluster: TcpCluster, client: KafkaClient
) -> None:
    states = {"p-1": "Empty", "p-2": "Ongoing", "p-3": "CompleteAbort", "p-4": "NewerThanUs", "q": "Ongoing"}
    # One ends between the two requests.
    described = states | {"p-2": "CompleteCommit"}
    cluster.script(ListTransactionsRequest, listing(*states.items()), broker_id=0)
    cluster.script(ListTransactionsRequest, listing(), broker_id=1)
    cluster.script(DescribeTransactionsRequest, describing(described))
    assert [(each.transactional_id, each.state.value) for each in list_transactions(client, prefix="p-")] == [
        ("p-4", "Unknown")
    ]
    everything = list_transactions(client, prefix="p-", open_only=False)
    assert [each.transactional_id for each in everything] == ["p-1", "p-2", "p-3", "p-4"]
    assert [seen.request.transactional_ids for seen in cluster.requests(DescribeTransactionsRequest)] == [
        ["p-2", "p-4"],
        ["p-1", "p-2", "p-3", "p-4"],
    ]
    assert cluster.requests(ListTransactionsRequest)[-1].request.state_filters == []


def test_ids_are_described_in_several_requests_if_there_are_many(cluster: TcpCluster, client: KafkaClient) -> None:
    names = [f"n{number:04}" for number in range(1_001)]
    cluster.script(ListTransactionsRequest, listing(*((name, "Ongoing") for name in names)), broker_id=0)
    cluster.script(ListTransactionsRequest, listing(), broker_id=1)
    cluster.script(DescribeTransactionsRequest, describing(dict.fromkeys(names, "Ongoing")))
    assert [each.transactional_id for each in list_transactions(client)] == names
    asked = [len(seen.request.transactional_ids) for seen in cluster.requests(DescribeTransactionsRequest)]
    assert asked == [500, 500, 1]


def test_coordinator_that_is_loading_is_asked_again(cluster: TcpCluster, client: KafkaClient) -> None:
    cluster.script(
        ListTransactionsRequest, Close, listing(error_code=COORDINATOR_LOADING), listing(("a", "Ongoing")), broker_id=0
    )
    cluster.script(ListTransactionsRequest, listing(), broker_id=1)
    cluster.script(DescribeTransactionsRequest, describing({}, {"a": NOT_COORDINATOR}), describing({"a": "Ongoing"}))
    assert [each.transactional_id for each in list_transactions(client)] == ["a"]


def test_silent_broker_is_an_error_and_not_a_shorter_list(cluster: TcpCluster, client: KafkaClient) -> None:
    cluster.script(ListTransactionsRequest, listing(("a", "Ongoing")), broker_id=0)
    cluster.script(DescribeTransactionsRequest, describing({"a": "Ongoing"}))
    cluster.script(ListTransactionsRequest, Silence, broker_id=1)
    for broker_id in range(2):
        client.connection_to(broker_id)
    with pytest.raises(DeadlineError) as caught:
        list_transactions(client, deadline=Deadline(1_000))
    assert "ListTransactionsRequest did not finish" in str(caught.value)
    host, port = cluster.address(1)
    assert f"{host}:{port}" in str(caught.value)


def test_broker_that_cannot_tell_is_named() -> None:
    keys = {ListTransactionsRequest.API_KEY: (9, 9), DescribeTransactionsRequest.API_KEY: (9, 9)}
    with TcpCluster(versions=keys) as old, KafkaClient(ConnectionOptions(old.bootstrap_servers)) as client:
        host, port = old.address(0)
        with pytest.raises(ProtocolError) as caught:
            list_transactions(client)
        assert said(caught.value) == (
            f"[UNSUPPORTED_VERSION] {host}:{port} cannot tell about transactions: it does not know "
            "ListTransactionsRequest. Hint: Use brokers of Kafka 3.0 or newer (KIP-664); some services leave these "
            "requests out."
        )
        old.script(FindCoordinatorRequest, coordinator(0))
        with pytest.raises(ProtocolError, match="it does not know DescribeTransactionsRequest"):
            describe_transaction(client, "a")


def test_one_id_is_described_by_its_coordinator(cluster: TcpCluster, client: KafkaClient) -> None:
    cluster.script(FindCoordinatorRequest, coordinator(-1, COORDINATOR_LOADING), coordinator(0), coordinator(1))
    # The first has just handed it over.
    cluster.script(DescribeTransactionsRequest, describing({}, {"a": NOT_COORDINATOR}), broker_id=0)
    cluster.script(DescribeTransactionsRequest, describing({"a": "Ongoing"}), broker_id=1)
    found = describe_transaction(client, "a")
    assert found is not None
    assert (found.coordinator_id, found.state) == (1, TransactionState.ONGOING)
    asked = cluster.requests(FindCoordinatorRequest)[0]
    assert (asked.request.key, asked.request.key_type) == ("a", 1)


def test_unknown_id_is_none_and_a_refused_one_names_the_right_that_is_missing(
    cluster: TcpCluster, client: KafkaClient
) -> None:
    cluster.script(FindCoordinatorRequest, coordinator(0))
    cluster.script(DescribeTransactionsRequest, describing({}, {"a": ID_NOT_FOUND}), describing({}, {"a": ID_REFUSED}))
    assert describe_transaction(client, "a") is None
    with pytest.raises(AccessError) as caught:
        describe_transaction(client, "a")
    host, port = cluster.address(0)
    assert said(caught.value) == (
        f"[TRANSACTIONAL_ID_AUTHORIZATION_FAILED] Describing transactional id 'a' at {host}:{port} failed: the broker "
        "answered TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53). Missing right: DESCRIBE on transactional id 'a'. "
        f"Hint: Have an administrator run `kafka-acls --bootstrap-server {host}:{port} --add --allow-principal "
        "User:ANONYMOUS --operation Describe --transactional-id a`. To abort its transactions, WRITE is needed, which "
        "includes DESCRIBE."
    )


def test_refusal_to_list_is_raised_as_it_is(cluster: TcpCluster, client: KafkaClient) -> None:
    cluster.script(ListTransactionsRequest, listing(error_code=42))
    with pytest.raises(BrokerError, match=r"Listing the transactions of 127\.0\.0\.1:\d+ failed: .*\(42\)"):
        list_transactions(client)


def test_descriptions_tell_one_transaction_from_the_next() -> None:
    seen = TransactionDescription("a", TransactionState.ONGOING, 7, 3, 1, "h:1", 60_000, 1_000)
    again = TransactionDescription(
        "a", TransactionState.ONGOING, 7, 3, 2, "h:2", 60_000, 1_000, (TopicPartition("t", 0),)
    )
    assert seen.same_transaction(again)
    others = [
        TransactionDescription("a", TransactionState.PREPARE_COMMIT, 7, 3, 1, "h:1", 60_000, 1_000),
        TransactionDescription("a", TransactionState.ONGOING, 7, 4, 1, "h:1", 60_000, 1_000),
        TransactionDescription("a", TransactionState.ONGOING, 8, 3, 1, "h:1", 60_000, 1_000),
        TransactionDescription("a", TransactionState.ONGOING, 7, 3, 1, "h:1", 60_000, 2_000),
        None,
    ]
    assert not any(seen.same_transaction(other) for other in others)
