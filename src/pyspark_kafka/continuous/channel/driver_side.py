"""The driver's end of the channel: a thread that accepts tasks, reads what they say, and notices losses."""

from __future__ import annotations

import errno
import logging
import math
import os
import selectors
import socket
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark_kafka.continuous.channel.file_limit import file_limit
from pyspark_kafka.continuous.channel.frames import (
    NONCE_BYTES,
    BadFrameError,
    Direction,
    FrameReader,
    FrameWriter,
    connection_key,
    new_nonce,
)
from pyspark_kafka.continuous.epochs.messages import Alive, BadMessageError, Hello, Message, Stop, decode, encode
from pyspark_kafka.errors import TransportError

_LOG = logging.getLogger(__name__)

ALIVE_SECONDS = 2.0
# A stopped task, or one whose machine is gone, sends nothing; its connection may stay.
LOST_SECONDS = 20.0
SILENT = "it was silent"
_GREETING_SECONDS = 5.0
_SEND_SECONDS = 5.0
_MAX_UNAUTHENTICATED = 64
# How long a connection has for its greeting while others find no room; a task greets within milliseconds.
_YIELD_SECONDS = 1.0
# One log line for all foreign connections within this time.
_TOLD_EVERY_SECONDS = 60.0
# Tasks come at the same time. A connection that finds no room here is tried again by the kernel, after seconds.
_BACKLOG = 4096
_READ_BYTES = 256 * 1024


@dataclass(eq=False)
class _Peer:
    socket: socket.socket
    address: str
    since: float
    nonce: bytes
    heard: float
    task: int | None = None
    pid: int = 0
    greeting: bytearray = field(default_factory=bytearray)
    reader: FrameReader | None = None
    writer: FrameWriter | None = None

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]


