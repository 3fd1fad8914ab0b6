"""Fetch requests: how many bytes to request, so that a response ends at most about a batch behind the end of a range.

Requests have no session. Pure.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from pyspark_kafka._client.client.fetch.response import parse_fetch_response
from pyspark_kafka._client.client.wire.framed_request import (
    CORRELATION_ID,
    FramedRequest,
    count_bytes,
    frame_start,
    text_bytes,
)
from pyspark_kafka._client.client.wire.messages import FetchRequest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.options import FetchOptions

# The newest version that names topics; later ones want their ids.
LAST_VERSION_WITH_NAMES = 12

# The first versions with a field, and without one.
_FIRST_WITH_LOG_START, _FIRST_WITH_SESSION, _FIRST_WITH_LEADER_EPOCH, _FIRST_WITH_RACK = 5, 7, 9, 11
_FIRST_FLEXIBLE_VERSION, _FIRST_WITHOUT_REPLICA_ID = 12, 15
_INT32 = struct.Struct(">i")
_LIMITS = struct.Struct(">iiib")
_NO_REPLICA = _INT32.pack(-1)
_NO_SESSION = struct.pack(">ii", 0, -1)
_NO_TOPIC_ID = bytes(16)
_NO_TOPICS = bytes(4)
_V4, _V5, _V9, _V12 = (struct.Struct(fields) for fields in (">iqi", ">iqqi", ">iiqqi", ">iiqiqib"))
# One batch of a producer with default settings.
_SMALLEST_REQUEST = 16 << 10
# The first response of a topic is small, whatever the range: it shows what records take.
_FIRST_REQUEST = 256 << 10
# The assumed size of a record before any was seen.
_ASSUMED_RECORD_BYTES = 512
# Batches differ a little in size, and one that is cut off at its end has to be fetched again.
_MARGIN = 1.05


class FetchPosition(NamedTuple):
    """A partition and the offset to fetch from.

    Attributes:
        topic_id: None if unknown; then the request must not be newer than `LAST_VERSION_WITH_NAMES`.
        leader_epoch: -1 if unknown; else the broker refuses if its own is another (KIP-320).
        max_bytes: soft limit of this partition's part of the response; its first batch may exceed it.
    """

    topic_partition: TopicPartition
    offset: int
    topic_id: UUID | None
    leader_epoch: int
    max_bytes: int


def _pack_partition(at: FetchPosition, version: int) -> bytes:
    """Encode one partition for an old broker: its leader's epoch from version 9 on, what only followers know from 5."""
    partition = at.topic_partition.partition
    if version >= _FIRST_WITH_LEADER_EPOCH:
        return _V9.pack(partition, at.leader_epoch, at.offset, -1, at.max_bytes)
    if version >= _FIRST_WITH_LOG_START:
        return _V5.pack(partition, at.offset, -1, at.max_bytes)
    return _V4.pack(partition, at.offset, at.max_bytes)


class FetchFrame(FramedRequest):
    """A Fetch request for any number of partitions of one broker, sent with `Connection.send_request`.

    Sessionless (id 0, epoch -1): brokers hold 1,000 session slots, and tasks are short. The bytes are put together
    here: kafka-python's encoder takes 150 calls for two partitions, and a reader sends one request after the other.

    Args:
        positions: where to read; partitions of a topic stand together in the request.
        options: waits and isolation.
        max_bytes: of the whole response.
        rack: the client's, to be named a replica that is near; None for none.

    Attributes:
        max_version: the newest version that it may be sent in; None: any.

    Source: KIP-227, KIP-392, KIP-516; Kafka `FetchRequest.json`.
    """

    API_KEY = FetchRequest.API_KEY
    name = FetchRequest.name
    valid_versions = FetchRequest.valid_versions
    first_flexible_version = _FIRST_FLEXIBLE_VERSION
    decode_response = staticmethod(parse_fetch_response)

    def __init__(
        self, positions: Iterable[FetchPosition], options: FetchOptions, *, max_bytes: int, rack: str | None
    ) -> None:
        self._options, self._max_bytes, self._rack = options, max_bytes, rack or ""
        self._topics: dict[str, list[FetchPosition]] = {}
        self.max_version: int | None = None
        for position in positions:
            self._topics.setdefault(position.topic_partition.topic, []).append(position)
            if position.topic_id is None:
                self.max_version = LAST_VERSION_WITH_NAMES

    @property
    def partition_count(self) -> int:
        """The number of topic-partitions in the request."""
        return sum(map(len, self._topics.values()))

    def build(self, version: int, correlation_id: int, client_id: str) -> list[bytes | bytearray]:
        """Return the frame, in one piece."""
        flexible = version >= _FIRST_FLEXIBLE_VERSION
        options = self._options
        out = bytearray(frame_start(self.API_KEY, version, client_id, flexible=flexible))
        _INT32.pack_into(out, CORRELATION_ID, correlation_id)
        if version < _FIRST_WITHOUT_REPLICA_ID:
            out += _NO_REPLICA
        out += _LIMITS.pack(options.max_wait_ms, options.min_bytes, self._max_bytes, options.isolation_level.wire_value)
        if version >= _FIRST_WITH_SESSION:
            out += _NO_SESSION
        out += count_bytes(len(self._topics), flexible=flexible)
        for topic, positions in self._topics.items():
            if version > LAST_VERSION_WITH_NAMES:
                topic_id = positions[0].topic_id
                out += _NO_TOPIC_ID if topic_id is None else topic_id.int.to_bytes(16, "big")
            else:
                out += text_bytes(topic, flexible=flexible)
            out += count_bytes(len(positions), flexible=flexible)
            for at in positions:
                if flexible:
                    # -1: what only followers know.
                    out += _V12.pack(at.topic_partition.partition, at.leader_epoch, at.offset, -1, -1, at.max_bytes, 0)
                else:
                    out += _pack_partition(at, version)
            if flexible:
                out.append(0)
        if version >= _FIRST_WITH_SESSION:
            out += b"\1" if flexible else _NO_TOPICS  # none is forgotten
        if version >= _FIRST_WITH_RACK and (self._rack or not flexible):
            out += text_bytes(self._rack, flexible=flexible)
        elif flexible:
            out.append(1)
        if flexible:
            out.append(0)
        _INT32.pack_into(out, 0, len(out) - 4)
        return [out]


