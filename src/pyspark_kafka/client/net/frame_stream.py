"""Frames on a socket: sent in pieces, received as their bytes arrive. Knows no request."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pyspark_kafka.client.wire.frames import FRAME_LIMIT_BYTES, parse_frame_size

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from pyspark_kafka.client.deadline import Deadline

_SIZE_BYTES = 4


class EndOfStreamError(OSError):
    """The other side has closed the connection."""


class FrameStream:
    """A connected socket that carries frames.

    Errors of the socket pass through as they are. After any but those that only mean *not yet* the stream is of an
    unknown state, and the owner closes it.

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
        self.limit_bytes = FRAME_LIMIT_BYTES
        self._address = address
        self._prefix = memoryview(bytearray(_SIZE_BYTES))
        # The memory of the frame that is being received, once its size is known; and how much has arrived of it, or
        # of the size before that.
        self._frame: memoryview | None = None
        self._arrived = 0

    def send(self, pieces: Iterable[bytes | bytearray | memoryview], timeout_s: float) -> None:
        """Send the pieces of one frame as they are.

        Raises:
            TimeoutError: the other side does not take the bytes.
            OSError: the connection is lost.
        """
        # sendall counts the timeout over all of its parts.
        self.sock.settimeout(max(0.001, timeout_s))
        for piece in pieces:
            self.sock.sendall(piece)

    def receive(self, take: Callable[[int], memoryview], deadline: Deadline | None, stall_s: float) -> memoryview:
        """Receive the next frame. What has arrived of it when an error is raised is kept for the next call.

        Args:
            take: returns memory of a size, for the frame.
            deadline: until when to wait; None does not wait.
            stall_s: for how long nothing may arrive.

        Raises:
            TimeoutError, BlockingIOError, ssl.SSLWantReadError: not yet.
            EndOfStreamError: the other side has closed the connection.
            OSError: the connection is lost.
            ProtocolError: the size of the frame is not possible.
        """
        sock = self.sock
        sock.settimeout(0.0 if deadline is None else min(stall_s, deadline.remaining_s()))
        while True:
            frame = self._frame
            view = self._prefix if frame is None else frame
            while self._arrived < len(view):
                count = sock.recv_into(view[self._arrived :])
                if count == 0:
                    raise EndOfStreamError
                self._arrived += count
                if deadline is not None and self._arrived < len(view):
                    # With no time left, what has arrived is taken all the same: it may be the whole frame.
                    sock.settimeout(min(stall_s, deadline.remaining_s()))
            self._arrived = 0
            if frame is not None:
                self._frame = None
                return frame
            self._frame = take(parse_frame_size(bytes(view), self.limit_bytes, self._address))

    @property
    def progress(self) -> str:
        """How much has arrived of the frame, or of its size, as a clause."""
        size = _SIZE_BYTES if self._frame is None else len(self._frame)
        return f"{self._arrived} of {size} bytes had arrived"

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):  # the connection may be gone already
            self.sock.close()
