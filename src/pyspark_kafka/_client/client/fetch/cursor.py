"""One range of one topic-partition while it is read: its position, its state, what responses mean for it.

Pure: no sockets, and no clock; times are arguments, in seconds of the caller's choice. `session` moves cursors from
state to state by their methods; no other code writes into a cursor.

States of a cursor, and the events that change them:

- READY: a request may be sent. `sent` → IN_FLIGHT; `check` → CHECKING.
- IN_FLIGHT: a request is sent. `take_response` → READY, or DONE at the end of the range; `fail` → FAILED;
  `release` → READY.
- PAUSED: nothing is sent before a time. `wake` → READY when that has come.
- CHECKING: the leader, or the end of an epoch or the log, is requested. Results → READY, PAUSED or FAILED.
- FAILED: an error waits to be handled, or was raised as a loss. `pause_until` → PAUSED; `resume` → READY or DONE.
- DONE: the position has reached the end of the range, or the range was removed.

Two properties are not part of the state. Returned records wait for confirmation (`confirm`) while the request
for the next ones is in flight. A cursor that the caller holds (`hold`) sends nothing in any state.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafka._base.model import NO_END, IsolationLevel
from pyspark_kafka._client.client.fetch.errors import log_truncated, misplaced, out_of_range, position_mismatch
from pyspark_kafka._client.client.fetch.preferred_replica import PreferredReplica
from pyspark_kafka._client.client.fetch.request import FetchPosition, RequestSize
from pyspark_kafka._client.client.fetch.topic_identity import TopicIdentity
from pyspark_kafka._client.client.waiting.retry import Backoff, Decision, RetryAction, decide_fetch
from pyspark_kafka.errors import BrokerError
from pyspark_kafka.records import Claim, place, scan

if TYPE_CHECKING:
    from uuid import UUID

    from pyspark_kafka._base.model import OffsetRange, TopicPartition
    from pyspark_kafka._client.client.fetch.request import RecordSizes
    from pyspark_kafka._client.client.fetch.response import FetchPartitionResponse
    from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
    from pyspark_kafka.errors import ConnectorError, CorruptRecordsError
    from pyspark_kafka.records import ScannedHeaders

# A log that ends at a position below the end of its range is looked at this number of times, over about 10 s, before
# the planned records count as lost: a new leader may lag. It returns no end before it has caught up (KIP-207), but a
# paused previous leader may continue for a moment.
_LOG_END_LOOKS = 5
_LOG_END_LOOKS_APART_S = 2.0
# Leaders may name another one this number of times without records; then metadata are fetched, after a pause.
_LEADERS_IN_VAIN = 3
# A planned topic that brokers do not know is looked for this number of times, over some seconds.
_UNKNOWN_TOPIC_LOOKS = 4
# Responses in a row that say something else about the next batch, before that is an error.
_DOUBTS = 4


class CursorState(Enum):
    """The state of a cursor; the module's docstring names the events."""

    READY = "ready"
    IN_FLIGHT = "in flight"
    PAUSED = "paused"
    CHECKING = "checking"
    FAILED = "failed"
    DONE = "done"

    allowed: tuple[CursorState, ...]


_S = CursorState
TRANSITIONS: dict[CursorState, frozenset[CursorState]] = {
    _S.READY: frozenset({_S.READY, _S.IN_FLIGHT, _S.PAUSED, _S.CHECKING, _S.FAILED, _S.DONE}),
    _S.IN_FLIGHT: frozenset({_S.READY, _S.PAUSED, _S.FAILED, _S.DONE}),
    _S.PAUSED: frozenset({_S.READY, _S.PAUSED, _S.FAILED, _S.DONE}),
    _S.CHECKING: frozenset({_S.READY, _S.PAUSED, _S.FAILED, _S.DONE}),
    _S.FAILED: frozenset({_S.READY, _S.PAUSED, _S.CHECKING, _S.FAILED, _S.DONE}),
    _S.DONE: frozenset({_S.DONE}),
}
for _state, _allowed in TRANSITIONS.items():
    # A search by identity: hashing a member takes longer than all of it, and each response changes the state twice.
    _state.allowed = tuple(_allowed)


