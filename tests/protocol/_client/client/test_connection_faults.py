"""What one connection does when the other side misbehaves, over real sockets."""

from __future__ import annotations

import errno
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from kit.fakes.black_hole import BlackHole
from kit.fakes.scripts import Close, Raw, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.texts import said
from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.net.login_session import LoginSession
from pyspark_kafka._client.client.tls.contexts import TlsContexts
from pyspark_kafka._client.client.waiting import retry
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import (
    ApiVersionsRequest,
    FetchRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from pyspark_kafka._client.options import (
    CertificateStore,
    ConnectionOptions,
    PlainLogin,
    ScramLogin,
    Secret,
    TlsOptions,
)
from pyspark_kafka.errors import (
    AccessError,
    ConnectorError,
    DeadlineError,
    OptionError,
    ProtocolError,
    TransportError,
)
from pyspark_kafka.testing.secured.certificates import CertificateAuthority

SASL = ConnectionOptions(
    (("127.0.0.1", 1),),
    security_protocol="SASL_PLAINTEXT",
    login=PlainLogin("alice", Secret("hunter2")),
)


@contextmanager
def opened(cluster: TcpCluster, options: ConnectionOptions | None = None) -> Iterator[Connection]:
    host, port = cluster.address(0)
    connection = open_connection(host, port, options or ConnectionOptions(cluster.bootstrap_servers), Deadline(5_000))
    try:
        yield connection
    finally:
        connection.close()


def open_error(cluster: TcpCluster, options: ConnectionOptions | None = None, *, timeout_ms: int = 5_000) -> str:
    host, port = cluster.address(0)
    with pytest.raises(ConnectorError) as caught:
        open_connection(host, port, options or ConnectionOptions(cluster.bootstrap_servers), Deadline(timeout_ms))
    return str(caught.value)


def metadata_request() -> object:
    return MetadataRequest(topics=[], allow_auto_topic_creation=False)


def test_requests_go_out_in_the_newest_version_both_sides_have() -> None:
    with TcpCluster(versions={3: (0, 7), 1: (4, 30)}) as cluster, opened(cluster) as connection:
        assert connection.api_version(MetadataRequest) == 7
        assert connection.api_version(FetchRequest) == FetchRequest.max_version
        assert connection.api_version(FetchRequest, max_version=12) == 12
        connection.call(metadata_request(), Deadline(5_000))
        assert cluster.requests(MetadataRequest)[0].version == 7


def test_no_common_version_is_a_protocol_error_that_names_both_ranges() -> None:
    with TcpCluster(versions={1: (0, 3)}) as cluster, opened(cluster) as connection:
        assert not connection.supports(FetchRequest)
        with pytest.raises(ProtocolError, match=r"\[UNSUPPORTED_VERSION\].*the broker has 0 to 3, the client 4 to 18"):
            connection.api_version(FetchRequest)


def test_a_broker_that_refuses_the_newest_api_versions_is_asked_again_in_its_version() -> None:
    entry = ApiVersionsResponse.ApiVersion
    refusal = ApiVersionsResponse(
        error_code=35, api_keys=[entry(api_key=18, min_version=0, max_version=2)], throttle_time_ms=0, version=0
    )
    with TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, refusal, cluster.api_versions)
        with opened(cluster) as connection:
            assert [seen.version for seen in cluster.requests(ApiVersionsRequest)] == [4, 2]
            assert connection.supports(MetadataRequest)


def test_an_old_broker_that_refuses_without_a_list_is_asked_in_version_0() -> None:
    refusal = ApiVersionsResponse(error_code=35, api_keys=[], throttle_time_ms=0, version=0)
    with TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, refusal, cluster.api_versions)
        with opened(cluster):
            assert [seen.version for seen in cluster.requests(ApiVersionsRequest)] == [4, 0]


def test_a_broker_that_refuses_every_version_is_an_error_not_a_loop() -> None:
    refusal = ApiVersionsResponse(error_code=35, api_keys=[], throttle_time_ms=0, version=0)
    with TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, refusal)
        assert "UNSUPPORTED_VERSION (35)" in open_error(cluster)


