"""What to do next to read ranges of many topic-partitions: a state machine. It decides, `fetcher.py` does.

Pure: no sockets, and no clock; times are arguments, in seconds of the caller's choice. What the client remembers about
the cluster is an argument, too (`ClusterMemory`). Everything that changes the state of a read is in this file and in
`cursor.py`.

The story of one response, with one range:

1. The caller comes for records: `begin`. `next_step` returns `Send` with the position; the request is sent: `on_sent`.
2. `next_step` returns `WaitUntil`. The response arrives: `on_response` finds the next position from the headers of the
   record batches, which are not verified yet.
3. `next_step` returns `Send` again, for the next position: its response travels while the caller decodes this one.
4. `next_step` returns `Deliver`. The caller decodes the records, and tells the verified position: `confirm`.
5. The caller comes again, from 2 on, until the position reaches the end of the range: `Done`.

With many ranges there is at most one request for each broker. A response may bring records for several ranges; they
are delivered one after the other. Ranges that got nothing come first in the next request, because brokers fill a
response in the order of the request.

Failures wait until the records that came with them are delivered. Then the session looks for the leader again
(`FindLeaders`), asks a new leader about the epoch of the position (`FetchEpochEnds`), compares the position with the
ends of the log (`FetchLogEnds`), pauses the range, or raises (`Raise`). A broker that is silent for a second or two may
have died: the session looks who leads by now (`LookAtSilent`) and leaves the broker if another one does (`Leave`).
"""

from __future__ import annotations

import logging
import math
from collections import deque
from typing import TYPE_CHECKING

from pyspark_kafka._base.counters import COUNTERS, THROTTLE_SECONDS
from pyspark_kafka._client.client.fetch.cursor import Cursor, CursorState, Outcome
from pyspark_kafka._client.client.fetch.errors import fetch_refused, named_twice, topic_deleted, topic_recreated
from pyspark_kafka._client.client.fetch.request import RecordSizes
from pyspark_kafka._client.client.fetch.routing import (
    BrokerSlot,
    RequestInFlight,
    Throttle,
    build_send,
    describe_entry,
    order_next,
    survey,
)
from pyspark_kafka._client.client.fetch.steps import (
    Deliver,
    Done,
    FetchEpochEnds,
    FetchLogEnds,
    FindLeaders,
    Leave,
    LookAtSilent,
    Raise,
    WaitUntil,
)
from pyspark_kafka._client.client.queries.leader_epochs import EpochQuestion
from pyspark_kafka._client.client.waiting.outage import may_be_outage
from pyspark_kafka._client.client.waiting.retry import RetryAction
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka.errors import ConnectorError, CorruptRecordsError, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from pyspark_kafka._base.model import OffsetRange, TopicPartition
    from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
    from pyspark_kafka._client.client.fetch.response import FetchPartitionResponse, FetchResponse
    from pyspark_kafka._client.client.fetch.steps import ClusterMemory, Lookup, Send, Step
    from pyspark_kafka._client.client.queries.leader_epochs import EpochEnd
    from pyspark_kafka._client.options import ConnectionOptions, FetchOptions

_LOG = logging.getLogger(__name__)

# The broker did not wait for records before an empty response that comes sooner than this.
_SOON_MS = 20.0
# How often the session looks who leads the ranges of silent brokers. A broker is silent after a little less, so that
# the first look finds it.
_LOOK_S = 2.0
_SILENT_S = 1.5
_WARNINGS_APART_S = 60.0
# After this number of responses in a row that were cut off in the middle, bytes that arrive are no progress any more.
_CUT_OFF_IN_VAIN = 5


