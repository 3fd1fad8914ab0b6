"""An address that swallows packets: connecting to it neither succeeds nor fails."""

from __future__ import annotations

import contextlib
import socket
from types import TracebackType

# Linux takes one connection more than the queue is long.
_FILLING = 3


class BlackHole:
    """A listener of the loopback whose queue is full, so that the kernel drops what asks for another connection."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self._queued: list[socket.socket] = []
        for _ in range(_FILLING):
            queued = socket.socket()
            queued.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                queued.connect(self._listener.getsockname())
            self._queued.append(queued)

    def __enter__(self) -> BlackHole:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (*self._queued, self._listener):
            each.close()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()
        return str(host), int(port)