class FetchedRecords(NamedTuple):
    """The record batches of one partition in one response.

    Attributes:
        records: whole record batches, then possibly the cut-off beginning of another. The first batch may begin before
            `start_offset`, the last may end beyond the range. The view stays valid while it is referred to.
        start_offset: the requested position; records below it were handed out before.
        scanned_offset: the position after the last whole batch by its unverified header.
        aborted_transactions: (producer id, first offset) pairs of transactions to leave out under read_committed.
    """

    records: memoryview
    start_offset: int
    scanned_offset: int
    aborted_transactions: tuple[tuple[int, int], ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class Outcome(str, Enum):
    """The effect on a partition of a response without an error. Texts, because Python hashes other members slowly."""

    FED = "records"
    STARVED = "nothing, although records are there: others took the room, or the first batch is too large"
    EMPTY = "nothing, and there is nothing to read yet"
    REDIRECTED = "the name of a replica to ask instead"
    BEHIND = "records below the position only"
    DOUBTED = "records that may not be where they say: another response must say the same"


class Cursor:
    """The state of one range that is read.

    Args:
        offset_range: what to read; `NO_END` as its end for a range without one.
        fetch: sizes and isolation.
        options: rack, waits, how long a replica is preferred.
        known_sizes: what records of topics took before.
        topic_id: the topic that the range was planned on; None takes the first id that a broker names.

    Attributes:
        state: see the module.
        position: the offset that is read next; after a response, by its headers.
        error: why it FAILED.
        last_failure: why the last attempt failed; None once a broker has responded with records or none.
        broker_id: the broker to fetch from, as last decided.
        last_address: the address of the last request, as errors name it.
        log: start, high watermark and last stable offset of the last response; None before the first response.
        log_check_at: when to request the ends of the log, because it seems to end at the position; infinite if not.
        held: whether the caller wants nothing of this range for now.
    """

    __slots__ = (
        "_at_boundary", "_claim", "_doubts", "_fetch", "_leader_epoch", "_leaders_named", "_log_end_looks", "_options",
        "_paused_until", "_position_epoch", "_surprises", "_unconfirmed", "_unknown_topic_looks", "backoff",
        "broker_id", "error", "held", "last_address", "last_failure", "log", "log_check_at", "offset_range", "position",
        "replica", "request_size", "state", "topic", "topic_partition",
    )  # fmt: skip

    def __init__(
        self,
        offset_range: OffsetRange,
        fetch: FetchOptions,
        options: ConnectionOptions,
        known_sizes: RecordSizes,
        topic_id: UUID | None = None,
    ) -> None:
        self.offset_range = offset_range
        self.topic_partition: TopicPartition = offset_range.topic_partition
        self.position = offset_range.start_offset
        self.state = CursorState.READY if self.position < offset_range.end_offset else CursorState.DONE
        self.held = False
        self.request_size = RequestSize(fetch, self.topic_partition.topic, known_sizes)
        self.backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
        self.replica = PreferredReplica(rack=options.client_rack is not None)
        self.topic = TopicIdentity(topic_id)
        self.broker_id = -1
        self.last_address = ""
        self.error: ConnectorError | None = None
        self.last_failure: ConnectorError | None = None
        self.log: tuple[int, int, int] | None = None
        self.log_check_at = math.inf
        self._fetch = fetch
        self._options = options
        self._paused_until = 0.0
        self._leader_epoch = -1
        # The leader epoch of the batch before the position; -1 if none was read.
        self._position_epoch = -1
        # Start and end by headers of what was returned last, until decoding has confirmed it.
        self._unconfirmed: tuple[int, int] | None = None
        # What the last response said about the batch at the position, and whether the batch before it ends there.
        self._claim: Claim | None = None
        self._at_boundary = False
        self._doubts = 0
        self._surprises = 0
        self._leaders_named = 0
        self._log_end_looks = 0
        self._unknown_topic_looks = 0

    def __repr__(self) -> str:
        return f"Cursor({self.offset_range} at {self.position}, {self.state.value})"

    def _enter(self, state: CursorState) -> None:
        if state not in self.state.allowed:
            raise RuntimeError(f"{self!r} cannot become {state.value}")
        self.state = state

    @property
    def unread(self) -> bool:
        """Whether nothing of the range was handed out."""
        return self.position == self.offset_range.start_offset

    @property
    def endless(self) -> bool:
        """Whether the range has no end."""
        return self.offset_range.end_offset >= NO_END

    @property
    def known_end(self) -> int | None:
        """The end of the visible log in the last response; None before the first, or if the response had no end."""
        if self.log is None:
            return None
        _, high_watermark, stable = self.log
        end = stable if self._fetch.isolation_level is IsolationLevel.READ_COMMITTED and stable >= 0 else high_watermark
        return end if end >= 0 else None

    # Waiting

    def wake(self, now: float) -> bool:
        """Return whether a request may be sent; an expired pause ends."""
        if self.state is CursorState.PAUSED and self._paused_until <= now:
            self._enter(CursorState.READY)
        return self.state is CursorState.READY and not self.held

    @property
    def wake_at(self) -> float:
        """The end of a pause; infinite in other states, which end with an event."""
        return self._paused_until if self.state is CursorState.PAUSED and not self.held else math.inf

    def pause_until(self, until: float) -> None:
        """Send nothing before a time."""
        self._enter(CursorState.PAUSED)
        self._paused_until = until
        self.error = None

    def release(self) -> None:
        """Be ready again: the request or the check brought neither records nor a failure of this range."""
        self._enter(CursorState.READY)
        self.error = None

    def check(self) -> None:
        """Record that a look-up for this range is in flight."""
        self._enter(CursorState.CHECKING)

    def hold(self, *, held: bool) -> None:
        """Send nothing for as long as the caller likes; a response in flight is still returned."""
        self.held = held

    def finish(self) -> None:
        """Read nothing more."""
        self._enter(CursorState.DONE)

    # Requests

    def choose_broker(self, leader_id: int) -> int:
        """Return the broker to fetch from: the preferred replica if there is one, or else the leader."""
        replica_id = self.replica.broker_id
        self.broker_id = replica_id if replica_id >= 0 else leader_id
        return self.broker_id

    def next_request(self, leader_epoch: int, share: int | None) -> FetchPosition:
        """Build this range's part of a request.

        Args:
            leader_epoch: of the leader, also in a fetch from a follower: followers are fenced by it, too.
            share: the maximum of bytes of this range in a response for several; None for what the options allow.
        """
        size = self.request_size.next_bytes(self.offset_range.end_offset - self.position, share)
        return FetchPosition(self.topic_partition, self.position, self.topic.known, leader_epoch, size)

    def sent(self, request: FetchPosition, address: str) -> None:
        """Record that the request is in flight."""
        self._enter(CursorState.IN_FLIGHT)
        if request.leader_epoch != self._leader_epoch or address != self.last_address:
            self._at_boundary = False
        self._leader_epoch = request.leader_epoch
        self.last_address = address

    # Responses

    def take_response(
        self, response: FetchPartitionResponse, now: float, *, first: bool, throttled: bool = False
    ) -> tuple[Outcome, FetchedRecords | None]:
        """Take a response without an error.

        Args:
            response: about this partition.
            now: when it came.
            first: whether the partition was the first of the request; only the first gets a whole batch for certain.
            throttled: whether the broker throttles the client: then no records do not mean that too few were requested.

        Raises:
            CorruptRecordsError: two responses say that batches are where they cannot be.
        """
        self.last_failure = None
        self._surprises = self._leaders_named = 0
        # Not the response itself, whose records would stay in memory.
        self.log = (response.log_start_offset, response.high_watermark, response.last_stable_offset)
        if not response.records:
            self._enter(CursorState.READY)
            if response.preferred_read_replica >= 0 and not self.replica.avoided:
                self.replica.follow(response.preferred_read_replica, now + self._options.metadata_max_age_ms / 1000)
                return Outcome.REDIRECTED, None
            return self._take_nothing(response, now, first=first, throttled=throttled), None
        records = response.records
        found = scan(records, self.position)
        if found.jumps:
            found, left_out = self._placed(found, response.high_watermark)
            if left_out and not found.batches:
                self._enter(CursorState.READY)
                return (Outcome.DOUBTED if self._doubts == 1 else Outcome.BEHIND), None
            if left_out:
                records = records[: found.complete_bytes]
        elif found.tail_offset >= 0:
            self._claim = Claim(found.next_offset, found.tail_offset)
        if not found.batches and not first:
            self._enter(CursorState.READY)
            self.request_size.starve()
            return Outcome.STARVED, None
        if found.batches and found.next_offset <= self.position:
            # Whole batches, all below the position: an immediate second request would spin.
            self._enter(CursorState.READY)
            return Outcome.BEHIND, None
        fetched = FetchedRecords(
            records,
            self.position,
            found.next_offset,
            response.aborted_transactions,
            response.high_watermark,
            response.last_stable_offset,
            response.log_start_offset,
        )
        self.backoff.attempts = 0
        self.log_check_at = math.inf
        self._log_end_looks = self._unknown_topic_looks = self._doubts = 0
        if self.replica.broker_id >= 0 or not self.replica.avoided:
            self.replica.note_records()
        if found.batches:
            base_offset = int.from_bytes(records[:8], "big")
            self.request_size.observe(found.complete_bytes, found.next_offset - base_offset, found.batches)
            self._position_epoch = found.leader_epoch
            self._at_boundary = True
        self._unconfirmed = (self.position, found.next_offset)
        self.position = found.next_offset
        self._enter(CursorState.READY if self.position < self.offset_range.end_offset else CursorState.DONE)
        return Outcome.FED, fetched

    def _placed(self, found: ScannedHeaders, high_watermark: int) -> tuple[ScannedHeaders, bool]:
        """Return what is taken of a response, and whether something is left out, to be fetched again."""
        placed = place(found, self.offset_range.end_offset, high_watermark, self._claim, at_boundary=self._at_boundary)
        self._claim = placed.claim
        left_out = placed.left_out
        if left_out is None:
            return found, False
        if not left_out.batches:
            self._doubts += 1
            if placed.reason and self._doubts > 1:
                raise misplaced(self, placed.reason)
            if self._doubts > _DOUBTS:
                raise misplaced(self, "each response says something else about the next batch")
        taken = found._replace(
            next_offset=left_out.expected,
            complete_bytes=left_out.at,
            batches=left_out.batches,
            records=left_out.records,
            leader_epoch=left_out.leader_epoch,
        )
        return taken, True

    def _take_nothing(self, response: FetchPartitionResponse, now: float, *, first: bool, throttled: bool) -> Outcome:
        high_watermark, stable = response.high_watermark, response.last_stable_offset
        committed = self._fetch.isolation_level is IsolationLevel.READ_COMMITTED and stable >= 0
        starved = (stable if committed else high_watermark) > self.position
        if starved and not throttled:
            self.request_size.starve()
        following = self.replica.broker_id >= 0
        if not 0 <= high_watermark <= self.position:
            self._forget_log_end()
        elif not following and not self.endless and self.log_check_at == math.inf:
            # The log ends here, or the leader is new and behind: followers may be, too, and are not used.
            self.look_later(now)
        if following and not throttled and (first or not starved):
            self.replica.note_empty()
        return Outcome.STARVED if starved else Outcome.EMPTY

    def confirm(self, next_offset: int) -> CorruptRecordsError | None:
        """Compare the position that decoding found, checksums verified, with the position of the headers.

        Returns:
            The error if they differ within the range.
        """
        if self._unconfirmed is None:
            return None
        start_offset, scanned_offset = self._unconfirmed
        self._unconfirmed = None
        end = self.offset_range.end_offset
        if min(next_offset, end) == min(scanned_offset, end):
            return None
        return position_mismatch(self, start_offset, scanned_offset, next_offset)

    # Failures

    def fail(self, error: ConnectorError) -> None:
        """Record a failure; the session handles it after the fetched records are returned."""
        self._enter(CursorState.FAILED)
        self.error = error

    def decide(self, error: ConnectorError) -> Decision:
        """Decide what a failure requires, and count it."""
        if error.condition == "UNKNOWN_TOPIC":
            if error.parameters.get("topic") != self.topic_partition.topic:
                return Decision(RetryAction.REFRESH, "another topic of the same look-up is gone")
            self._unknown_topic_looks += 1
            if self.topic.planned is not None and self._unknown_topic_looks < _UNKNOWN_TOPIC_LOOKS:
                return Decision(RetryAction.REFRESH, "it was there when the range was planned")
        decision = decide_fetch(error, from_follower=self.replica.broker_id >= 0, surprises=self._surprises)
        if isinstance(error, BrokerError) and not error.retriable:
            self._surprises += 1
        return decision

    def follow_leader(self) -> bool:
        """Return whether to fetch from the leader that a broker has named; not if that was in vain before.

        Source: KIP-951.
        """
        self._leaders_named += 1
        return self._leaders_named <= _LEADERS_IN_VAIN

    def note_arrival(self) -> None:
        """Record that a response with records arrives: the attempt is not a failure."""
        self.last_failure = None

    def note_failure(self, error: ConnectorError) -> None:
        """Remember why the last attempt failed."""
        self.last_failure = error

    def resume(self, offset: int) -> None:
        """Continue at another offset, after a tolerated loss; in the topic that there is now."""
        self.position = offset
        if self.topic.switch():
            # Epochs of the previous topic's leaders say nothing about the recreated topic's.
            self._leader_epoch = -1
        # Nothing is known about the records before the new position.
        self._position_epoch = -1
        self._unconfirmed = self._claim = None
        self._at_boundary = False
        self._forget_log_end()
        self._unknown_topic_looks = self._doubts = 0
        self.error = None
        self._enter(CursorState.READY if offset < self.offset_range.end_offset else CursorState.DONE)

    # Checks

    def unconfirmed_epoch(self, leader_epoch: int) -> int | None:
        """Return the epoch of the batch before the position if another leader took over since it was read.

        None if no request is needed: the first leader, the same one, or no batch read yet.
        """
        if 0 <= self._leader_epoch < leader_epoch and self._position_epoch >= 0:
            return self._position_epoch
        return None

    def confirm_epoch(self, leader_epoch: int, end_offset: int) -> ConnectorError | None:
        """Take what a new leader says about the epoch of the position; -1 proves nothing.

        Returns:
            The error if the epoch ends before the position.
        """
        if 0 <= end_offset < self.position:
            return log_truncated(self, self._position_epoch, leader_epoch, end_offset)
        self._leader_epoch = leader_epoch
        self.release()
        return None

    def look_later(self, now: float) -> None:
        """Put the next look at the ends of the log off."""
        apart_s = min(_LOG_END_LOOKS_APART_S, self._fetch.poll_timeout_ms / 1000 / (2 * _LOG_END_LOOKS + 2))
        self.log_check_at = now + apart_s

    def _forget_log_end(self) -> None:
        self._log_end_looks = 0
        self.log_check_at = math.inf

    def compare_log(self, start: int, end: int, now: float, cause: ConnectorError | None) -> ConnectorError | None:
        """Compare the position with the log's first offset and high watermark, as its leader lists them.

        A position inside of the log is not an error, even if the leader refused it: leaders have changed in between. A
        log that ends before the end of the range is looked at several times. A range without an end may wait at the end
        of the log for ever.

        Args:
            start: the first offset.
            end: the high watermark.
            now: the time of the look.
            cause: the leader's refusal of the position, if there is one.

        Returns:
            The error if the position is not in the log, or the log ends there for good.
        """
        if start <= self.position < end or (self.endless and self.position == end):
            self._forget_log_end()
            return None
        if self.position >= end:
            self._log_end_looks += 1
            self.look_later(now)
            if self._log_end_looks < _LOG_END_LOOKS:
                return None
        error = out_of_range(self, start, end)
        error.__cause__ = cause
        return error
