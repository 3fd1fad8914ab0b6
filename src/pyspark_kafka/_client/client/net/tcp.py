"""A TCP connection to a host by its name: all addresses tried, socket options set."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import select
import socket
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions

# An address without a response by then is waited for together with the next one (RFC 8305 recommends 250 ms).
_HEAD_START_S = 0.25
# An idle connection is probed after this time and is dead if some probes get no response. Load balancers forget idle
# connections after 60 s at the earliest, usually after 240 s and more.
_KEEP_IDLE_S = 60
_KEEP_INTERVAL_S = 10
_KEEP_PROBES = 3


@dataclass(frozen=True, slots=True)
class Address:
    """One address of a name, as `socket.getaddrinfo` returns it."""

    family: int
    kind: int
    protocol: int
    socket_address: Any

    def __str__(self) -> str:
        return str(self.socket_address[0])


def resolve(host: str, port: int) -> list[Address]:
    """Return a name's addresses, in the order to try them.

    Runs on: driver and executor; blocks, for as long as the resolver of the system takes (5 to 30 s).

    Raises:
        TransportError: the name is unknown.
    """
    try:
        # getaddrinfo has no timeout.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TransportError(
            f"The name of broker {host}:{port} cannot be resolved: {error}.",
            condition="HOST_UNKNOWN",
            hint="The name must be spelled right, and this machine must be able to resolve it.",
            retriable=True,
            parameters={"broker": f"{host}:{port}", "reason": error},
        ) from error
    return [Address(family, kind, number, address) for family, kind, number, _, address in found]


def connect(
    where: str,
    addresses: list[Address],
    options: ConnectionOptions,
    deadline: Deadline,
    watch: Callable[[socket.socket], None] | None = None,
) -> tuple[socket.socket, Address]:
    """Connect to the first of some addresses that accepts.

    Each attempt begins when the one before it fails, or has no response for 250 ms: an address that swallows packets
    delays none of the others by more.

    Runs on: driver and executor; blocks, at most `connect_timeout_ms` an address.

    Args:
        where: `host:port`, for errors.
        addresses: in the order to try them; failed addresses are taken out.
        options: timeouts, socket buffers.
        deadline: for all of them.
        watch: called with every socket before it blocks.

    Raises:
        TransportError: no address accepts; each is named.
        DeadlineError: the time is over before all addresses were tried.
    """
    race = _Race(addresses, options, deadline, watch)
    try:
        return race.run(where)
    finally:
        race.close()


@dataclass(frozen=True, slots=True)
class _Attempt:
    sock: socket.socket
    address: Address
    deadline: Deadline


class _Race:
    """Attempts to connect, running at the same time."""

    def __init__(
        self,
        addresses: list[Address],
        options: ConnectionOptions,
        deadline: Deadline,
        watch: Callable[[socket.socket], None] | None,
    ) -> None:
        self._addresses = addresses
        self._options = options
        self._deadline = deadline
        self._watch = watch
        self._waiting = deque(addresses)
        self._running: dict[int, _Attempt] = {}
        self._failures: list[str] = []
        self._last: OSError | None = None

    def run(self, where: str) -> tuple[socket.socket, Address]:
        poller = select.poll()
        next_at = 0.0
        while self._waiting or self._running:
            if self._waiting and (not self._running or time.monotonic() >= next_at):
                if self._failures:
                    self._deadline.check(f"Connecting to {where}", self._last)
                attempt = self._begin(self._waiting.popleft())
                next_at = time.monotonic() + _HEAD_START_S
                if attempt is not None:
                    poller.register(attempt.sock, select.POLLOUT)
                continue
            wait_s = min(attempt.deadline.remaining_s() for attempt in self._running.values())
            if self._waiting:
                wait_s = min(wait_s, max(0.0, next_at - time.monotonic()))
            # Rounded up: poll counts in whole milliseconds, and 0 would not wait.
            for descriptor, _ in poller.poll(wait_s * 1000 + 1):
                poller.unregister(descriptor)
                attempt = self._running.pop(descriptor)
                code = attempt.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0:
                    return attempt.sock, attempt.address
                self._fail(attempt.address, OSError(code, os.strerror(code)), attempt.sock)
            for descriptor, attempt in list(self._running.items()):
                if attempt.deadline.expired:
                    poller.unregister(descriptor)
                    del self._running[descriptor]
                    late = TimeoutError(errno.ETIMEDOUT, f"no response in {attempt.deadline.elapsed_ms()} ms")
                    self._fail(attempt.address, late, attempt.sock)
        raise TransportError(
            f"Broker {where} cannot be reached: {'; '.join(self._failures)}.",
            condition="CONNECTION_FAILED",
            hint="Check that the broker runs and that this machine may reach it.",
            retriable=True,
            parameters={"broker": where, "reason": "; ".join(self._failures)},
        ) from self._last

    def close(self) -> None:
        """Close the attempts that lost."""
        for attempt in self._running.values():
            attempt.sock.close()
        self._running.clear()

    def _begin(self, address: Address) -> _Attempt | None:
        sock = None
        try:
            # May fail too: no IPv6 on this machine, or no descriptor left.
            sock = socket.socket(address.family, address.kind, address.protocol)
            self._configure(sock)
            if self._watch is not None:
                self._watch(sock)
            sock.setblocking(False)
            code = sock.connect_ex(address.socket_address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))  # noqa: TRY301 - as an error of the socket
        except OSError as error:
            self._fail(address, error, sock)
            return None
        except BaseException:
            if sock is not None:
                sock.close()
            raise
        attempt = _Attempt(sock, address, self._deadline.within(self._options.connect_timeout_ms))
        self._running[sock.fileno()] = attempt
        return attempt

    def _configure(self, sock: socket.socket) -> None:
        # Before connect: the window scale is agreed in the handshake.
        if _is_granted(socket.SO_RCVBUF, self._options.receive_buffer_bytes):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._options.receive_buffer_bytes)
        if _is_granted(socket.SO_SNDBUF, self._options.send_buffer_bytes):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._options.send_buffer_bytes)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(sock, self._options.request_timeout_ms)

    def _fail(self, address: Address, error: OSError, sock: socket.socket | None) -> None:
        if sock is not None:
            sock.close()
        self._addresses.remove(address)
        self._failures.append(f"{address} ({error.strerror if isinstance(error, TimeoutError) else error})")
        self._last = error


def _keep_alive(sock: socket.socket, timeout_ms: int) -> None:
    """Keep the state of idle connections in firewalls and load balancers, and find out about connections that are dead.

    Args:
        sock: not connected yet.
        timeout_ms: for how long what was sent may be without an acknowledgement of the other kernel.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Not every system has each of them: TCP_KEEPALIVE is macOS's TCP_KEEPIDLE.
    for name, value in (
        ("TCP_KEEPIDLE", _KEEP_IDLE_S),
        ("TCP_KEEPALIVE", _KEEP_IDLE_S),
        ("TCP_KEEPINTVL", _KEEP_INTERVAL_S),
        ("TCP_KEEPCNT", _KEEP_PROBES),
        ("TCP_USER_TIMEOUT", timeout_ms),
    ):
        option = getattr(socket, name, None)
        if option is not None:
            with contextlib.suppress(OSError):  # a kernel that does not have it
                sock.setsockopt(socket.IPPROTO_TCP, option, value)


@functools.lru_cache(maxsize=16)
def _is_granted(option: int, size: int) -> bool:
    """Return whether the kernel grants a socket buffer of this size.

    Asking for more than net.core.rmem_max (208 KiB on an untuned Linux) silently grants that much and disables
    the kernel's own growth of the buffer, up to 6 MiB: then it is better to set nothing.
    """
    if size <= 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, option, size)
        return probe.getsockopt(socket.SOL_SOCKET, option) >= size
