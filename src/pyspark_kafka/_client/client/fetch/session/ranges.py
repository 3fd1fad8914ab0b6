"""The ranges of a session: what the caller wants, which records are at hand, which requests are planned, what failed.

Pure: times are arguments. A failure waits until the records that came with it are delivered. Then the leader is looked
for again, the position is compared with the log, the range pauses, or its error is raised.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.fetch.cursor import Cursor, CursorState
from pyspark_kafka._client.client.fetch.errors import topic_deleted
from pyspark_kafka._client.client.fetch.session.routing import pause_together
from pyspark_kafka._client.client.waiting.outage import may_be_outage
from pyspark_kafka._client.client.waiting.retry import RetryAction

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from pyspark_kafka._base.model import OffsetRange, TopicPartition
    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
    from pyspark_kafka._client.client.fetch.request import RecordSizes
    from pyspark_kafka._client.client.fetch.session.steps import ClusterMemory, Send
    from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
    from pyspark_kafka.errors import ConnectorError


class Ranges:
    """The ranges that a session reads.

    Attributes:
        active: the cursors that are not done, in the order of the next request.
        records: what is at hand, in the order of its delivery.
        sends: the requests that are planned, with their cursors.
        nothing_before: before this time nothing more can be sent, unless an event comes.
        failures: cursors whose failure is not handled yet, and whether only the caller's time ended.
        refused: cursors whose refused position is compared with the log next.
        lost: cursors whose error was or is raised.
        last_error: why something failed last, since the caller came.
        last_was_cut_short: whether only the caller's time ended that.
    """

    def __init__(
        self, memory: ClusterMemory, fetch: FetchOptions, options: ConnectionOptions, sizes: RecordSizes
    ) -> None:
        self._memory = memory
        self._fetch = fetch
        self._options = options
        self._sizes = sizes
        self._cursors: dict[TopicPartition, Cursor] = {}
        self.active: list[Cursor] = []
        self.records: deque[tuple[Cursor, FetchedRecords]] = deque()
        self.sends: deque[tuple[Send, tuple[Cursor, ...]]] = deque()
        self.nothing_before = -math.inf
        self.failures: deque[tuple[Cursor, bool]] = deque()
        self.refused: list[Cursor] = []
        self.lost: list[Cursor] = []
        self.last_error: ConnectorError | None = None
        self.last_was_cut_short = False

    # What the caller wants

    def add_range(self, offset_range: OffsetRange, topic_id: UUID | None = None) -> None:
        """Read a range from now on; a ValueError if another range of the partition is read."""
        known = self._cursors.get(offset_range.topic_partition)
        if known is not None and (known.state is not CursorState.DONE or known in self.active):
            raise ValueError(
                f"two ranges of {offset_range.topic_partition}: one response could not be divided between them"
            )
        cursor = Cursor(offset_range, self._fetch, self._options, self._sizes, topic_id)
        self._cursors[offset_range.topic_partition] = cursor
        if cursor.state is not CursorState.DONE:
            self.active.append(cursor)
        self.change()

    def remove(self, topic_partition: TopicPartition) -> int:
        """Read a range no more; return the position that was reached by what was delivered.

        Records at hand are dropped, and so is the part of the range in a response in flight.
        """
        cursor = self._cursors.pop(topic_partition)
        position = next((fetched.start_offset for read, fetched in self.records if read is cursor), cursor.position)
        self.records = deque(entry for entry in self.records if entry[0] is not cursor)
        self._forget_failures(cursor)
        self.change()
        cursor.finish()
        self.active = [other for other in self.active if other is not cursor]
        return position

    def hold(self, topic_partition: TopicPartition, *, held: bool) -> None:
        """Send no requests for a range while it is held; records at hand and in flight are still delivered."""
        self._cursors[topic_partition].hold(held=held)
        self.change()

    def confirm(self, topic_partition: TopicPartition, next_offset: int) -> ConnectorError | None:
        """Take the position that decoding found for the records that were delivered last; return a difference."""
        return self._cursors[topic_partition].confirm(next_offset)

    def resume(self, topic_partition: TopicPartition, offset: int) -> None:
        """Continue a range at another offset, after the loss that `Raise` named."""
        cursor = self._cursors[topic_partition]
        self._forget_failures(cursor)
        self.change()
        cursor.resume(offset)
        self.active = [other for other in self.active if other.state is not CursorState.DONE]

    def forget_errors(self) -> bool:
        """Forget the last error if no range that is read has a failure behind it; return whether that is so."""
        if self.last_error is not None:
            if any(cursor.last_failure is not None and not cursor.held for cursor in self.active):
                return False
            self.last_error = None
        return True

    def change(self) -> None:
        """Discard the planned steps, which may not hold any more."""
        self.sends.clear()
        self.nothing_before = -math.inf

    # What is known

    @property
    def is_done(self) -> bool:
        """Whether every range is read to its end, and nothing of them is left to deliver or to raise."""
        return not (self.active or self.records or self.failures or self.lost)

    def position(self, topic_partition: TopicPartition) -> int:
        """Return the offset that is read next; after a response, by its headers until `confirm`."""
        return self._cursors[topic_partition].position

    def known_end(self, topic_partition: TopicPartition) -> int | None:
        """Return where the visible log ended by the last response; None before the first, and if it is not read."""
        cursor = self._cursors.get(topic_partition)
        return None if cursor is None else cursor.known_end

    @property
    def must_progress(self) -> bool:
        """Whether ranges with an end are read, which must move within a time; those without one may wait forever."""
        return any(not cursor.endless and not cursor.held for cursor in self.active)

    def checking(self, topic_partitions: Iterable[TopicPartition]) -> list[Cursor]:
        """Return the ranges that still wait for a look-up."""
        found = (self._cursors.get(topic_partition) for topic_partition in topic_partitions)
        return [cursor for cursor in found if cursor is not None and cursor.state is CursorState.CHECKING]

    def waiting_for(self, broker_id: int) -> list[Cursor]:
        """Return the ranges to read from a broker that have no request in flight."""
        resting = (CursorState.READY, CursorState.PAUSED)
        return [cursor for cursor in self.active if cursor.broker_id == broker_id and cursor.state in resting]

    # Failures

    def fail(self, cursors: Iterable[Cursor], error: ConnectorError, *, cut_short: bool = False) -> None:
        """Schedule failures for after the delivery of the records at hand."""
        for cursor in cursors:
            if cursor.state not in (CursorState.DONE, CursorState.FAILED):
                cursor.fail(error)
                self.failures.append((cursor, cut_short))
        self.nothing_before = -math.inf

    def note(self, cursor: Cursor, error: ConnectorError, *, cut_short: bool = False) -> None:
        """Remember why a range got nothing."""
        self.last_error, self.last_was_cut_short = error, cut_short
        cursor.note_failure(error)

    def lose(self, cursor: Cursor, error: ConnectorError) -> None:
        """Schedule an error to be raised; the range stops until it is resumed."""
        cursor.fail(error)
        self.lost.append(cursor)

    def handle_failures(self, now: float) -> None:
        """Decide what follows from the failures that came."""
        refreshed: list[Cursor] = []
        for cursor, cut_short in self.failures:
            error = cursor.error
            if error is None:
                continue
            if self.last_error is None or not cut_short:
                self.note(cursor, error, cut_short=cut_short)
            action = cursor.decide(error).action
            if action is RetryAction.FAIL and not (self._fetch.outage_timeout_ms and may_be_outage(error)):
                if error.condition == "UNKNOWN_TOPIC" and cursor.topic.planned is not None:
                    deleted = topic_deleted(cursor)
                    deleted.__cause__ = error
                    error = deleted
                self.lose(cursor, error)
            elif action is RetryAction.ASK_LEADER:
                cursor.replica.avoid()
                cursor.release()
            elif action is not RetryAction.CHECK_LOG:
                # Leader moved, epoch fenced, replica gone, storage failed, connection lost, topic id not known yet.
                cursor.replica.leave()
                refreshed.append(cursor)
            elif now < cursor.log_check_at < math.inf:
                # Looks at the log are this far apart, also where a leader refuses immediately.
                self._memory.forget_topic(cursor.topic_partition.topic)
                cursor.pause_until(cursor.log_check_at)
            else:
                self.refused.append(cursor)
        self.failures.clear()
        for topic in {cursor.topic_partition.topic for cursor in refreshed}:
            self._memory.forget_topic(topic)
        pause_together(refreshed, now)
        self.change()

    def _forget_failures(self, cursor: Cursor) -> None:
        self.failures = deque(entry for entry in self.failures if entry[0] is not cursor)
        self.refused = [other for other in self.refused if other is not cursor]
        self.lost = [other for other in self.lost if other is not cursor]
