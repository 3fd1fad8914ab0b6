"""A feed on this machine, to try `socket_feed.py` on: a line is sent once, to those who are connected at that time."""

from __future__ import annotations

import select
import socket
import struct
import threading
from contextlib import suppress


class FeedServer:
    """Serves from its making to the end of a `with` block.

    Attributes:
        address: `host:port`.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self.address = "{}:{}".format(*self._listener.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FeedServer:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()

    def connected(self) -> int:
        """Return the number of receivers, without those that are gone."""
        with self._lock:
            gone = [each for each in self._connections if select.select([each], [], [], 0)[0]]
            for each in gone:
                self._connections.remove(each)
                each.close()
            return len(self._connections)

    def send(self, *lines: str, end: str = "\n") -> int:
        """Send lines to all receivers; return their number. Blocks while one of them does not read."""
        self.connected()
        for each in list(self._connections):
            with suppress(OSError):
                each.sendall("".join(f"{line}{end}" for line in lines).encode())
        return self.connected()

    def drop(self) -> None:
        """Reset all connections."""
        with self._lock:
            while self._connections:
                dropped = self._connections.pop()
                dropped.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                dropped.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._connections.append(connection)