def test_answers_are_received_in_the_order_sent() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster.add_topic("t")
        connection.send_request(metadata_request())
        connection.send_request(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        assert connection.in_flight == 2
        assert [len(connection.receive(Deadline(5_000)).topics) for _ in range(2)] == [0, 1]
        assert connection.in_flight == 0


def test_a_call_while_another_answer_is_due_is_refused() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        connection.send_request(metadata_request())
        with pytest.raises(ProtocolError, match=r"\[CONNECTION_BUSY\]"):
            connection.call(metadata_request(), Deadline(5_000))


def test_a_close_before_the_first_reply_is_guessed_to_be_a_tls_listener() -> None:
    with TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, Close)
        text = open_error(cluster)
        assert text.startswith("[BROKER_CLOSED_FIRST_READ] 127.0.0.1:")
        assert "plaintext client on a TLS listener" in text
        assert "kafka.security.protocol (now 'PLAINTEXT')" in text


def test_a_close_at_the_first_real_request_is_guessed_to_be_missing_sasl() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster.script(MetadataRequest, Close)
        with pytest.raises(TransportError, match="a client without SASL on a listener that requires SASL"):
            connection.call(metadata_request(), Deadline(5_000))
        assert connection.closed


def test_a_later_close_is_a_lost_connection() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster.script(MetadataRequest, cluster.metadata, Close)
        connection.call(metadata_request(), Deadline(5_000))
        with pytest.raises(TransportError, match=r"\[CONNECTION_LOST\].*MetadataRequest was pending") as caught:
            connection.call(metadata_request(), Deadline(5_000))
        assert caught.value.retriable


def test_a_tls_alert_as_first_answer_is_guessed() -> None:
    with TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, Raw(b"\x15\x03\x03\x00\x02\x02\x46"))
        assert "probably a TLS listener" in open_error(cluster)


def test_first_response_is_refused_if_it_is_larger_than_any_broker_needs() -> None:
    """Otherwise four bytes of anybody who listens at the port cost as much memory as the largest response."""
    with TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, Raw(struct.pack(">i", (1 << 20) + 1)))
        assert "announced a frame of 1048577 bytes" in open_error(cluster)


def test_later_responses_may_be_large() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster.script(MetadataRequest, Raw(struct.pack(">i", 60 << 20)))
        with pytest.raises(DeadlineError, match=f"0 of {60 << 20} bytes had arrived"):
            connection.call(metadata_request(), Deadline(1_500))


def test_response_without_record_batches_is_refused_if_it_is_larger_than_64_mib() -> None:
    """As objects it takes a multiple of its bytes."""
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster.script(MetadataRequest, Raw(struct.pack(">i", (64 << 20) + 1)))
        with pytest.raises(ProtocolError, match=r"\[FRAME_SIZE_INVALID\] .* allowed are 4 to 67108864"):
            connection.call(metadata_request(), Deadline(5_000))
        assert connection.closed


def test_silence_ends_with_the_deadline_and_names_the_listener() -> None:
    with TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, Silence)
        text = open_error(cluster, timeout_ms=1_500)
        assert text.startswith("[BROKER_SILENT]")


def test_an_answer_that_stops_in_the_middle_ends_with_the_deadline_and_closes() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster.script(MetadataRequest, Raw(struct.pack(">i", 100) + b"abc"))
        with pytest.raises(DeadlineError, match=r"MetadataRequest.*3 of 100 bytes had arrived"):
            connection.call(metadata_request(), Deadline(1_500))
        assert connection.closed


@pytest.mark.parametrize("size", [-1, 3, 2**31 - 1])
def test_an_impossible_frame_size_closes_the_connection(size: int) -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster.script(MetadataRequest, Raw(struct.pack(">i", size)))
        with pytest.raises(ProtocolError, match=rf"a frame of {size} bytes"):
            connection.call(metadata_request(), Deadline(5_000))
        assert connection.closed


def test_a_wrong_correlation_id_closes_the_connection() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster.script(MetadataRequest, Raw(struct.pack(">ii", 5, 999) + b"\x00"))
        with pytest.raises(ProtocolError, match=r"\[CORRELATION_ID_MISMATCH\].*sent the response to request 999"):
            connection.call(metadata_request(), Deadline(5_000))
        assert connection.closed


def test_an_answer_that_cannot_be_decoded_closes_the_connection() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        # Correlation id 2 (ApiVersions was 1), no tags, then a body that is too short.
        cluster.script(MetadataRequest, Raw(struct.pack(">ii", 7, 2) + b"\x00\xff\xff"))
        with pytest.raises(ProtocolError, match=r"\[RESPONSE_INVALID\].*MetadataRequest version 13"):
            connection.call(metadata_request(), Deadline(5_000))
        assert connection.closed


