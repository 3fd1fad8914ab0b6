"""Options of the sockets of connections."""

from __future__ import annotations

import socket

import pytest

from pyspark_kafka._client.client.net.tcp import connect, resolve
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import ConnectionOptions


def connected(listener: socket.socket, receive_buffer_bytes: int, send_buffer_bytes: int) -> socket.socket:
    host, port = listener.getsockname()
    options = ConnectionOptions(
        ((host, port),), receive_buffer_bytes=receive_buffer_bytes, send_buffer_bytes=send_buffer_bytes
    )
    sock, _ = connect(f"{host}:{port}", resolve(host, port), options, Deadline(30_000))
    return sock


@pytest.mark.parametrize("buffer_bytes", [-1, 32_768])
def test_small_requests_leave_at_once_and_dead_peers_are_found_by_the_system(buffer_bytes: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, connected(listener, buffer_bytes, buffer_bytes) as sock:
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0


def test_idle_connections_are_probed_before_the_network_forgets_them() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, connected(listener, -1, -1) as sock:
        found = [
            sock.getsockopt(socket.IPPROTO_TCP, option)
            for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
            if (option := getattr(socket, name, None)) is not None
        ]
    assert found[0] == 60
    # On systems that have them all, and after the options of the connection.
    assert found[1:] in ([10, 3, 30_000], [10, 3])


def buffers_of(sock: socket.socket) -> list[int]:
    return [sock.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_RCVBUF, socket.SO_SNDBUF)]


def test_socket_buffers_have_the_sizes_of_the_options() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        connected(listener, 32_768, 65_536) as sock,
        socket.socket() as expected,
    ):
        expected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        expected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        assert buffers_of(sock) == buffers_of(expected)


def test_socket_buffer_beyond_the_limit_of_the_system_stays_its_own() -> None:
    """Linux would grant its limit only, and end the growth of the buffer."""
    beyond = (1 << 31) - 1
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        connected(listener, beyond, beyond) as sock,
        connected(listener, -1, -1) as expected,
    ):
        assert buffers_of(sock) == buffers_of(expected)
