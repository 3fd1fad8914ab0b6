"""Frames: messages of bounded size, each signed with a key that only this run has, each accepted once and in order.

A frame is its length (4 bytes, big-endian), the HMAC-SHA256 of direction, number and payload, and the payload. The key
of a connection comes from the key of the run and a number that each side has drawn: what was said on one connection is
worth nothing on another. Nothing is encrypted: positions, counts and commit messages travel, and of a lane that fails
its error, which may quote a row if the function that raised it does.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from enum import Enum, unique

# A report has the offsets of its topic-partitions: 10,000 of them take about 500 kB.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
# Before a peer has proved that it has the key, nothing but a short greeting is taken from it.
MAX_GREETING_BYTES = 1024
NONCE_BYTES = 16
KEY_BYTES = 32

_LENGTH = struct.Struct(">I")
_NUMBER = struct.Struct(">Q")
_SIGNATURE_BYTES = hashlib.sha256().digest_size


@unique
class Direction(Enum):
    """The sender of a frame."""

    TO_DRIVER = b"d"
    TO_TASK = b"t"

    @property
    def opposite(self) -> Direction:
        """Return the receiver."""
        return Direction.TO_TASK if self is Direction.TO_DRIVER else Direction.TO_DRIVER


class BadFrameError(Exception):
    """Bytes that no member of this run has sent; the connection is of no use any more."""


def new_key() -> bytes:
    """Return the key of a run."""
    return secrets.token_bytes(KEY_BYTES)


def new_nonce() -> bytes:
    """Return one side's part of a connection key."""
    return secrets.token_bytes(NONCE_BYTES)


def connection_key(run_key: bytes, driver_nonce: bytes, task_nonce: bytes) -> bytes:
    """Return the key of one connection."""
    return hmac.digest(run_key, b"connection" + driver_nonce + task_nonce, "sha256")


class FrameWriter:
    """Makes the frames of one direction of one connection.

    Args:
        key: of the connection.
        direction: in which the frames go.
    """

    def __init__(self, key: bytes, direction: Direction) -> None:
        self._key = key
        self._direction = direction
        self._number = 0

    def frame(self, payload: bytes) -> bytes:
        """Return the next frame.

        Raises:
            ValueError: the payload has more than `MAX_PAYLOAD_BYTES`.
        """
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise ValueError(f"a message has {len(payload):,} bytes, and at most {MAX_PAYLOAD_BYTES:,} are possible")
        signature = _signature(self._key, self._direction, self._number, payload)
        self._number += 1
        return _LENGTH.pack(len(payload)) + signature + payload


class FrameReader:
    """A parser from the bytes of one connection's direction to payloads.

    Args:
        key: of the connection.
        direction: in which the frames come.
    """

    def __init__(self, key: bytes, direction: Direction) -> None:
        self._key = key
        self._direction = direction
        self._number = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that are complete with these bytes; none, one or more.

        Raises:
            BadFrameError: a frame is too large, or was not signed with the key of the connection as the next one.
        """
        self._buffer += data
        payloads = []
        at = 0
        while len(self._buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            if length > (MAX_PAYLOAD_BYTES if self._number else MAX_GREETING_BYTES):
                raise BadFrameError(f"a frame of {length:,} bytes")
            begin = at + _LENGTH.size + _SIGNATURE_BYTES
            if len(self._buffer) < begin + length:
                break
            payload = bytes(self._buffer[begin : begin + length])
            found = bytes(self._buffer[at + _LENGTH.size : begin])
            if not hmac.compare_digest(found, _signature(self._key, self._direction, self._number, payload)):
                raise BadFrameError("a frame with a wrong signature")
            at = begin + length
            self._number += 1
            payloads.append(payload)
        del self._buffer[:at]
        return payloads


def _signature(key: bytes, direction: Direction, number: int, payload: bytes) -> bytes:
    return hmac.digest(key, direction.value + _NUMBER.pack(number) + payload, "sha256")
