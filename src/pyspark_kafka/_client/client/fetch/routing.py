"""Which broker is asked for which ranges now, and what is in flight to each broker. Pure: times are arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.fetch.cursor import CursorState
from pyspark_kafka._client.client.fetch.steps import Send

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.fetch.cursor import Cursor
    from pyspark_kafka._client.client.fetch.request import FetchPosition
    from pyspark_kafka._client.client.fetch.response import FetchPartitionResponse
    from pyspark_kafka._client.client.fetch.steps import ClusterMemory

# The least of a response that is asked for over a slow link, and under a quota.
_SMALLEST_RESPONSE = 64 << 10
_SMALLEST_UNDER_QUOTA = 256 << 10
# After this time without a throttled response, more is asked for again: some windows of a quota.
_QUOTA_FORGOTTEN_S = 30.0
# The least that each of many partitions may take of a response; with less, most of the work would be per batch.
_SMALLEST_SHARE = 64 << 10


@dataclass(slots=True, eq=False)
class MatchedEntries:
    """The entries of a response, compared with its request.

    Attributes:
        entries: of each range that has one.
        doubled: ranges that have several, which differ: nobody knows which is theirs, and none of them is taken.
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
        cursors: what it asks for, in its order.
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
        connecting_since: since when a connection is being made; None if it is not.
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
        """When a request can be sent; infinite before an event."""
        busy = self.in_flight is not None or self.connecting_since is not None
        return math.inf if busy else self.throttled_until

    def clear(self) -> None:
        """Expect nothing more of the broker."""
        self.in_flight = self.connecting_since = None

    def shrink(self) -> None:
        """Ask for less: a response was cut off, or took long."""
        self.max_bytes = min(self.max_bytes, max(_SMALLEST_RESPONSE, self.max_bytes // 2))

    def grow(self, largest: int, now: float) -> None:
        """Ask for more again, after a response that came soon; not under a quota."""
        if now - self.throttled_until >= _QUOTA_FORGOTTEN_S:
            self.max_bytes = min(largest, self.max_bytes * 2)

    def throttle(self, until: float, *, empty: bool) -> None:
        """Take a time before which the broker wants no request; ask for less after a response without records.

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


@dataclass(slots=True, eq=False)
class Survey:
    """What ranges need now, each in one place at most.

    Attributes:
        routed: ranges that can be fetched, by broker, each with the epoch of its leader.
        ended: ranges whose log seems to end at the position.
        leaderless: ranges without a known leader.
        other_topic: ranges whose topic has another id now, with the leader and the id.
        other_leader: ranges whose new leader is asked about the epoch of the position, with the leader and the epoch.
        until: the next time at which a pause or a throttle time ends; infinite if none does.
    """

    routed: dict[int, list[tuple[Cursor, int]]] = field(default_factory=dict)
    ended: list[Cursor] = field(default_factory=list)
    leaderless: list[Cursor] = field(default_factory=list)
    other_topic: list[tuple[Cursor, PartitionMetadata, UUID | None]] = field(default_factory=list)
    other_leader: list[tuple[Cursor, PartitionMetadata, int]] = field(default_factory=list)
    until: float = math.inf

    @property
    def needs_lookup(self) -> bool:
        """Whether some range needs a look-up before it is asked for."""
        return bool(self.ended or self.leaderless or self.other_topic or self.other_leader)


def survey(active: Sequence[Cursor], memory: ClusterMemory, slots: dict[int, BrokerSlot], now: float) -> Survey:
    """Find out what each range needs; one walk over the ranges that are not done."""
    found = Survey()
    busy = {broker_id: free_at for broker_id, slot in slots.items() if (free_at := slot.free_at) > now}
    for cursor in active:
        if not cursor.wake(now):
            found.until = min(found.until, cursor.wake_at)
            continue
        if cursor.log_check_at <= now:
            found.ended.append(cursor)
            continue
        leader = memory.cached_leader(cursor.topic_partition)
        if leader is None:
            found.leaderless.append(cursor)
            continue
        topic_id = memory.cached_topic_id(cursor.topic_partition.topic)
        if not cursor.topic.accepts(topic_id):
            found.other_topic.append((cursor, leader, topic_id))
            continue
        epoch = cursor.unconfirmed_epoch(leader.leader_epoch)
        if epoch is not None:
            found.other_leader.append((cursor, leader, epoch))
            continue
        replica = cursor.replica
        if replica.broker_id >= 0:
            replica.expire(now, is_member=memory.cached_broker(replica.broker_id) is not None)
        broker_id = cursor.choose_broker(leader.leader_id)
        if broker_id in busy:
            found.until = min(found.until, busy[broker_id])
        else:
            found.routed.setdefault(broker_id, []).append((cursor, leader.leader_epoch))
    return found


def build_send(
    broker_id: int, ready: list[tuple[Cursor, int]], budget: int, max_bytes: int
) -> tuple[Send, tuple[Cursor, ...]]:
    """Build the request for ranges of one broker, as far as they fit into it.

    Args:
        broker_id: the broker.
        ready: the ranges in their order, each with the epoch of its leader.
        budget: the most bytes that all partitions together may ask for.
        max_bytes: the most bytes of the response.

    Returns:
        The request, and the ranges that are in it.
    """
    share = max_bytes if len(ready) == 1 else max(_SMALLEST_SHARE, budget // len(ready))
    # A request has one rack: ranges that must be read from their leaders cannot be mixed with others.
    avoids_replicas = ready[0][0].replica.avoided
    cursors: list[Cursor] = []
    positions: list[FetchPosition] = []
    total = 0
    for cursor, leader_epoch in ready:
        if cursor.replica.avoided is not avoids_replicas:
            continue
        position = cursor.next_request(leader_epoch, share)
        # By the sum over the partitions: not every server keeps to the limit of a whole response.
        if cursors and total + position.max_bytes > budget:
            break
        total += position.max_bytes
        cursors.append(cursor)
        positions.append(position)
    return Send(broker_id, tuple(positions), min(total, max_bytes), not avoids_replicas), tuple(cursors)


def order_next(
    active: Sequence[Cursor], *, fed: Sequence[Cursor], starved: Sequence[Cursor], empty: Sequence[Cursor]
) -> list[Cursor]:
    """Return the order of the next request: brokers fill a response in the order of the request, until it is full.

    First come ranges that have records and got none, then ranges that were not asked for, then ranges that got
    records, and last ranges with nothing to read yet. So the first place, which gets a whole batch for certain,
    rotates.
    """
    if len(active) > 1:
        placed = {*fed, *starved, *empty}
        active = [*starved, *(cursor for cursor in active if cursor not in placed), *fed, *empty]
    return [cursor for cursor in active if cursor.state is not CursorState.DONE]