class TaskConnections:
    """Listens for the tasks of one run.

    Runs on: driver; a thread of its own reads, any thread sends. Both callbacks run on the reading thread.

    Args:
        key: of the run; tasks get it with their code, never by this channel.
        host: the address that tasks connect to. It listens there; on all addresses if that is none of this machine's.
        on_message: takes a task and what it said.
        on_lost: takes a task whose connection ended or went silent, and why.
        port: to listen on; 0 for any.
        lost_s: after how many seconds of silence a task is lost.

    Raises:
        TransportError: it cannot listen.
    """

    def __init__(
        self,
        key: bytes,
        host: str,
        on_message: Callable[[int, Message], None],
        on_lost: Callable[[int, str], None],
        port: int = 0,
        lost_s: float = LOST_SECONDS,
    ) -> None:
        self._key = key
        self._lost_s = lost_s
        # Until when, and for how long, this process was silent itself.
        self._held_up = float("-inf"), 0.0
        self._has_warned = False
        self._on_message, self._on_lost = on_message, on_lost
        self._listener = open_listener(host, port)
        self._listener.setblocking(False)
        _LISTENERS.add(self._listener)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._peers: set[_Peer] = set()
        self._tasks: dict[int, _Peer] = {}
        self._greeted: set[int] = set()
        self._closed = self._stopping = False
        # Whether the listener is looked at, and whether connections can be accepted, as far as is known.
        self._accepts = self._can_accept = True
        # When a stranger was last told of, and how many were not.
        self._told_at, self._untold = -math.inf, 0
        self._thread = threading.Thread(target=self._run, name="continuous-tasks", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return int(self._listener.getsockname()[1])

    def broadcast(self, message: Message) -> None:
        """Send a message to every connected task. An unreachable task is lost, and `on_lost` is called."""
        payload = encode(message)
        with self._lock:
            peers = list(self._tasks.values())
            for peer in peers:
                self._send(peer, payload)

    def stop_tasks(self) -> None:
        """Notify every task to end: running tasks immediately, later tasks when they connect."""
        with self._lock:
            self._stopping = True
        self.broadcast(Stop())

    def close(self) -> None:
        """End every connection; no callback runs after it returns. May be called more than once."""
        self._closed = True
        try:
            self._wake.send(b"x")
        except OSError:
            return
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _send(self, peer: _Peer, payload: bytes) -> None:
        assert peer.writer is not None  # noqa: S101 - tasks have greeted
        try:
            peer.socket.sendall(peer.writer.frame(payload))
        except OSError:
            # The reading thread sees the end of the connection, and tells.
            with suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            next_alive = time.monotonic() + ALIVE_SECONDS
            while not self._closed:
                now = time.monotonic()
                wake_at = next_alive
                if self._room() <= 0:
                    wake_at = min(next_alive, self._oldest_stranger().since + _YIELD_SECONDS)
                for key, _ in self._selector.select(max(0.0, wake_at - now)):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.data is not None:
                        self._read(key.data)
                late_s = time.monotonic() - next_alive
                if late_s >= 0:
                    next_alive = time.monotonic() + ALIVE_SECONDS
                    if late_s + ALIVE_SECONDS >= self._lost_s:
                        # What tasks have said meanwhile is read first.
                        self._held_up = time.monotonic(), late_s + ALIVE_SECONDS
                    else:
                        # Before the next sign of life: the last one has had the time to arrive.
                        self._drop_silent()
                    self.broadcast(Alive())
                    self._can_accept = True
                self._watch_listener()
        finally:
            for peer in list(self._peers):
                self._forget(peer)
            for each in (self._listener, self._wake, self._woken):
                each.close()
            self._selector.close()

    def _watch_listener(self) -> None:
        """Let further connections wait in the backlog while too many have not greeted yet, or none can be accepted."""
        if self._room() <= 0:
            self._send_oldest_away()
        wanted = self._can_accept and self._room() > 0
        if wanted == self._accepts:
            return
        self._accepts = wanted
        if wanted:
            self._selector.register(self._listener, selectors.EVENT_READ)
        else:
            self._selector.unregister(self._listener)

    def _room(self) -> int:
        """Return the number of further connections that may be open without a greeting."""
        return _MAX_UNAUTHENTICATED - len(self._strangers())

    def _strangers(self) -> list[_Peer]:
        return [peer for peer in self._peers if peer.task is None]

    def _oldest_stranger(self) -> _Peer:
        """Return the oldest of the address that has most of them: tasks of other addresses keep their places."""
        strangers = self._strangers()
        by_host = Counter(peer.host for peer in strangers)
        return max(strangers, key=lambda peer: (by_host[peer.host], -peer.since))

    def _send_oldest_away(self) -> None:
        oldest = self._oldest_stranger()
        if time.monotonic() - oldest.since >= _YIELD_SECONDS:
            self._lose(oldest, "it did not greet, and others find no room")

    def _accept(self) -> None:
        for _ in range(self._room()):
            try:
                accepted, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Mostly too many open files, which will be the same at once.
                if not self._has_warned:
                    self._has_warned = True
                    _LOG.warning(
                        "The driver of a continuous query cannot accept a task: this process may have %s files open "
                        "at the same time (%s). It tries again every %.0f s. Raise the limit (ulimit -n), or set "
                        "option tasks to a smaller number.",
                        file_limit() or "no more", error, ALIVE_SECONDS,
                    )  # fmt: skip
                self._can_accept = False
                return
            now = time.monotonic()
            accepted.settimeout(_SEND_SECONDS)
            peer = _Peer(accepted, f"{address[0]}:{address[1]}", now, new_nonce(), now)
            self._peers.add(peer)
            self._selector.register(accepted, selectors.EVENT_READ, peer)
            try:
                # Systems other than Linux refuse it for a connection that was reset.
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                accepted.sendall(peer.nonce)
            except OSError as error:
                self._lose(peer, str(error))

    def _read(self, peer: _Peer) -> None:
        if peer not in self._peers:
            return
        try:
            data = peer.socket.recv(_READ_BYTES)
            if not data:
                self._lose(peer, "its connection ended")
                return
            peer.heard = time.monotonic()
            for payload in self._payloads(peer, data):
                self._take(peer, decode(payload))
        except OSError as error:
            self._lose(peer, f"its connection ended: {error}")
        except (BadFrameError, BadMessageError) as error:
            if peer.task is None:
                self._tell_of_stranger(peer, error)
            self._lose(peer, f"it sent {error}")

    def _tell_of_stranger(self, peer: _Peer, error: Exception) -> None:
        """Log a foreign connection; for many, one line a minute with their number."""
        now = time.monotonic()
        if now - self._told_at < _TOLD_EVERY_SECONDS:
            self._untold += 1
            return
        others = f" So were {self._untold} others since the last line about them." if self._untold else ""
        _LOG.warning("A connection from %s is not of this query, and was ended: %s.%s", peer.address, error, others)
        self._told_at, self._untold = now, 0

    def _payloads(self, peer: _Peer, data: bytes) -> list[bytes]:
        if peer.reader is None:
            peer.greeting += data
            if len(peer.greeting) < NONCE_BYTES:
                return []
            key = connection_key(self._key, peer.nonce, bytes(peer.greeting[:NONCE_BYTES]))
            peer.reader = FrameReader(key, Direction.TO_DRIVER)
            peer.writer = FrameWriter(key, Direction.TO_TASK)
            data = bytes(peer.greeting[NONCE_BYTES:])
        return peer.reader.feed(data)

    def _take(self, peer: _Peer, message: Message) -> None:
        if isinstance(message, Hello):
            with self._lock:
                # Also if the first one is gone: Spark may have started a task again whose first attempt still works.
                if peer.task is not None or message.task in self._greeted:
                    raise BadMessageError(f"a second greeting of task {message.task}")
                peer.task, peer.pid = message.task, message.pid
                self._tasks[message.task] = peer
                self._greeted.add(message.task)
                # It waits for a word before its lanes start. One that Spark has started late would read until it is
                # killed.
                self._send(peer, encode(Stop() if self._stopping else Alive()))
        elif peer.task is None:
            raise BadMessageError("another message than a greeting first")
        if not isinstance(message, Alive):
            self._on_message(peer.task, message)

    def _drop_silent(self) -> None:
        now = time.monotonic()
        for peer in list(self._peers):
            if peer.task is None and now - peer.since > _GREETING_SECONDS:
                self._lose(peer, "it did not greet")
            elif now - peer.heard > self._lost_s:
                reason = f"{SILENT} for {self._lost_s:.0f} s"
                if _is_answered(peer.socket):
                    reason += (
                        ", though its machine answers and its process lives: a function holds the interpreter of "
                        "Python, as a regular expression may, or the process is stopped"
                    )
                self._lose(peer, reason)

    def _lose(self, peer: _Peer, reason: str) -> None:
        task = peer.task
        self._forget(peer)
        if task is not None and not self._closed:
            held_up_at, held_up_s = self._held_up
            if time.monotonic() - held_up_at < self._lost_s:
                reason += (
                    f"; before, this program itself was silent for {held_up_s:.0f} s, as it held the interpreter of "
                    "Python, or was stopped"
                )
            self._on_lost(task, f"{reason} (process {peer.pid} at {peer.address})")

    def _forget(self, peer: _Peer) -> None:
        self._peers.discard(peer)
        with self._lock:
            if peer.task is not None and self._tasks.get(peer.task) is peer:
                del self._tasks[peer.task]
        self._selector.unregister(peer.socket)
        # A process that was forked meanwhile may hold the socket as well: its copy must not keep the connection.
        with suppress(OSError):
            peer.socket.shutdown(socket.SHUT_RDWR)
        peer.socket.close()


def _is_answered(connection: socket.socket) -> bool:
    """Return whether the other machine has confirmed all that was sent: the process that has the connection lives."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
        import termios  # noqa: PLC0415 - likewise

        unconfirmed = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4)
    except (ImportError, AttributeError, OSError):
        return False
    return not any(unconfirmed)


# A process that is forked from the driver would keep the port, so that the next run cannot have it.
_LISTENERS: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_listeners() -> None:
    for each in list(_LISTENERS):
        each.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_listeners)


def open_listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens for tasks: at an address, or on all of them if that is none of this machine's.

    Raises:
        TransportError: it cannot listen.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        try:
            return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            # The address of a gateway in front of this machine, as of the host of a container.
            _LOG.warning(
                "The driver of the continuous query listens on all addresses of this machine: %s, which tasks connect "
                "to, is not one of them.",
                host,
            )
            return socket.create_server(("", port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise TransportError(
            f"The driver of the continuous query cannot listen at {host}, port {port or 'any'}: {error}. Nothing was "
            "read.",
            condition="CONTINUOUS_DRIVER_CANNOT_LISTEN",
            hint="Set option coordinatorHost to an address at which executors reach this machine, and coordinatorPort "
            "to a free port.",
            parameters={"host": host, "port": port},
        ) from error
