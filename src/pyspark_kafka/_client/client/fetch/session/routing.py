"""The ranges to fetch from each broker, and their order. Pure: times are arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.fetch.cursor import CursorState
from pyspark_kafka._client.client.fetch.session.steps import Send

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.fetch.cursor import Cursor
    from pyspark_kafka._client.client.fetch.request import FetchPosition
    from pyspark_kafka._client.client.fetch.session.brokers import BrokerSlot
    from pyspark_kafka._client.client.fetch.session.steps import ClusterMemory

# The least that each of many partitions may take of a response; with less, most of the work would be per batch.
_SMALLEST_SHARE = 64 << 10


@dataclass(slots=True, eq=False)
class Survey:
    """The current need of each range, in one place at most.

    Attributes:
        routed: ranges that can be fetched, by broker, each with the epoch of its leader.
        ended: ranges whose log seems to end at the position.
        leaderless: ranges without a known leader.
        other_topic: ranges whose topic has another id now, with the leader and the id.
        other_leader: ranges whose new leader must return an epoch's end, with the leader and the epoch.
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
        """Whether some range needs a look-up before its fetch."""
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
        budget: the maximum of bytes for all partitions together.
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

    First come ranges that have records and got none, then ranges that were left out, then ranges that got
    records, and last ranges with nothing to read yet. So the first place, which gets a whole batch for certain,
    rotates.
    """
    if len(active) > 1:
        placed = {*fed, *starved, *empty}
        active = [*starved, *(cursor for cursor in active if cursor not in placed), *fed, *empty]
    return [cursor for cursor in active if cursor.state is not CursorState.DONE]


def pause_together(cursors: Sequence[Cursor], now: float) -> None:
    """Pause ranges for the same time, so that they are fetched together again."""
    if cursors:
        until = now + max(cursor.backoff.next_s() for cursor in cursors)
        for cursor in cursors:
            cursor.pause_until(until)