class RecordSize(NamedTuple):
    """The size of records on the wire: bytes for each offset, and bytes of a whole batch."""

    bytes_per_offset: float
    batch_bytes: float


class RecordSizes:
    """The sizes of each topic's records in its last read. The next range then begins without a guess.

    Bounded: the topics read longest ago are forgotten.
    """

    __slots__ = ("_kept", "_sizes")

    def __init__(self, kept: int = 1_000) -> None:
        self._kept = kept
        self._sizes: dict[str, RecordSize] = {}

    def get(self, topic: str) -> RecordSize | None:
        """Return what is known about a topic."""
        return self._sizes.get(topic)

    def put(self, topic: str, size: RecordSize) -> None:
        """Remember what was seen."""
        self._sizes.pop(topic, None)
        if len(self._sizes) >= self._kept:
            del self._sizes[next(iter(self._sizes))]
        self._sizes[topic] = size


class RequestSize:
    """Chooses how many bytes of one range to request.

    Too few cost a round trip, never progress: the first batch of a response comes whole. So the first request of an
    unknown topic is small, and the next ones follow what records take.

    Args:
        options: the upper bounds; half of `max_buffered_bytes` is for the response at hand, half for the one in flight.
        topic: where the records are.
        known: what records of topics took, shared with other ranges.
    """

    __slots__ = ("_floor", "_known", "_largest", "_seen", "_topic")

    def __init__(self, options: FetchOptions, topic: str = "", known: RecordSizes | None = None) -> None:
        self._largest = max(
            1, min(options.max_bytes_per_fetch, options.max_partition_fetch_bytes, options.max_buffered_bytes // 2)
        )
        self._floor = min(self._largest, _SMALLEST_REQUEST)
        self._topic = topic
        self._known = known if known is not None else RecordSizes()
        self._seen: RecordSize | None = None

    def next_bytes(self, offsets_left: int, share: int | None = None) -> int:
        """Return the number of bytes to request.

        Args:
            offsets_left: from the position to the end of the range.
            share: the maximum for this range in a response for several; None for what the options allow.
        """
        if self._seen is not None:
            # A batch begins at the position. Only whole batches count, and the first comes whole whatever is requested.
            batches = math.ceil(offsets_left * self._seen.bytes_per_offset / self._seen.batch_bytes)
            expected = batches * self._seen.batch_bytes * _MARGIN if batches > 1 else 1.0
        elif (size := self._known.get(self._topic)) is not None:
            # The range may begin and end in the middle of a batch: half of one each.
            expected = offsets_left * size.bytes_per_offset * _MARGIN + size.batch_bytes
        else:
            expected = min(float(_FIRST_REQUEST), offsets_left * _ASSUMED_RECORD_BYTES)
        most = self._largest if share is None else min(self._largest, share)
        return max(self._floor, int(min(float(most), expected)))

    def observe(self, size: int, offsets: int, batches: int) -> None:
        """Update the sizes from a response: `size` bytes in `batches` whole batches stood for `offsets` offsets."""
        if offsets > 0 and batches > 0:
            self._seen = RecordSize(size / offsets, size / batches)
            self._known.put(self._topic, self._seen)

    def starve(self) -> None:
        """Record a response that left out existing records: the first batch is larger than the request allows."""
        self._floor = min(self._largest, self._floor * 2)


_SIZES_BY_CLIENT: WeakKeyDictionary[KafkaClient, RecordSizes] = WeakKeyDictionary()


def record_sizes_of(client: KafkaClient) -> RecordSizes:
    """Return the record sizes that reads through this client have seen; they are forgotten with the client."""
    return _SIZES_BY_CLIENT.setdefault(client, RecordSizes())
