"""Requests that build their own bytes, where kafka-python's encoder would copy or call too much. Pure."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    Bytes = bytes | bytearray | memoryview

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_HEADER = struct.Struct(">ihhi")
# The position of the correlation id in a frame.
CORRELATION_ID = 8


class FramedRequest:
    """A request that `Connection.send_request` takes in place of an object of kafka-python's request classes.

    Not an ABC: to check whether an object is an instance of one takes a call of Python, for each request.

    Attributes:
        API_KEY: the number of the API.
        name: its name, for errors.
        valid_versions: the lowest and the highest version that it can be built in.
        first_flexible_version: the lowest version of which headers and bodies have tagged fields.
        has_response: whether the broker sends a response.
    """

    API_KEY: ClassVar[int]
    name: ClassVar[str]
    valid_versions: ClassVar[tuple[int, int]]
    first_flexible_version: ClassVar[int]
    has_response = True

    @property
    def partition_count(self) -> int:
        """The number of topic-partitions that the request names; for the wire trace."""
        return 0

    @staticmethod
    def decode_response(body: memoryview, version: int) -> Any:
        """Decode the body of the response; raises whatever its parsing meets."""
        raise NotImplementedError

    def build(self, version: int, correlation_id: int, client_id: str) -> Sequence[Bytes]:
        """Return the whole frame, its size included, in pieces that are sent one after the other."""
        raise NotImplementedError


# What begins a frame, and texts and counts, are the same in request after request: they are encoded once.
@lru_cache(maxsize=256)
def frame_start(api_key: int, version: int, client_id: str, *, flexible: bool) -> bytes:
    """Return the beginning of a frame: with 0 for its size, and for the correlation id at `CORRELATION_ID`."""
    # The client id is never compact, not even in flexible versions; no tagged fields follow it.
    return _HEADER.pack(0, api_key, version, 0) + text_bytes(client_id, flexible=False) + (b"\0" if flexible else b"")


@lru_cache(maxsize=4096)
def text_bytes(text: str, *, flexible: bool) -> bytes:
    """Encode a string that is not null."""
    encoded = text.encode()
    return (unsigned_varint(len(encoded) + 1) if flexible else _INT16.pack(len(encoded))) + encoded


@lru_cache(maxsize=256)
def count_bytes(count: int, *, flexible: bool) -> bytes:
    """Encode the length of an array; compact ones count from 1, because 0 means null."""
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def unsigned_varint(value: int) -> bytes:
    """Encode a number of variable length."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
