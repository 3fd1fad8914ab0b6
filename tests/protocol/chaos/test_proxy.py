"""The proxies pass what they should, and misbehave as a test asks for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chaos.proxy import CLEAN, Proxies, Proxy, Wire

PATIENCE_S = 10.0
QUIET_S = 0.3


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


@pytest.mark.parametrize("wire", [CLEAN, Wire(delay_s=0.05), Wire(drip=True)], ids=["clean", "delay", "drip"])
def test_bytes_arrive_unchanged(proxy: Proxy, wire: Wire) -> None:
    proxy.set_wire(wire)
    data = bytes(range(256)) * 40
    with connected(proxy) as connection:
        connection.sendall(data)
        assert receive(connection, len(data)) == data


def test_black_hole_passes_nothing_until_it_ends(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        connection.sendall(b"a")
        assert receive(connection, 1) == b"a"
        proxy.set_wire(Wire(black_hole=True))
        connection.sendall(b"b")
        connection.settimeout(QUIET_S)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        proxy.set_wire(CLEAN)
        connection.settimeout(PATIENCE_S)
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


def test_reset_ends_connections_and_refuses_new_ones(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        connection.sendall(b"a")
        assert receive(connection, 1) == b"a"
        proxy.set_wire(Wire(reset=True))
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with pytest.raises(ConnectionResetError), connected(proxy) as connection:
        connection.recv(1)


def test_forgotten_connections_stay_open_and_pass_nothing_and_new_ones_work(proxy: Proxy) -> None:
    with connected(proxy) as old, connected(proxy) as new:
        old.sendall(b"a")
        assert receive(old, 1) == b"a"
        proxy.forget()
        old.sendall(b"b")
        old.settimeout(0.1)
        with pytest.raises(TimeoutError):
            old.recv(1)
        new.close()
        with connected(proxy) as fresh:
            fresh.sendall(b"c")
            assert receive(fresh, 1) == b"c"
            proxy.reset_forgotten()
            old.settimeout(10)
            with pytest.raises(ConnectionResetError):
                old.recv(1)
            fresh.sendall(b"d")
            assert receive(fresh, 1) == b"d"


def test_proxy_that_is_down_refuses_connections_and_keeps_its_port(proxy: Proxy) -> None:
    upstream = proxy._upstream
    proxy.down()
    with pytest.raises(ConnectionRefusedError), connected(proxy):
        pass
    proxy.up(upstream)
    with connected(proxy) as connection:
        connection.sendall(b"a")
        assert receive(connection, 1) == b"a"
