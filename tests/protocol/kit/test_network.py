"""The network of tests passes what it should, and misbehaves as a test asks for."""

from __future__ import annotations

import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kit.fakes.tcp_cluster import TcpCluster
from kit.network.changes import cut, flipped, lost, lying, throttled
from kit.network.proxy import Proxies, Proxy
from kit.network.wire import CLEAN, Drip, Wire
from kit.reading import client_of
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.errors import ConnectorError, ProtocolError

QUIET_S = 0.3
DATA = bytes(range(256)) * 40


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy of a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listening, Proxies() as proxies:

        def echo(connection: socket.socket) -> None:
            with connection:
                try:
                    while data := connection.recv(1 << 16):
                        connection.sendall(data)
                except OSError:
                    pass

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        made = proxies.add()
        made.up(listening.getsockname()[1])
        yield made
        listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def connected(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_S) as connection:
        yield connection


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            break
        data += piece
    return data


def is_silent(connection: socket.socket) -> bool:
    """Whether nothing arrives for a while, not even the end."""
    connection.settimeout(QUIET_S)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE_S)
    return False


def passes(connection: socket.socket, data: bytes = b"a") -> bool:
    """Whether bytes come back."""
    connection.sendall(data)
    return receive(connection, len(data)) == data


@pytest.mark.parametrize(
    "wire",
    [CLEAN, Wire(delay_s=0.05), Wire(drip=Drip()), Wire(drip=Drip(1000, 0.01)), Wire(rate=1e6)],
    ids=["clean", "delay", "bytes", "drip", "rate"],
)
def test_bytes_arrive_unchanged(proxy: Proxy, wire: Wire) -> None:
    proxy.set_wire(wire)
    with connected(proxy) as connection:
        assert passes(connection, DATA)


def test_bytes_are_not_delivered_before_their_delay(proxy: Proxy) -> None:
    proxy.set_wire(Wire(delay_s=0.1))
    with connected(proxy) as connection:
        began = time.monotonic()
        assert passes(connection)
        assert time.monotonic() - began >= 0.2


def test_delay_leaves_the_rate_as_it_is(proxy: Proxy) -> None:
    """Bytes are late, not one after the other: 20 pieces take one delay, not 20."""
    proxy.set_wire(Wire(delay_s=0.5))
    with connected(proxy) as connection:
        began = time.monotonic()
        for _ in range(20):
            connection.sendall(b"a")
            time.sleep(0.01)
        assert receive(connection, 20) == b"a" * 20
        assert time.monotonic() - began < 8


def test_line_with_a_rate_is_shared_by_its_connections(proxy: Proxy) -> None:
    """Two times 10 kB at 40 kB/s: half a second at least, from the server alone."""
    proxy.set_wire(Wire(rate=40_000))
    with connected(proxy) as one, connected(proxy) as other:
        began = time.monotonic()
        one.sendall(DATA[:10_000])
        other.sendall(DATA[:10_000])
        assert receive(one, 10_000) + receive(other, 10_000) == DATA[:10_000] * 2
        assert time.monotonic() - began >= 0.5


def test_line_with_a_rate_delivers_steadily(proxy: Proxy) -> None:
    proxy.set_wire(Wire(rate=20_000))
    with connected(proxy) as connection:
        connection.sendall(DATA)
        pieces = 0
        left = len(DATA)
        while left:
            left -= len(connection.recv(left))
            pieces += 1
    assert pieces > 5


