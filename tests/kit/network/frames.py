"""Requests and responses in the bytes of a connection, so that a proxy can edit single responses. Pure: no sockets."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_MODULES = ("metadata", "consumer", "producer", "admin", "sasl")
_RESPONSES: dict[int, Any] = {
    found.API_KEY: found
    for module in (import_module(f"kafka.protocol.{name}") for name in _MODULES)
    for name, found in vars(module).items()
    if name.endswith("Response") and hasattr(found, "API_KEY")
}
_API_VERSIONS = 18
_SIZE_BYTES = 4
_REQUEST_HEAD_BYTES = 8
# No frame of a test is larger; what seems to be is not Kafka's protocol.
_MAX_FRAME_BYTES = 1 << 28


@dataclass
class Answer:
    """A response in flight to the client, which a change may edit.

    Attributes:
        api: the name of the request, such as "Fetch".
        version: the version of request and response.
        number: how many responses to requests of this name have passed the proxy, this one included.
        body: the response, from the correlation id on, without its size.
        is_lost: nothing of it passes, nor anything later on the same connection, which stays open.
        cut_at: the bytes of the frame, size included, that pass before the connection is reset; None for all.
    """

    api: str
    version: int
    number: int
    body: bytes
    is_lost: bool = False
    cut_at: int | None = None

    def edit(self, change: Callable[[Any], None]) -> None:
        """Decode the response, let a function change its fields, and encode it again."""
        kind = next(found for found in _RESPONSES.values() if found.name == f"{self.api}Response")
        # ApiVersions has the short header in all versions: the client does not know yet what the broker knows.
        flexible = kind.flexible_version_q(self.version) and kind.API_KEY != _API_VERSIONS
        head = self.body[: 5 if flexible else 4]
        response = kind.decode(self.body[len(head) :], version=self.version)
        # What kafka-python decodes without its header has not even the field for it.
        response._header = None
        change(response)
        self.body = head + bytes(response.encode(version=self.version))

    @property
    def frame(self) -> bytes:
        """The bytes to send: size and body."""
        return struct.pack(">i", len(self.body)) + self.body


class _Frames:
    """Cuts bytes into frames, from the first byte of a connection on."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield the bodies of the frames that are complete now.

        Raises:
            ValueError: this is not Kafka's protocol.
        """
        self._rest += data
        while len(self._rest) >= _SIZE_BYTES:
            (size,) = struct.unpack_from(">i", self._rest)
            if not 0 < size <= _MAX_FRAME_BYTES:
                raise ValueError("no size of a frame of Kafka's protocol")
            if len(self._rest) < _SIZE_BYTES + size:
                return
            body = bytes(self._rest[_SIZE_BYTES : _SIZE_BYTES + size])
            del self._rest[: _SIZE_BYTES + size]
            yield body


class Conversation:
    """The requests and responses of one connection, which is not encrypted."""

    def __init__(self, count: Callable[[str], int], note_client: Callable[[str, str], None]) -> None:
        """Create it for a new connection.

        Args:
            count: counts the responses of a name.
            note_client: called with the name and the client id of each request.
        """
        self._count, self._note_client = count, note_client
        self._requests = _Frames()
        self._responses = _Frames()
        # Name and version of the requests in flight, by correlation id.
        self._in_flight: dict[int, tuple[str, int]] = {}

    def see_request(self, data: bytes) -> None:
        """Note the requests in bytes from the client."""
        for body in self._requests.take(data):
            key, version, correlation_id = struct.unpack_from(">hhi", body.ljust(_REQUEST_HEAD_BYTES, b"\0"))
            kind = _RESPONSES.get(key)
            name = str(key) if kind is None else str(kind.name).removesuffix("Response")
            self._in_flight[correlation_id] = name, version
            (length,) = struct.unpack_from(">h", body.ljust(_REQUEST_HEAD_BYTES + 2, b"\0"), _REQUEST_HEAD_BYTES)
            begin = _REQUEST_HEAD_BYTES + 2
            self._note_client(name, body[begin : begin + max(0, length)].decode())

    def answers(self, data: bytes) -> Iterator[Answer]:
        """Yield the responses that are complete with these bytes from the broker."""
        for body in self._responses.take(data):
            (correlation_id,) = struct.unpack_from(">i", body)
            name, version = self._in_flight.pop(correlation_id)
            yield Answer(name, version, self._count(name), body)
