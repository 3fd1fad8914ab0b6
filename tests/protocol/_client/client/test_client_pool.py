"""Clients are lent to one borrower at a time, kept by options, closed when idle, and left behind by a fork."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.fakes.tcp_cluster import TcpCluster
from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.pool import ClientPool
from pyspark_kafka._client.client.reuse.learned_servers import LearnedServers
from pyspark_kafka._client.client.wire.messages import MetadataRequest
from pyspark_kafka._client.options import ConnectionOptions, PlainLogin, Secret

OPTIONS = ConnectionOptions((("127.0.0.1", 1),))


@pytest.fixture
def pool() -> Iterator[ClientPool]:
    pool = ClientPool()
    yield pool
    pool.close()


def test_returned_client_is_lent_again(pool: ClientPool) -> None:
    with pool.borrow(OPTIONS) as first:
        pass
    with pool.borrow(OPTIONS) as second:
        assert second is first


def test_two_borrowers_at_a_time_get_two_clients(pool: ClientPool) -> None:
    with pool.borrow(OPTIONS) as first, pool.borrow(OPTIONS) as second:
        assert first is not second


def test_client_is_another_one_for_other_options(pool: ClientPool) -> None:
    other = ConnectionOptions((("127.0.0.1", 1),), login=PlainLogin("alice", Secret("other")))
    with pool.borrow(OPTIONS) as first:
        pass
    with pool.borrow(other) as second:
        assert second is not first


def test_client_comes_back_also_after_an_error(pool: ClientPool) -> None:
    with pytest.raises(ValueError, match="boom"), pool.borrow(OPTIONS) as first:
        raise ValueError("boom")
    with pool.borrow(OPTIONS) as second:
        assert second is first


def test_client_is_closed_and_replaced_when_it_was_idle_too_long() -> None:
    now = [0.0]
    pool = ClientPool(idle_seconds=60, clock=lambda: now[0])
    with TcpCluster() as cluster:
        options = ConnectionOptions(cluster.bootstrap_servers)
        with pool.borrow(options) as first:
            first.fetch_metadata(())
            connection = first.any_broker.connect(first.deadline())
        now[0] = 61.0
        with pool.borrow(options) as second:
            assert second is not first
            assert connection.closed
        pool.close()


def test_new_client_knows_brokers_that_another_one_has_learned_of(pool: ClientPool) -> None:
    with TcpCluster(2) as cluster:
        options = ConnectionOptions(cluster.bootstrap_servers, api_timeout_ms=10_000)
        with pool.borrow(options) as first:
            first.fetch_metadata(())
            cluster.stop(0)
            with pool.borrow(options) as second:
                # What the first one has learned comes back with it.
                assert second.options.learned_servers == ()
        with pool.borrow(options), pool.borrow(options), pool.borrow(options) as third:
            assert third.options.learned_servers
            assert third.fetch_metadata(()).cluster_id == "fake"


def test_new_process_finds_the_cluster_by_its_neighbours_when_the_bootstrap_server_is_gone(tmp_path: Path) -> None:
    with TcpCluster(4) as cluster:
        options = ConnectionOptions((cluster.address(0),), api_timeout_ms=10_000)
        pools = [ClientPool(learned=LearnedServers(tmp_path)) for _ in range(3)]
        with pools[0].borrow(options) as client:
            assert client.fetch_metadata(()).cluster_id == "fake"
        cluster.stop(0)
        for pool in pools[1:]:
            with pool.borrow(options) as client:
                assert client.fetch_metadata(()).cluster_id == "fake"
        for pool in pools:
            pool.close()


def test_brokers_that_were_learned_elsewhere_are_asked_behind_the_bootstrap_servers() -> None:
    with TcpCluster() as cluster:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            gone = unused.getsockname()
        options = ConnectionOptions((gone,), learned_servers=cluster.bootstrap_servers)
        assert options == ConnectionOptions((gone,))
        with KafkaClient(options) as client:
            assert client.fetch_metadata(()).cluster_id == "fake"


def test_warm_client_keeps_its_connection(pool: ClientPool) -> None:
    with TcpCluster() as cluster:
        options = ConnectionOptions(cluster.bootstrap_servers)
        for _ in range(3):
            with pool.borrow(options) as client:
                client.fetch_metadata(())
        assert cluster.connections == 1


def test_connection_ended_by_the_broker_is_replaced_silently(pool: ClientPool) -> None:
    with TcpCluster() as cluster:
        options = ConnectionOptions(cluster.bootstrap_servers)
        with pool.borrow(options) as client:
            client.fetch_metadata(())
            connection = client.any_broker.connect(client.deadline())
        cluster.drop_connections()
        assert connection.readable(PATIENCE_S)
        with pool.borrow(options) as client:
            client.fetch_metadata(())
        assert cluster.connections == 2


def test_connection_is_closed_when_its_client_comes_back_with_a_request_in_flight(pool: ClientPool) -> None:
    with TcpCluster() as cluster:
        cluster.add_topic("t")
        options = ConnectionOptions(cluster.bootstrap_servers)
        with pool.borrow(options) as client:
            client.fetch_metadata(())
            connection = client.connection_to(0)
            connection.send_request(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        assert connection.closed


def test_forked_child_starts_with_an_empty_pool(pool: ClientPool) -> None:
    with TcpCluster() as cluster:
        options = ConnectionOptions(cluster.bootstrap_servers)
        with pool.borrow(options) as client:
            client.fetch_metadata(())
        # What a child sees after a fork: the same memory under another process id. (A real fork of a process with
        # threads is not safe under pytest.)
        pool._idle._process_id = os.getpid() + 1
        with pool.borrow(options) as child_client:
            assert child_client is not client
        with pool.borrow(options) as again:
            assert again is child_client
