"""Fetch requests: how many bytes to request, so that a response ends at most about a batch behind the end of a range.

Requests have no session. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from pyspark_kafka.client.wire.messages import FetchRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import FetchOptions

# The newest version that names topics; later ones want their ids.
LAST_VERSION_WITH_NAMES = 12

_NO_SESSION_EPOCH = -1
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
        leader_epoch: -1 if unknown; else the broker refuses if it knows another (KIP-320).
        max_bytes: soft limit of this partition's part of the response; its first batch may exceed it.
    """

    topic_partition: TopicPartition
    offset: int
    topic_id: UUID | None
    leader_epoch: int
    max_bytes: int


def build_fetch_request(
    positions: Iterable[FetchPosition], options: FetchOptions, *, max_bytes: int, rack: str | None
) -> tuple[Any, int | None]:
    """Build one request for any number of partitions of one broker.

    Sessionless (id 0, epoch -1): brokers hold 1,000 session slots, and tasks are short.

    Returns:
        The request, and the newest version it may be sent in (None: any).

    Source: KIP-227, KIP-392, KIP-516.
    """
    topic_class = FetchRequest.FetchTopic
    by_topic: dict[str, list[Any]] = {}
    ids: dict[str, UUID | None] = {}
    for position in positions:
        topic = position.topic_partition.topic
        ids[topic] = position.topic_id
        by_topic.setdefault(topic, []).append(
            topic_class.FetchPartition(
                partition=position.topic_partition.partition,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.offset,
                last_fetched_epoch=-1,
                log_start_offset=-1,
                partition_max_bytes=position.max_bytes,
            )
        )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=options.max_wait_ms,
        min_bytes=options.min_bytes,
        max_bytes=max_bytes,
        isolation_level=options.isolation_level.wire_value,
        session_id=0,
        session_epoch=_NO_SESSION_EPOCH,
        topics=[
            topic_class(topic=name, topic_id=ids[name] or UUID(int=0), partitions=entries)
            for name, entries in by_topic.items()
        ],
        forgotten_topics_data=[],
        rack_id=rack or "",
    )
    return request, (LAST_VERSION_WITH_NAMES if None in ids.values() else None)


@dataclass(frozen=True, slots=True)
class RecordSize:
    """What records took on the wire: bytes for each offset, and bytes of a whole batch."""

    bytes_per_offset: float
    batch_bytes: float


class RecordSizes:
    """What records of each topic took when they were last read. The next range then begins without a guess.

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
        """Learn from a response: `size` bytes in `batches` whole batches stood for `offsets` offsets."""
        if offsets > 0 and batches > 0:
            self._seen = RecordSize(size / offsets, size / batches)
            self._known.put(self._topic, self._seen)

    def starve(self) -> None:
        """Learn that records are there and none came: the first batch is larger than the request allows."""
        self._floor = min(self._largest, self._floor * 2)


_SIZES_BY_CLIENT: WeakKeyDictionary[KafkaClient, RecordSizes] = WeakKeyDictionary()


def record_sizes_of(client: KafkaClient) -> RecordSizes:
    """Return the record sizes that reads through this client have seen; they are forgotten with the client."""
    return _SIZES_BY_CLIENT.setdefault(client, RecordSizes())
