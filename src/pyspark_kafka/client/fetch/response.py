"""Parses Fetch responses, versions 4 to 18, without copying record bytes. Pure: bytes in, values out.

Written by hand, because the general decoder of kafka-python copies the records.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from pyspark_kafka.client.cluster.metadata import BrokerNode
from pyspark_kafka.client.wire.frames import read_unsigned_varint, skip_tagged_fields
from pyspark_kafka.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST_VERSION = 4
NEWEST_VERSION = 18

_FIRST_WITH_LOG_START = 5
_FIRST_WITH_SESSION = 7
_FIRST_WITH_PREFERRED_REPLICA = 11
_FIRST_FLEXIBLE = 12
_FIRST_WITH_TOPIC_ID = 13
_CURRENT_LEADER_TAG = 1
_NODE_ENDPOINTS_TAG = 0

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_PARTITION_START = struct.Struct(">ihqq")
_LEADER = struct.Struct(">ii")
_ABORTED = struct.Struct(">qq")


class FetchPartitionResponse(NamedTuple):
    """One partition of a Fetch response.

    Attributes:
        topic: the name; None from version 13 on, which has `topic_id` instead.
        last_stable_offset: -1 if the broker does not say.
        log_start_offset: -1 if the broker does not say.
        aborted_transactions: (producer id, first offset) pairs, in the broker's order, which is not by offset.
        preferred_read_replica: the broker to fetch from instead, or -1.
        leader_id: with a leader error, the leader as this broker knows it, or -1.
        records: the record batches, the last one possibly cut off; a view of the response's bytes.
    """

    topic: str | None
    topic_id: UUID | None
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted_transactions: tuple[tuple[int, int], ...]
    preferred_read_replica: int
    leader_id: int
    leader_epoch: int
    records: memoryview


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A whole Fetch response.

    Attributes:
        throttle_time_ms: how long the broker wants no requests (KIP-219).
        error_code: 0, or an error of the whole request.
        nodes: addresses of the leaders that partitions with a leader error name (version 16 on).
    """

    throttle_time_ms: int
    error_code: int
    partitions: tuple[FetchPartitionResponse, ...]
    nodes: tuple[BrokerNode, ...] = ()


def parse_fetch_response(body: memoryview, version: int) -> FetchResponse:
    """Parse the body of a Fetch response.

    Args:
        body: the bytes behind the response header.
        version: the version that the request was sent in.

    Raises:
        ProtocolError: the bytes are cut off or malformed; every length is compared with what is there.
        ValueError: a version that is not handled.

    Source: Kafka `FetchResponse.json`.
    """
    if not OLDEST_VERSION <= version <= NEWEST_VERSION:
        raise ValueError(f"Fetch version {version} is not handled")
    reader = _Reader(body, flexible=version >= _FIRST_FLEXIBLE)
    try:
        return _parse(reader, version)
    except (struct.error, IndexError, ValueError) as error:
        # UnicodeDecodeError is a ValueError.
        raise ProtocolError(
            f"A Fetch response (version {version}, {len(body)} bytes) is malformed near byte "
            f"{reader.position}: {error}.",
            condition="FETCH_RESPONSE_INVALID",
            parameters={"version": version, "bytes": len(body), "position": reader.position},
        ) from error


