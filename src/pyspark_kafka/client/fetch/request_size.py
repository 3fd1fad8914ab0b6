"""How many bytes to request, so that a response ends at most about a batch behind the end of a range. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.options import FetchOptions

# One batch of a producer with default settings.
_SMALLEST_REQUEST = 16 << 10
# The first response of a topic is small, whatever the range: it shows what records take.
_FIRST_REQUEST = 256 << 10
# The assumed size of a record before any was seen.
_ASSUMED_RECORD_BYTES = 512
# Batches differ a little in size, and one that is cut off at its end has to be fetched again.
_MARGIN = 1.05


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
