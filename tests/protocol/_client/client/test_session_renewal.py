"""Logins that are repeated before their session ends (KIP-368), with a cluster that answers each as a test wants."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from kit.fakes.scripts import Close, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.net.login_session import LoginSession
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import (
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from pyspark_kafka._client.options import PlainLogin, Secret
from pyspark_kafka.errors import AccessError, TransportError

ACCEPTED = SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=60_000)
REFUSED = SaslAuthenticateResponse(error_code=58, error_message="other user", auth_bytes=b"", session_lifetime_ms=0)


@contextmanager
def sasl_cluster(*logins: Any, user: str) -> Iterator[tuple[TcpCluster, KafkaClient]]:
    """Run a cluster that answers logins so, the last one again and again; of a user that no other test has."""
    with TcpCluster() as cluster:
        cluster.add_topic("t")
        cluster.script(SaslHandshakeRequest, SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]))
        cluster.script(SaslAuthenticateRequest, *logins)
        login = PlainLogin(user, Secret("hunter2"))
        with cluster.client(security_protocol="SASL_PLAINTEXT", login=login) as client:
            yield cluster, client


def age(connection: Connection, seconds: float = 50.0) -> None:
    """Let the session of a connection be old; it has ended after 60 s."""
    began = time.monotonic() - seconds
    connection.session = LoginSession(began, began + 45.0, began + 60.0)


def ask(connection: Connection) -> None:
    connection.call(MetadataRequest(topics=[], allow_auto_topic_creation=False), Deadline(5_000))


def logins(cluster: TcpCluster) -> int:
    return len(cluster.requests(SaslAuthenticateRequest))


def redialed(client: KafkaClient) -> Connection:
    dials = client.dials()
    try:
        client.connect(dials, 0, client.deadline())
        dials.wait(PATIENCE_S)
        ((_, outcome),) = dials.take_outcomes()
    finally:
        dials.close()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@pytest.mark.parametrize("seconds", [50.0, 70.0])
def test_call_logs_in_again_on_its_connection_before_the_session_ends_and_after(seconds: float) -> None:
    with sasl_cluster(ACCEPTED, user="call") as (cluster, client):
        connection = client.connection_to(0)
        before = cluster.connections
        ask(connection)
        assert logins(cluster) == before
        age(connection, seconds)
        assert client.connection_to(0) is connection
        ask(connection)
        assert logins(cluster) == before + 1
        assert not connection.session_is_old
        assert cluster.connections == before


def test_session_is_not_renewed_while_a_response_is_pending() -> None:
    with sasl_cluster(ACCEPTED, user="pending") as (cluster, client):
        connection = client.connection_to(0)
        before = logins(cluster)
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        connection.send_request(request)
        age(connection)
        connection.send_request(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        connection.receive(Deadline(5_000))
        connection.receive(Deadline(5_000))
        assert logins(cluster) == before
        ask(connection)
        assert logins(cluster) == before + 1


def test_idle_connection_is_renewed_by_the_next_that_connects() -> None:
    with sasl_cluster(ACCEPTED, user="idle") as (cluster, client):
        client.fetch_metadata(())
        first = redialed(client)
        client.connections.give_back(0, first)
        age(first)
        assert client.connections.take_idle(0) is None
        before, opened = logins(cluster), cluster.connections
        second = redialed(client)
        assert second is first
        assert not second.session_is_old
        assert (logins(cluster), cluster.connections) == (before + 1, opened)
        second.close()


def test_connection_that_is_not_accepted_again_is_replaced_by_a_new_one() -> None:
    with sasl_cluster(ACCEPTED, ACCEPTED, REFUSED, ACCEPTED, user="replaced") as (cluster, client):
        client.fetch_metadata(())
        first = redialed(client)
        client.connections.give_back(0, first)
        age(first)
        opened = cluster.connections
        second = redialed(client)
        assert second is not first
        assert first.closed
        assert cluster.connections == opened + 1
        ask(second)
        second.close()


def test_connection_too_young_to_be_accepted_again_is_replaced() -> None:
    with sasl_cluster(ACCEPTED, user="young") as (_, client):
        client.fetch_metadata(())
        first = redialed(client)
        client.connections.give_back(0, first)
        now = time.monotonic()
        first.session = LoginSession(now, now, now + 0.5)
        assert client.connections.take_idle(0) is None
        assert first.closed
        second = redialed(client)
        assert second is not first
        second.close()


def test_credentials_refused_on_the_new_connection_as_well_say_that_they_were_good() -> None:
    with sasl_cluster(ACCEPTED, ACCEPTED, REFUSED, user="changed") as (_, client):
        client.fetch_metadata(())
        first = redialed(client)
        client.connections.give_back(0, first)
        age(first)
        with pytest.raises(
            AccessError, match=r"The same login was accepted \d+ s ago and is refused now.*PLAIN.*other user"
        ) as caught:
            redialed(client)
        assert "hunter2" not in str(caught.value)


def test_call_that_cannot_renew_is_repeated_on_a_new_connection() -> None:
    with sasl_cluster(ACCEPTED, ACCEPTED, REFUSED, ACCEPTED, user="repeated") as (_, client):
        # The connection of the search becomes that of the broker.
        connection = client.connection_to(0)
        other = redialed(client)
        other.close()
        age(connection)
        with pytest.raises(TransportError, match=r"\[SESSION_NOT_RENEWED\].*which was closed: .*other user") as caught:
            ask(connection)
        assert caught.value.retriable
        assert connection.closed
        ask(client.connection_to(0))


def test_request_that_the_broker_reads_too_late_says_that_the_session_had_ended() -> None:
    with sasl_cluster(ACCEPTED, user="late") as (cluster, client):
        connection = client.connection_to(0)
        cluster.script(MetadataRequest, Close())
        connection.send_request(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        age(connection, 70.0)
        with pytest.raises(TransportError, match=r"\[SESSION_ENDED\].*before the broker read the request") as caught:
            connection.receive(Deadline(5_000))
        assert caught.value.retriable


def test_given_up_renewal_closes_its_connection() -> None:
    with sasl_cluster(ACCEPTED, user="given-up") as (cluster, client):
        client.fetch_metadata(())
        first = redialed(client)
        client.connections.give_back(0, first)
        age(first)
        cluster.script(SaslAuthenticateRequest, Silence())
        before = logins(cluster)
        dials = client.dials()
        client.connect(dials, 0, client.deadline())
        eventually(lambda: logins(cluster) > before)
        dials.close()
        assert first.closed
