"""The questions of a session to the cluster: which comes first, and what follows from what was found. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.fetch.cursor import CursorState
from pyspark_kafka._client.client.fetch.errors import fetch_refused, topic_recreated
from pyspark_kafka._client.client.fetch.session.routing import pause_together
from pyspark_kafka._client.client.fetch.session.steps import FetchEpochEnds, FetchLogEnds, FindLeaders, LookAtSilent
from pyspark_kafka._client.client.queries.leader_epochs import EpochQuestion
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.fetch.cursor import Cursor
    from pyspark_kafka._client.client.fetch.session.brokers import Brokers
    from pyspark_kafka._client.client.fetch.session.ranges import Ranges
    from pyspark_kafka._client.client.fetch.session.routing import Survey
    from pyspark_kafka._client.client.fetch.session.steps import ClusterMemory, Lookup
    from pyspark_kafka._client.client.queries.leader_epochs import EpochEnd
    from pyspark_kafka._client.options import FetchOptions

# How often the session looks who leads the ranges of silent brokers. A broker is silent after a little less, so that
# the first look finds it.
_LOOK_S = 2.0
_SILENT_S = 1.5


class Lookups:
    """The look-ups of a session, each from its question to what was found.

    Attributes:
        look_at: when to look who leads the ranges of silent brokers.
    """

    def __init__(self, memory: ClusterMemory, fetch: FetchOptions, ranges: Ranges, brokers: Brokers) -> None:
        self._memory = memory
        self._max_wait_s = fetch.max_wait_ms / 1000
        self._ranges = ranges
        self._brokers = brokers
        self._silent: list[int] = []
        self.look_at = math.inf

    # Questions

    def begin(self, now: float) -> None:
        """Schedule the next check for silent brokers, some time after the caller's call."""
        self.look_at = now + _LOOK_S + self._max_wait_s

    def first(self, found: Survey, now: float) -> Lookup | None:
        """Return the look-up that must come before requests; None if there is none after all, or an error comes."""
        if found.ended:
            return self.check_logs(found.ended)
        if found.leaderless or found.other_topic:
            return self._find_leaders(found.leaderless, found.other_topic, now)
        return self._ask_epochs(found.other_leader)

    def _find_leaders(
        self, leaderless: list[Cursor], other_topic: list[tuple[Cursor, PartitionMetadata, UUID | None]], now: float
    ) -> FindLeaders | None:
        """Request leaders; a reported new topic id is confirmed by a second request."""
        doubtful: list[Cursor] = []
        for cursor, leader, found in other_topic:
            if cursor.topic.doubts(unread=cursor.unread):
                doubtful.append(cursor)
            else:
                self._ranges.lose(cursor, topic_recreated(cursor, found, leader.leader_id))
                cursor.topic.note_other(found)
        for topic in {cursor.topic_partition.topic for cursor in doubtful}:
            self._memory.forget_topic(topic)
        again = [cursor for cursor in doubtful if cursor.topic.doubted_again]
        if again:
            self._memory.avoid_last_asked()
        # The first time immediately: this process's metadata may simply be old.
        pause_together(again, now)
        wanted = leaderless + [cursor for cursor in doubtful if cursor.state is CursorState.READY]
        if self._ranges.lost or not wanted:
            # A loss is raised from here: the caller may continue in the topic that there is now.
            return None
        for cursor in wanted:
            cursor.check()
        return FindLeaders(tuple(cursor.topic_partition for cursor in wanted), len(self._ranges.active) == 1)

    def _ask_epochs(self, changed: list[tuple[Cursor, PartitionMetadata, int]]) -> FetchEpochEnds:
        questions: dict[int, list[EpochQuestion]] = {}
        for cursor, leader, epoch in changed:
            cursor.check()
            question = EpochQuestion(cursor.topic_partition, leader.leader_epoch, epoch)
            questions.setdefault(leader.leader_id, []).append(question)
        return FetchEpochEnds(questions)

    def check_logs(self, cursors: list[Cursor]) -> FetchLogEnds:
        """Request the ends of logs, with current leaders and topic ids."""
        for topic in {cursor.topic_partition.topic for cursor in cursors}:
            self._memory.forget_topic(topic)
        for cursor in cursors:
            cursor.check()
        self._ranges.refused = []
        alone = len(self._ranges.active) == len(cursors)
        return FetchLogEnds(tuple(cursor.topic_partition for cursor in cursors), alone=alone)

    def look_at_silent(self, now: float) -> LookAtSilent | None:
        """Find silent brokers, and brokers with a slow connection; request the leaders of their ranges."""
        self.look_at = now + _LOOK_S
        waited_s = _SILENT_S + self._max_wait_s
        slots = self._brokers.slots.items()
        self._silent = [broker_id for broker_id, broker in slots if broker.is_silent(now, _SILENT_S, waited_s)]
        cursors = (cursor for broker_id in self._silent for cursor in self._asked_of(broker_id))
        topics = frozenset(cursor.topic_partition.topic for cursor in cursors)
        return LookAtSilent(topics) if topics else None

    # What was found

    def on_leaders(self, step: FindLeaders, now: float) -> None:
        """Record that leaders were fetched; the client's memory has them. Elections are not waited for."""
        leaderless: list[Cursor] = []
        for cursor in self._ranges.checking(step.topic_partitions):
            if self._memory.cached_leader(cursor.topic_partition) is None:
                leaderless.append(cursor)
            else:
                cursor.release()
        if leaderless:
            text = f"{leaderless[0].topic_partition} has no leader"
            error = broker_error(ErrorCode.LEADER_NOT_AVAILABLE, text)
            for cursor in leaderless:
                self._ranges.note(cursor, error)
            pause_together(leaderless, now)
        self._ranges.nothing_before = -math.inf

    def on_epoch_ends(self, step: FetchEpochEnds, ends: Mapping[TopicPartition, EpochEnd | ConnectorError]) -> None:
        """Take what new leaders say about the epochs of positions."""
        epochs = {each.topic_partition: each.current_epoch for asked in step.questions.values() for each in asked}
        for cursor in self._ranges.checking(epochs):
            end = ends[cursor.topic_partition]
            if isinstance(end, ConnectorError):
                self._ranges.fail([cursor], end)
            elif end.error_code != ErrorCode.NONE:
                self._ranges.fail([cursor], fetch_refused(cursor, end.error_code))
            else:
                error = cursor.confirm_epoch(epochs[cursor.topic_partition], end.end_offset)
                if error is not None:
                    self._ranges.lose(cursor, error)
        self._ranges.nothing_before = -math.inf

    def on_log_ends(self, step: FetchLogEnds, ends: Mapping[TopicPartition, tuple[int, int]], now: float) -> None:
        """Take the first offsets and high watermarks of logs."""
        for cursor in self._ranges.checking(step.topic_partitions):
            refusal = cursor.error
            if not cursor.topic.accepts(self._memory.cached_topic_id(cursor.topic_partition.topic)):
                # A recreated topic is noticed by its id.
                cursor.release()
                continue
            error = cursor.compare_log(*ends[cursor.topic_partition], now, refusal)
            if error is not None:
                self._ranges.lose(cursor, error)
            elif refusal is None:
                cursor.release()
            elif cursor.log_check_at < math.inf:
                cursor.pause_until(cursor.log_check_at)
            else:
                pause_together([cursor], now)
        self._ranges.nothing_before = -math.inf

    def on_metadata(self) -> None:
        """Record that metadata about silent brokers was fetched: former leaders are left."""
        silent, self._silent = self._silent, []
        for broker_id in silent:
            cursors = self._asked_of(broker_id)
            if any(self._has_left(cursor, broker_id) for cursor in cursors):
                for cursor in cursors:
                    if cursor.state is CursorState.IN_FLIGHT:
                        cursor.release()
                    cursor.replica.leave()
                self._brokers.slot(broker_id).clear()
                self._brokers.left.append(broker_id)
        self._ranges.change()

    def on_lookup_failure(self, step: Lookup, error: ConnectorError, now: float, *, cut_short: bool = False) -> None:
        """Record that a whole look-up failed."""
        if isinstance(step, LookAtSilent):
            # Not what the caller came for: the silent brokers may respond yet.
            self._silent = []
            if self._ranges.last_error is None:
                self._ranges.last_error, self._ranges.last_was_cut_short = error, cut_short
            return
        if isinstance(step, FetchEpochEnds):
            asked = [each.topic_partition for questions in step.questions.values() for each in questions]
        else:
            asked = list(step.topic_partitions)
        cursors = self._ranges.checking(asked)
        if isinstance(step, FetchLogEnds):
            for cursor in cursors:
                cursor.look_later(now)
        self._ranges.fail(cursors, error, cut_short=cut_short)

    def _asked_of(self, broker_id: int) -> Sequence[Cursor]:
        in_flight = self._brokers.slot(broker_id).in_flight
        return self._ranges.waiting_for(broker_id) if in_flight is None else in_flight.cursors

    def _has_left(self, cursor: Cursor, broker_id: int) -> bool:
        """Return whether a range is known to be read from another broker now."""
        if cursor.replica.broker_id == broker_id:
            return self._memory.cached_broker(broker_id) is None
        leader = self._memory.cached_leader(cursor.topic_partition)
        return leader is not None and leader.leader_id != broker_id
