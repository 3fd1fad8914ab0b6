"""Parses Fetch responses, versions 4 to 18, without copying record bytes. Pure: bytes in, values out.

Written by hand, because the general decoder of kafka-python copies the records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from pyspark_kafka._client.client.cluster.metadata import BrokerNode
from pyspark_kafka._client.client.wire.frames import read_length, read_text, read_unsigned_varint, skip_tagged_fields
from pyspark_kafka.errors import ProtocolError

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
        leader_id: with a leader error, the leader that this broker returns, or -1.
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


class FetchResponse(NamedTuple):
    """A whole Fetch response.

    Attributes:
        throttle_time_ms: how long the broker wants no requests (KIP-219).
        error_code: 0, or an error of the whole request.
        nodes: addresses of the leaders that partitions with a leader error name (version 16 on).
    """

    throttle_time_ms: int
    error_code: int
    partitions: list[FetchPartitionResponse]
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
    flexible = version >= _FIRST_FLEXIBLE
    at = 0
    try:
        (throttle_time_ms,) = _INT32.unpack_from(body, at)
        at, error_code = 4, 0
        if version >= _FIRST_WITH_SESSION:
            (error_code,) = _INT16.unpack_from(body, at)
            at = 10  # behind the session id: fetches are sessionless
        partitions: list[FetchPartitionResponse] = []
        topics, at = _count(body, at, 2, flexible=flexible)
        for _ in range(topics):
            topic: str | None = None
            topic_id: UUID | None = None
            if version >= _FIRST_WITH_TOPIC_ID:
                topic_id = _topic_id(bytes(body[at : at + 16]))  # a ValueError if fewer bytes are left
                at += 16
            else:
                topic, at = read_text(body, at, flexible=flexible)
            # 26 bytes: partition, error, high watermark, last stable offset, the records' length at its shortest.
            count, at = _count(body, at, 26, flexible=flexible)
            for _ in range(count):
                found, at = _parse_partition(body, at, version, topic, topic_id)
                partitions.append(found)
            if flexible:
                at = skip_tagged_fields(body, at) if body[at] else at + 1
        nodes: tuple[BrokerNode, ...] = ()
        for tag, content in _tags(body, at) if flexible and body[at] else ():
            if tag == _NODE_ENDPOINTS_TAG:
                nodes = _parse_nodes(content)
    except (struct.error, IndexError, ValueError) as error:
        # UnicodeDecodeError is a ValueError.
        raise ProtocolError(
            f"A Fetch response (version {version}, {len(body)} bytes) is malformed behind byte {at}: {error}.",
            condition="FETCH_RESPONSE_INVALID",
            parameters={"version": version, "bytes": len(body), "position": at},
        ) from error
    return FetchResponse(throttle_time_ms, error_code, partitions, nodes)


@lru_cache(maxsize=1024)
def _topic_id(data: bytes) -> UUID:
    return UUID(bytes=data)


def _parse_partition(
    body: memoryview, at: int, version: int, topic: str | None, topic_id: UUID | None
) -> tuple[FetchPartitionResponse, int]:
    """Return one partition and the position behind it. What is usual takes no further call: there may be thousands."""
    flexible = version >= _FIRST_FLEXIBLE
    partition, error_code, high_watermark, last_stable_offset = _PARTITION_START.unpack_from(body, at)
    at += _PARTITION_START.size
    log_start_offset = replica = leader_id = leader_epoch = -1
    if version >= _FIRST_WITH_LOG_START:
        (log_start_offset,) = _INT64.unpack_from(body, at)
        at += 8
    aborted: tuple[tuple[int, int], ...] = ()
    if flexible and body[at] <= 1:
        at += 1
    else:
        aborted, at = _parse_aborted(body, at, flexible=flexible)
    if version >= _FIRST_WITH_PREFERRED_REPLICA:
        (replica,) = _INT32.unpack_from(body, at)
        at += 4
    if flexible:
        size, at = read_unsigned_varint(body, at)
        size -= 1
    else:
        (size,) = _INT32.unpack_from(body, at)
        at += 4
    end = at + max(size, 0)
    if size < -1 or end > len(body):
        raise ValueError(f"records of {size} bytes, with {len(body) - at} left")
    records, at = body[at:end], end
    if flexible:
        if body[at]:
            for tag, content in _tags(body, at):
                if tag == _CURRENT_LEADER_TAG:
                    leader_id, leader_epoch = _LEADER.unpack_from(content)
            at = skip_tagged_fields(body, at)
        else:
            at += 1
    found = FetchPartitionResponse(
        topic, topic_id, partition, error_code, high_watermark, last_stable_offset, log_start_offset, aborted,
        replica, leader_id, leader_epoch, records,
    )  # fmt: skip
    return found, at


def _parse_aborted(body: memoryview, at: int, *, flexible: bool) -> tuple[tuple[tuple[int, int], ...], int]:
    aborted = []
    count, at = _count(body, at, _ABORTED.size, flexible=flexible)
    for _ in range(count):
        aborted.append(_ABORTED.unpack_from(body, at))
        at += _ABORTED.size
        if flexible:
            at = skip_tagged_fields(body, at)
    return tuple(aborted), at


def _parse_nodes(body: memoryview) -> tuple[BrokerNode, ...]:
    nodes = []
    # 11 bytes: id, host, port, rack and tags at their shortest.
    count, at = _count(body, 0, 11, flexible=True)
    for _ in range(count):
        (broker_id,) = _INT32.unpack_from(body, at)
        host, at = read_text(body, at + 4, flexible=True)
        (port,) = _INT32.unpack_from(body, at)
        rack, at = read_text(body, at + 4, flexible=True)
        at = skip_tagged_fields(body, at)
        if host is None or not host.isprintable():
            raise ValueError(f"a broker with the address {host!r}")
        nodes.append(BrokerNode(broker_id, host, port, rack))
    return tuple(nodes)


def _count(body: memoryview, at: int, least_bytes: int, *, flexible: bool) -> tuple[int, int]:
    """Return the count of an array whose entries take at least `least_bytes` each; null counts as 0."""
    if flexible and body[at] < 0x80:
        count, at = body[at] - 1, at + 1
    else:
        count, at = read_length(body, at, flexible=flexible)
    if count * least_bytes > len(body) - at:
        raise ValueError(f"an array of {count} entries, with {len(body) - at} bytes left")
    return max(0, count), at


def _tags(body: memoryview, at: int) -> Iterator[tuple[int, memoryview]]:
    """Yield tagged fields one by one: a list of empty ones would take a hundred times the bytes received."""
    # Each turn takes two bytes or fails, so a hostile count ends with the data.
    count, at = read_unsigned_varint(body, at)
    for _ in range(count):
        tag, at = read_unsigned_varint(body, at)
        size, at = read_unsigned_varint(body, at)
        if size > len(body) - at:
            raise ValueError(f"a field of {size} bytes, with {len(body) - at} left")
        yield tag, body[at : at + size]
        at += size