def test_a_closed_connection_says_so() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        connection.close()
        with pytest.raises(TransportError, match=r"\[CONNECTION_CLOSED\]"):
            connection.send_request(metadata_request())


def test_an_idle_connection_notices_that_the_broker_left() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        assert connection.idle_and_alive
        cluster.drop_connections()
        assert connection.readable(PATIENCE_S)
        assert not connection.idle_and_alive


def test_bytes_nobody_asked_for_make_a_connection_unusable() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        cluster._open[0].sendall(b"surprise")
        assert connection.readable(PATIENCE_S)
        assert not connection.idle_and_alive


def test_all_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with TcpCluster() as cluster:
        _, port = cluster.address(0)
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            dead = unused.getsockname()
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(*kind, dead), (*kind, ("127.0.0.1", port))])
        options = ConnectionOptions((("kafka.example", port),))
        connection = open_connection("kafka.example", port, options, Deadline(5_000))
        assert connection.address == f"kafka.example:{port}"
        connection.close()


def addresses_of(*addresses: tuple[str, int]) -> list[object]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]


def test_an_address_that_swallows_packets_holds_up_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with BlackHole() as hole, TcpCluster() as cluster:
        found = addresses_of(hole.address, cluster.address(0))
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        began_at = time.monotonic()
        options = ConnectionOptions((("kafka.example", 9092),), connect_timeout_ms=60_000)
        open_connection("kafka.example", 9092, options, Deadline(60_000)).close()
        # Not half of the time, nor the connect timeout.
        assert time.monotonic() - began_at < 20


def test_an_address_behind_one_that_takes_connections_only_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with TcpCluster() as half, TcpCluster() as cluster:
        half.script(ApiVersionsRequest, Close)
        found = addresses_of(half.address(0), cluster.address(0))
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        options = ConnectionOptions((("kafka.example", 9092),))
        open_connection("kafka.example", 9092, options, Deadline(5_000)).close()
        half.script(ApiVersionsRequest, Silence)
        open_connection("kafka.example", 9092, options, Deadline(4_000)).close()


def test_error_is_that_of_the_address_that_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with TcpCluster() as half, socket.socket() as unused:
        half.script(ApiVersionsRequest, Close)
        unused.bind(("127.0.0.1", 0))
        found = addresses_of(half.address(0), unused.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert open_error(half).startswith("[BROKER_CLOSED_FIRST_READ]")


def test_an_address_of_a_family_that_the_machine_lacks_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket

    class WithoutIpV6(real):  # type: ignore[misc, valid-type]
        def __init__(self, family: int = -1, *rest: int, **named: object) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
            super().__init__(family, *rest, **named)

    with TcpCluster() as cluster:
        host, port = cluster.address(0)
        sixth = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0))
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [sixth, *addresses_of((host, port))])
        monkeypatch.setattr(socket, "socket", WithoutIpV6)
        open_connection("localhost", port, ConnectionOptions((("localhost", port),)), Deadline(5_000)).close()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [sixth])
        with pytest.raises(TransportError, match=r"\[CONNECTION_FAILED\].*::1 .*family not supported") as caught:
            open_connection("localhost", port, ConnectionOptions((("localhost", port),)), Deadline(5_000))
        assert caught.value.retriable


def test_an_answer_that_has_arrived_is_taken_when_the_time_is_over() -> None:
    with TcpCluster() as cluster, opened(cluster) as connection:
        connection.send_request(metadata_request())
        assert connection.readable(PATIENCE_S)
        assert connection.receive(Deadline(0)).cluster_id == "fake"
        with pytest.raises(ProtocolError, match="NOTHING_IN_FLIGHT"):
            connection.receive(Deadline(0))


@dataclass
class TlsFiles:
    """The certificate of a server or client, its key, and its authority's certificate."""

    certificate: Path
    key: Path
    trusted: Path

    def make(self) -> None:
        authority = CertificateAuthority(self.certificate.parent / "authority")
        issued = authority.issue("127.0.0.1")
        self.certificate.write_bytes(issued.chain_pem)
        self.key.write_bytes(issued.key_pem)
        self.trusted.write_bytes(authority.pem)

    def client_options(self, port: int, **changes: Any) -> ConnectionOptions:
        tls = TlsOptions(truststore=CertificateStore(str(self.trusted)))
        return ConnectionOptions((("127.0.0.1", port),), security_protocol="SSL", tls=tls, **changes)