class _Reader:
    """A position in bytes; every length is compared with what is left before it is used."""

    __slots__ = ("_data", "_flexible", "position")

    def __init__(self, data: memoryview, *, flexible: bool) -> None:
        self._data = data
        self._flexible = flexible
        self.position = 0

    def int16(self) -> int:
        (value,) = _INT16.unpack_from(self._data, self.position)
        self.position += 2
        return int(value)

    def int32(self) -> int:
        (value,) = _INT32.unpack_from(self._data, self.position)
        self.position += 4
        return int(value)

    def int64(self) -> int:
        (value,) = _INT64.unpack_from(self._data, self.position)
        self.position += 8
        return int(value)

    def partition_start(self) -> tuple[int, int, int, int]:
        values: tuple[int, int, int, int] = _PARTITION_START.unpack_from(self._data, self.position)
        self.position += _PARTITION_START.size
        return values

    def view(self, size: int) -> memoryview:
        if not 0 <= size <= len(self._data) - self.position:
            raise ValueError(f"a field of {size} bytes, with {len(self._data) - self.position} left")
        start = self.position
        self.position = start + size
        return self._data[start : self.position]

    def _length(self, struct_: struct.Struct) -> int:
        """Return a length or count; -1 stands for null."""
        if self._flexible:
            value, self.position = read_unsigned_varint(self._data, self.position)
            return value - 1
        (value,) = struct_.unpack_from(self._data, self.position)
        self.position += struct_.size
        if value < -1:
            raise ValueError(f"a length of {value}")
        return int(value)

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise ValueError("a null name")
        return text

    def nullable_string(self) -> str | None:
        length = self._length(_INT16)
        return None if length < 0 else str(self.view(length), "utf-8")

    def uuid(self) -> UUID:
        return UUID(bytes=bytes(self.view(16)))

    def count(self, least_bytes: int) -> int:
        """Return the count of an array whose entries take at least `least_bytes` each; null counts as 0."""
        count = max(0, self._length(_INT32))
        if count * least_bytes > len(self._data) - self.position:
            raise ValueError(f"an array of {count} entries, with {len(self._data) - self.position} bytes left")
        return count

    def records(self) -> memoryview:
        return self.view(max(0, self._length(_INT32)))

    def skip_tags(self) -> None:
        if self._flexible:
            self.position = skip_tagged_fields(self._data, self.position)

    def tags(self) -> Iterator[tuple[int, memoryview]]:
        """Yield tagged fields one by one: a list of empty ones would take a hundred times the bytes received."""
        # Each turn takes two bytes or fails, so a hostile count ends with the data.
        for _ in range(self.unsigned_varint() if self._flexible else 0):
            tag = self.unsigned_varint()
            yield tag, self.view(self.unsigned_varint())

    def unsigned_varint(self) -> int:
        value, self.position = read_unsigned_varint(self._data, self.position)
        return value


def _parse(reader: _Reader, version: int) -> FetchResponse:
    throttle_time_ms = reader.int32()
    error_code = 0
    if version >= _FIRST_WITH_SESSION:
        error_code = reader.int16()
        reader.int32()  # session id: fetches are sessionless
    partitions: list[FetchPartitionResponse] = []
    for _ in range(reader.count(2)):
        topic, topic_id = None, None
        if version >= _FIRST_WITH_TOPIC_ID:
            topic_id = reader.uuid()
        else:
            topic = reader.string()
        # 26 bytes: partition, error, high watermark, last stable offset, the records' length at its shortest.
        partitions.extend(_parse_partition(reader, version, topic, topic_id) for _ in range(reader.count(26)))
        reader.skip_tags()
    nodes: tuple[BrokerNode, ...] = ()
    for tag, content in reader.tags():
        if tag == _NODE_ENDPOINTS_TAG:
            nodes = _parse_nodes(_Reader(content, flexible=True))
    return FetchResponse(throttle_time_ms, error_code, tuple(partitions), nodes)


def _parse_nodes(reader: _Reader) -> tuple[BrokerNode, ...]:
    nodes = []
    # 11 bytes: id, host, port, rack and tags at their shortest.
    for _ in range(reader.count(11)):
        broker_id, host, port, rack = reader.int32(), reader.string(), reader.int32(), reader.nullable_string()
        reader.skip_tags()
        nodes.append(BrokerNode(broker_id, host, port, rack))
    return tuple(nodes)


def _parse_partition(reader: _Reader, version: int, topic: str | None, topic_id: UUID | None) -> FetchPartitionResponse:
    partition, error_code, high_watermark, last_stable_offset = reader.partition_start()
    log_start_offset = reader.int64() if version >= _FIRST_WITH_LOG_START else -1
    aborted = []
    for _ in range(reader.count(_ABORTED.size)):
        aborted.append((reader.int64(), reader.int64()))
        reader.skip_tags()
    preferred_read_replica = reader.int32() if version >= _FIRST_WITH_PREFERRED_REPLICA else -1
    records = reader.records()
    leader_id, leader_epoch = -1, -1
    for tag, content in reader.tags():
        if tag == _CURRENT_LEADER_TAG:
            leader_id, leader_epoch = _LEADER.unpack_from(content)
    return FetchPartitionResponse(
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        aborted_transactions=tuple(aborted),
        preferred_read_replica=preferred_read_replica,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        records=records,
    )
