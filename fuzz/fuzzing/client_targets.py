"""Targets of the client: frames and Fetch responses. Nothing here is compiled, so there are no variants to compare."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from fuzzing.draw import Draw
from fuzzing.oracles import outcome_of, require
from pyspark_kafka._client.client.fetch.response import NEWEST_VERSION, OLDEST_VERSION, parse_fetch_response
from pyspark_kafka._client.client.net.frame_stream import EndOfStreamError, FrameStream
from pyspark_kafka._client.client.wire.frames import FRAME_LIMIT_BYTES, HEADER_BYTES, parse_response_header
from pyspark_kafka._client.client.wire.token_requests import TokenChanged, TokenCreated, TokensDescribed
from pyspark_kafka.records import scan

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from pyspark_kafka.records._variant import Kernel

_TOKENS: tuple[Any, ...] = (TokenCreated, TokenChanged, TokensDescribed)


def frame(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """One flag, then a frame with its size: the size is refused or believed, the header found or refused."""
    draw = Draw(data)
    flexible, prefix = draw.flag(), draw.taken(4)
    if len(prefix) < 4:
        return
    sizes = outcome_of(lambda: _accepted_sizes(prefix)).value
    for size in sizes or ():
        require(HEADER_BYTES <= size <= FRAME_LIMIT_BYTES, f"a frame of {size} bytes was let through")
    # What is received has the announced size, which is at least that of a header.
    body = memoryview(draw.rest())
    if len(body) < HEADER_BYTES:
        return
    header = outcome_of(lambda: parse_response_header(body, flexible=flexible, address="broker:9092"))
    if header.value is not None:
        require(HEADER_BYTES <= header.value[1] <= len(body), f"the body begins at byte {header.value[1]}")


def _accepted_sizes(prefix: bytes) -> list[int]:
    """Return the size for which a stream asks memory after these four bytes, before the other side closes."""
    sizes: list[int] = []

    def take(size: int) -> memoryview:
        sizes.append(size)
        return memoryview(bytearray(HEADER_BYTES))

    with suppress(EndOfStreamError):
        FrameStream(cast("socket.socket", _Socket(prefix)), "broker:9092").receive(take, None, 1)
    return sizes


class _Socket:
    """A socket whose other side sends some bytes and closes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def setblocking(self, blocking: bool) -> None:
        """Do nothing: bytes are there."""

    def recv_into(self, view: memoryview) -> int:
        """Copy the bytes, once."""
        taken, self._data = self._data[: len(view)], self._data[len(view) :]
        view[: len(taken)] = taken
        return len(taken)


def fetch_response(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """One byte for the version, then the body of a response."""
    draw = Draw(data)
    version = OLDEST_VERSION + draw.number(1) % (NEWEST_VERSION - OLDEST_VERSION + 1)
    body = memoryview(draw.rest())
    answer = outcome_of(lambda: parse_fetch_response(body, version)).value
    if answer is None:
        return
    views = [partition.records for partition in answer.partitions]
    require(sum(view.nbytes for view in views) <= len(body), "the records are more than the response")
    require(all(view.obj is body.obj for view in views), "the records were copied")
    for partition in answer.partitions:
        require(
            (partition.topic is None) is not (partition.topic_id is None), "one of topic and topic id must be there"
        )
        found = scan(partition.records, max(partition.high_watermark, 0))
        require(0 <= found.complete_bytes <= partition.records.nbytes, f"{found} is beyond the records")


def token_response(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """One byte for the request, then the body of a response about delegation tokens."""
    draw = Draw(data)
    response = _TOKENS[draw.number(1) % len(_TOKENS)]
    body = memoryview(draw.rest())
    # What `Connection` turns into an error of its own.
    with suppress(ValueError, struct.error):
        found = response.decode(body)
        if isinstance(found, TokensDescribed):
            require(len(found.tokens) * 38 <= len(body), f"{len(found.tokens)} tokens in {len(body)} bytes")
            require(all(token.hmac in bytes(body) for token in found.tokens), "a key was made up")
