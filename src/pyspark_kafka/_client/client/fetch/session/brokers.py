"""The requests in flight to each broker, and the size limits of the next ones. Pure: times are arguments."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._base.counters import COUNTERS, THROTTLE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from pyspark_kafka._client.client.fetch.cursor import Cursor
    from pyspark_kafka._client.client.fetch.response import FetchPartitionResponse, FetchResponse
    from pyspark_kafka._client.options import ConnectionOptions, FetchOptions

# The minimum response size over a slow link, and under a quota.
_SMALLEST_RESPONSE = 64 << 10
_SMALLEST_UNDER_QUOTA = 256 << 10
# After this time without a throttled response, requests grow again: some windows of a quota.
_QUOTA_FORGOTTEN_S = 30.0


@dataclass(slots=True, eq=False)
class MatchedEntries:
    """The entries of a response, compared with its request.

    Attributes:
        entries: of each range that has one.
        doubled: ranges that have several, which differ: the right one is unknown, and none of them is taken.
        foreign: entries that were not requested.
    """

    entries: dict[Cursor, FetchPartitionResponse] = field(default_factory=dict)
    doubled: list[Cursor] = field(default_factory=list)
    foreign: list[FetchPartitionResponse] = field(default_factory=list)


def describe_entry(entry: FetchPartitionResponse) -> str:
    """Return what an entry is about, in the words of its response."""
    return (
        f"partition {entry.partition} of topic {entry.topic!r}"
        if entry.topic_id is None
        else (f"partition {entry.partition} of topic {entry.topic_id}")
    )


@dataclass(slots=True, eq=False)
class RequestInFlight:
    """A request in flight.

    Attributes:
        cursors: the ranges of the request, in its order.
        sent_at: when it was sent.
        heard_at: when bytes of its response last arrived steadily; when it was sent, before that.
        waited_since: since when the caller waits for the response; None while it does not.
    """

    cursors: tuple[Cursor, ...]
    sent_at: float
    heard_at: float
    waited_since: float | None = None
    _by_name: dict[tuple[str | UUID | None, int], Cursor] = field(default_factory=dict)

    def match(self, partitions: Sequence[FetchPartitionResponse]) -> MatchedEntries:
        """Compare a response with the request; docs/internals/fetch-rules.md, R14 and R15."""
        matched = MatchedEntries()
        entries = matched.entries
        for place, entry in enumerate(partitions):
            cursor = self.find(entry, place)
            if cursor is None:
                matched.foreign.append(entry)
            elif cursor not in entries:
                entries[cursor] = entry
            elif entries[cursor] != entry and cursor not in matched.doubled:
                matched.doubled.append(cursor)
        for cursor in matched.doubled:
            del entries[cursor]
        return matched

    def find(self, entry: FetchPartitionResponse, place: int) -> Cursor | None:
        """Return the range that an entry of the response is about; None if it was not requested.

        Args:
            entry: names it by topic id from version 13 of Fetch on, else by topic.
            place: of the entry in the response; brokers keep the order of the request, topic by topic.
        """
        if place < len(self.cursors):
            cursor = self.cursors[place]
            topic, partition = cursor.topic_partition
            if entry.partition == partition:
                if entry.topic_id is None and entry.topic == topic:
                    return cursor
                known = cursor.topic.known
                # Their numbers: to compare the ids takes a call of Python.
                if entry.topic_id is not None and known is not None and entry.topic_id.int == known.int:
                    return cursor
        if not self._by_name:
            for cursor in self.cursors:
                topic, partition = cursor.topic_partition
                self._by_name[topic, partition] = self._by_name[cursor.topic.known, partition] = cursor
        return self._by_name.get((entry.topic if entry.topic_id is None else entry.topic_id, entry.partition))


@dataclass(slots=True, eq=False)
class BrokerSlot:
    """The one request that may be in flight to a broker.

    Attributes:
        in_flight: the request; None if there is none.
        connecting_since: since when a connection is being opened; None if it is not.
        throttled_until: the broker wants no request before this time (KIP-219).
        max_bytes: the maximum size of the next response: less over a slow link and under a quota.
        cut_off: how many responses in a row were cut off in the middle.
    """

    max_bytes: int
    in_flight: RequestInFlight | None = None
    connecting_since: float | None = None
    throttled_until: float = -math.inf
    cut_off: int = 0

    @property
    def free_at(self) -> float:
        """The earliest time for a request; infinite before an event."""
        busy = self.in_flight is not None or self.connecting_since is not None
        return math.inf if busy else self.throttled_until

    def clear(self) -> None:
        """Expect nothing more of the broker."""
        self.in_flight = self.connecting_since = None

    def shrink(self) -> None:
        """Reduce the next request: a response was cut off, or took long."""
        self.max_bytes = min(self.max_bytes, max(_SMALLEST_RESPONSE, self.max_bytes // 2))

    def grow(self, largest: int, now: float) -> None:
        """Enlarge the next request after a quick response; not under a quota."""
        if now - self.throttled_until >= _QUOTA_FORGOTTEN_S:
            self.max_bytes = min(largest, self.max_bytes * 2)

    def throttle(self, until: float, *, empty: bool) -> None:
        """Take a time before which the broker wants no request; request less after a response without records.

        A broker responds so if the requested bytes do not fit into the quota now: the more are requested, the longer
        the time.
        """
        self.throttled_until = until
        if empty:
            self.max_bytes = min(self.max_bytes, max(_SMALLEST_UNDER_QUOTA, self.max_bytes // 4))

    def is_silent(self, now: float, connecting_s: float, waited_s: float) -> bool:
        """Return whether the broker has been connected to, or waited for, for too long."""
        if self.connecting_since is not None and now - self.connecting_since >= connecting_s:
            return True
        request = self.in_flight
        if request is None or request.waited_since is None:
            return False
        return now - max(request.waited_since, request.heard_at) >= waited_s


class Throttle:
    """For how long brokers throttle the client, because of quotas.

    Attributes:
        address: the broker that did it last; empty if none did.
        until: when that ends.
        total_s: the seconds of all such times; a second in which several brokers do it counts once.
    """

    __slots__ = ("address", "total_s", "until")

    def __init__(self) -> None:
        self.address = ""
        self.until = -math.inf
        self.total_s = 0.0

    def note(self, address: str, now: float, until: float) -> None:
        """Take the time before which a broker wants no request."""
        self.total_s += max(0.0, until - max(now, self.until))
        if until >= self.until:
            self.address, self.until = address, until

    def left_s(self, now: float) -> float:
        """Return for how many seconds a broker will throttle the client; 0 if none does."""
        return max(0.0, self.until - now)

    def describe(self, seconds: float, now: float) -> str:
        """Return who throttles the client, as a clause; empty if there was no such time.

        Args:
            seconds: how much of the time of a wait it is, the rest of the throttle time included.
            now: the time.
        """
        if not seconds:
            return ""
        left_s = self.left_s(now)
        more = f", and wants no request for {left_s:.0f} s more" if left_s else ""
        return f"{self.address} throttled this client by a quota for {seconds - left_s:.0f} s of them{more}"


class Brokers:
    """The brokers that ranges are read from.

    Attributes:
        slots: by broker id.
        budget: the maximum of bytes for all partitions of a request together.
        max_bytes: the most bytes of a response.
        throttle: for how long brokers throttle the client.
        left: brokers of which nothing more is expected, until the caller has closed their connections.
    """

    def __init__(self, fetch: FetchOptions, options: ConnectionOptions) -> None:
        self.slots: dict[int, BrokerSlot] = {}
        self.budget = max(1, fetch.max_buffered_bytes // 2)
        self.max_bytes = max(1, min(fetch.max_bytes_per_fetch, fetch.max_buffered_bytes // 2))
        self.throttle = Throttle()
        self.left: deque[int] = deque()
        # A response that took longer is large for its link.
        self._slow_s = (options.request_timeout_ms + fetch.max_wait_ms) / 3_000

    def slot(self, broker_id: int) -> BrokerSlot:
        """Return the slot of a broker."""
        broker = self.slots.get(broker_id)
        if broker is None:
            broker = self.slots[broker_id] = BrokerSlot(self.max_bytes)
        return broker

    def responded(self, broker_id: int, response: FetchResponse, now: float) -> RequestInFlight:
        """Return the request of a response; how long it took, and quotas, say how much the next one may bring."""
        broker = self.slots[broker_id]
        request, broker.in_flight = broker.in_flight, None
        if request is None:
            raise RuntimeError(f"no request is in flight to broker {broker_id}")
        broker.cut_off = 0
        took_s = 0.0 if request.waited_since is None else now - request.waited_since
        if took_s > self._slow_s:
            broker.shrink()
        elif broker.max_bytes < self.max_bytes and took_s < self._slow_s / 2:
            broker.grow(self.max_bytes, now)
        if response.throttle_time_ms > 0:
            until = now + response.throttle_time_ms / 1000
            broker.throttle(until, empty=not any(entry.records for entry in response.partitions))
            self.throttle.note(request.cursors[0].last_address, now, until)
            COUNTERS.add_count(THROTTLE_SECONDS, response.throttle_time_ms / 1000)
        return request

    def oldest_request_s(self, now: float) -> float:
        """Return for how long nothing of the response to some request has arrived; 0 if none is in flight."""
        times = [broker.in_flight.heard_at for broker in self.slots.values() if broker.in_flight is not None]
        return now - min(times) if times else 0.0

    def wait_again(self, broker_ids: Iterable[int]) -> None:
        """Record that the caller did not wait for these brokers: that time does not count as silence."""
        for broker_id in broker_ids:
            in_flight = self.slot(broker_id).in_flight
            if in_flight is not None:
                in_flight.waited_since = None
