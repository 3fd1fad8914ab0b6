"""Waiting for bytes on many connections at a time."""

from __future__ import annotations

import math
import select
import ssl
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence


class HasSocket(Protocol):
    """The subject of a wait: a `Connection`."""

    def open_socket(self) -> socket.socket:
        """Return the socket.

        Raises:
            TransportError: it is closed.
        """
        ...


_C = TypeVar("_C", bound=HasSocket)


def wait_readable(connections: Sequence[_C], timeout_s: float, others: Sequence[int] = ()) -> list[_C]:
    """Wait until bytes (or the end of the stream) arrive on one of the connections; does not read them.

    Args:
        connections: open ones.
        timeout_s: how long to wait; infinity for no limit.
        others: descriptors that end the wait, too, when there is something to read.

    Returns:
        Those with something to read, in the order of the argument; none when the time is over.

    Raises:
        TransportError: one of them is closed.
    """
    by_descriptor: dict[int, _C] = {}
    pending: list[_C] = []
    # poll, not select: select cannot watch descriptors above 1023.
    poller = select.poll()
    for connection in connections:
        sock = connection.open_socket()
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            pending.append(connection)
        by_descriptor[sock.fileno()] = connection
        poller.register(sock, select.POLLIN)
    if pending:
        return pending
    for descriptor in others:
        poller.register(descriptor, select.POLLIN)
    # Rounded up: poll counts in whole milliseconds, and 0 would not wait.
    wait_ms = None if timeout_s == math.inf else math.ceil(timeout_s * 1000)
    ready = dict(poller.poll(wait_ms))
    if len(ready) == len(by_descriptor) and not others:
        return list(connections)
    return [connection for descriptor, connection in by_descriptor.items() if descriptor in ready]