def test_black_hole_passes_nothing_until_it_ends(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert passes(connection)
        proxy.set_wire(Wire(black_hole=True))
        connection.sendall(b"b")
        assert is_silent(connection)
        proxy.set_wire(CLEAN)
        assert receive(connection, 1) == b"b"


def test_cut_response_is_half_of_it_and_then_the_connection_ends(proxy: Proxy) -> None:
    proxy.set_wire(Wire(cut=1.0))
    with connected(proxy) as connection:
        connection.sendall(b"abcdef")
        found = b""
        try:
            found = receive(connection, 6)
        except ConnectionResetError:
            found = b"abc"
        assert found == b"abc"


def test_flipped_bit_is_one_bit_of_what_brokers_send(proxy: Proxy) -> None:
    proxy.set_wire(Wire(flip=1.0))
    with connected(proxy) as connection:
        connection.sendall(b"\0" * 8)
        found = receive(connection, 8)
    assert sum(byte.bit_count() for byte in found) == 1


def test_reset_ends_connections_and_refuses_new_ones(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert passes(connection)
        proxy.set_wire(Wire(reset=True))
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with pytest.raises(ConnectionResetError), connected(proxy) as connection:
        connection.recv(1)


def test_forgotten_connections_stay_open_and_pass_nothing_and_new_ones_work(proxy: Proxy) -> None:
    with connected(proxy) as old, connected(proxy) as new:
        assert passes(old)
        proxy.forget()
        old.sendall(b"b")
        assert is_silent(old)
        new.close()
        with connected(proxy) as fresh:
            assert passes(fresh)
            proxy.reset_forgotten()
            with pytest.raises(ConnectionResetError):
                old.recv(1)
            assert passes(fresh)


def test_connection_is_forgotten_after_its_idle_time_and_one_in_use_is_not(proxy: Proxy) -> None:
    proxy.set_wire(Wire(forget_after_s=1.0))
    with connected(proxy) as idle, connected(proxy) as used:
        assert passes(idle)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert passes(used)
        idle.sendall(b"b")
        assert is_silent(idle)
        assert passes(used)


def test_connection_that_was_idle_for_too_long_stays_forgotten_on_another_wire(proxy: Proxy) -> None:
    proxy.set_wire(Wire(forget_after_s=0.1))
    with connected(proxy) as idle:
        assert passes(idle)
        time.sleep(0.3)
        proxy.set_wire(CLEAN)
        idle.sendall(b"b")
        assert is_silent(idle)


def test_end_of_a_forgotten_connection_does_not_arrive() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, Proxies() as proxies:
        proxy = proxies.add()
        proxy.up(listening.getsockname()[1])
        with connected(proxy) as connection:
            server, _ = listening.accept()
            eventually(lambda: proxy.connections == 1)
            proxy.forget()
            server.close()
            assert is_silent(connection)


def test_proxy_that_is_down_refuses_connections_and_keeps_its_port(proxy: Proxy) -> None:
    proxy.down()
    with pytest.raises(ConnectionRefusedError), connected(proxy):
        pass
    proxy.up()
    with connected(proxy) as connection:
        assert passes(connection)


def test_proxy_counts_its_connections(proxy: Proxy) -> None:
    with connected(proxy) as one, connected(proxy) as other:
        assert passes(one)
        assert passes(other)
        assert proxy.connections == 2
    eventually(lambda: proxy.connections == 0)
    assert proxy.accepted == 2


def test_proxy_of_plain_bytes_refuses_changes(proxy: Proxy) -> None:
    with pytest.raises(ValueError, match="reads frames"):
        proxy.set_wire(Wire(changes=(throttled(1, "Fetch"),)))


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """Two brokers with a topic each."""
    with TcpCluster(2) as made:
        made.add_topic("t", leader=0)
        made.add_topic("u", leader=1)
        yield made


@pytest.fixture
def proxied(cluster: TcpCluster) -> Iterator[list[Proxy]]:
    """A proxy before each of these brokers."""
    with Proxies() as proxies:
        yield proxies.before(cluster.address(0), cluster.address(1))


def client_through(proxied: list[Proxy], **changes: int) -> KafkaClient:
    return client_of(proxied[0].address, **changes)


def test_clients_behind_proxies_see_the_proxies_only(proxied: list[Proxy]) -> None:
    with client_through(proxied) as client:
        found = client.fetch_metadata(["t", "u"])
    assert {broker.port for broker in found.brokers.values()} == {proxy.port for proxy in proxied}
    assert proxied[0].answers == {"ApiVersions": 1, "Metadata": 1}


def test_lying_response_has_the_field_that_the_test_sets(proxied: list[Proxy]) -> None:
    def lie(response: object) -> None:
        response.topics[0].partitions[0].leader_epoch = 77  # type: ignore[attr-defined]

    proxied[0].set_wire(Wire(changes=(lying("Metadata", lie, times=1),)))
    with client_through(proxied) as client:
        first, second = (client.fetch_metadata(["t"]).topics["t"].partitions[0].leader_epoch for _ in range(2))
    assert (first, second) == (77, 0)


def test_throttled_response_has_its_throttle_time(proxied: list[Proxy]) -> None:
    seen = []
    proxied[0].set_wire(
        Wire(changes=(throttled(1234, "Metadata"), lying("Metadata", lambda each: seen.append(each.throttle_time_ms))))
    )
    with client_through(proxied) as client:
        client.fetch_metadata(["t"])
    assert seen == [1234]


def test_flipped_bit_of_a_correlation_id_is_met_by_the_client(proxied: list[Proxy]) -> None:
    proxied[0].set_wire(Wire(changes=(flipped("Metadata", 0),)))
    with client_through(proxied, api_timeout_ms=300) as client, pytest.raises(ProtocolError):
        client.fetch_metadata(["t"])


def test_lost_response_forgets_its_connection_and_the_next_one_works(proxied: list[Proxy]) -> None:
    proxied[0].set_wire(Wire(changes=(lost("Metadata"),)))
    with client_through(proxied, request_timeout_ms=1000, api_timeout_ms=60_000) as client:
        assert "t" in client.fetch_metadata(["t"]).topics
    assert proxied[0].answers["Metadata"] == 2
    assert proxied[0].accepted >= 2


def test_cut_response_ends_its_connection(proxied: list[Proxy]) -> None:
    proxied[0].set_wire(Wire(changes=(cut("Metadata", 6, times=None),)))
    with client_through(proxied, api_timeout_ms=300) as client, pytest.raises(ConnectorError):
        client.fetch_metadata(["t"])


def test_failure_of_a_change_is_raised_at_the_end(cluster: TcpCluster) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("planted")

    def run() -> None:
        with Proxies() as proxies:
            (proxy,) = proxies.before(cluster.address(0))
            proxy.set_wire(Wire(changes=(lying("Metadata", fail),)))
            with client_of(proxy.address, api_timeout_ms=300) as client, pytest.raises(ConnectorError):
                client.fetch_metadata(["t"])

    with pytest.raises(RuntimeError, match="planted"):
        run()


def test_connections_that_arrive_as_the_block_ends_are_closed() -> None:
    with warnings.catch_warnings(), socket.create_server(("127.0.0.1", 0)) as listening:
        warnings.simplefilter("error", ResourceWarning)
        for _ in range(20):
            with Proxies() as proxies:
                made = proxies.add()
                made.up(listening.getsockname()[1])
                arriving = [socket.create_connection(("127.0.0.1", made.port)) for _ in range(3)]
            assert {transport.is_closing() for transport in proxies.transports} <= {True}
            for connection in arriving:
                connection.close()
        gc.collect()