class FetchSession:
    """Decides what to do next to read ranges, each in order, without gap or repetition.

    Runs on: executor. Not thread-safe; does not pickle. No method blocks.

    Args:
        memory: what the client knows of the cluster.
        fetch: sizes, waits, isolation.
        options: rack, backoff, metadata age.
        record_sizes: what records of topics took before; None if nothing is known.

    Attributes:
        last_error: why something failed last, since `begin`.
        last_was_cut_short: whether only the caller's time ended that.
        throttle: for how long brokers throttle the client.

    Source: KIP-74, KIP-219, KIP-227, KIP-320, KIP-392, KIP-516, KIP-951; Java `Fetcher`.
    """

    def __init__(
        self,
        memory: ClusterMemory,
        fetch: FetchOptions,
        options: ConnectionOptions,
        record_sizes: RecordSizes | None = None,
    ) -> None:
        self._memory = memory
        self._fetch = fetch
        self._options = options
        self._sizes = record_sizes if record_sizes is not None else RecordSizes()
        self._budget = max(1, fetch.max_buffered_bytes // 2)
        self._max_bytes = max(1, min(fetch.max_bytes_per_fetch, fetch.max_buffered_bytes // 2))
        self._cursors: dict[TopicPartition, Cursor] = {}
        # The cursors that are not done, in the order of the next request.
        self._active: list[Cursor] = []
        self._brokers: dict[int, BrokerSlot] = {}
        self._planned: deque[tuple[Send, tuple[Cursor, ...]]] = deque()
        # Records at hand, whether the requests that travel meanwhile are planned, and failures that came with them.
        self._records: deque[tuple[Cursor, FetchedRecords]] = deque()
        self._sent_ahead = False
        self._failures: deque[tuple[Cursor, bool]] = deque()
        # Cursors whose refused position is compared with the log next, and cursors whose error was or is raised.
        self._refused: list[Cursor] = []
        self._lost: list[Cursor] = []
        self._left: deque[int] = deque()
        self._silent: list[int] = []
        # Before this time nothing can be sent, unless an event comes.
        self._nothing_before = -math.inf
        self._look_at = math.inf
        self._warn_of_foreign_at = -math.inf
        # A response that took longer is large for its link.
        self._slow_s = (options.request_timeout_ms + fetch.max_wait_ms) / 3_000
        self.last_error: ConnectorError | None = None
        self.last_was_cut_short = False
        self.throttle = Throttle()

    # What the caller wants

    def add(self, offset_range: OffsetRange, topic_id: UUID | None = None) -> None:
        """Read a range from now on.

        Args:
            offset_range: what to read; `model.NO_END` as its end for a range without one.
            topic_id: the topic that it was planned on, if brokers named it.

        Raises:
            ValueError: another range of the partition is read.
        """
        known = self._cursors.get(offset_range.topic_partition)
        if known is not None and (known.state is not CursorState.DONE or known in self._active):
            raise ValueError(
                f"two ranges of {offset_range.topic_partition}: one response could not be divided between them"
            )
        cursor = Cursor(offset_range, self._fetch, self._options, self._sizes, topic_id)
        self._cursors[offset_range.topic_partition] = cursor
        if cursor.state is not CursorState.DONE:
            self._active.append(cursor)
        self._change()

    def remove(self, topic_partition: TopicPartition) -> int:
        """Read a range no more; return the position that was reached by what was delivered.

        Records at hand are dropped, and so is the part of the range in a response in flight.
        """
        cursor = self._cursors.pop(topic_partition)
        position = next((fetched.start_offset for read, fetched in self._records if read is cursor), cursor.position)
        self._records = deque(entry for entry in self._records if entry[0] is not cursor)
        self._drop(cursor)
        cursor.finish()
        self._active = [other for other in self._active if other is not cursor]
        return position

    def pause(self, topic_partition: TopicPartition) -> None:
        """Send no requests for a range until `unpause`; records at hand and in flight are still delivered."""
        self._cursors[topic_partition].hold(held=True)
        self._change()

    def unpause(self, topic_partition: TopicPartition) -> None:
        """Send requests for a range again."""
        self._cursors[topic_partition].hold(held=False)
        self._change()

    def confirm(self, topic_partition: TopicPartition, next_offset: int) -> ConnectorError | None:
        """Take the position that decoding found for the records that were delivered last for a range.

        Returns:
            A CorruptRecordsError if the verified content ends elsewhere than the headers; nothing more must be read.
        """
        return self._cursors[topic_partition].confirm(next_offset)

    def resume(self, topic_partition: TopicPartition, offset: int) -> None:
        """Continue a range at another offset, after the loss that `Raise` named.

        Args:
            topic_partition: of the range.
            offset: what to read next; at or behind the end of the range, nothing more of it is read.
        """
        cursor = self._cursors[topic_partition]
        self._drop(cursor)
        cursor.resume(offset)
        self._active = [other for other in self._active if other.state is not CursorState.DONE]

    def begin(self, now: float) -> None:
        """Note that the caller comes for records: the time that it took since the last ones is nobody's silence."""
        for broker in self._brokers.values():
            if broker.in_flight is not None:
                broker.in_flight.waited_since = None
        self._look_at = now + _LOOK_S + self._fetch.max_wait_ms / 1000
        self.last_error = None

    def begin_again(self, responded: Iterable[int]) -> None:
        """Note that the caller comes after a wait that it left: brokers that were silent are silent since then.

        Args:
            responded: brokers whose responses have come since, and wait for the caller.
        """
        for broker_id in responded:
            in_flight = self._broker(broker_id).in_flight
            if in_flight is not None:
                in_flight.waited_since = None

    def forget_errors(self) -> bool:
        """Forget the last error if no range that is read has a failure behind it; return whether that is so."""
        if self.last_error is not None:
            if any(cursor.last_failure is not None and not cursor.held for cursor in self._active):
                return False
            self.last_error = None
        return True

    def _drop(self, cursor: Cursor) -> None:
        """Forget the failures of a cursor; plan again."""
        self._failures = deque(entry for entry in self._failures if entry[0] is not cursor)
        self._refused = [other for other in self._refused if other is not cursor]
        self._lost = [other for other in self._lost if other is not cursor]
        self._change()

    def _change(self) -> None:
        """Have the next step decided again: what was planned may not hold any more."""
        self._planned.clear()
        self._nothing_before = -math.inf

    # What is known

    @property
    def active(self) -> Sequence[Cursor]:
        """The ranges that are not done, for reports."""
        return self._active

    @property
    def is_done(self) -> bool:
        """Whether every range is read to its end, and nothing of them is left to deliver or to raise."""
        return not (self._active or self._records or self._failures or self._lost)

    @property
    def holds_records(self) -> bool:
        """Whether records of the last response are left: they are delivered before anything is waited for."""
        return bool(self._records)

    @property
    def has_records(self) -> bool:
        """Whether the next step is `Deliver`, as requests are sent and records of the same response are left."""
        return bool(self._records) and self._sent_ahead and not self._planned

    def position(self, topic_partition: TopicPartition) -> int:
        """Return the offset that is read next; after a response, by its headers until `confirm`."""
        return self._cursors[topic_partition].position

    def known_end(self, topic_partition: TopicPartition) -> int | None:
        """Return where the visible log ended by the last response; None before the first, and if it is not read."""
        cursor = self._cursors.get(topic_partition)
        return None if cursor is None else cursor.known_end

    @property
    def waits_for_records(self) -> bool:
        """Whether ranges with an end are read, which must move within a time; those without one may wait forever."""
        return any(not cursor.endless and not cursor.held for cursor in self._active)

    def oldest_request_s(self, now: float) -> float:
        """Return for how long nothing of the response to some request has arrived; 0 if none is in flight."""
        times = [broker.in_flight.heard_at for broker in self._brokers.values() if broker.in_flight is not None]
        return now - min(times) if times else 0.0

    # The next step

    def next_step(self, now: float) -> Step:
        """Decide what to do now; the caller does it and reports by an event before it comes again."""
        if self._records:
            return self._next_with_records(now)
        if self._left:
            return Leave(self._left.popleft())
        if self._failures:
            self._handle_failures(now)
        if self._lost:
            return self._raise_lost()
        if not self._active:
            return Done()
        if self._planned:
            return self._planned[0][0]
        if self._refused:
            return self._check_logs(self._refused)
        if now >= self._nothing_before:
            step = self._plan(now, lookups=True)
            if step is not None:
                return step
        if now >= self._look_at:
            topics = self._topics_of_silent(now)
            if topics:
                return LookAtSilent(topics)
        return self._wait(now)

    def _next_with_records(self, now: float) -> Step:
        if not self._sent_ahead:
            # What can be sent at once: the records at hand must not be held up by look-ups.
            self._sent_ahead = True
            self._plan(now, lookups=False)
        if self._planned:
            return self._planned[0][0]
        return Deliver(*self.next_records())

    def next_records(self) -> tuple[TopicPartition, FetchedRecords]:
        """Return what the next `Deliver` has; only while `has_records`."""
        cursor, fetched = self._records.popleft()
        return cursor.topic_partition, fetched

    def _raise_lost(self) -> Raise:
        error = self._lost[0].error
        if error is None:
            raise RuntimeError("a lost range has an error")
        return Raise(error)

    def _wait(self, now: float) -> WaitUntil:
        for broker in self._brokers.values():
            if broker.in_flight is not None and broker.in_flight.waited_since is None:
                broker.in_flight.waited_since = now
        return WaitUntil(min(self._nothing_before, self._look_at))

    # Planning requests

    def _plan(self, now: float, *, lookups: bool) -> Step | None:
        """Plan requests for all ranges that are ready, or return the look-up that must come first.

        Without `lookups`, ranges that need one are left for later.
        """
        found = survey(self._active, self._memory, self._brokers, now)
        self._nothing_before = now if found.needs_lookup else found.until
        if lookups and found.needs_lookup:
            if found.ended:
                return self._check_logs(found.ended)
            if found.leaderless or found.other_topic:
                return self._find_leaders(found.leaderless, found.other_topic, now)
            return self._ask_epochs(found.other_leader)
        for broker_id, ready in found.routed.items():
            slot = self._brokers.get(broker_id)
            max_bytes = self._max_bytes if slot is None else slot.max_bytes
            budget = self._budget if max_bytes == self._max_bytes else max_bytes
            self._planned.append(build_send(broker_id, ready, budget, max_bytes))
        return self._planned[0][0] if self._planned else None

    def _find_leaders(
        self, leaderless: list[Cursor], other_topic: list[tuple[Cursor, PartitionMetadata, UUID | None]], now: float
    ) -> Step | None:
        """Look for leaders; where brokers name another topic, ask again before that is believed."""
        doubtful: list[Cursor] = []
        for cursor, leader, found in other_topic:
            if cursor.topic.doubts(unread=cursor.unread):
                doubtful.append(cursor)
            else:
                self._lose(cursor, topic_recreated(cursor, found, leader.leader_id))
                cursor.topic.note_other(found)
        for topic in {cursor.topic_partition.topic for cursor in doubtful}:
            self._memory.forget_topic(topic)
        again = [cursor for cursor in doubtful if cursor.topic.doubted_again]
        if again:
            self._memory.avoid_last_asked()
        # The first time at once: what this process knew may simply be old.
        self._pause_together(again, now)
        if self._lost:
            # Raised from here: the caller may continue in the topic that there is now.
            return self._raise_lost()
        wanted = leaderless + [cursor for cursor in doubtful if cursor.state is CursorState.READY]
        if not wanted:
            return self._plan(now, lookups=True)
        for cursor in wanted:
            cursor.check()
        return FindLeaders(tuple(cursor.topic_partition for cursor in wanted), len(self._active) == 1)

    def _ask_epochs(self, changed: list[tuple[Cursor, PartitionMetadata, int]]) -> FetchEpochEnds:
        questions: dict[int, list[EpochQuestion]] = {}
        for cursor, leader, epoch in changed:
            cursor.check()
            question = EpochQuestion(cursor.topic_partition, leader.leader_epoch, epoch)
            questions.setdefault(leader.leader_id, []).append(question)
        return FetchEpochEnds(questions)

    def _check_logs(self, cursors: list[Cursor]) -> FetchLogEnds:
        """Look at logs with leaders and topic ids of now."""
        for topic in {cursor.topic_partition.topic for cursor in cursors}:
            self._memory.forget_topic(topic)
        for cursor in cursors:
            cursor.check()
        self._refused = []
        return FetchLogEnds(
            tuple(cursor.topic_partition for cursor in cursors), alone=len(self._active) == len(cursors)
        )

    # What happened to requests

    def on_sent(self, broker_id: int, address: str, now: float) -> None:
        """Note that the request of the last `Send` is in flight."""
        send, cursors = self._planned.popleft()
        for cursor, position in zip(cursors, send.positions, strict=True):
            cursor.sent(position, address)
        self._broker(broker_id).in_flight = RequestInFlight(cursors, now, now)

    def on_connecting(self, broker_id: int, now: float) -> None:
        """Note that the request of the last `Send` cannot be sent yet: a connection is being made."""
        self._planned.popleft()
        self._broker(broker_id).connecting_since = now

    def on_connected(self, broker_id: int) -> None:
        """Note that a connection was made."""
        self._broker(broker_id).connecting_since = None
        self._nothing_before = -math.inf

    def on_arrival(self, broker_id: int, now: float) -> bool:
        """Note that bytes of the response of a broker arrive steadily; return whether that is progress.

        It is not while other ranges fail, nor after several responses that were cut off.
        """
        broker = self._broker(broker_id)
        if broker.in_flight is None:
            raise RuntimeError(f"no request is in flight to broker {broker_id}")
        broker.in_flight.heard_at = now
        if broker.cut_off >= _CUT_OFF_IN_VAIN:
            return False
        for cursor in broker.in_flight.cursors:
            cursor.note_arrival()
        return self.forget_errors()

    def on_failure(
        self, broker_id: int, error: ConnectorError, *, cut_short: bool = False, cut_off: bool = False
    ) -> None:
        """Note that a request, or a connection, to a broker failed; nothing is in flight to it any more.

        Args:
            broker_id: the broker.
            error: why.
            cut_short: whether only the caller's time ended: that says less than a failure before it.
            cut_off: whether a part of the response had arrived; then less is asked for.
        """
        broker = self._broker(broker_id)
        if cut_off:
            broker.cut_off += 1
            broker.shrink()
        self._nothing_before = -math.inf
        cursors: Sequence[Cursor]
        if broker.in_flight is not None:
            cursors = broker.in_flight.cursors
        elif self._planned and self._planned[0][0].broker_id == broker_id:
            cursors = self._planned.popleft()[1]
            if self._records:
                # Sent ahead: the next turn sends it again, and reports if that fails, too.
                return
        else:
            cursors = self._waiting_for(broker_id)
        broker.clear()
        self._fail(cursors, error, cut_short=cut_short)

    def on_response(self, broker_id: int, response: FetchResponse, now: float) -> None:
        """Take the response to the request in flight to a broker."""
        broker = self._brokers[broker_id]
        request, broker.in_flight = broker.in_flight, None
        if request is None:
            raise RuntimeError(f"no request is in flight to broker {broker_id}")
        self._nothing_before = -math.inf
        broker.cut_off = 0
        took_s = 0.0 if request.waited_since is None else now - request.waited_since
        if took_s > self._slow_s:
            broker.shrink()
        elif broker.max_bytes < self._max_bytes and took_s < self._slow_s / 2:
            broker.grow(self._max_bytes, now)
        if response.throttle_time_ms > 0:
            until = now + response.throttle_time_ms / 1000
            broker.throttle(until, empty=not any(entry.records for entry in response.partitions))
            self.throttle.note(request.cursors[0].last_address, now, until)
            COUNTERS.add(THROTTLE_SECONDS, response.throttle_time_ms / 1000)
        if response.error_code != ErrorCode.NONE:
            for cursor in request.cursors:
                self._fail([cursor], fetch_refused(cursor, response.error_code))
            return
        matched = request.match(response.partitions)
        by_outcome: dict[Outcome, list[Cursor]] = {}
        for cursor, entry in matched.entries.items():
            if cursor.state is CursorState.IN_FLIGHT:
                outcome = self._take(cursor, entry, response, now, first=cursor is request.cursors[0])
                if outcome is not None:
                    by_outcome.setdefault(outcome, []).append(cursor)
        if matched.foreign and now >= self._warn_of_foreign_at:
            self._warn_of_foreign_at = now + _WARNINGS_APART_S
            # docs/internals/fetch-rules.md, R15
            text = "Broker %d responded to a fetch with %s, which was not requested: ignored. Logged once a minute."
            _LOG.warning(text, broker_id, listed(matched.foreign, describe_entry))
        for cursor in matched.doubled:
            self._note(cursor, named_twice(cursor))
        missing = [cursor for cursor in request.cursors if cursor not in matched.entries]
        self._place(request, by_outcome, missing, now)

    def _take(
        self, cursor: Cursor, entry: FetchPartitionResponse, response: FetchResponse, now: float, *, first: bool
    ) -> Outcome | None:
        if entry.error_code != ErrorCode.NONE:
            if self._learned_leader(cursor, entry, response) and cursor.follow_leader():
                cursor.replica.leave()
                cursor.release()
            else:
                self._fail([cursor], fetch_refused(cursor, entry.error_code))
            return None
        try:
            outcome, fetched = cursor.take(entry, now, first=first, throttled=response.throttle_time_ms > 0)
        except CorruptRecordsError as error:
            self._fail([cursor], error)
            return None
        if fetched is not None:
            self._records.append((cursor, fetched))
            self._sent_ahead = False
        return outcome

    def _learned_leader(self, cursor: Cursor, entry: FetchPartitionResponse, response: FetchResponse) -> bool:
        if entry.error_code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            return False
        node = next((node for node in response.nodes if node.broker_id == entry.leader_id), None)
        return self._memory.learn_leader(cursor.topic_partition, entry.leader_id, entry.leader_epoch, node)

    def _place(
        self, request: RequestInFlight, by_outcome: dict[Outcome, list[Cursor]], missing: Iterable[Cursor], now: float
    ) -> None:
        """Decide when and in which order the ranges of a response are asked for again."""
        fed = by_outcome.get(Outcome.FED, [])
        if len(fed) == len(self._active):
            self._active = [cursor for cursor in fed if cursor.state is not CursorState.DONE]
            return
        starved, empty = by_outcome.get(Outcome.STARVED, []), by_outcome.get(Outcome.EMPTY, [])
        left_out = [cursor for cursor in missing if cursor.state is CursorState.IN_FLIGHT]
        for cursor in left_out:
            cursor.release()
        # A throttled broker may leave everything out.
        self._pause_together([*left_out, *by_outcome.get(Outcome.BEHIND, [])], now)
        self._look_for_replicas(by_outcome.get(Outcome.REDIRECTED, []), now)
        # An empty response before its time (min_bytes or max_wait 0, a server that does not wait): no busy loop.
        soon_s = max(_SOON_MS, self._fetch.max_wait_ms / 2) / 1000
        if not fed and now - request.sent_at < soon_s:
            self._pause_together([*starved, *empty], now)
        self._active = order_next(self._active, fed=fed, starved=starved, empty=empty)

    def _look_for_replicas(self, redirected: Sequence[Cursor], now: float) -> None:
        """Have the cluster asked for replicas that leaders name and that are not known: new, or back again."""
        unknown = [
            cursor
            for cursor in redirected
            if cursor.replica.broker_id >= 0 and self._memory.cached_broker(cursor.replica.broker_id) is None
        ]
        for topic in {cursor.topic_partition.topic for cursor in unknown}:
            self._memory.forget_topic(topic)
        self._pause_together(unknown, now)

    # What happened to look-ups

    def on_leaders(self, step: FindLeaders, now: float) -> None:
        """Note that the cluster was asked for leaders; the client's memory has them. Elections are not waited for."""
        leaderless: list[Cursor] = []
        for cursor in self._checking(step.topic_partitions):
            if self._memory.cached_leader(cursor.topic_partition) is None:
                leaderless.append(cursor)
            else:
                cursor.release()
        if leaderless:
            text = f"{leaderless[0].topic_partition} has no leader"
            error = broker_error(ErrorCode.LEADER_NOT_AVAILABLE, text)
            for cursor in leaderless:
                self._note(cursor, error)
            self._pause_together(leaderless, now)
        self._nothing_before = -math.inf

    def on_epoch_ends(self, step: FetchEpochEnds, ends: Mapping[TopicPartition, EpochEnd | ConnectorError]) -> None:
        """Take what new leaders say about the epochs of positions."""
        epochs = {each.topic_partition: each.current_epoch for asked in step.questions.values() for each in asked}
        for cursor in self._checking(epochs):
            end = ends[cursor.topic_partition]
            if isinstance(end, ConnectorError):
                self._fail([cursor], end)
            elif end.error_code != ErrorCode.NONE:
                self._fail([cursor], fetch_refused(cursor, end.error_code))
            else:
                error = cursor.confirm_epoch(epochs[cursor.topic_partition], end.end_offset)
                if error is not None:
                    self._lose(cursor, error)
        self._nothing_before = -math.inf

    def on_log_ends(self, step: FetchLogEnds, ends: Mapping[TopicPartition, tuple[int, int]], now: float) -> None:
        """Take the first offsets and high watermarks of logs."""
        for cursor in self._checking(step.topic_partitions):
            refusal = cursor.error
            if not cursor.topic.accepts(self._memory.cached_topic_id(cursor.topic_partition.topic)):
                # A recreated topic is noticed by its id.
                cursor.release()
                continue
            error = cursor.compare_log(*ends[cursor.topic_partition], now, refusal)
            if error is not None:
                self._lose(cursor, error)
            elif refusal is None:
                cursor.release()
            elif cursor.log_check_at < math.inf:
                cursor.pause_until(cursor.log_check_at)
            else:
                self._pause_together([cursor], now)
        self._nothing_before = -math.inf

    def on_metadata(self) -> None:
        """Note that the cluster was asked about silent brokers: brokers that no longer lead are left."""
        silent, self._silent = self._silent, []
        for broker_id in silent:
            cursors = self._asked_of(broker_id)
            if any(self._has_left(cursor, broker_id) for cursor in cursors):
                for cursor in cursors:
                    if cursor.state is CursorState.IN_FLIGHT:
                        cursor.release()
                    cursor.replica.leave()
                self._broker(broker_id).clear()
                self._left.append(broker_id)
        self._change()

    def on_lookup_failure(self, step: Lookup, error: ConnectorError, now: float, *, cut_short: bool = False) -> None:
        """Note that a look-up failed as a whole."""
        if isinstance(step, LookAtSilent):
            # Not what the caller came for: the silent brokers may respond yet.
            self._silent = []
            if self.last_error is None:
                self.last_error, self.last_was_cut_short = error, cut_short
            return
        if isinstance(step, FetchEpochEnds):
            asked = [each.topic_partition for questions in step.questions.values() for each in questions]
        else:
            asked = list(step.topic_partitions)
        cursors = self._checking(asked)
        if isinstance(step, FetchLogEnds):
            for cursor in cursors:
                cursor.look_later(now)
        self._fail(cursors, error, cut_short=cut_short)

    # Failures

    def _fail(self, cursors: Iterable[Cursor], error: ConnectorError, *, cut_short: bool = False) -> None:
        """Have failures handled when the records at hand are delivered."""
        for cursor in cursors:
            if cursor.state not in (CursorState.DONE, CursorState.FAILED):
                cursor.fail(error)
                self._failures.append((cursor, cut_short))
        self._nothing_before = -math.inf

    def _handle_failures(self, now: float) -> None:
        refreshed: list[Cursor] = []
        for cursor, cut_short in self._failures:
            error = cursor.error
            if error is None:
                continue
            if self.last_error is None or not cut_short:
                self._note(cursor, error, cut_short=cut_short)
            action = cursor.decide(error).action
            if action is RetryAction.FAIL and not (self._fetch.outage_timeout_ms and may_be_outage(error)):
                if error.condition == "UNKNOWN_TOPIC" and cursor.topic.planned is not None:
                    deleted = topic_deleted(cursor)
                    deleted.__cause__ = error
                    error = deleted
                self._lose(cursor, error)
            elif action is RetryAction.ASK_LEADER:
                cursor.replica.avoid()
                cursor.release()
            elif action is not RetryAction.CHECK_LOG:
                # Leader moved, epoch fenced, replica gone, storage failed, connection lost, topic id not known yet.
                cursor.replica.leave()
                refreshed.append(cursor)
            elif now < cursor.log_check_at < math.inf:
                # Looks at the log are this far apart, also where a leader refuses at once.
                self._memory.forget_topic(cursor.topic_partition.topic)
                cursor.pause_until(cursor.log_check_at)
            else:
                self._refused.append(cursor)
        self._failures.clear()
        for topic in {cursor.topic_partition.topic for cursor in refreshed}:
            self._memory.forget_topic(topic)
        self._pause_together(refreshed, now)
        self._change()

    def _lose(self, cursor: Cursor, error: ConnectorError) -> None:
        """Have an error raised; the range stands still until it is resumed."""
        cursor.fail(error)
        self._lost.append(cursor)

    def _note(self, cursor: Cursor, error: ConnectorError, *, cut_short: bool = False) -> None:
        self.last_error, self.last_was_cut_short = error, cut_short
        cursor.note_failure(error)

    def _pause_together(self, cursors: Sequence[Cursor], now: float) -> None:
        """Pause ranges for the same time, so that they are asked for together again."""
        if cursors:
            until = now + max(cursor.backoff.next_s() for cursor in cursors)
            for cursor in cursors:
                cursor.pause_until(until)

    # Brokers

    def _broker(self, broker_id: int) -> BrokerSlot:
        broker = self._brokers.get(broker_id)
        if broker is None:
            broker = self._brokers[broker_id] = BrokerSlot(self._max_bytes)
        return broker

    def _checking(self, topic_partitions: Iterable[TopicPartition]) -> list[Cursor]:
        found = (self._cursors.get(topic_partition) for topic_partition in topic_partitions)
        return [cursor for cursor in found if cursor is not None and cursor.state is CursorState.CHECKING]

    def _waiting_for(self, broker_id: int) -> list[Cursor]:
        """Return the ranges that would be asked of a broker and have no request in flight."""
        resting = (CursorState.READY, CursorState.PAUSED)
        return [cursor for cursor in self._active if cursor.broker_id == broker_id and cursor.state in resting]

    def _asked_of(self, broker_id: int) -> Sequence[Cursor]:
        in_flight = self._broker(broker_id).in_flight
        return self._waiting_for(broker_id) if in_flight is None else in_flight.cursors

    def _topics_of_silent(self, now: float) -> frozenset[str]:
        """Find the brokers that have been connected to, or waited for, for too long; return what they are asked for."""
        self._look_at = now + _LOOK_S
        waited_s = _SILENT_S + self._fetch.max_wait_ms / 1000
        brokers = self._brokers.items()
        self._silent = [broker_id for broker_id, broker in brokers if broker.is_silent(now, _SILENT_S, waited_s)]
        cursors = (cursor for broker_id in self._silent for cursor in self._asked_of(broker_id))
        return frozenset(cursor.topic_partition.topic for cursor in cursors)

    def _has_left(self, cursor: Cursor, broker_id: int) -> bool:
        """Return whether a broker is known to be another one now than the one to ask for a range."""
        if cursor.replica.broker_id == broker_id:
            return self._memory.cached_broker(broker_id) is None
        leader = self._memory.cached_leader(cursor.topic_partition)
        return leader is not None and leader.leader_id != broker_id
