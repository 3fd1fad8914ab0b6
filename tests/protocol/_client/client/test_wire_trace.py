"""The wire trace over real sockets: a line for each request, response and failure, and no secret in any."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from kit.fakes.scripts import Close, Raw, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.fixtures.wire import WireTrace
from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import (
    ApiVersionsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from pyspark_kafka._client.options import ConnectionOptions, PlainLogin, Secret
from pyspark_kafka.errors import ConnectorError, TransportError

PLANTED = "correct-horse"


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster() as cluster:
        yield cluster


def opened(cluster: TcpCluster, **options: object) -> Connection:
    host, port = cluster.address(0)
    return open_connection(host, port, ConnectionOptions(cluster.bootstrap_servers, **options), Deadline(5_000))  # type: ignore[arg-type]


def metadata_request() -> object:
    return MetadataRequest(topics=[], allow_auto_topic_creation=False)


def test_a_connection_s_life_is_traced_in_order(cluster: TcpCluster, wire: WireTrace) -> None:
    connection = opened(cluster)
    connection.call(metadata_request(), Deadline(5_000))
    connection.close()
    connection.close()
    assert wire.lines(connection.address) == [
        "sent ApiVersions v4",
        "received ApiVersions v4",
        "opened",
        "sent Metadata v13",
        "received Metadata v13",
        "closed",
    ]


def test_requests_sent_ahead_and_responses_have_the_same_ids(cluster: TcpCluster, wire: WireTrace) -> None:
    connection = opened(cluster)
    for _ in range(2):
        connection.send_request(metadata_request())
    for _ in range(2):
        connection.receive(Deadline(5_000))
    connection.close()
    events = [event for event in wire.events if event.request == "Metadata"]
    assert wire.steps("Metadata") == ["sent Metadata"] * 2 + ["received Metadata"] * 2
    assert [event.correlation_id for event in events] == [2, 3, 2, 3]
    assert all(event.elapsed_ms is not None and event.elapsed_ms > 0 for event in events[2:])
    assert all(event.size > 4 for event in events)


def test_a_request_in_flight_at_the_end_is_named_as_such(cluster: TcpCluster, wire: WireTrace) -> None:
    cluster.script(MetadataRequest, Silence)
    connection = opened(cluster)
    connection.send_request(metadata_request())
    connection.close()
    assert wire.lines(connection.address)[-2:] == ["sent Metadata v13", "closed: 1 in flight"]


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (Close, "[BROKER_CLOSED_FIRST_READ] "),
        (Silence, "[DEADLINE_EXCEEDED] Waiting for the "),
        (Raw(b"\x00\x00\x00\x05\x00\x00\x00\x02\x01"), "[RESPONSE_HEADER_INVALID] "),
    ],
)
def test_a_failed_request_is_traced_with_its_reason(
    cluster: TcpCluster, wire: WireTrace, script: object, failure: str
) -> None:
    cluster.script(MetadataRequest, script)
    connection = opened(cluster)
    with pytest.raises(ConnectorError):
        connection.call(metadata_request(), Deadline(300))
    failed, closed = wire.lines(connection.address)[-2:]
    assert failed.startswith(f"failed Metadata v13: {failure}")
    assert closed == "closed: 1 in flight"


def test_a_connection_that_cannot_be_opened_is_traced(cluster: TcpCluster, wire: WireTrace) -> None:
    cluster.script(ApiVersionsRequest, Close)
    with pytest.raises(TransportError):
        opened(cluster)
    host, port = cluster.address(0)
    failed = [event for event in wire.events if event.step == "failed"]
    # The request, and the connection as a whole.
    assert [event.request for event in failed] == ["ApiVersions", ""]
    assert "opened" not in " ".join(wire.lines(f"{host}:{port}"))


def test_a_broker_that_cannot_be_reached_is_traced(wire: WireTrace) -> None:
    with TcpCluster() as cluster:
        host, port = cluster.address(0)
    with pytest.raises(TransportError):
        open_connection(host, port, ConnectionOptions(((host, port),)), Deadline(2_000))
    (line,) = wire.lines(f"{host}:{port}")
    assert line.startswith(f"failed: [CONNECTION_FAILED] Broker {host}:{port} ")


def test_a_failed_tls_handshake_is_traced(wire: WireTrace) -> None:
    with TcpCluster(greet=lambda _: None) as cluster:
        with pytest.raises(TransportError):
            opened(cluster, security_protocol="SSL")
        host, port = cluster.address(0)
    (failed,) = wire.lines(f"{host}:{port}")
    assert failed.startswith(f"failed: [TLS_HANDSHAKE_FAILED] The TLS handshake with {host}:{port} ")


def test_credentials_are_in_no_line(cluster: TcpCluster, wire: WireTrace, caplog: pytest.LogCaptureFixture) -> None:
    cluster.script(SaslHandshakeRequest, SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]))
    refusal = SaslAuthenticateResponse(error_code=58, error_message="no", auth_bytes=b"", session_lifetime_ms=0)
    cluster.script(SaslAuthenticateRequest, refusal)
    login = PlainLogin("alice", Secret(PLANTED))
    with caplog.at_level(logging.DEBUG, "pyspark_kafka.wire"), pytest.raises(ConnectorError):
        opened(cluster, security_protocol="SASL_PLAINTEXT", login=login)
    assert wire.counts() == {"ApiVersions": 1, "SaslHandshake": 1, "SaslAuthenticate": 1}
    assert wire.events[-1].reason.startswith("[SASL_AUTHENTICATION_FAILED] ")
    assert PLANTED not in caplog.text + repr(wire.events)
    assert [record.getMessage() for record in caplog.records] == [str(event) for event in wire.events]
