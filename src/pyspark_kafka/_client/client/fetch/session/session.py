"""The next step of a read, and what responses change. It decides, `fetcher.py` does.

Pure: no sockets, and no clock; times are arguments, in seconds of the caller's choice.

The story of one response, with one range:

1. The caller comes for records: `begin`. `next_step` returns `Send` with the position; the request is sent: `on_sent`.
2. `next_step` returns `WaitUntil`. The response arrives: `on_response` finds the next position from the headers of the
   record batches, which are not verified yet.
3. `next_step` returns `Send` again, for the next position: its response travels while the caller decodes this one.
4. `next_step` returns `Deliver`. The caller decodes the records, and passes the verified position to `confirm`.
5. The caller comes again, from 2 on, until the position reaches the end of the range: `Done`.

With many ranges there is at most one request for each broker. A response may bring records for several ranges; they
are delivered one after the other. Ranges that got nothing come first in the next request, because brokers fill a
response in the order of the request.

Failures wait until the records that came with them are delivered. Then the session requests the leader again
(`FindLeaders`), requests the epoch's end from a new leader (`FetchEpochEnds`), compares the position with the log's
ends (`FetchLogEnds`), pauses the range, or raises (`Raise`). A broker that is silent for a second or two may have
died: the session requests the current leader (`LookAtSilent`) and leaves the broker if it leads no more (`Leave`).
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.fetch.cursor import CursorState, Outcome
from pyspark_kafka._client.client.fetch.errors import fetch_refused, named_twice
from pyspark_kafka._client.client.fetch.request import RecordSizes
from pyspark_kafka._client.client.fetch.session.brokers import Brokers, RequestInFlight, describe_entry
from pyspark_kafka._client.client.fetch.session.lookups import Lookups
from pyspark_kafka._client.client.fetch.session.ranges import Ranges
from pyspark_kafka._client.client.fetch.session.routing import build_send, order_next, pause_together, survey
from pyspark_kafka._client.client.fetch.session.steps import Deliver, Done, Leave, Raise, WaitUntil
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka.errors import CorruptRecordsError, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.fetch.cursor import Cursor, FetchedRecords
    from pyspark_kafka._client.client.fetch.response import FetchPartitionResponse, FetchResponse
    from pyspark_kafka._client.client.fetch.session.steps import ClusterMemory, Step
    from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
    from pyspark_kafka.errors import ConnectorError

_LOG = logging.getLogger(__name__)

# The broker did not wait for records before an empty response that comes sooner than this.
_SOON_MS = 20.0
_WARNINGS_APART_S = 60.0
# After this number of responses in a row that were cut off in the middle, bytes that arrive are no progress any more.
_CUT_OFF_IN_VAIN = 5


class FetchSession:
    """Decides what to do next to read ranges, each in order, without gap or repetition.

    Runs on: executor. Not thread-safe; does not pickle. No method blocks.

    Args:
        memory: the client's memory of the cluster.
        fetch: sizes, waits, isolation.
        options: rack, backoff, metadata age.
        record_sizes: what records of topics took before; None if nothing is known.

    Attributes:
        ranges: what is read; the caller adds, holds, confirms and removes.
        brokers: what is in flight.
        lookups: the events of look-ups.

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
        self.ranges = Ranges(memory, fetch, options, RecordSizes() if record_sizes is None else record_sizes)
        self.brokers = Brokers(fetch, options)
        self.lookups = Lookups(memory, fetch, self.ranges, self.brokers)
        # Whether the requests that travel while the records at hand are delivered are planned.
        self._sent_ahead = False
        self._warn_of_foreign_at = -math.inf
        self._early_s = max(_SOON_MS, fetch.max_wait_ms / 2) / 1000

    def begin(self, now: float) -> None:
        """Record a new call for records: the time since the last call does not count as silence."""
        for broker in self.brokers.slots.values():
            if broker.in_flight is not None:
                broker.in_flight.waited_since = None
        self.lookups.begin(now)
        self.ranges.last_error = None

    # The next step

    @property
    def has_records(self) -> bool:
        """Whether the next step is `Deliver`, as requests are sent and records of the same response are left."""
        return bool(self.ranges.records) and self._sent_ahead and not self.ranges.sends

    def next_step(self, now: float) -> Step:
        """Decide what to do now; the caller does it and reports by an event before it comes again."""
        ranges = self.ranges
        if ranges.records:
            return self._next_with_records(now)
        if self.brokers.left:
            return Leave(self.brokers.left.popleft())
        if ranges.failures:
            ranges.handle_failures(now)
        if ranges.lost:
            return self._raise_lost()
        if not ranges.active:
            return Done()
        if ranges.sends:
            return ranges.sends[0][0]
        if ranges.refused:
            return self.lookups.check_logs(ranges.refused)
        step: Step | None = None
        if now >= ranges.nothing_before:
            step = self._plan(now, lookups=True)
        if step is None and now >= self.lookups.look_at:
            step = self.lookups.look_at_silent(now)
        return self._wait(now) if step is None else step

    def _next_with_records(self, now: float) -> Step:
        if not self._sent_ahead:
            # Requests without a look-up first: look-ups must not delay the records at hand.
            self._sent_ahead = True
            self._plan(now, lookups=False)
        if self.ranges.sends:
            return self.ranges.sends[0][0]
        return Deliver(*self.next_records())

    def next_records(self) -> tuple[TopicPartition, FetchedRecords]:
        """Return what the next `Deliver` has; only while `has_records`."""
        cursor, fetched = self.ranges.records.popleft()
        return cursor.topic_partition, fetched

    def _raise_lost(self) -> Raise:
        error = self.ranges.lost[0].error
        if error is None:
            raise RuntimeError("a lost range has an error")
        return Raise(error)

    def _wait(self, now: float) -> WaitUntil:
        for broker in self.brokers.slots.values():
            if broker.in_flight is not None and broker.in_flight.waited_since is None:
                broker.in_flight.waited_since = now
        return WaitUntil(min(self.ranges.nothing_before, self.lookups.look_at))

    def _plan(self, now: float, *, lookups: bool) -> Step | None:
        """Plan requests for all ready ranges, or return the look-up that must come first.

        Without `lookups`, ranges that need one are left for later.
        """
        ranges, brokers = self.ranges, self.brokers
        found = survey(ranges.active, self._memory, brokers.slots, now)
        ranges.nothing_before = now if found.needs_lookup else found.until
        if lookups and found.needs_lookup:
            step = self.lookups.first(found, now)
            if ranges.lost:
                return self._raise_lost()
            return self._plan(now, lookups=True) if step is None else step
        for broker_id, ready in found.routed.items():
            slot = brokers.slots.get(broker_id)
            max_bytes = brokers.max_bytes if slot is None else slot.max_bytes
            budget = brokers.budget if max_bytes == brokers.max_bytes else max_bytes
            ranges.sends.append(build_send(broker_id, ready, budget, max_bytes))
        return ranges.sends[0][0] if ranges.sends else None

    # What happened to requests

    def on_sent(self, broker_id: int, address: str, now: float) -> None:
        """Record that the request of the last `Send` is in flight."""
        send, cursors = self.ranges.sends.popleft()
        for cursor, position in zip(cursors, send.positions, strict=True):
            cursor.sent(position, address)
        self.brokers.slot(broker_id).in_flight = RequestInFlight(cursors, now, now)

    def on_connecting(self, broker_id: int, now: float) -> None:
        """Record that the last `Send` waits for its connection."""
        self.ranges.sends.popleft()
        self.brokers.slot(broker_id).connecting_since = now

    def on_connected(self, broker_id: int) -> None:
        """Record that a connection was opened."""
        self.brokers.slot(broker_id).connecting_since = None
        self.ranges.nothing_before = -math.inf

    def on_arrival(self, broker_id: int, now: float) -> bool:
        """Record that response bytes arrive steadily; return whether that is progress.

        It is not while other ranges fail, nor after several responses that were cut off.
        """
        broker = self.brokers.slot(broker_id)
        if broker.in_flight is None:
            raise RuntimeError(f"no request is in flight to broker {broker_id}")
        broker.in_flight.heard_at = now
        if broker.cut_off >= _CUT_OFF_IN_VAIN:
            return False
        for cursor in broker.in_flight.cursors:
            cursor.note_arrival()
        return self.ranges.forget_errors()

    def on_failure(
        self, broker_id: int, error: ConnectorError, *, cut_short: bool = False, cut_off: bool = False
    ) -> None:
        """Record a failed request, or connection, to a broker; nothing is in flight to it afterwards.

        Args:
            broker_id: the broker.
            error: why.
            cut_short: whether only the caller's time ended: that says less than a failure before it.
            cut_off: whether a part of the response had arrived; then the next request is smaller.
        """
        broker = self.brokers.slot(broker_id)
        if cut_off:
            broker.cut_off += 1
            broker.shrink()
        self.ranges.nothing_before = -math.inf
        cursors: Sequence[Cursor]
        if broker.in_flight is not None:
            cursors = broker.in_flight.cursors
        elif self.ranges.sends and self.ranges.sends[0][0].broker_id == broker_id:
            cursors = self.ranges.sends.popleft()[1]
            if self.ranges.records:
                # Sent ahead: the next turn sends it again, and reports if that fails, too.
                return
        else:
            cursors = self.ranges.waiting_for(broker_id)
        broker.clear()
        self.ranges.fail(cursors, error, cut_short=cut_short)

    def on_response(self, broker_id: int, response: FetchResponse, now: float) -> None:
        """Take the response to the request in flight to a broker."""
        request = self.brokers.responded(broker_id, response, now)
        self.ranges.nothing_before = -math.inf
        if response.error_code != ErrorCode.NONE:
            for cursor in request.cursors:
                self.ranges.fail([cursor], fetch_refused(cursor, response.error_code))
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
            self.ranges.note(cursor, named_twice(cursor))
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
                self.ranges.fail([cursor], fetch_refused(cursor, entry.error_code))
            return None
        try:
            outcome, fetched = cursor.take_response(entry, now, first=first, throttled=response.throttle_time_ms > 0)
        except CorruptRecordsError as error:
            self.ranges.fail([cursor], error)
            return None
        if fetched is not None:
            self.ranges.records.append((cursor, fetched))
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
        """Decide when and in which order the ranges of a response are fetched again."""
        fed = by_outcome.get(Outcome.FED, [])
        if len(fed) == len(self.ranges.active):
            self.ranges.active = [cursor for cursor in fed if cursor.state is not CursorState.DONE]
            return
        starved, empty = by_outcome.get(Outcome.STARVED, []), by_outcome.get(Outcome.EMPTY, [])
        left_out = [cursor for cursor in missing if cursor.state is CursorState.IN_FLIGHT]
        for cursor in left_out:
            cursor.release()
        # A throttled broker may leave everything out.
        pause_together([*left_out, *by_outcome.get(Outcome.BEHIND, [])], now)
        self._look_for_replicas(by_outcome.get(Outcome.REDIRECTED, []), now)
        # An empty response before its time (min_bytes or max_wait 0, a server that does not wait): no busy loop.
        if not fed and now - request.sent_at < self._early_s:
            pause_together([*starved, *empty], now)
        self.ranges.active = order_next(self.ranges.active, fed=fed, starved=starved, empty=empty)

    def _look_for_replicas(self, redirected: Sequence[Cursor], now: float) -> None:
        """Request metadata about unknown replicas that leaders name: new, or back again."""
        unknown = [
            cursor
            for cursor in redirected
            if cursor.replica.broker_id >= 0 and self._memory.cached_broker(cursor.replica.broker_id) is None
        ]
        for topic in {cursor.topic_partition.topic for cursor in unknown}:
            self._memory.forget_topic(topic)
        pause_together(unknown, now)
