"""Whether executors can connect to the driver, as the tasks of a continuous query do, and how their clocks differ.

The driver listens as for a continuous query, and returns its time to clients with the key of the check.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any

from pyspark_kafka._base.threads import BackgroundLoop

_KEY_BYTES = 16
# Of executors that connect at the same time; a stranger holds one of these for as long as the timeout.
_ANSWERING = 32
_ANSWER_S = 5.0
_MAX_ANSWER = 64


class DriverPort:
    """A server for executors until it is closed. Use as a context manager.

    Runs on: driver; in threads of its own.

    Args:
        listener: the socket that listens; it is closed with the port.

    Attributes:
        key: what an executor has to send.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.key = secrets.token_bytes(_KEY_BYTES)
        self._listener = listener
        self._listener.settimeout(0.2)
        self._answering = ThreadPoolExecutor(_ANSWERING, "check-answers")
        self._loop = BackgroundLoop("check-driver-port", self._accept)
        self._loop.start()

    def __enter__(self) -> DriverPort:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.end()
        self._listener.close()
        self._answering.shutdown(wait=False, cancel_futures=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.getsockname()[1])

    def _accept(self) -> float:
        with suppress(OSError):  # mostly the timeout
            self._answering.submit(self._answer, self._listener.accept()[0])
        return 0.0

    def _answer(self, accepted: socket.socket) -> None:
        with accepted:
            accepted.settimeout(_ANSWER_S)
            try:
                if hmac.compare_digest(_receive(accepted, _KEY_BYTES), self.key):
                    accepted.sendall(f"{time.time():.6f}\n".encode())
            except OSError:
                return


def ask_driver(host: str, port: int, key: bytes, timeout_s: float) -> dict[str, Any]:
    """Connect to the driver, and return what was found, as values for JSON.

    Runs on: executor; blocks, at most for about twice the timeout.

    Returns:
        `address`; `reason`, which is empty if the driver responded; and if it did, `ahead_ms`, by how much the clock of
        this machine is ahead of the driver's, with `error_ms`.
    """
    found: dict[str, Any] = {"address": f"{host}:{port}", "reason": ""}
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            before = time.time()
            connection.sendall(key)
            answer = _receive(connection, _MAX_ANSWER, end=b"\n")
            after = time.time()
        theirs = float(answer)
    except OSError as error:
        return {**found, "reason": f"{type(error).__name__}: {error}"}
    except ValueError:
        return {**found, "reason": "another program answers there"}
    return {**found, "ahead_ms": ((before + after) / 2 - theirs) * 1000, "error_ms": (after - before) / 2 * 1000}


def _receive(connection: socket.socket, size: int, end: bytes | None = None) -> bytes:
    """Return bytes up to a size, an end or the end of the connection."""
    received = b""
    while len(received) < size and not (end and received.endswith(end)):
        part = connection.recv(size - len(received))
        if not part:
            break
        received += part
    return received
