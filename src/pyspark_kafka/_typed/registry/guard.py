"""Limits for one HTTP client: its time, its response size, and the servers that get its login.

A client's own timeouts are for one piece of bytes: a response that drips byte by byte would never end. So the sockets
are shut when the time is over, and received bytes are counted.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._client.options import Revealed

# The JSON of a schema is larger than its text, which has a bound of its own: `references.MAX`.
MAX_RESPONSE_BYTES = 16 << 20
_MIN_TIMEOUT_S = 0.001
_BUSY = frozenset({429, 503})


def parse_retry_after(text: str, now: float) -> float:
    """Return the seconds of a header Retry-After, which has these or a time; 0 if it has neither. Pure.

    Args:
        text: of the header.
        now: seconds since 1970.

    Source: RFC 9110, section 10.2.3.
    """
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return 0.0


class AnswerError(Exception):
    """A partly read response; its text says why, as the end of a sentence."""


class Guard:
    """Watches over the requests of one client, from its opening to its end.

    Runs on: driver and executor; a thread of its own cuts the connections.

    Args:
        ends_at: when all of it must be done, in seconds of `time.monotonic`.
    """

    def __init__(self, ends_at: float) -> None:
        self._ends_at = ends_at
        # The maximum time of one request, so that another address can be tried.
        self.share_s = self.left_s()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.was_cut = False
        # The pause that the last busy response required.
        self.retry_after_s = 0.0
        self._timer = threading.Timer(self.left_s(), self._cut)
        self._timer.daemon = True
        self._timer.start()

    def left_s(self) -> float:
        """Return the remaining seconds; never below 0."""
        return max(0.0, self._ends_at - time.monotonic())

    def watch(self, session: Any, token: Revealed | None) -> None:
        """Watch the requests of an httpx session.

        Its hooks are run for each request and for each response before its body is read.

        Args:
            session: of httpx.
            token: what the requests log in with, if it is a token; one that a header can hold, since libraries quote a
                header that they refuse.
        """
        # Its library is httpx or httpx2: the client of the registry has chosen.
        library = sys.modules[type(session).__module__.partition(".")[0]]

        class Counted(library.SyncByteStream):  # type: ignore[misc, name-defined]
            """The body of a response, as far as it is not too large."""

            def __init__(self, stream: Any) -> None:
                self._stream = stream

            def __iter__(self) -> Iterator[bytes]:
                size = 0
                for piece in self._stream:
                    size += len(piece)
                    if size > MAX_RESPONSE_BYTES:
                        raise AnswerError(f"it has more than {MAX_RESPONSE_BYTES} bytes")
                    yield piece

            def close(self) -> None:
                self._stream.close()

        def on_request(request: Any) -> None:
            timeout_s = max(_MIN_TIMEOUT_S, min(self.left_s(), self.share_s))
            request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)
            request.extensions["trace"] = self._on_event
            # What is compressed may be a thousand times larger than it looks.
            request.headers["Accept-Encoding"] = "identity"
            # A connection that is kept would be closed in the meantime, or end up on both sides of a fork.
            request.headers["Connection"] = "close"
            if token is not None:
                request.headers["Authorization"] = f"Bearer {token}"

        def on_response(response: Any) -> None:
            if response.status_code in _BUSY:
                self.retry_after_s = parse_retry_after(response.headers.get("Retry-After", ""), time.time())
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise AnswerError("it is compressed, which was not asked for")
            response.stream = Counted(response.stream)

        session.event_hooks = {"request": [on_request], "response": [on_response]}

    def _on_event(self, name: str, info: dict[str, Any]) -> None:
        if name != "connection.connect_tcp.complete":
            return
        connected = info["return_value"].get_extra_info("socket")
        if not isinstance(connected, socket.socket):
            return
        with self._lock:
            # A second handle on the same connection: the first one is replaced when TLS begins.
            self._sockets.append(connected.dup())
            cut = self.was_cut
        if cut:
            self._cut()

    def _cut(self) -> None:
        with self._lock:
            self.was_cut = True
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the watch; the connections are closed by whoever opened them."""
        self._timer.cancel()
        with self._lock:
            for each in self._sockets:
                each.close()
            self._sockets.clear()
        self._timer.join()