@pytest.fixture
def tls_files(tmp_path: Path) -> TlsFiles:
    files = TlsFiles(tmp_path / "certificate.pem", tmp_path / "key.pem", tmp_path / "trusted.pem")
    files.make()
    return files


def test_a_tls_handshake_that_the_other_side_ends_is_tried_again(tls_files: TlsFiles) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls_files.certificate, tls_files.key)
    greeted: list[bytes] = []

    def greet(accepted: socket.socket) -> socket.socket | None:
        if len(greeted) == 2:
            return context.wrap_socket(accepted, server_side=True)
        # The client's hello is read before the other side goes: then it ends the stream, and does not reset it.
        greeted.append(accepted.recv(4096))
        return None

    with TcpCluster(greet=greet) as cluster:
        _, port = cluster.address(0)
        options = tls_files.client_options(port, retry_backoff_ms=1)
        with KafkaClient(options) as client:
            assert client.fetch_metadata(()).cluster_id == "fake"
            assert len(greeted) == 2


def test_a_listener_that_ends_every_tls_handshake_is_told_before_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "CLOSED_AT_ONCE_MS", 100)

    def greet(accepted: socket.socket) -> None:
        accepted.recv(4096)

    with TcpCluster(greet=greet) as cluster:
        options = ConnectionOptions(cluster.bootstrap_servers, security_protocol="SSL", retry_backoff_ms=1)
        with KafkaClient(options) as client, pytest.raises(TransportError, match="not a TLS listener") as caught:
            client.fetch_metadata((), Deadline(60_000))
        assert not caught.value.retriable


def test_certificates_that_were_replaced_are_loaded_for_the_next_connection(
    tls_files: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    client = tls_files.certificate.with_name("client.pem")

    def make_client() -> None:
        tls_files.make()
        client.write_text(tls_files.key.read_text() + tls_files.certificate.read_text())

    make_client()
    options = TlsOptions(truststore=CertificateStore(str(tls_files.trusted)), keystore=CertificateStore(str(client)))
    contexts = TlsContexts()
    first = contexts.get(options)
    assert contexts.get(options) is first
    before = first.context.get_ca_certs()
    make_client()
    second = contexts.get(options)
    assert second is not first
    assert second.context.get_ca_certs() != before
    # In the middle of the next replacement.
    client.write_text("half a k")
    assert contexts.get(options) is second
    assert "kafka.ssl.keystore.location" in caplog.text
    assert "Those loaded before are still used." in caplog.text
    make_client()
    assert contexts.get(options) is not second


def test_a_refused_connection_names_address_and_reason() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(TransportError, match=rf"\[CONNECTION_FAILED\] Broker 127.0.0.1:{port} .*refused"):
            open_connection("127.0.0.1", port, ConnectionOptions((("127.0.0.1", port),)), Deadline(5_000))


def test_a_name_that_does_not_resolve_says_so() -> None:
    with pytest.raises(TransportError, match=r"\[HOST_UNKNOWN\] The name of broker nowhere.invalid:9092"):
        open_connection("nowhere.invalid", 9092, ConnectionOptions((("nowhere.invalid", 9092),)), Deadline(5_000))


def test_a_tls_client_on_a_plaintext_listener_gets_a_guess() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_at_once() -> None:
            accepted, _ = server.accept()
            accepted.close()

        thread = threading.Thread(target=close_at_once)
        thread.start()
        port = server.getsockname()[1]
        options = ConnectionOptions((("127.0.0.1", port),), security_protocol="SSL")
        with pytest.raises(TransportError, match=r"\[TLS_HANDSHAKE_FAILED\].*not a TLS listener"):
            open_connection("127.0.0.1", port, options, Deadline(5_000))
        thread.join()


def test_a_missing_certificate_file_is_an_option_error_before_any_connection(tmp_path: Path) -> None:
    options = ConnectionOptions(
        (("127.0.0.1", 1),),
        security_protocol="SSL",
        tls=TlsOptions(truststore=CertificateStore(str(tmp_path / "missing.pem"))),
    )
    with pytest.raises(OptionError, match=r"\[TLS_FILES_INVALID\].*missing.pem.*kafka.ssl.truststore.location"):
        open_connection("127.0.0.1", 1, options, Deadline(5_000))


def sasl_cluster(mechanisms: list[str], handshake_code: int = 0) -> TcpCluster:
    cluster = TcpCluster()
    cluster.script(SaslHandshakeRequest, SaslHandshakeResponse(error_code=handshake_code, mechanisms=mechanisms))
    return cluster


def test_a_broker_without_framed_sasl_is_too_old() -> None:
    with TcpCluster(versions={SaslHandshakeRequest.API_KEY: (0, 0)}) as cluster:
        host, port = cluster.address(0)
        text = open_error(cluster, SASL)
    assert said(text) == (
        f"[BROKER_TOO_OLD] SASL authentication (PLAIN) at {host}:{port} failed: the broker speaks only the unframed "
        "SASL exchange of Kafka before 1.0. Hint: Upgrade the broker, or use a listener without SASL."
    )


def test_plain_credentials_are_sent_after_the_handshake() -> None:
    with sasl_cluster(["PLAIN"]) as cluster:
        cluster.script(
            SaslAuthenticateRequest,
            SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=0),
        )
        with opened(cluster, SASL) as connection:
            assert connection.idle_and_alive
        assert cluster.requests(SaslHandshakeRequest)[0].request.mechanism == "PLAIN"
        assert cluster.requests(SaslAuthenticateRequest)[0].request.auth_bytes == b"\x00alice\x00hunter2"


