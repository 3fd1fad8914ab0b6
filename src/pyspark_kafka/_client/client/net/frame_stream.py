"""Frames on a socket: sent in pieces, received as their bytes arrive. Knows no request."""

from __future__ import annotations

import contextlib
import math
import ssl
import time
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.wire.frames import FRAME_LIMIT_BYTES, HEADER_BYTES, frame_size_invalid

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from pyspark_kafka._client.client.waiting.deadline import Deadline

_SIZE_BYTES = 4
# What a socket raises that cannot be sent to, or received from, yet.
NOT_YET = (TimeoutError, BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

# A response of which fewer bytes arrive is not worth waiting for: 8 MiB would take more than two hours.
_SLOWEST_BYTES_PER_S = 1_000


def keeps_arriving(count: int, seconds: float) -> bool:
    """Return whether `count` bytes of a response within that time are worth waiting for the rest of it."""
    return count > 0 and count >= seconds * _SLOWEST_BYTES_PER_S


class EndOfStreamError(OSError):
    """The other side has closed the connection."""


class FrameStream:
    """A connected socket that carries frames.

    Errors of the socket pass through as they are. After an error the state of the stream is unknown, and the owner
    closes it; errors that only mean *not yet* are an exception.

    Runs on: driver and executor; sending and receiving block. For one thread at a time.

    Args:
        sock: connected, encrypted if it is to be.
        address: `host:port` of the other side, for errors.

    Attributes:
        limit_bytes: the size of a frame above which it is refused.
    """

    __slots__ = ("_address", "_arrived", "_frame", "_prefix", "limit_bytes", "sock")

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.sock = sock
        # Mostly a request fits into the socket, and a response is there when it is looked for: a socket with a time
        # takes three system calls for what takes one without.
        sock.setblocking(False)
        self.limit_bytes = FRAME_LIMIT_BYTES
        self._address = address
        self._prefix = memoryview(bytearray(_SIZE_BYTES))
        # The memory of the frame that is being received, once its size is known; and how much has arrived of it, or
        # of the size before that.
        self._frame: memoryview | None = None
        self._arrived = 0

    def send_pieces(self, pieces: Iterable[bytes | bytearray | memoryview], timeout_s: float) -> None:
        """Send the pieces of one frame as they are.

        Raises:
            TimeoutError: the other side does not take the bytes.
            OSError: the connection is lost.
        """
        ends_at: float | None = None
        for piece in pieces:
            try:
                sent = self.sock.send(piece)
            except NOT_YET:
                sent = 0
            if sent < len(piece):
                ends_at = ends_at or time.monotonic() + timeout_s
                # sendall counts the timeout over all of its parts.
                self.sock.settimeout(max(0.001, ends_at - time.monotonic()))
                self.sock.sendall(memoryview(piece)[sent:])
                self.sock.setblocking(False)

    def receive(
        self,
        take: Callable[[int], memoryview] | None,
        deadline: Deadline | None,
        turn_s: float = math.inf,
        until: Deadline | None = None,
    ) -> memoryview:
        """Receive the next frame. What has arrived of it when an error is raised is kept for the next call.

        Args:
            take: returns memory of a size, for the frame; None for new memory.
            deadline: until when to wait; None does not wait. With no time left, arrived bytes are still taken.
            turn_s: the longest wait of this call, however steadily bytes arrive.
            until: another end of the wait of this call; None for none.

        Raises:
            TimeoutError, BlockingIOError, ssl.SSLWantReadError: not yet.
            EndOfStreamError: the other side has closed the connection.
            OSError: the connection is lost.
            ProtocolError: the size of the frame is not possible.
        """
        turn: Deadline | None = None
        try:
            while True:
                frame = self._frame
                view = self._prefix if frame is None else frame
                while self._arrived < len(view):
                    if turn is not None:
                        self.sock.settimeout(turn.remaining_s())
                    try:
                        count = self.sock.recv_into(view[self._arrived :])
                    except NOT_YET:
                        if turn is not None or deadline is None:
                            raise
                        longest_s = turn_s if until is None else min(turn_s, until.remaining_s())
                        turn = deadline.within(longest_s * 1000)
                        continue
                    if count == 0:
                        raise EndOfStreamError
                    self._arrived += count
                self._arrived = 0
                if frame is not None:
                    self._frame = None
                    return frame
                size = int.from_bytes(view, "big")
                if not HEADER_BYTES <= size <= self.limit_bytes:
                    raise frame_size_invalid(bytes(view), self.limit_bytes, self._address)
                self._frame = memoryview(bytearray(size)) if take is None else take(size)
        finally:
            if turn is not None:
                self.sock.setblocking(False)

    @property
    def has_begun(self) -> bool:
        """Whether a part of the next frame has arrived."""
        return self._frame is not None or self._arrived > 0

    @property
    def arrived(self) -> int:
        """The number of bytes of the next frame that have arrived, its size included."""
        return self._arrived if self._frame is None else _SIZE_BYTES + self._arrived

    @property
    def progress(self) -> str:
        """The progress of the frame, or of its size, as a clause."""
        size = _SIZE_BYTES if self._frame is None else len(self._frame)
        return f"{self._arrived} of {size} bytes had arrived"

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):  # the connection may be gone already
            self.sock.close()
