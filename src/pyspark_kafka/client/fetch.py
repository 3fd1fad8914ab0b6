"""Reads the bytes of one range of one partition: asks the right broker, one request ahead, and never skips silently.

What lives here: the state of a read (position, broker, request on its way) and what each failure of it asks for. What
must not: decoding records, and what is done about lost data; both are the source's. Layer: client.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.client.fetch_request import AskSize, FetchPosition, build_fetch_request
from pyspark_kafka.client.fetch_response import FetchAnswer, PartitionAnswer, parse_fetch_response
from pyspark_kafka.client.protocol import ErrorCode, broker_error, error_kind
from pyspark_kafka.client.retry import Action, decide
from pyspark_kafka.errors import BrokerError, ConnectorError, CorruptRecordsError, DataLossError, DeadlineError
from pyspark_kafka.offsets import Earliest, Latest
from pyspark_kafka.records import scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from uuid import UUID

    from pyspark_kafka.client.cluster import KafkaClient
    from pyspark_kafka.client.connection import Connection
    from pyspark_kafka.model import OffsetRange
    from pyspark_kafka.options.connection import FetchOptions

_Fetcher = TypeVar("_Fetcher", bound="PartitionFetcher")

# How often in a row a code that this client does not know, or that should not occur, is tried again.
_UNKNOWN_CODE_ATTEMPTS = 5
# An out-of-range answer that a look-up of the log's ends contradicts (a leader change in between) is tried again.
_CONTRADICTED_RANGE_ATTEMPTS = 3
# A follower that is behind the range's end gets so many long polls before the leader is asked again (KIP-392).
_FOLLOWER_EMPTY_ANSWERS = 3

_FATAL_CODES = frozenset(
    {ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNSUPPORTED_VERSION}
)
_TOPIC_ID_CODES = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})


class OffsetOutOfRangeError(BrokerError):
    """The leader does not have the position that was asked for: records are gone, or the log was cut.

    What is done about it is the source's to decide (`failOnDataLoss`).

    Attributes:
        requested_offset: the position; everything of the range before it was handed out.
        log_start_offset: the first offset that the partition still has.
        log_end_offset: the end of the log under the isolation level of the read.
    """

    requested_offset: int
    log_start_offset: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """The record batches of one answer.

    Attributes:
        records: whole record batches, then possibly the cut-off beginning of another. The first batch may begin before
            `start_offset`, the last may go beyond the range. The view stays valid while it is referred to.
        start_offset: the position that was asked for; records below it were handed out before.
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request on its way."""

    offset: int
    at: float


class PartitionFetcher:
    """Iterates over the bytes of `[start_offset, end_offset)` of a partition, in order, without gap or repetition.

    It ends when the *position* reaches the end: markers, aborted records and compaction holes take offsets, too.
    While the caller decodes an answer, the next request is on its way. Lost connections, moved leaders and failed
    brokers are retried from the position, as long as there is progress every `poll_timeout_ms`.

    The position after an answer comes from batch headers whose checksum is not verified yet. Tell what decoding
    found with `advance`: a difference is an error there, before anything is fetched from a wrong position.

    Runs on: executor; `next` blocks. Not thread-safe; does not pickle.

    Args:
        client: of the cluster; the fetcher borrows a connection of its own from it.
        offset_range: what to read.
        fetch: sizes, waits, isolation.
        clock: monotonic seconds; tests give their own.
        sleep: waits seconds; tests give their own.

    Raises (from `next`):
        OffsetOutOfRangeError: the position is not in the log (any more).
        DataLossError: the topic was deleted and made again (condition KAFKA_DATA_LOSS.TOPIC_RECREATED).
        AccessError: the topic may not be read.
        BrokerError: the topic does not exist, or a broker refused for good.
        DeadlineError: no progress for `poll_timeout_ms`; names topic-partition, position, broker.
        ProtocolError: an answer that is not valid.

    Source: KIP-227, KIP-320, KIP-392, KIP-516; Java `Fetcher`.
    """

    def __init__(
        self,
        client: KafkaClient,
        offset_range: OffsetRange,
        fetch: FetchOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._range = offset_range
        self._topic_partition = offset_range.topic_partition
        self._fetch = fetch
        self._clock = clock
        self._sleep = sleep
        self._position = offset_range.start_offset
        self._yielded: FetchedRecords | None = None
        self._ask_size = AskSize(fetch)
        self._connection: Connection | None = None
        self._broker_id = -1
        self._asked: _Asked | None = None
        self._not_before = 0.0
        self._topic_id: UUID | None = None
        self._replica_id = -1
        self._replica_until = 0.0
        self._replica_empty_answers = 0
        self._avoid_replicas = client.options.client_rack is None
        self._unknown_codes = 0
        self._contradicted = 0
        self._last_seen: PartitionAnswer | None = None
        self._last_address = ""
        self._backoff = client.backoff()

    def __enter__(self: _Fetcher) -> _Fetcher:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self: _Fetcher) -> _Fetcher:  # noqa: PYI019 - typing.Self needs Python 3.11
        return self

    @property
    def position(self) -> int:
        """The offset that is read next; after an answer, by its headers until `advance` has confirmed it."""
        return self._position

    def close(self) -> None:
        """Give the connection back; an answer on its way is given up. Safe to call again."""
        self._asked = None
        connection, self._connection = self._connection, None
        if connection is not None:
            self._client.give_back(self._broker_id, connection)

    def advance(self, next_offset: int) -> None:
        """Compare the position that decoding (checksums verified) found with the one of the headers.

        Raises:
            CorruptRecordsError: they differ within the range.
        """
        fetched, self._yielded = self._yielded, None
        if fetched is None:
            return
        end = self._range.end_offset
        if min(next_offset, end) != min(fetched.scanned_offset, end):
            self.close()
            raise CorruptRecordsError(
                f"Reading {self._range}: the batches fetched at offset {fetched.start_offset} from "
                f"{self._last_address} end at {fetched.scanned_offset} by their headers, but at {next_offset} by their "
                "verified content. Records up to the smaller of the two were handed out.",
                condition="POSITION_MISMATCH",
                hint="if it repeats, inspect the partition's log with kafka-dump-log.",
                facts={"range": self._range, "expected": fetched.scanned_offset, "found": next_offset},
            )

    def __next__(self) -> FetchedRecords:
        """Give the next answer that has records at the position.

        Raises:
            StopIteration: the position has reached the end.
            ConnectorError: see the class.
        """
        self._yielded = None
        # The caller's time between two calls is not waiting for the broker, so the clock starts here.
        progress = Deadline(self._fetch.poll_timeout_ms, clock=self._clock, sleep=self._sleep)
        last_error: ConnectorError | None = None
        while self._position < self._range.end_offset:
            if progress.expired:
                raise self._no_progress(progress, last_error) from last_error
            try:
                fetched = self._turn(progress)
            except ConnectorError as error:
                self._handle_failure(error, progress)
                last_error = error
                continue
            if fetched is not None:
                return fetched
        self.close()
        raise StopIteration

    def _turn(self, progress: Deadline) -> FetchedRecords | None:
        """Send what has to be sent, take one answer; None if it brought nothing."""
        if self._asked is None:
            self._wait_for_throttle(progress)
            self._send(progress)
        asked, answer = self._receive(progress)
        return self._take(asked, answer, progress)

    def _wait_for_throttle(self, progress: Deadline) -> None:
        wait = self._not_before - self._clock()
        if wait > 0:
            progress.pause(wait)

    # Sending

    def _send(self, deadline: Deadline) -> None:
        partition = self._client.leader(self._topic_partition, deadline.within(self._client.options.api_timeout_ms))
        self._check_same_topic(partition.leader_id)
        broker_id = self._choose_broker(partition.leader_id)
        connection = self._connection_to(broker_id, deadline)
        # Epochs of the leader mean the same to a follower: it is fenced by them, too.
        ask_bytes = self._ask_size.next_bytes(self._range.end_offset - self._position)
        request, max_version = build_fetch_request(
            [FetchPosition(self._topic_partition, self._position, self._topic_id, partition.leader_epoch, ask_bytes)],
            self._fetch,
            max_bytes=ask_bytes,
            rack=None if self._avoid_replicas else self._client.options.client_rack,
        )
        connection.send(request, max_version=max_version)
        self._asked = _Asked(self._position, self._clock())

    def _check_same_topic(self, leader_id: int) -> None:
        known = self._client.topic_id(self._topic_partition.topic)
        if known is None:
            return
        if self._topic_id is not None and known != self._topic_id:
            raise DataLossError(
                f"Topic '{self._topic_partition.topic}' was deleted and made again while {self._range} was read: its "
                f"id was {self._topic_id}, and is {known} (leader {leader_id}). Records before {self._position} were "
                "handed out; the offsets from there on belong to another log.",
                condition="KAFKA_DATA_LOSS.TOPIC_RECREATED",
                hint="restart the query with a new checkpoint.",
                facts={"range": self._range, "expected": self._topic_id, "found": known},
            )
        self._topic_id = known

    def _choose_broker(self, leader_id: int) -> int:
        if self._replica_id >= 0:
            if self._clock() < self._replica_until and self._client.broker(self._replica_id) is not None:
                return self._replica_id
            self._replica_id = -1
        return leader_id

    def _connection_to(self, broker_id: int, deadline: Deadline) -> Connection:
        connection = self._connection
        if connection is not None:
            if self._broker_id == broker_id and connection.idle_and_alive:
                return connection
            self.close()
        opened = self._client.borrow(broker_id, deadline.within(self._client.options.api_timeout_ms))
        self._connection, self._broker_id = opened, broker_id
        self._last_address = opened.address
        return opened

    # Receiving

    def _receive(self, progress: Deadline) -> tuple[_Asked, FetchAnswer]:
        asked, connection = self._asked, self._connection
        if asked is None or connection is None:
            raise RuntimeError("no request is on its way")
        # Consumed whatever happens: after a failure the request has to be sent anew.
        self._asked = None
        # The broker may sit on the request for max_wait_ms before it has to answer.
        budget_ms = self._client.options.request_timeout_ms + self._fetch.max_wait_ms
        raw = connection.receive_raw(progress.within(budget_ms))
        return asked, parse_fetch_response(raw.body, raw.api_version)

    def _take(self, asked: _Asked, answer: FetchAnswer, progress: Deadline) -> FetchedRecords | None:
        if answer.throttle_time_ms > 0:
            self._not_before = self._clock() + answer.throttle_time_ms / 1000
        if answer.error_code != ErrorCode.NONE:
            raise self._refused(answer.error_code)
        mine = self._pick(answer)
        if mine is None:
            # A throttled broker may leave everything out.
            self._pause(progress)
            return None
        self._last_seen = mine
        if mine.error_code != ErrorCode.NONE:
            raise self._refused(mine.error_code)
        self._unknown_codes = 0
        if mine.preferred_read_replica >= 0 and not self._avoid_replicas and not mine.records:
            self._follow(mine.preferred_read_replica)
            return None
        if not mine.records:
            self._after_empty(asked, progress)
            return None
        return self._accept(asked, mine, progress)

    def _pick(self, answer: FetchAnswer) -> PartitionAnswer | None:
        """Find the first answer for the partition; what was not asked for is passed over."""
        for entry in answer.partitions:
            named = entry.topic == self._topic_partition.topic if entry.topic_id is None else True
            known = entry.topic_id is None or entry.topic_id == self._topic_id
            if named and known and entry.partition == self._topic_partition.partition:
                return entry
        return None

    def _accept(self, asked: _Asked, mine: PartitionAnswer, progress: Deadline) -> FetchedRecords | None:
        found = scan(mine.records, asked.offset)
        if found.next_offset <= asked.offset and found.batches:
            # Whole batches, all below the position: asking again at once would spin.
            self._pause(progress)
            return None
        fetched = FetchedRecords(
            records=mine.records,
            start_offset=asked.offset,
            scanned_offset=found.next_offset,
            aborted_transactions=mine.aborted_transactions,
            high_watermark=mine.high_watermark,
            last_stable_offset=mine.last_stable_offset,
            log_start_offset=mine.log_start_offset,
        )
        self._backoff.reset()
        self._contradicted = 0
        self._replica_empty_answers = 0
        self._ask_size.observe(found.complete_bytes, found.next_offset - asked.offset)
        self._position = found.next_offset
        self._yielded = fetched
        # With not one whole batch there is no position to go on from: the decoder says what is wrong.
        if found.batches and self._position < self._range.end_offset:
            self._send_ahead(progress)
        return fetched

    def _send_ahead(self, progress: Deadline) -> None:
        if self._not_before > self._clock():
            return
        try:
            self._send(progress)
        except ConnectorError:
            # The answer at hand must not be lost with it. The next turn sends again, and reports if that fails too.
            self._drop_connection()

    def _follow(self, replica_id: int) -> None:
        self._replica_id = replica_id
        self._replica_until = self._clock() + self._client.options.metadata_max_age_ms / 1000
        self._replica_empty_answers = 0

    def _after_empty(self, asked: _Asked, progress: Deadline) -> None:
        """Nothing there (yet): an open transaction, or a follower that lags. The broker has waited max_wait_ms."""
        if self._replica_id >= 0:
            self._replica_empty_answers += 1
            if self._replica_empty_answers >= _FOLLOWER_EMPTY_ANSWERS:
                self._stop_following()
        # An empty answer before its time (min_bytes 0, or a server that does not wait) must not make a busy loop.
        if (self._clock() - asked.at) * 1000 < self._fetch.max_wait_ms / 2:
            self._pause(progress)

    def _stop_following(self) -> None:
        self._replica_id = -1
        self._avoid_replicas = True

    def _pause(self, progress: Deadline) -> None:
        progress.pause(self._backoff.next_s())

    # Failures

    def _refused(self, code: int) -> BrokerError:
        return broker_error(
            code,
            f"Fetching {self._range} at offset {self._position} from {self._last_address} failed",
            consequence=f"Records of the range before {self._position} were handed out, none from there on.",
            topic=self._topic_partition.topic,
            partition=self._topic_partition.partition,
            offset=self._position,
            broker=self._last_address,
        )

    def _handle_failure(self, error: ConnectorError, progress: Deadline) -> None:
        """Prepare the next turn, or raise what cannot be helped."""
        if not isinstance(error, BrokerError):
            # Including a step that ran out of its own time while the progress deadline has not.
            self._drop_connection()
            if decide(error).action is Action.FAIL:
                raise error
            self._replica_id = -1
            self._client.forget(self._topic_partition.topic)
            self._pause(progress)
            return
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._handle_out_of_range(error, progress)
            return
        if error.code in _FATAL_CODES or error.condition == "UNKNOWN_TOPIC":
            self.close()
            raise error
        retriable = decide(error).action is not Action.FAIL
        if not retriable:
            named = error_kind(error.code).name
            self._unknown_codes += 1
            surprising = error.code == ErrorCode.UNKNOWN_SERVER_ERROR or named.startswith("UNKNOWN_CODE_")
            if not surprising or self._unknown_codes >= _UNKNOWN_CODE_ATTEMPTS:
                self.close()
                raise error
        # Leader moved, epoch fenced, replica gone, storage failed, topic id not known yet: look the leader up again.
        self._replica_id = -1
        self._client.forget(self._topic_partition.topic)
        self._pause(progress)

    def _handle_out_of_range(self, error: BrokerError, progress: Deadline) -> None:
        if self._replica_id >= 0:
            # A follower may not have it yet, or any more; only the leader's word counts.
            self._stop_following()
            return
        self.close()
        budget = progress.within(self._client.options.api_timeout_ms)
        level = self._fetch.isolation_level
        start = self._client.list_offsets({self._topic_partition: Earliest()}, level, budget)[self._topic_partition]
        end = self._client.list_offsets({self._topic_partition: Latest()}, level, budget)[self._topic_partition]
        if start <= self._position <= end and self._contradicted < _CONTRADICTED_RANGE_ATTEMPTS:
            self._contradicted += 1
            self._client.forget(self._topic_partition.topic)
            self._pause(progress)
            return
        found = OffsetOutOfRangeError(
            f"Fetching {self._range}: {self._last_address} does not have offset {self._position}; the log is "
            f"[{start}, {end}) now. Records of the range before {self._position} were handed out, none from there on.",
            code=ErrorCode.OFFSET_OUT_OF_RANGE,
            condition="OFFSET_OUT_OF_RANGE",
            hint="retention may have removed the records, or the topic was made again.",
            facts={
                "topic": self._topic_partition.topic,
                "partition": self._topic_partition.partition,
                "offset": self._position,
                "log_start_offset": start,
                "log_end_offset": end,
                "broker": self._last_address,
            },
        )
        found.requested_offset = self._position
        found.log_start_offset = start
        found.log_end_offset = end
        raise found from error

    def _drop_connection(self) -> None:
        self._asked = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _no_progress(self, progress: Deadline, cause: ConnectorError | None) -> DeadlineError:
        self.close()
        seen = self._last_seen
        log = "no answer about the log was received"
        hint = "check that the brokers run and that this machine may reach them."
        if seen is not None and seen.error_code == ErrorCode.NONE:
            log = (
                f"the log began at {seen.log_start_offset}, its high watermark was {seen.high_watermark} and its last "
                f"stable offset {seen.last_stable_offset}"
            )
            hint = "the end of the range may not be visible: an open transaction, or replicas that are behind."
        last = f" Last failure: {cause}" if cause is not None else ""
        return DeadlineError(
            f"Reading {self._range}: no progress at offset {self._position} for {progress.timeout_ms:.0f} ms "
            f"(kafkaConsumer.pollTimeoutMs), last asked {self._last_address or 'no broker'}; {log}. "
            f"Records of the range before {self._position} were handed out, none from there on.{last}",
            condition="FETCH_NO_PROGRESS",
            hint=hint,
            retriable=True,
            facts={
                "topic": self._topic_partition.topic,
                "partition": self._topic_partition.partition,
                "offset": self._position,
                "broker": self._last_address,
                "timeout_ms": f"{progress.timeout_ms:.0f}",
            },
        )