def test_a_session_at_its_end_is_not_used_for_new_requests() -> None:
    with sasl_cluster(["PLAIN"]) as cluster:
        cluster.script(
            SaslAuthenticateRequest,
            SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=1),
        )
        with opened(cluster, SASL) as connection:
            connection.session = LoginSession(0.0, 0.0, 0.0)
            assert not connection.idle_and_alive
            assert not connection.closed


def test_wrong_credentials_are_an_access_error_without_the_password() -> None:
    with sasl_cluster(["PLAIN"]) as cluster:
        cluster.script(
            SaslAuthenticateRequest,
            SaslAuthenticateResponse(error_code=58, error_message="bad login", auth_bytes=b"", session_lifetime_ms=0),
        )
        host, port = cluster.address(0)
        with pytest.raises(AccessError, match=r'\[SASL_AUTHENTICATION_FAILED\].*PLAIN.*"bad login"') as caught:
            open_connection(host, port, SASL, Deadline(5_000))
        assert "hunter2" not in str(caught.value) + repr(caught.value.parameters)
        assert not caught.value.retriable


def test_a_mechanism_that_is_not_offered_names_those_that_are() -> None:
    with sasl_cluster(["SCRAM-SHA-512"], handshake_code=33) as cluster:
        text = open_error(cluster, SASL)
        assert text.startswith("[UNSUPPORTED_SASL_MECHANISM]")
        assert "enabled mechanisms: SCRAM-SHA-512" in text
        assert "Set kafka.sasl.mechanism to SCRAM-SHA-512 (now 'PLAIN')" in text
        assert "ScramLoginModule" in text


def test_sasl_on_a_listener_without_it_is_guessed() -> None:
    with sasl_cluster([], handshake_code=34) as cluster:
        assert "probably a listener without SASL" in open_error(cluster, SASL)


def test_a_close_during_the_exchange_is_guessed_to_be_the_credentials() -> None:
    with sasl_cluster(["PLAIN"]) as cluster:
        cluster.script(SaslAuthenticateRequest, Close)
        text = open_error(cluster, SASL)
        assert text.startswith("[BROKER_CLOSED_DURING_SASL]")


def test_a_scram_server_that_lies_is_not_trusted() -> None:
    scram = ConnectionOptions(
        (("127.0.0.1", 1),),
        security_protocol="SASL_PLAINTEXT",
        login=ScramLogin("alice", Secret("hunter2"), "SCRAM-SHA-256"),
    )
    with sasl_cluster(["SCRAM-SHA-256"]) as cluster:
        cluster.script(
            SaslAuthenticateRequest,
            SaslAuthenticateResponse(
                error_code=0, error_message=None, auth_bytes=b"r=other,s=AAAA,i=4096", session_lifetime_ms=0
            ),
        )
        text = open_error(cluster, scram)
        assert text.startswith("[SASL_EXCHANGE_FAILED]")
        assert "hunter2" not in text


def test_a_connection_with_sasl_and_no_login_is_refused() -> None:
    options = ConnectionOptions((("127.0.0.1", 1),), security_protocol="SASL_PLAINTEXT")
    with TcpCluster() as cluster:
        assert open_error(cluster, options).startswith("[OPTION_MISSING]")
