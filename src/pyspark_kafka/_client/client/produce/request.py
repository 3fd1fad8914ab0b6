"""Produce requests without copies of their record batches. Pure: no sockets, no clock.

kafka-python's encoder would copy every record batch several times; here the bytes of a batch go to the socket as they
are.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.produce.response import parse_produce_response
from pyspark_kafka._client.client.wire.framed_request import (
    CORRELATION_ID,
    FramedRequest,
    count_bytes,
    frame_start,
    text_bytes,
    unsigned_varint,
)
from pyspark_kafka._client.client.wire.messages import ProduceRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka._base.model import TopicPartition

    Bytes = bytes | bytearray | memoryview

_FIRST_FLEXIBLE_VERSION = 9
# To copy a batch of fewer bytes costs less than a system call of its own, and a packet for the few bytes between two.
_JOIN_BELOW_BYTES = 64 * 1024

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT = struct.Struct(">hi")


class ProduceFrame(FramedRequest):
    """A Produce request, sent with `Connection.send_request`.

    Args:
        acks: -1, 1 or 0.
        timeout_ms: how long the leader waits for the other replicas.
        batches: at most one a topic-partition.
        transactional_id: of the transaction that they are part of, if they are.
    """

    API_KEY = ProduceRequest.API_KEY
    name = ProduceRequest.name
    valid_versions = ProduceRequest.valid_versions
    first_flexible_version = _FIRST_FLEXIBLE_VERSION
    decode_response = staticmethod(parse_produce_response)

    def __init__(
        self,
        acks: int,
        timeout_ms: int,
        batches: Iterable[tuple[TopicPartition, Bytes]],
        transactional_id: str | None = None,
    ) -> None:
        self._acks = acks
        self.has_response = acks != 0
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._topics: dict[str, list[tuple[int, Bytes]]] = {}
        for topic_partition, data in batches:
            self._topics.setdefault(topic_partition.topic, []).append((topic_partition.partition, data))

    @property
    def partition_count(self) -> int:
        """The number of topic-partitions in the request."""
        return sum(map(len, self._topics.values()))

    def build(self, version: int, correlation_id: int, client_id: str) -> list[Bytes]:
        """Return the frame in pieces: record batches as they are, and the bytes around them."""
        flexible = version >= _FIRST_FLEXIBLE_VERSION
        out = bytearray(frame_start(self.API_KEY, version, client_id, flexible=flexible))
        _INT32.pack_into(out, CORRELATION_ID, correlation_id)
        if self._transactional_id is None:
            out += b"\0" if flexible else _INT16.pack(-1)
        else:
            out += text_bytes(self._transactional_id, flexible=flexible)
        out += _ACKS_TIMEOUT.pack(self._acks, self._timeout_ms)
        pieces: list[Bytes] = []
        out += count_bytes(len(self._topics), flexible=flexible)
        for topic, partitions in self._topics.items():
            out += text_bytes(topic, flexible=flexible) + count_bytes(len(partitions), flexible=flexible)
            for index, data in partitions:
                out += _INT32.pack(index)
                out += unsigned_varint(len(data) + 1) if flexible else _INT32.pack(len(data))
                if len(data) < _JOIN_BELOW_BYTES:
                    out += data
                else:
                    pieces += (out, data)
                    out = bytearray()
                if flexible:
                    out.append(0)
            if flexible:
                out.append(0)
        if flexible:
            out.append(0)
        if out:
            pieces.append(out)
        _INT32.pack_into(pieces[0], 0, sum(map(len, pieces)) - 4)
        return pieces
