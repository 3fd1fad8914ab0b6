"""Connections that are opened side by side, each in a thread of its own, because TLS and SASL block.

The caller decides which brokers to connect to, and when to retry.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.net.handshake import open_connection, renew_or_open
from pyspark_kafka._client.client.net.polling import wait_readable
from pyspark_kafka.errors import ConnectorError, TransportError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pyspark_kafka._client.client.net.buffers import FrameBuffers
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions

_Key = TypeVar("_Key", bound="Hashable")

# Threads at a time. They wait for the network nearly all of their time.
_MAX_AT_A_TIME = 64
# Stopped threads end immediately, unless they are in the name resolver; then they end when that returns.
_JOINED_WITHIN_S = 0.5


@dataclass(eq=False, slots=True)
class _Dial(Generic[_Key]):
    key: _Key
    host: str
    port: int
    deadline: Deadline
    old: Connection | None = None
    sockets: list[socket.socket] = field(default_factory=list)
    given_up: bool = False
    outcome: Connection | BaseException | None = None


class Dials(Generic[_Key]):
    """Connections that are being opened, each under a key of the caller.

    The caller's thread starts them, waits (`fileno` becomes readable when one is finished) and takes them over; no
    connection is used by two threads at a time. `close` leaves neither thread nor socket behind; call it in any case.

    Runs on: driver and executor. For one caller's thread; does not pickle.

    Args:
        options: how to reach the cluster.
        buffers: receive buffers that the connections share.
        max_threads: threads at a time; further connections are pending until one ends.
    """

    def __init__(self, options: ConnectionOptions, buffers: FrameBuffers, max_threads: int = _MAX_AT_A_TIME) -> None:
        self._options = options
        self._buffers = buffers
        self._max_threads = max_threads
        self._lock = threading.Lock()
        self._waiting: deque[_Dial[_Key]] = deque()
        self._dialing: dict[_Key, _Dial[_Key]] = {}
        self._finished: deque[_Dial[_Key]] = deque()
        self._running = 0
        self._threads: list[threading.Thread] = []
        self._wake: tuple[socket.socket, socket.socket] | None = None
        self._process_id = os.getpid()

    def __contains__(self, key: _Key) -> bool:
        return key in self._dialing

    def __len__(self) -> int:
        return len(self._dialing)

    def fileno(self) -> int:
        """Return a descriptor that is readable while there is something to take."""
        return self._wake_pair()[0].fileno()

    def wait(self, timeout_s: float) -> None:
        """Wait until there is something to take, or the time is over."""
        wait_readable([], timeout_s, others=[self.fileno()])

    def start(self, key: _Key, host: str, port: int, deadline: Deadline, old: Connection | None = None) -> None:
        """Begin to connect.

        Args:
            key: of the caller; none of this key is being opened.
            host: the broker's name.
            port: the broker's port.
            deadline: for all of it, the wait for a free thread included.
            old: a connection there whose login is to be repeated, or that was idle and may be dead, instead of a new
                connection if it can be used. It is the caller's no more.
        """
        self._wake_pair()
        dial = _Dial(key, host, port, deadline, old)
        with self._lock:
            if self._running < self._max_threads:
                # A daemon: the end of the process does not wait for a name resolver.
                thread = threading.Thread(target=self._run, name=f"connect to {host}:{port}", daemon=True)
                # First of all, as it may fail. The thread waits for the lock.
                thread.start()
                self._running += 1
                self._threads = [*(each for each in self._threads if each.is_alive()), thread]
            self._dialing[key] = dial
            self._waiting.append(dial)

    def take_outcomes(self) -> list[tuple[_Key, Connection | ConnectorError]]:
        """Return what has finished since the last call: the connection, which is the caller's now, or the failure."""
        if self._wake is not None:
            with contextlib.suppress(BlockingIOError):
                self._wake[0].recv(4096)
        taken: list[tuple[_Key, Connection | ConnectorError]] = []
        with self._lock:
            finished = list(self._finished)
            self._finished.clear()
        defect: BaseException | None = None
        for dial in finished:
            del self._dialing[dial.key]
            if isinstance(dial.outcome, (Connection, ConnectorError)):
                taken.append((dial.key, dial.outcome))
            else:
                defect = dial.outcome
        if defect is not None:
            for _, outcome in taken:
                if isinstance(outcome, Connection):
                    outcome.close()
            raise defect
        return taken

    def give_up(self, key: _Key) -> None:
        """Abandon the opening of a connection; if it is opened nevertheless, it is closed."""
        dial = self._dialing.pop(key, None)
        if dial is None:
            return
        with self._lock:
            dial.given_up = True
            not_begun = dial in self._waiting
            if not_begun:
                self._waiting.remove(dial)
            if dial in self._finished:
                self._finished.remove(dial)
            outcome, sockets = dial.outcome, list(dial.sockets)
        if isinstance(outcome, Connection):
            outcome.close()
        if not_begun and dial.old is not None:
            dial.old.close()
        # After a fork the sockets are the parent's, and a shutdown would end them for both.
        if os.getpid() == self._process_id:
            for sock in sockets:
                with contextlib.suppress(OSError):  # not connected yet, or closed by its thread meanwhile
                    # The method of the base class: SSLSocket's own would break a handshake in the other thread.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Abandon all connections that are being opened and wait for the threads to end. May be used again then."""
        for key in list(self._dialing):
            self.give_up(key)
        ends_at = time.monotonic() + _JOINED_WITHIN_S
        # All of them: one may not have begun yet, or be about to end.
        threads, self._threads = self._threads, []
        if os.getpid() == self._process_id:
            for thread in threads:
                thread.join(max(0.0, ends_at - time.monotonic()))
        with self._lock:
            wake, self._wake = self._wake, None
        if wake is not None:
            for sock in wake:
                sock.close()

    def _wake_pair(self) -> tuple[socket.socket, socket.socket]:
        if self._wake is None:
            reader, writer = socket.socketpair()
            reader.setblocking(False)
            writer.setblocking(False)
            self._wake = (reader, writer)
        return self._wake

    # In a thread of its own

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                dial = self._waiting.popleft()
            self._dial(dial)

    def _dial(self, dial: _Dial[_Key]) -> None:
        outcome: Connection | BaseException

        def watch(sock: socket.socket) -> None:
            self._watch(dial, sock)

        try:
            if dial.old is not None:
                outcome = renew_or_open(dial.old, self._options, dial.deadline, buffers=self._buffers, watch=watch)
            else:
                outcome = open_connection(
                    dial.host, dial.port, self._options, dial.deadline, buffers=self._buffers, watch=watch
                )
        except BaseException as error:  # noqa: BLE001 - raised where the dial is taken
            outcome = error
        with self._lock:
            dial.sockets.clear()
            if not dial.given_up:
                dial.outcome = outcome
                self._finished.append(dial)
                if self._wake is not None:
                    with contextlib.suppress(BlockingIOError):  # full, so the reader wakes up anyway
                        self._wake[1].send(b"\0")
                return
        if isinstance(outcome, Connection):
            outcome.close()

    def _watch(self, dial: _Dial[_Key], sock: socket.socket) -> None:
        with self._lock:
            if dial.given_up:
                raise TransportError(
                    f"Connecting to {dial.host}:{dial.port} was given up.",
                    condition="CONNECTION_GIVEN_UP",
                    retriable=True,
                    parameters={"broker": f"{dial.host}:{dial.port}"},
                )
            dial.sockets.append(sock)
