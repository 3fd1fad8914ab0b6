"""Asking a broker whether it serves clients, with two requests written by hand.

It needs nothing but a socket, so that it can distinguish "not yet" from "never" while a broker starts.
"""

from __future__ import annotations

import socket
import struct

_METADATA_KEY = 3
# The oldest version that names the cluster; every supported broker accepts it.
_METADATA_VERSION = 2
_CLIENT_ID = b"pyspark-kafka-probe"
_MAX_REPLY_BYTES = 1 << 20
_TIMEOUT_S = 2.0


def build_metadata_request(correlation_id: int) -> bytes:
    """Build the frame of a metadata request for the brokers and for no topic."""
    header = struct.pack(">hhih", _METADATA_KEY, _METADATA_VERSION, correlation_id, len(_CLIENT_ID)) + _CLIENT_ID
    body = struct.pack(">i", 0)
    return struct.pack(">i", len(header) + len(body)) + header + body


def parse_metadata_response(frame: bytes, correlation_id: int) -> str | None:
    """Read the cluster's id out of a metadata response, its length not included; None when it names no broker.

    Raises:
        ValueError: when it is not such a response.
    """
    try:
        answered, brokers = struct.unpack_from(">ii", frame)
        if answered != correlation_id:
            raise ValueError(f"it answers request {answered}, expected {correlation_id}")
        position = 8
        for _ in range(brokers):
            # Node id, host, port, rack.
            _, position = _read_string(frame, position + 4)
            _, position = _read_string(frame, position + 4)
        cluster_id, _ = _read_string(frame, position)
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error
    return cluster_id if brokers > 0 else None


def find_cluster(host: str, port: int) -> str | None:
    """Return the id of the cluster that a PLAINTEXT broker there lets clients use; None when there is none yet.

    The port opens before the controller has let the broker in; until then the list of brokers is empty. And it may be
    another cluster's: whoever starts a broker compares the id.
    """
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection:
            # A connection to a free port of the ephemeral range can, by TCP's simultaneous open, be one to itself.
            if connection.getsockname() == connection.getpeername():
                return None
            connection.sendall(build_metadata_request(1))
            (size,) = struct.unpack(">i", _read(connection, 4))
            if not 0 < size <= _MAX_REPLY_BYTES:
                return None
            return parse_metadata_response(_read(connection, size), 1)
    except (OSError, EOFError, ValueError):
        return None


def _read_string(frame: bytes, position: int) -> tuple[str | None, int]:
    """Read a nullable string and return the position after it."""
    (length,) = struct.unpack_from(">h", frame, position)
    begin = position + 2
    if length < 0:
        return None, begin
    if begin + length > len(frame):
        raise ValueError(f"a string of {length} bytes goes beyond the frame")
    return frame[begin : begin + length].decode(), begin + length


def _read(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise EOFError
        received += piece
    return bytes(received)
