"""Asking a broker whether it serves clients, with two requests written by hand.

It needs nothing but a socket, so that it can tell "not yet" from "never" while a broker starts. Layer: testing.
"""

from __future__ import annotations

import socket
import struct

_METADATA_KEY = 3
# Version 1 is the oldest whose empty list means "no topics", and every supported broker answers it.
_METADATA_VERSION = 1
_CLIENT_ID = b"pyspark-kafka-probe"
_MAX_REPLY_BYTES = 1 << 20
_TIMEOUT_S = 2.0


def build_metadata_request(correlation_id: int) -> bytes:
    """Build the frame of a metadata request that asks for the brokers and for no topic."""
    header = struct.pack(">hhih", _METADATA_KEY, _METADATA_VERSION, correlation_id, len(_CLIENT_ID)) + _CLIENT_ID
    body = struct.pack(">i", 0)
    return struct.pack(">i", len(header) + len(body)) + header + body


def serves_clients(host: str, port: int) -> bool:
    """Tell whether a PLAINTEXT broker answers there and names at least one broker that clients may use.

    The port opens before the controller has let the broker in; until then the list of brokers is empty.
    """
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection:
            # A connection to a free port of the ephemeral range can, by TCP's simultaneous open, be one to itself.
            if connection.getsockname() == connection.getpeername():
                return False
            connection.sendall(build_metadata_request(1))
            (size,) = struct.unpack(">i", _read(connection, 4))
            if not 8 <= size <= _MAX_REPLY_BYTES:
                return False
            correlation_id, brokers = struct.unpack(">ii", _read(connection, size)[:8])
    except (OSError, EOFError):
        return False
    return bool(correlation_id == 1 and brokers > 0)


def _read(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise EOFError
        received += piece
    return bytes(received)
