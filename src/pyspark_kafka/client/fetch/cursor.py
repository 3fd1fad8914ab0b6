"""One range of one partition while it is read: its position, whom to ask, what its answers mean. No I/O.

What must not live here: requests, connections, waiting (fetch_many), and what is done about lost data, which is the
source's. Layer: client.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pyspark_kafka.client.fetch.ask_size import AskSize
from pyspark_kafka.client.fetch.errors import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicDeletedError,
    TopicRecreatedError,
)
from pyspark_kafka.client.fetch.request import FetchPosition
from pyspark_kafka.client.retry import Action, Backoff, Decision, decide_fetch
from pyspark_kafka.client.wire.error_codes import ErrorCode, broker_error
from pyspark_kafka.errors import BrokerError, CorruptRecordsError
from pyspark_kafka.model import IsolationLevel
from pyspark_kafka.records import scan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from pyspark_kafka.client.cluster.metadata import PartitionMetadata
    from pyspark_kafka.client.fetch.ask_size import RecordSizes
    from pyspark_kafka.client.fetch.response import PartitionAnswer
    from pyspark_kafka.errors import ConnectorError
    from pyspark_kafka.model import OffsetRange, TopicPartition
    from pyspark_kafka.options import ConnectionOptions, FetchOptions

# A log that ends at a position below the end of its range is looked at so often, about 10 s in all, before what was
# planned is taken for lost: a new leader may lag. It gives no end before it has caught up (KIP-207), but a former one
# that was paused may go on for a moment.
_LOG_END_LOOKS = 5
_LOG_END_LOOKS_APART_S = 2.0
# A planned topic that brokers do not know is looked for so often, some seconds in all.
_UNKNOWN_TOPIC_LOOKS = 4
# A broker may lag behind the deletion or the creation of a topic: so often it is asked before another id is believed.
_OTHER_ID_LOOKS = 4
# A follower that is behind the range's end gets so many long polls before the leader is asked again (KIP-392).
_FOLLOWER_EMPTY_ANSWERS = 3
# A leader may name replicas so often without records from one of them, until it is asked for the records itself.
_REDIRECTS_IN_VAIN = 3


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


class Outcome(Enum):
    """What an answer without an error brought to a partition."""

    FED = "records"
    STARVED = "nothing, although records are there: others took the room, or the first batch is too large"
    EMPTY = "nothing, and there is nothing to be had yet"
    REDIRECTED = "the name of a replica to ask instead"
    BEHIND = "records below the position only"


class PartitionRead:
    """The state of one range that is read.

    Args:
        offset_range: what to read.
        fetch: sizes and isolation.
        options: rack, waits, how long a replica is preferred.
        known_sizes: what records of topics took before.
        clock: monotonic seconds.
        topic_id: the topic that the range was planned on; None takes the one that brokers name first.

    Attributes:
        position: the offset that is read next; after an answer, by its headers.
        due_at: not asked for before this time; infinite while a failure waits to be handled.
        end_check_at: when the end of the log is to be looked at, as the log seems to end here; infinite if it does not.
        in_flight: whether a request is on its way.
        broker_id: whom it is asked of, as last decided.
        last_address: the address that was asked last, as errors say it.
        failure: why the last attempt failed; None once a broker has answered for the partition.
    """

    __slots__ = (
        "_clock",
        "_end_looks",
        "_fetch",
        "_leader_epoch",
        "_log",
        "_options",
        "_other_id_looks",
        "_other_topic_id",
        "_planned_topic_id",
        "_position_epoch",
        "_redirects",
        "_replica_empty_answers",
        "_replica_id",
        "_replica_until",
        "_surprises",
        "_topic_id",
        "_unknown_topic_looks",
        "ask_size",
        "avoids_replicas",
        "backoff",
        "broker_id",
        "due_at",
        "end_check_at",
        "failure",
        "in_flight",
        "last_address",
        "offset_range",
        "position",
        "topic_partition",
    )

    def __init__(
        self,
        offset_range: OffsetRange,
        fetch: FetchOptions,
        options: ConnectionOptions,
        known_sizes: RecordSizes,
        clock: Callable[[], float],
        topic_id: UUID | None = None,
    ) -> None:
        self.offset_range = offset_range
        self.topic_partition: TopicPartition = offset_range.topic_partition
        self.position = offset_range.start_offset
        self.ask_size = AskSize(fetch, self.topic_partition.topic, known_sizes)
        self.backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
        self.due_at = 0.0
        self.in_flight = False
        self.broker_id = -1
        self.last_address = ""
        self.failure: ConnectorError | None = None
        self.avoids_replicas = options.client_rack is None
        self._fetch = fetch
        self._options = options
        self._clock = clock
        self._planned_topic_id = self._topic_id = topic_id
        # The one that was found where another was read so far; `resume` accepts it.
        self._other_topic_id: UUID | None = None
        self._other_id_looks = 0
        self._leader_epoch = -1
        self._position_epoch = -1
        self._replica_id = -1
        self._replica_until = 0.0
        self._replica_empty_answers = 0
        self._redirects = 0
        self._surprises = 0
        self._end_looks = 0
        self._unknown_topic_looks = 0
        self.end_check_at = math.inf
        # Start, high watermark, last stable offset. Not the answer itself, whose records would stay in memory.
        self._log: tuple[int, int, int] | None = None

    def __repr__(self) -> str:
        return f"PartitionRead({self.offset_range} at {self.position})"

    @property
    def done(self) -> bool:
        """Whether the position has reached the end."""
        return self.position >= self.offset_range.end_offset

    # Asking

    def choose_broker(self, leader: PartitionMetadata, is_member: Callable[[int], bool]) -> int:
        """Give the broker to ask: the replica that the leader named for us, as long as that holds, else the leader."""
        if self._replica_id >= 0 and not (self._clock() < self._replica_until and is_member(self._replica_id)):
            self._replica_id = -1
        self.broker_id = self._replica_id if self._replica_id >= 0 else leader.leader_id
        return self.broker_id

    @property
    def replica_id(self) -> int:
        """The replica that the leader named for us last; -1 if the leader itself is to be asked."""
        return self._replica_id

    def is_same_topic(self, topic_id: UUID | None) -> bool:
        """Whether the topic is the one that is read, as far as brokers tell."""
        return topic_id is None or self._topic_id is None or topic_id == self._topic_id

    def doubts_topic(self, topic_id: UUID | None) -> bool:
        """Whether brokers are to be asked again: they name another topic than the one that is read.

        What this process knew may be older than the plan, and a broker that is asked may lag.
        """
        if self.is_same_topic(topic_id):
            self._other_id_looks = 0
            return False
        if self._planned_topic_id is None and self._unread:
            # The id that it differs from is one that this process knew: nobody has planned with it.
            return False
        self._other_id_looks += 1
        return self._other_id_looks < _OTHER_ID_LOOKS

    @property
    def doubted_again(self) -> bool:
        """Whether an id that brokers were asked for again is doubtful as well."""
        return self._other_id_looks > 1

    @property
    def _unread(self) -> bool:
        return self.position == self.offset_range.start_offset

    def check_topic(self, topic_id: UUID | None, leader_id: int) -> None:
        """Check that the topic is the one that is read.

        Raises:
            TopicRecreatedError: it was deleted and made again.
        """
        if self.is_same_topic(topic_id):
            self._topic_id = topic_id or self._topic_id
            return
        lost = self.offset_range.end_offset - self.position
        when = "after {} was planned" if self._unread and self._planned_topic_id else "while {} was read"
        error = TopicRecreatedError(
            f"Topic '{self.topic_partition.topic}' was deleted and made again {when.format(self.offset_range)}: "
            f"its id was {self._topic_id}, and is {topic_id} (leader {leader_id}). {self._handed_out()}; the {lost} "
            f"offsets [{self.position}, {self.offset_range.end_offset}) of the former topic are gone, and those of now "
            "belong to another log.",
            condition="KAFKA_DATA_LOSS.TOPIC_RECREATED",
            hint="Start a streaming query with a new checkpoint; plan a batch read anew, by another load().",
            facts={"range": self.offset_range, "expected": self._topic_id, "found": topic_id, "lost": lost},
        )
        error.offset_range = self.offset_range
        error.requested_offset = self.position
        error.truncated_to = self.offset_range.start_offset
        self._other_topic_id = topic_id
        self._other_id_looks = 0
        raise error

    def _handed_out(self) -> str:
        """Say what was handed out, without a full stop."""
        if self._unread:
            return "No record of the range was handed out"
        return f"Records before {self.position} were handed out"

    def unconfirmed_epoch(self, leader_epoch: int) -> int | None:
        """Give the epoch of the batch before the position if another leader has taken over since it was read.

        None if there is nothing to confirm: the first leader, the same one, or no batch read yet.
        """
        if 0 <= self._leader_epoch < leader_epoch and self._position_epoch >= 0:
            return self._position_epoch
        return None

    def confirm(self, leader_epoch: int, end_offset: int) -> None:
        """Take what a new leader said of the epoch of the position; -1 is no proof of anything.

        Raises:
            LogTruncatedError: the epoch ends before the position.
        """
        if 0 <= end_offset < self.position:
            truncated_to = max(end_offset, self.offset_range.start_offset)
            error = LogTruncatedError(
                f"The log of {self.topic_partition} was truncated while {self.offset_range} was read: records in "
                f"[{truncated_to}, {self.position}), {self.position - truncated_to} offsets, appended under leader "
                f"epoch {self._position_epoch}, were handed out, but the leader of epoch {leader_epoch} has that epoch "
                f"up to {end_offset} only.",
                condition="KAFKA_DATA_LOSS.LOG_TRUNCATED",
                hint="A replica that lacked records became the leader (unclean.leader.election.enable, or records "
                "written with acks below all); run the batch again to read what the log has now.",
                facts={
                    "range": self.offset_range,
                    "truncated_to": truncated_to,
                    "position": self.position,
                    "leader_epoch": leader_epoch,
                },
            )
            error.offset_range = self.offset_range
            error.requested_offset = self.position
            error.truncated_to = truncated_to
            raise error
        self._leader_epoch = leader_epoch

    def ask(self, leader_epoch: int, share: int | None) -> FetchPosition:
        """Give this range's part of a request."""
        # Epochs of the leader mean the same to a follower: it is fenced by them, too.
        self._leader_epoch = leader_epoch
        ask_bytes = self.ask_size.next_bytes(self.offset_range.end_offset - self.position, share)
        return FetchPosition(self.topic_partition, self.position, self._topic_id, leader_epoch, ask_bytes)

    # Answers

    def take(self, answer: PartitionAnswer, *, first: bool) -> tuple[Outcome, FetchedRecords | None]:
        """Take an answer without an error.

        Args:
            answer: of the broker.
            first: whether this partition came first in the request; only the first is promised a whole batch.
        """
        self._log = (answer.log_start_offset, answer.high_watermark, answer.last_stable_offset)
        self._surprises = 0
        if not answer.records:
            if answer.preferred_read_replica >= 0 and not self.avoids_replicas:
                self._redirects += 1
                if self._redirects > _REDIRECTS_IN_VAIN:
                    self.stop_following()
                else:
                    self._follow(answer.preferred_read_replica)
                return Outcome.REDIRECTED, None
            return self._take_nothing(first=first), None
        found = scan(answer.records, self.position)
        if not found.batches and not first:
            self.ask_size.starve()
            return Outcome.STARVED, None
        if found.batches and found.next_offset <= self.position:
            # Whole batches, all below the position: asking again at once would spin.
            return Outcome.BEHIND, None
        fetched = FetchedRecords(
            records=answer.records,
            start_offset=self.position,
            scanned_offset=found.next_offset,
            aborted_transactions=answer.aborted_transactions,
            high_watermark=answer.high_watermark,
            last_stable_offset=answer.last_stable_offset,
            log_start_offset=answer.log_start_offset,
        )
        self.backoff.reset()
        self._forget_log_end()
        self._unknown_topic_looks = 0
        self._replica_empty_answers = 0
        self._redirects = 0
        if found.batches:
            base_offset = int.from_bytes(answer.records[:8], "big")
            self.ask_size.observe(found.complete_bytes, found.next_offset - base_offset, found.batches)
            self._position_epoch = found.leader_epoch
        self.position = found.next_offset
        return Outcome.FED, fetched

    def _take_nothing(self, *, first: bool) -> Outcome:
        _, high_watermark, last_stable_offset = self._log or (-1, -1, -1)
        committed = self._fetch.isolation_level is IsolationLevel.READ_COMMITTED and last_stable_offset >= 0
        starved = (last_stable_offset if committed else high_watermark) > self.position
        if starved:
            self.ask_size.starve()
        if not 0 <= high_watermark <= self.position:
            self._forget_log_end()
        elif self._replica_id < 0 and self.end_check_at == math.inf:
            # The log ends here, or the leader is new and behind: followers may be, too, and are not asked.
            self.end_check_at = self._clock() + self._looks_apart_s
        if self._replica_id >= 0 and (first or not starved):
            self._replica_empty_answers += 1
            if self._replica_empty_answers >= _FOLLOWER_EMPTY_ANSWERS:
                self.stop_following()
        return Outcome.STARVED if starved else Outcome.EMPTY

    def _follow(self, replica_id: int) -> None:
        self._replica_id = replica_id
        self._replica_until = self._clock() + self._options.metadata_max_age_ms / 1000
        self._replica_empty_answers = 0

    def stop_following(self) -> None:
        """Ask the leader from now on, whatever it prefers."""
        self._replica_id = -1
        self.avoids_replicas = True

    def resume(self, offset: int) -> None:
        """Go on from another offset, after a loss that is tolerated; in the topic that there is now."""
        self.position = offset
        if self._other_topic_id is not None:
            self._topic_id, self._other_topic_id = self._other_topic_id, None
            self._planned_topic_id = None
            # Epochs of the former topic's leaders say nothing of the new one's.
            self._leader_epoch = -1
        # Of the records before it nothing is known.
        self._position_epoch = -1
        self._forget_log_end()
        self._unknown_topic_looks = 0
        self.due_at = 0.0

    # Failures

    def refused(self, code: int) -> BrokerError:
        """Build the error for a broker's code; it is not raised here."""
        return broker_error(
            code,
            f"Fetching {self.offset_range} at offset {self.position} from {self.last_address} failed",
            consequence=f"Records of the range before {self.position} were handed out, none from there on.",
            topic=self.topic_partition.topic,
            partition=self.topic_partition.partition,
            offset=self.position,
            broker=self.last_address,
        )

    def decide(self, error: ConnectorError) -> Decision:
        """Decide what a failure asks for, and count it."""
        if error.condition == "UNKNOWN_TOPIC":
            if error.facts.get("topic") != self.topic_partition.topic:
                return Decision(Action.REFRESH, "another topic of the same look-up is gone")
            self._unknown_topic_looks += 1
            if self._planned_topic_id is not None and self._unknown_topic_looks < _UNKNOWN_TOPIC_LOOKS:
                return Decision(Action.REFRESH, "it was there when the range was planned")
        decision = decide_fetch(error, from_follower=self._replica_id >= 0, surprises=self._surprises)
        if isinstance(error, BrokerError) and not error.retriable:
            self._surprises += 1
        return decision

    def leave_replica(self) -> None:
        """Ask the leader next; it may prefer a replica again."""
        self._replica_id = -1

    def check_exists(self, error: ConnectorError) -> None:
        """Take what brokers say of a topic that they do not know, where the range was planned on it.

        Raises:
            TopicDeletedError: it was deleted.
        """
        if error.condition != "UNKNOWN_TOPIC" or self._planned_topic_id is None:
            return
        end = self.offset_range.end_offset
        gone = TopicDeletedError(
            f"Topic '{self.topic_partition.topic}' (id {self._planned_topic_id}) was deleted after {self.offset_range} "
            f"was planned, or this user may not describe it now: the brokers answer UNKNOWN_TOPIC_OR_PARTITION (3). "
            f"{self._handed_out()}; the {end - self.position} offsets [{self.position}, {end}) are gone.",
            condition="KAFKA_DATA_LOSS.PARTITIONS_DELETED",
            hint="Read a topic that is created again with a new checkpoint; set failOnDataLoss=false to go on with the "
            "other topics.",
            facts={"range": self.offset_range, "topic": self.topic_partition.topic, "lost": end - self.position},
        )
        gone.offset_range = self.offset_range
        gone.requested_offset = self.position
        gone.truncated_to = self.offset_range.start_offset
        raise gone from error

    @property
    def _looks_apart_s(self) -> float:
        return min(_LOG_END_LOOKS_APART_S, self._fetch.poll_timeout_ms / 1000 / (2 * _LOG_END_LOOKS + 2))

    def look_later(self) -> None:
        """Put the next look at the end of the log off."""
        self.end_check_at = self._clock() + self._looks_apart_s

    def _forget_log_end(self) -> None:
        self._end_looks = 0
        self.end_check_at = math.inf

    def check_log(self, start: int, end: int, error: BrokerError | None = None) -> None:
        """Compare the position with the ends of the log, as its leader lists them.

        Args:
            start: the log's first offset.
            end: its high watermark.
            error: how the leader refused the position, if it did. A refusal that the ends contradict is none: a leader
                has changed in between.

        Raises:
            OffsetOutOfRangeError: the log begins behind the position; or it ends before it, or there, before the end of
                the range, and has done so for a while.
        """
        if start <= self.position < end:
            self._forget_log_end()
            return
        if self.position >= end:
            self._end_looks += 1
            self.end_check_at = self._clock() + self._looks_apart_s
            if self._end_looks < _LOG_END_LOOKS:
                return
        found = OffsetOutOfRangeError(
            f"Fetching {self.offset_range}: {self.last_address} does not have offset {self.position}; the log is "
            f"[{start}, {end}) now. {self._handed_out()}.",
            code=ErrorCode.OFFSET_OUT_OF_RANGE,
            condition="OFFSET_OUT_OF_RANGE",
            hint="Retention may have removed the records, or the topic was made again.",
            facts={
                "topic": self.topic_partition.topic,
                "partition": self.topic_partition.partition,
                "offset": self.position,
                "log_start_offset": start,
                "log_end_offset": end,
                "broker": self.last_address,
            },
        )
        found.offset_range = self.offset_range
        found.requested_offset = self.position
        found.log_start_offset = start
        found.log_end_offset = end
        raise found from error

    def check_decoded(self, scanned_offset: int, start_offset: int, next_offset: int) -> None:
        """Compare the position that decoding (checksums verified) found with the one of the headers.

        Raises:
            CorruptRecordsError: they differ within the range.
        """
        end = self.offset_range.end_offset
        if min(next_offset, end) != min(scanned_offset, end):
            raise CorruptRecordsError(
                f"Reading {self.offset_range}: the batches fetched at offset {start_offset} from {self.last_address} "
                f"end at {scanned_offset} by their headers, but at {next_offset} by their verified content. Records "
                "up to the smaller of the two were handed out.",
                condition="POSITION_MISMATCH",
                hint="If it repeats, inspect the partition's log with kafka-dump-log.",
                facts={"range": self.offset_range, "expected": scanned_offset, "found": next_offset},
            )

    def describe_log(self) -> tuple[str, str]:
        """Give what was last heard of the log, and a hint, for an error about missing progress."""
        if self._log is None:
            return (
                "no answer about the log was received",
                "Check that the brokers run and that this machine may reach them.",
            )
        start, high_watermark, stable = self._log
        return (
            f"the log began at {start}, its high watermark was {high_watermark} and its last stable offset {stable}",
            "The end of the range may not be visible: an open transaction, or replicas that are behind.",
        )


def order_next(
    active: Sequence[PartitionRead],
    *,
    fed: Sequence[PartitionRead],
    starved: Sequence[PartitionRead],
    empty: Sequence[PartitionRead],
) -> list[PartitionRead]:
    """Give the order of the next request: brokers fill an answer in the order asked, until it is full.

    Who has records and got none comes first; who got some comes behind those that were not asked for, and who has
    nothing to give comes last. So the first place, which is promised a whole batch, goes round.
    """
    if len(active) > 1:
        placed = {*fed, *starved, *empty}
        active = [*starved, *(read for read in active if read not in placed), *fed, *empty]
    return [read for read in active if not read.done]
