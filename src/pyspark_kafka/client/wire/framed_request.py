"""Requests that build their own bytes, where kafka-python's encoder would copy or call too much. Pure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    Bytes = bytes | bytearray | memoryview

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_HEADER = struct.Struct(">ihhih")


class FramedRequest:
    """A request that `Connection.send` takes in place of an object of kafka-python's request classes.

    Not an ABC: to ask whether an object is an instance of one takes a call of Python, for each request.

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
        """How many topic-partitions the request names; for the wire trace."""
        return 0

    @staticmethod
    def decode_response(body: memoryview, version: int) -> Any:
        """Decode the body of the response; raises whatever its parsing meets."""
        raise NotImplementedError

    def build(self, version: int, correlation_id: int, client_id: str) -> Sequence[Bytes]:
        """Return the whole frame, its size included, in pieces that are sent one after the other."""
        raise NotImplementedError


def begin_frame(api_key: int, version: int, correlation_id: int, client_id: str, *, flexible: bool) -> bytearray:
    """Return a frame with its header; its size is 0, to be set when the whole frame is known."""
    encoded = client_id.encode()
    out = bytearray(_HEADER.pack(0, api_key, version, correlation_id, len(encoded)))
    # The client id is never compact, not even in flexible versions.
    out += encoded
    if flexible:
        out.append(0)  # no tagged fields
    return out


def put_text(out: bytearray, text: str, *, flexible: bool) -> None:
    """Append a string that is not null."""
    encoded = text.encode()
    out += (_unsigned_varint(len(encoded) + 1) if flexible else _INT16.pack(len(encoded))) + encoded


def put_count(out: bytearray, count: int, *, flexible: bool) -> None:
    """Append the length of an array or of bytes; compact ones count from 1, because 0 stands for null."""
    if flexible and count < 0x7F:
        out.append(count + 1)
    else:
        out += _unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
