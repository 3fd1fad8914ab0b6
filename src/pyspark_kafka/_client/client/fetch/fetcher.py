"""Reads ranges of one or many topic-partitions: does what the session decides, with sockets, lanes and deadlines.

One call of `next` begins the time for progress, and then takes step after step from `FetchSession.next_step`, each
followed by its event, until a step is `Deliver`, `Raise` or `Done`. `session` tells the story of a response.

`poll` does the same for a limited time, and leaves in flight what is in flight. So its caller may act between, and
brokers may hold requests for longer than that until there are records.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.client.cluster.leaders import find_leaders
from pyspark_kafka._client.client.fetch.errors import LOSSES
from pyspark_kafka._client.client.fetch.lanes import FetchLanes
from pyspark_kafka._client.client.fetch.progress_timeout import ProgressTimeout
from pyspark_kafka._client.client.fetch.request import FetchFrame, record_sizes_of
from pyspark_kafka._client.client.fetch.session.session import FetchSession
from pyspark_kafka._client.client.fetch.session.steps import (
    Deliver,
    Done,
    FetchEpochEnds,
    FetchLogEnds,
    FindLeaders,
    Leave,
    Raise,
    Send,
    WaitUntil,
)
from pyspark_kafka._client.client.queries.leader_epochs import fetch_epoch_ends
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka.errors import AccessError, ConnectorError, DeadlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from pyspark_kafka._base.model import OffsetRange, TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
    from pyspark_kafka._client.client.fetch.lanes import FetchLane
    from pyspark_kafka._client.client.fetch.response import FetchResponse
    from pyspark_kafka._client.client.fetch.session.steps import Lookup
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.options import FetchOptions

_Fetcher = TypeVar("_Fetcher", bound="Fetcher")

# A response that is not complete after this time no longer holds up the responses of other brokers.
_TURN_S = 0.1
_SLOW_HINT = (
    "Check how fast the network to this broker is, and whether it loses packets. If it is slow, lower option "
    "'kafka.max.partition.fetch.bytes'."
)
# In `poll`, a look-up may take this long at first. If time cuts it short, the next one may take twice the time, up to
# what a look-up may take at most.
_FIRST_LOOKUP_MS = 2_000.0
# A connection on which a response has come within this time is not looked at before the next request.
_HEARD_S = 0.05
# A caller of `poll` that came back later than this was busy: responses may have come meanwhile.
_BUSY_S = 0.1
# The others wait this long while the ends of a log are looked up: a leader that has just taken over returns none for a
# while.
_LOG_ENDS_BESIDE_MS = 2_000.0


class Fetcher:
    """Iterates over the bytes of ranges, each in order, without gap or repetition; ranges interleave.

    Ranges that end are iterated over, ranges without an end (`model.NO_END`) are polled; they may be added, paused and
    removed meanwhile.

    A range ends when its *position* reaches the end: control records, aborted records and compaction holes take
    offsets, too. While the caller decodes a response, the next one of each broker is in flight. Lost connections, moved
    leaders and failed brokers are retried from the positions, while any range makes progress every `poll_timeout_ms`.

    The position after a response comes from batch headers whose checksum is not verified yet. Tell with `confirm` how
    far decoding came: a difference is an error there, before anything is read from a wrong position.

    Memory: at most two responses, one being decoded and one in flight, however many brokers and partitions. Each
    request asks for at most half of `max_buffered_bytes`; a single larger record batch still arrives whole. A caller
    that does not come has no further request sent: what brokers have responded with stays in the sockets.

    Runs on: executor; `next` and `poll` block. Not thread-safe; does not pickle.

    Args:
        client: of the cluster; the fetcher borrows a connection to each leader from it.
        offset_ranges: what to read; each partition once.
        fetch: sizes, waits, isolation.
        topic_ids: the topics that the ranges were planned on, by name, where brokers named them. A broker that names
            another one gets a second request, in case it lags; then the topic was recreated.
        clock: monotonic seconds.
        sleep: waits seconds.

    Raises (from `next` and `poll`):
        OffsetOutOfRangeError: a position is not in the log (any more), or the log ends there, before the end of the
            range, also after about 10 s. `resume` continues behind the gap.
        LogTruncatedError: the log was truncated below a position. `resume` continues.
        TopicRecreatedError: a topic was recreated. `resume` continues in the recreated topic.
        TopicDeletedError: a topic that ranges were planned on was deleted. `resume` at the end of the range.
        AccessError: a topic may not be read.
        BrokerError: a topic does not exist, or a broker refused for good.
        DeadlineError: no progress for `poll_timeout_ms`, in an outage for `outage_timeout_ms`; names topic-partition,
            position, broker.
        ProtocolError: a response that is not valid.
    """

    def __init__(
        self,
        client: KafkaClient,
        offset_ranges: Iterable[OffsetRange],
        fetch: FetchOptions,
        *,
        topic_ids: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._fetch = fetch
        self._clock = clock
        self._sleep = sleep
        self._session = FetchSession(client, fetch, client.options, record_sizes_of(client))
        self._ranges = self._session.ranges
        planned = topic_ids or {}
        for offset_range in offset_ranges:
            topic_id = planned.get(offset_range.topic_partition.topic)
            self._ranges.add_range(offset_range, None if topic_id is None else UUID(topic_id))
        self._lanes = FetchLanes(client)
        self._timeout = ProgressTimeout(client.options, fetch, self._session, clock, sleep)
        # A broker may wait for records for max_wait_ms before it has to respond.
        self._response_ms = client.options.request_timeout_ms + fetch.max_wait_ms
        self._closed = False
        # Of `poll`: the time for progress of a wait that the caller has left, whether it came before, when it left, and
        # what the next look-up may take.
        self._progress: Deadline | None = None
        self._polled = False
        self._left_at = 0.0
        self._lookup_ms = _FIRST_LOOKUP_MS

    def __enter__(self: _Fetcher) -> _Fetcher:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self: _Fetcher) -> _Fetcher:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def position(self, topic_partition: TopicPartition) -> int:
        """Return the offset that is read next; after a response, by its headers until `confirm`."""
        return self._ranges.position(topic_partition)

    def known_end(self, topic_partition: TopicPartition) -> int | None:
        """Return the offset behind the last visible record, as the last response named it; None before the first.

        It is the high watermark, or the last stable offset under read_committed. No request is sent for it.
        """
        return self._ranges.known_end(topic_partition)

    @property
    def holds_records(self) -> bool:
        """Whether `poll` returns records without waiting, as more came with the last ones."""
        return bool(self._ranges.records)

    @property
    def is_done(self) -> bool:
        """Whether every range is read to its end, and everything of them was returned."""
        return self._ranges.is_done

    @property
    def connections(self) -> list[Connection]:
        """The connections that are borrowed now."""
        return [lane.connection for lane in self._lanes if lane.connection is not None]

    def close(self) -> None:
        """Return the connections; responses in flight are given up. Safe to call again."""
        self._closed = True
        self._lanes.close()

    def confirm(self, topic_partition: TopicPartition, next_offset: int) -> None:
        """Compare the position that decoding found, checksums verified, with the position of the headers.

        Args:
            topic_partition: of the records that `next` returned last.
            next_offset: the position after them.

        Raises:
            CorruptRecordsError: they differ within the range.
        """
        error = self._ranges.confirm(topic_partition, next_offset)
        if error is not None:
            self.close()
            raise error

    def resume(self, topic_partition: TopicPartition, offset: int) -> None:
        """Continue at another offset, after an OffsetOutOfRangeError or LogTruncatedError of this partition.

        Args:
            topic_partition: the topic-partition that the error names.
            offset: the next one to read; at or behind the end of the range, nothing more of it is read.
        """
        self._ranges.resume(topic_partition, offset)

    def add_range(self, offset_range: OffsetRange, topic_id: str | None = None) -> None:
        """Read another range from now on.

        Args:
            offset_range: what to read.
            topic_id: the topic that it was planned on, if brokers named it.

        Raises:
            ValueError: another range of the partition is read.
        """
        self._ranges.add_range(offset_range, None if topic_id is None else UUID(topic_id))

    def remove(self, topic_partition: TopicPartition) -> int:
        """Read a range no more; return the position behind what was returned of it.

        Records of it that are at hand or in flight are dropped.
        """
        return self._ranges.remove(topic_partition)

    def pause(self, topic_partition: TopicPartition) -> None:
        """Send no requests for a range until `unpause`; records at hand and in flight are still returned."""
        self._ranges.hold(topic_partition, held=True)

    def unpause(self, topic_partition: TopicPartition) -> None:
        """Send requests for a range again."""
        self._ranges.hold(topic_partition, held=False)

    def poll(self, timeout_ms: float) -> tuple[TopicPartition, FetchedRecords] | None:
        """Return the next records of some partition, as soon as they are there.

        The time ends the call, not the requests that are in flight. Look-ups that ranges need may take longer, at first
        up to 2 s. While some range fails, the time for progress continues from call to call, whatever others bring.

        Args:
            timeout_ms: how long to wait for records; with 0 only what has arrived is returned.

        Returns:
            None if there are none yet, or if no range is left, after the time in both cases.

        Raises:
            ConnectorError: see the class.
        """
        if self._closed:
            raise RuntimeError("the fetcher is closed")
        if self._session.has_records:
            return self._session.next_records()
        until = Deadline(timeout_ms, clock=self._clock, sleep=self._sleep)
        with self._timeout.wait:
            try:
                found = self._take_steps(self._begin_poll(), until)
            except ConnectorError as error:
                if not isinstance(error, LOSSES):
                    self.close()
                raise
            if self._timeout.rest(fed=found is not None):
                self._progress = None
        self._left_at = self._clock()
        if found is None:
            until.pause(until.remaining_s())
            return None
        return found.topic_partition, found.fetched

    def _begin_poll(self) -> Deadline:
        now = self._clock()
        if not self._polled:
            self._polled = True
            self._session.begin(now)
        elif now - self._left_at > _BUSY_S:
            self._session.brokers.wait_again(self._lanes.begin_again())
        return self._progress or self._timeout.begin()

    def __next__(self) -> tuple[TopicPartition, FetchedRecords]:
        """Return the next records of some partition.

        Raises:
            StopIteration: all positions have reached their ends.
            ConnectorError: see the class.
        """
        if self._closed and (self._ranges.active or self._session.has_records):
            raise RuntimeError("the fetcher is closed")
        if self._session.has_records:
            # They came with the records that were returned last.
            return self._session.next_records()
        with self._timeout.wait:
            try:
                progress = self._timeout.begin()
                self._session.begin(self._clock())
                self._lanes.begin()
                found = self._take_steps(progress)
            except ConnectorError as error:
                # After a loss, the caller may continue with the other ranges.
                if not isinstance(error, LOSSES):
                    self.close()
                raise
            self._timeout.wait.progress()
        if found is None:
            self.close()
            raise StopIteration
        return found.topic_partition, found.fetched

    def _take_steps(self, progress: Deadline, until: Deadline | None = None) -> Deliver | None:
        """Take steps until records are there, all ranges are done, or the caller's time is over."""
        while True:
            if self._lanes.connecting:
                self._take_connected()
            step = self._session.next_step(self._clock())
            if isinstance(step, Deliver):
                return step
            if isinstance(step, Done):
                return None
            if isinstance(step, Raise):
                if isinstance(step.error, AccessError):
                    name_user(step.error, self._client.options)
                raise step.error
            progress = self._timeout.check(progress)
            if until is not None:
                self._progress = progress
            if isinstance(step, WaitUntil):
                if not self._wait(step, progress, until) and until is not None and until.expired:
                    return None
            elif isinstance(step, Send):
                self._send(step, progress)
            elif isinstance(step, Leave):
                self._lanes.leave(step.broker_id)
            else:
                self._look_up(step, progress, polled=until is not None)

    def _take_connected(self) -> None:
        for broker_id, error in self._lanes.take_connected():
            if error is None:
                self._session.on_connected(broker_id)
            else:
                self._session.on_failure(broker_id, error)

    def _send(self, step: Send, progress: Deadline) -> None:
        lane = self._lanes.of(step.broker_id)
        try:
            connection = lane.connection
            # A broker that has just responded is there; if it closes the connection now, the request fails as any may.
            is_heard = self._clock() - lane.heard_at < _HEARD_S and not (connection and connection.session_is_old)
            if connection is None or not (is_heard or connection.idle_and_alive):
                connection = self._lanes.open_connection(lane, progress.within(self._client.options.api_timeout_ms))
            if connection is None:
                self._session.on_connecting(step.broker_id, self._clock())
                return
            rack = self._client.options.client_rack if step.use_rack else None
            request = FetchFrame(step.positions, self._fetch, max_bytes=step.max_bytes, rack=rack)
            connection.send_request(request, max_version=request.max_version)
        except ConnectorError as error:
            lane.drop()
            self._session.on_failure(step.broker_id, error, cut_short=_cut_short(error, progress))
        else:
            self._lanes.sent(lane)
            self._session.on_sent(step.broker_id, connection.address, self._clock())

    def _wait(self, step: WaitUntil, progress: Deadline, until: Deadline | None) -> bool:
        """Wait for an event; return whether a response was received, or its connection failed."""
        began_at = self._clock()
        wake_in_s = step.time - began_at
        if until is not None:
            wake_in_s = min(wake_in_s, until.remaining_s())
        lane = self._lanes.wait(progress, self._response_ms, wake_in_s, self._fetch.max_wait_ms / 1000)
        if lane is not None:
            self._receive(lane, progress, until, began_at)
        return lane is not None and not lane.in_flight

    def _receive(self, lane: FetchLane, progress: Deadline, until: Deadline | None, began_at: float) -> None:
        connection = lane.connection
        if connection is None or lane.deadline is None:
            raise RuntimeError("no request is in flight")
        try:
            if connection.doubt_at < math.inf and lane.is_forgotten(self._fetch.max_wait_ms / 1000):
                raise connection.give_up()
            response: FetchResponse | None = connection.receive(lane.deadline, turn_s=_TURN_S, until=until, reuse=True)
        except ConnectorError as error:
            if connection.cut_off and isinstance(error, DeadlineError):
                error.change_hint(_SLOW_HINT)
            self._lanes.drop(lane)
            cut_short = _cut_short(error, progress)
            self._session.on_failure(lane.broker_id, error, cut_short=cut_short, cut_off=connection.cut_off)
            return
        now = self._clock()
        if response is not None:
            self._lanes.received(lane)
            lane.heard_at = now
            self._session.on_response(lane.broker_id, response, now)
            return
        self._lanes.end_turn(lane)
        if lane.keeps_arriving(connection.arrived, began_at, now) and self._session.on_arrival(lane.broker_id, now):
            self._timeout.start_again()

    def _look_up(self, step: Lookup, progress: Deadline, *, polled: bool) -> None:
        if polled:
            progress = progress.within(self._lookup_ms)
        try:
            if isinstance(step, FindLeaders):
                self._find_leaders(step, progress, patient=step.patient and not polled)
                self._session.lookups.on_leaders(step, self._clock())
            elif isinstance(step, FetchEpochEnds):
                budget = progress.within(self._client.options.request_timeout_ms)
                self._session.lookups.on_epoch_ends(step, fetch_epoch_ends(self._client, step.questions, budget))
            elif isinstance(step, FetchLogEnds):
                self._session.lookups.on_log_ends(step, self._fetch_log_ends(step, progress), self._clock())
            else:
                self._client.fetch_metadata(step.topics, progress.within(self._client.options.answer_timeout_ms))
                self._session.lookups.on_metadata()
        except ConnectorError as error:
            cut_short = _cut_short(error, progress)
            if cut_short:
                self._lookup_ms = min(2 * self._lookup_ms, self._client.options.api_timeout_ms)
            self._session.lookups.on_lookup_failure(step, error, self._clock(), cut_short=cut_short)
        else:
            self._lookup_ms = _FIRST_LOOKUP_MS

    def _find_leaders(self, step: FindLeaders, progress: Deadline, *, patient: bool) -> None:
        budget = progress.within(self._client.options.api_timeout_ms)
        wanted = step.topic_partitions
        if not patient:
            found = self._client.fetch_metadata({topic_partition.topic for topic_partition in wanted}, budget)
            # Created a moment ago, or not there: finding that out takes patience.
            wanted = tuple(topic_partition for topic_partition in wanted if found.partition(topic_partition) is None)
        if wanted:
            find_leaders(self._client, wanted, budget)

    def _fetch_log_ends(self, step: FetchLogEnds, progress: Deadline) -> dict[TopicPartition, tuple[int, int]]:
        """Look up first offsets and high watermarks, because invisible records also occupy offsets."""
        self._lanes.give_back_idle()
        longest_ms = math.inf if step.alone else _LOG_ENDS_BESIDE_MS
        budget = progress.within(min(longest_ms, self._client.options.api_timeout_ms))
        partitions = step.topic_partitions
        starts = list_offsets(self._client, dict.fromkeys(partitions, Earliest()), deadline=budget)
        ends = list_offsets(self._client, dict.fromkeys(partitions, Latest()), deadline=budget)
        return {tp: (starts[tp], ends[tp]) for tp in partitions}


def _cut_short(error: ConnectorError, progress: Deadline) -> bool:
    """Return whether a step ended with the caller's time, which says less than an earlier failure."""
    return isinstance(error, DeadlineError) and progress.expired
