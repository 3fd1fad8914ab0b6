"""Reads ranges of many partitions over one connection a broker, with one request of each ahead of the decoder.

What lives here: requests and answers, whom to wait for, when to try again. What must not: what an answer means for one
partition (fetch_state), decoding records, what is done about lost data. Layer: client.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from pyspark_kafka.client.fetch.ask_size import record_sizes_of
from pyspark_kafka.client.fetch.cursor import FetchedRecords, Outcome, PartitionRead, order_next
from pyspark_kafka.client.fetch.lanes import Asked, Lane, Lanes
from pyspark_kafka.client.fetch.patience import FetchPatience
from pyspark_kafka.client.fetch.request import FetchPosition, build_fetch_request
from pyspark_kafka.client.fetch.response import FetchAnswer, parse_fetch_response
from pyspark_kafka.client.lookups.leader_epochs import EpochQuestion, fetch_epoch_ends
from pyspark_kafka.client.lookups.offsets import list_offsets
from pyspark_kafka.client.retry import Action, decide
from pyspark_kafka.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka.errors import BrokerError, ConnectorError, DeadlineError
from pyspark_kafka.offsets import Earliest, Latest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.fetch.response import PartitionAnswer
    from pyspark_kafka.client.net.connection import Connection
    from pyspark_kafka.model import OffsetRange, TopicPartition
    from pyspark_kafka.options import FetchOptions

_log = logging.getLogger(__name__)
_Fetcher = TypeVar("_Fetcher", bound="MultiPartitionFetcher")

# The least that each of many partitions may take of an answer; with less, most of the work would be per batch.
_SMALLEST_SHARE = 64 << 10
# An empty answer that comes sooner than that was not waited for by the broker.
_SOON_MS = 20.0
# How often others are asked who leads what a silent broker was asked for: it may have died. That is one which has said
# nothing for a little less, so that the first look finds it.
_LOOK_S = 2.0
_SILENT_S = 1.5
# An answer of which nothing more arrives for so long holds up those of other brokers no longer.
_STALL_S = 0.5
# So long others wait while the ends of a log are looked up: a leader that has just taken over gives none for a while.
_LOG_ENDS_BESIDE_MS = 2_000.0


class MultiPartitionFetcher:
    """Iterates over the bytes of several ranges, each in order, without gap or repetition; ranges interleave.

    A range ends when its *position* reaches the end: markers, aborted records and compaction holes take offsets, too.
    There is one connection and one request a broker; while the caller decodes an answer, the next is on its way.
    Partitions that got nothing come first in the next request, as brokers fill answers in the order asked. Lost
    connections, moved leaders and failed brokers are retried from the positions, as long as there is progress of any
    range every `poll_timeout_ms`.

    The position after an answer comes from batch headers whose checksum is not verified yet. Tell what decoding
    found with `advance`: a difference is an error there, before anything is fetched from a wrong position.

    Memory: one answer at hand and one being received, whatever the number of brokers and partitions; each of at most
    half of `max_buffered_bytes` by what is asked for, exceeded by one record batch that is larger.

    Runs on: executor; `next` blocks. Not thread-safe; does not pickle.

    Args:
        client: of the cluster; the fetcher borrows a connection to each leader from it.
        offset_ranges: what to read; each partition once.
        fetch: sizes, waits, isolation.
        topic_ids: the topics that the ranges were planned on, by name, where brokers told. Brokers that name another
            are asked again, in case they lag; then it is a topic that was made again, whoever reads.
        clock: monotonic seconds; tests give their own.
        sleep: waits seconds; tests give their own.

    Raises (from `next`):
        OffsetOutOfRangeError: a position is not in the log (any more), or the log ends there, before the end of the
            range, also after about 10 s. `resume` goes on behind the gap.
        LogTruncatedError: the log was cut below a position. `resume` goes on.
        TopicRecreatedError: a topic was deleted and made again. `resume` goes on in the one that there is now.
        TopicDeletedError: a topic that ranges were planned on was deleted. `resume` at the end of the range.
        AccessError: a topic may not be read.
        BrokerError: a topic does not exist, or a broker refused for good.
        DeadlineError: no progress for `poll_timeout_ms`, in an outage for `outage_timeout_ms`; names topic-partition,
            position, broker.
        ProtocolError: an answer that is not valid.

    Source: KIP-74, KIP-227, KIP-320, KIP-392, KIP-516, KIP-951; Java `Fetcher`.
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
        planned = {topic: UUID(topic_id) for topic, topic_id in (topic_ids or {}).items()}
        sizes = record_sizes_of(client)
        self._reads: dict[TopicPartition, PartitionRead] = {}
        for offset_range in offset_ranges:
            if offset_range.topic_partition in self._reads:
                raise ValueError(f"two ranges of {offset_range.topic_partition}; an answer could not be told apart")
            topic_id = planned.get(offset_range.topic_partition.topic)
            self._reads[offset_range.topic_partition] = PartitionRead(
                offset_range, fetch, client.options, sizes, clock, topic_id
            )
        # What is not done, in the order of the next request.
        self._active = [read for read in self._reads.values() if not read.done]
        self._most_bytes = max(1, min(fetch.max_bytes_per_fetch, fetch.max_buffered_bytes // 2))
        self._lanes = Lanes(client, clock)
        # When to look whether those who lead what silent brokers were asked for are others by now.
        self._look_at = math.inf
        self._ready: deque[tuple[PartitionRead, FetchedRecords]] = deque()
        self._failures: deque[tuple[PartitionRead, ConnectorError]] = deque()
        # The read last given and what of it decoding is compared with; not its records, which would stay in memory.
        self._given: tuple[PartitionRead, int, int] | None = None
        self._last_error: ConnectorError | None = None
        self._patience = FetchPatience(client.options, fetch, lambda: self._active, clock, sleep)
        self._closed = False

    def __enter__(self: _Fetcher) -> _Fetcher:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self: _Fetcher) -> _Fetcher:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def position(self, topic_partition: TopicPartition) -> int:
        """Give the offset that is read next; after an answer, by its headers until `advance` has confirmed it."""
        return self._reads[topic_partition].position

    @property
    def connections(self) -> list[Connection]:
        """The connections that are borrowed now."""
        return [lane.connection for lane in self._lanes if lane.connection is not None]

    def close(self) -> None:
        """Give the connections back; answers on their way are given up. Safe to call again."""
        self._closed = True
        self._ready.clear()
        self._lanes.close()

    def advance(self, next_offset: int) -> None:
        """Compare the position that decoding (checksums verified) found with the one of the headers.

        It concerns the records that `next` gave last.

        Raises:
            CorruptRecordsError: they differ within the range.
        """
        given, self._given = self._given, None
        if given is not None:
            read, start_offset, scanned_offset = given
            try:
                read.check_decoded(scanned_offset, start_offset, next_offset)
            except ConnectorError:
                self.close()
                raise

    def resume(self, topic_partition: TopicPartition, offset: int) -> None:
        """Go on at another offset, after an OffsetOutOfRangeError or LogTruncatedError of this partition.

        Args:
            topic_partition: the one that the error names.
            offset: the next one to read; at or behind the end of the range, nothing more of it is read.
        """
        read = self._reads[topic_partition]
        read.resume(offset)
        self._active = [active for active in self._active if not active.done]

    def __next__(self) -> tuple[TopicPartition, FetchedRecords]:
        """Give the next records of some partition.

        Raises:
            StopIteration: all positions have reached their ends.
            ConnectorError: see the class.
        """
        self._given = None
        if self._ready:
            return self._give()
        if self._closed and self._active:
            raise RuntimeError("the fetcher is closed")
        with self._patience.wait:
            given = self._await_records()
            self._patience.wait.progress()
            return given

    def _await_records(self) -> tuple[TopicPartition, FetchedRecords]:
        # The caller's time between two calls is not waiting for brokers, so the clocks start here.
        progress = self._patience.begin()
        for lane in self._lanes:
            lane.deadline = None
        self._look_at = self._clock() + _LOOK_S + self._fetch.max_wait_ms / 1000
        self._last_error = None
        while self._active:
            try:
                progress = self._patience.check(progress, [*self._lanes], self._last_error)
            except DeadlineError:
                self.close()
                raise
            while self._failures:
                # One by one: those behind one that is raised are handled at the next call.
                self._recover([self._failures.popleft()], progress)
            self._send_all(progress)
            lane_with_answer = self._wait(progress)
            if lane_with_answer is not None and self._receive(lane_with_answer, progress):
                return self._give()
            self._leave_silent(progress)
        self.close()
        self._patience.wait.progress()
        raise StopIteration

    def _give(self) -> tuple[TopicPartition, FetchedRecords]:
        read, fetched = self._ready.popleft()
        self._given = (read, fetched.start_offset, fetched.scanned_offset)
        return read.topic_partition, fetched

    # Sending

    def _send_all(self, progress: Deadline) -> None:
        """Ask every broker that has something for us and no request on its way."""
        self._recover(self._not_connected(), progress)
        now = self._clock()
        waiting = [read for read in self._active if not read.in_flight and read.due_at <= now]
        self._check_ends([read for read in waiting if read.end_check_at <= now], progress)
        leaders = self._cached_leaders(waiting)
        unknown = [read for read in waiting if read.topic_partition not in leaders]
        if unknown:
            self._look_up(unknown, progress)
            leaders = self._cached_leaders(waiting)
        self._check_topics(waiting, leaders)
        self._confirm_epochs(waiting, leaders, progress)
        for lane, reads in self._route(waiting, leaders):
            try:
                self._send(lane, reads, leaders, progress)
            except ConnectorError as error:
                lane.drop()
                self._recover([(read, error) for read in reads], progress)

    def _not_connected(self) -> list[tuple[PartitionRead, ConnectorError]]:
        """Take over connections that have been made; give the failures of those that could not be."""
        return [
            (read, error)
            for broker_id, error in self._lanes.take_connected()
            for read in self._active
            # Those whose failure waits to be handled have an infinite time.
            if read.broker_id == broker_id and not read.in_flight and read.due_at < math.inf
        ]

    def _check_topics(self, waiting: Sequence[PartitionRead], leaders: dict[TopicPartition, PartitionMetadata]) -> None:
        """Raise where a topic is another one now; before, have brokers asked again and leave it out of `leaders`."""
        known = [read for read in waiting if read.topic_partition in leaders]
        ids = {topic: self._client.cached_topic_id(topic) for topic in {read.topic_partition.topic for read in known}}
        doubtful = [read for read in known if read.doubts_topic(ids[read.topic_partition.topic])]
        for read in doubtful:
            del leaders[read.topic_partition]
        for topic in {read.topic_partition.topic for read in doubtful}:
            self._client.forget_topic(topic)
        if any(read.doubted_again for read in doubtful):
            self._client.avoid_last_asked()
        # The first time at once: what this process knew may simply be old.
        self._postpone([read for read in doubtful if read.doubted_again])
        # Raised from here, not recovered from: the caller may go on in the topic that there is now.
        for read in known:
            leader = leaders.get(read.topic_partition)
            if leader is not None:
                read.check_topic(ids[read.topic_partition.topic], leader.leader_id)

    def _send_ahead(self, progress: Deadline) -> None:
        """Send what can be sent at once; the answer at hand must be neither held up by it nor lost with it."""
        self._fail_later(self._not_connected())
        now = self._clock()
        waiting = [read for read in self._active if not read.in_flight and read.due_at <= now]
        leaders = self._cached_leaders(waiting)
        waiting = [
            read
            for read in waiting
            if read.topic_partition in leaders
            and read.is_same_topic(self._client.cached_topic_id(read.topic_partition.topic))
            and read.unconfirmed_epoch(leaders[read.topic_partition].leader_epoch) is None
        ]
        for lane, reads in self._route(waiting, leaders):
            try:
                self._send(lane, reads, leaders, progress)
            except ConnectorError:
                # The next turn sends again, and reports if that fails too.
                lane.drop()

    def _cached_leaders(self, reads: Sequence[PartitionRead]) -> dict[TopicPartition, PartitionMetadata]:
        known = ((read.topic_partition, self._client.cached_leader(read.topic_partition)) for read in reads)
        return {topic_partition: leader for topic_partition, leader in known if leader is not None}

    def _look_up(self, unknown: Sequence[PartitionRead], progress: Deadline) -> None:
        budget = progress.within(self._client.options.api_timeout_ms)
        try:
            if len(self._active) == 1:
                self._client.find_leaders([read.topic_partition for read in unknown], budget)
                return
            found = self._client.fetch_metadata({read.topic_partition.topic for read in unknown}, budget)
            missing = [read.topic_partition for read in unknown if found.partition(read.topic_partition) is None]
            if missing:
                # Made a moment ago, or not there: that is found out with patience, and said.
                self._client.find_leaders(missing, budget)
        except ConnectorError as error:
            self._recover([(read, error) for read in unknown], progress)
            return
        # Others can be read meanwhile, so elections are not waited for.
        leaderless = [read for read in unknown if self._client.cached_leader(read.topic_partition) is None]
        if leaderless:
            what = f"{leaderless[0].topic_partition} has no leader"
            self._note_failure(leaderless, broker_error(ErrorCode.LEADER_NOT_AVAILABLE, what))
            self._postpone(leaderless)

    def _confirm_epochs(
        self, waiting: Sequence[PartitionRead], leaders: dict[TopicPartition, PartitionMetadata], progress: Deadline
    ) -> None:
        """Where a leader has changed, ask the new one whether it has what was read; drop failures from `leaders`."""
        by_leader: dict[int, list[EpochQuestion]] = {}
        for read in waiting:
            leader = leaders.get(read.topic_partition)
            epoch = None if leader is None else read.unconfirmed_epoch(leader.leader_epoch)
            if leader is not None and epoch is not None:
                question = EpochQuestion(read.topic_partition, leader.leader_epoch, epoch)
                by_leader.setdefault(leader.leader_id, []).append(question)
        if not by_leader:
            return
        ends = fetch_epoch_ends(self._client, by_leader, progress.within(self._client.options.request_timeout_ms))
        failed: list[tuple[PartitionRead, ConnectorError]] = []
        confirmed: list[tuple[PartitionRead, int, int]] = []
        for topic_partition, end in ends.items():
            read = self._reads[topic_partition]
            if isinstance(end, ConnectorError):
                failed.append((read, end))
            elif end.error_code != ErrorCode.NONE:
                failed.append((read, read.refused(end.error_code)))
            else:
                confirmed.append((read, leaders[topic_partition].leader_epoch, end.end_offset))
        for read, _ in failed:
            del leaders[read.topic_partition]
        self._recover(failed, progress)
        for read, leader_epoch, end_offset in confirmed:
            # Last, as it may raise; those behind it are asked about again.
            read.confirm(leader_epoch, end_offset)

    def _route(
        self, waiting: Sequence[PartitionRead], leaders: dict[TopicPartition, PartitionMetadata]
    ) -> list[tuple[Lane, list[PartitionRead]]]:
        """Group by the broker to ask; those that wait for an answer or are throttled are left out."""
        by_broker: dict[int, list[PartitionRead]] = {}
        for read in waiting:
            leader = leaders.get(read.topic_partition)
            if leader is not None:
                broker_id = read.choose_broker(leader, lambda member: self._client.cached_broker(member) is not None)
                by_broker.setdefault(broker_id, []).append(read)
        now = self._clock()
        routed = []
        for broker_id, reads in by_broker.items():
            if self._lanes.ready_at(broker_id) <= now:
                routed.append((self._lanes.of(broker_id), reads))
        return routed

    def _send(
        self,
        lane: Lane,
        reads: Sequence[PartitionRead],
        leaders: dict[TopicPartition, PartitionMetadata],
        progress: Deadline,
    ) -> None:
        connection = self._lanes.connection(lane, progress.within(self._client.options.api_timeout_ms))
        if connection is None:
            # The others are asked meanwhile.
            return
        budget = max(1, self._fetch.max_buffered_bytes // 2)
        share = None if len(reads) == 1 else max(_SMALLEST_SHARE, budget // len(reads))
        # A request has one rack: partitions that must be read from their leaders cannot be mixed with others.
        avoid_replicas = reads[0].avoids_replicas
        asked: list[PartitionRead] = []
        positions: list[FetchPosition] = []
        total = 0
        for read in reads:
            if read.avoids_replicas is not avoid_replicas:
                continue
            position = read.ask(leaders[read.topic_partition].leader_epoch, share)
            # By the sum over the partitions: not every server keeps to the limit of a whole answer.
            if asked and total + position.max_bytes > budget:
                break
            total += position.max_bytes
            asked.append(read)
            positions.append(position)
        request, max_version = build_fetch_request(
            positions,
            self._fetch,
            max_bytes=min(total, self._most_bytes),
            rack=None if avoid_replicas else self._client.options.client_rack,
        )
        connection.send(request, max_version=max_version)
        for read in asked:
            read.in_flight = True
            read.last_address = connection.address
        lane.asked = Asked.of(asked, positions, self._clock())
        lane.deadline = None

    # Receiving

    def _wait(self, progress: Deadline) -> Lane | None:
        """Wait for an answer, or until there is something to send; gives a lane to receive from."""
        wake_at = min((self._sendable_at(read) for read in self._active if not read.in_flight), default=math.inf)
        # A broker may sit on the request for max_wait_ms before it has to answer.
        answer_ms = self._client.options.request_timeout_ms + self._fetch.max_wait_ms
        return self._lanes.wait(progress, answer_ms, min(wake_at, self._look_at) - self._clock())

    def _sendable_at(self, read: PartitionRead) -> float:
        return max(read.due_at, self._lanes.ready_at(read.broker_id))

    def _leave_silent(self, progress: Deadline) -> None:
        """Ask the cluster who leads what silent brokers were asked for; leave those that lead some of it no longer."""
        if self._clock() < self._look_at:
            return
        self._look_at = self._clock() + _LOOK_S
        silent: dict[int, tuple[Lane, list[PartitionRead]]] = {}
        for lane in self._lanes.silent(_SILENT_S, _SILENT_S + self._fetch.max_wait_ms / 1000):
            waiting = [read for read in self._active if read.broker_id == lane.broker_id and read.due_at < math.inf]
            silent[lane.broker_id] = (lane, list(lane.asked.reads) if lane.asked is not None else waiting)
        topics = {read.topic_partition.topic for _, reads in silent.values() for read in reads}
        if not topics:
            return
        try:
            self._client.fetch_metadata(topics, progress.within(self._client.options.answer_timeout_ms))
        except ConnectorError as error:
            # Not what was asked for: the silent ones may answer yet.
            self._last_error = self._last_error or error
            return
        for broker_id, (lane, reads) in silent.items():
            if any(self._has_left(read, broker_id) for read in reads):
                for read in reads:
                    read.in_flight = False
                    read.leave_replica()
                self._lanes.leave(lane)

    def _has_left(self, read: PartitionRead, broker_id: int) -> bool:
        """Whether a broker is known to be another one now than the one to ask for a range."""
        if read.replica_id == broker_id:
            return self._client.cached_broker(broker_id) is None
        leader = self._client.cached_leader(read.topic_partition)
        return leader is not None and leader.leader_id != broker_id

    def _receive(self, lane: Lane, progress: Deadline) -> bool:
        """Take the answer; give whether it has records."""
        asked, connection = lane.asked, lane.connection
        if asked is None or connection is None or lane.deadline is None:
            raise RuntimeError("no request is on its way")
        try:
            raw = connection.receive_raw(lane.deadline, _STALL_S)
            if raw is None:
                # Stopped in the middle: the others have their turn until there is more of it.
                return False
            # Consumed whatever is in it: after a failure the request has to be sent anew.
            lane.asked = None
            for read in asked.reads:
                read.in_flight = False
            answer = parse_fetch_response(raw.body, raw.api_version)
        except ConnectorError as error:
            for read in asked.reads:
                read.in_flight = False
            lane.drop()
            # Who leads instead must not be asked of a broker that has just been silent.
            self._client.drop_idle_connections(lane.broker_id)
            self._recover([(read, error) for read in asked.reads], progress)
            return False
        self._take(lane, asked, answer)
        if self._ready:
            self._send_ahead(progress)
        return bool(self._ready)

    def _take(self, lane: Lane, asked: Asked, answer: FetchAnswer) -> None:
        if answer.throttle_time_ms > 0:
            lane.not_before = self._clock() + answer.throttle_time_ms / 1000
        if answer.error_code != ErrorCode.NONE:
            self._fail_later((read, read.refused(answer.error_code)) for read in asked.reads)
            return
        unanswered = dict.fromkeys(asked.reads)
        by_outcome: dict[Outcome, list[PartitionRead]] = {outcome: [] for outcome in Outcome}
        for entry in answer.partitions:
            name = entry.topic if entry.topic_id is None else entry.topic_id
            read = None if name is None else asked.by_name.get((name, entry.partition))
            if read is None:
                # docs/internals/fetch-rules.md, R15
                text = "Broker %d answered a fetch with partition %d of topic %s, which was not asked for: ignored."
                _log.warning(text, lane.broker_id, entry.partition, name)
                continue
            if read not in unanswered:
                # Answered twice: the first answer counts (docs/internals/fetch-rules.md, R14).
                continue
            del unanswered[read]
            if entry.error_code != ErrorCode.NONE:
                if not self._learned_leader(read, entry, answer):
                    self._fail_later([(read, read.refused(entry.error_code))])
                continue
            read.failure = None
            outcome, fetched = read.take(entry, first=read is asked.reads[0])
            by_outcome[outcome].append(read)
            if fetched is not None:
                self._ready.append((read, fetched))
        # A throttled broker may leave everything out.
        self._postpone([*unanswered, *by_outcome[Outcome.BEHIND]])
        self._look_for_replicas(by_outcome[Outcome.REDIRECTED])
        fed, starved, empty = (by_outcome[outcome] for outcome in (Outcome.FED, Outcome.STARVED, Outcome.EMPTY))
        # An empty answer before its time (min_bytes or max_wait 0, a server that does not wait): no busy loop.
        soon_ms = max(_SOON_MS, self._fetch.max_wait_ms / 2)
        if not fed and (self._clock() - asked.at) * 1000 < soon_ms:
            self._postpone([*starved, *empty])
        self._active = order_next(self._active, fed=fed, starved=starved, empty=empty)

    def _look_for_replicas(self, redirected: Sequence[PartitionRead]) -> None:
        """Have the cluster asked for replicas that leaders name and that are not known: new, or back again."""
        unknown = [
            read for read in redirected if read.replica_id >= 0 and self._client.cached_broker(read.replica_id) is None
        ]
        for topic in {read.topic_partition.topic for read in unknown}:
            self._client.forget_topic(topic)
        self._postpone(unknown)

    def _learned_leader(self, read: PartitionRead, entry: PartitionAnswer, answer: FetchAnswer) -> bool:
        if entry.error_code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            return False
        node = next((node for node in answer.nodes if node.broker_id == entry.leader_id), None)
        learned = self._client.learn_leader(read.topic_partition, entry.leader_id, entry.leader_epoch, node)
        if learned:
            read.leave_replica()
        return learned

    # Failures

    def _fail_later(self, failures: Iterable[tuple[PartitionRead, ConnectorError]]) -> None:
        """Handle failures when the records that came with them are handed out."""
        for read, error in failures:
            read.due_at = math.inf
            self._failures.append((read, error))

    def _recover(self, failures: Sequence[tuple[PartitionRead, ConnectorError]], progress: Deadline) -> None:
        """Prepare the next turn, or raise what cannot be helped."""
        refreshed: list[PartitionRead] = []
        looked_at: list[PartitionRead] = []
        for read, error in failures:
            # A step that was cut short by the end of the time says less than what went wrong before it.
            if self._last_error is None or not (progress.expired and isinstance(error, DeadlineError)):
                self._note_failure([read], error)
            read.due_at = 0.0
            action = read.decide(error).action
            if action is Action.FAIL and not self._patience.outlasts(error):
                # Not closed by that: the caller may go on with the other ranges.
                read.check_exists(error)
                self.close()
                raise error
            if action is Action.ASK_LEADER:
                read.stop_following()
            elif action is Action.CHECK_LOG and isinstance(error, BrokerError):
                # Looks are so far apart, also where a leader refuses at once.
                if not self._clock() < read.end_check_at < math.inf:
                    self._check_log(read, error, progress)
                refreshed.append(read)
                looked_at.append(read)
            else:
                # Leader moved, epoch fenced, replica gone, storage failed, connection lost, topic id not known yet.
                read.leave_replica()
                refreshed.append(read)
        for topic in {read.topic_partition.topic for read in refreshed}:
            self._client.forget_topic(topic)
        self._postpone(refreshed)
        for read in looked_at:
            if read.end_check_at < math.inf:
                read.due_at = read.end_check_at

    def _check_log(self, read: PartitionRead, error: BrokerError, progress: Deadline) -> None:
        try:
            start, end = self._log_ends([read], progress)[read.topic_partition]
        except ConnectorError as failure:
            if decide(failure).action is Action.FAIL and not self._patience.outlasts(failure):
                raise
            # Asked again when the leader has refused the position again; what only ran out of time says less than that.
            if not (progress.expired and isinstance(failure, DeadlineError)):
                self._note_failure([read], failure)
            return
        read.check_log(start, end, error)

    def _check_ends(self, due: Sequence[PartitionRead], progress: Deadline) -> None:
        """Look at logs that seem to end before their ranges do, with leaders and topic ids of now."""
        if not due:
            return
        for topic in {read.topic_partition.topic for read in due}:
            self._client.forget_topic(topic)
        try:
            ends = self._log_ends(due, progress)
        except ConnectorError as error:
            for read in due:
                read.look_later()
            self._recover([(read, error) for read in due], progress)
            return
        for read in due:
            # A topic that was made again is told by its id.
            if read.is_same_topic(self._client.cached_topic_id(read.topic_partition.topic)):
                read.check_log(*ends[read.topic_partition])

    def _log_ends(self, reads: Sequence[PartitionRead], progress: Deadline) -> dict[TopicPartition, tuple[int, int]]:
        """Look up first offsets and high watermarks: what is not visible yet is there all the same."""
        for lane in self._lanes:
            if lane.asked is None:
                lane.give_back(self._client)
        others = len(self._active) > len(reads)
        longest_ms = _LOG_ENDS_BESIDE_MS if others else math.inf
        budget = progress.within(min(longest_ms, self._client.options.api_timeout_ms))
        partitions = [read.topic_partition for read in reads]
        starts = list_offsets(self._client, dict.fromkeys(partitions, Earliest()), deadline=budget)
        ends = list_offsets(self._client, dict.fromkeys(partitions, Latest()), deadline=budget)
        return {where: (starts[where], ends[where]) for where in partitions}

    def _postpone(self, reads: Sequence[PartitionRead]) -> None:
        """Let them wait for the same time, so that they are asked for together again."""
        if reads:
            due_at = self._clock() + max(read.backoff.next_s() for read in reads)
            for read in reads:
                read.due_at = due_at

    def _note_failure(self, reads: Iterable[PartitionRead], error: ConnectorError) -> None:
        self._last_error = error
        self._patience.wait.failed(error)
        for read in reads:
            read.failure = error
