"""Deleted and recreated topics of a stream: an error, or a warning.

All decisions of a stream by `failOnDataLoss` are here. `topic_watch` remembers the ids of topics.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.counters import COUNTERS, LOST_OFFSETS
from pyspark_kafka.errors import BrokerError
from pyspark_kafka.offsets import KafkaSourceOffset
from pyspark_kafka.planning import deleted_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pyspark_kafka.errors import DataLossError
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import StreamReadOptions
    from pyspark_kafka.source.driver.assignment import Assignment
    from pyspark_kafka.source.driver.offset_reader import KafkaOffsetReader
    from pyspark_kafka.source.driver.topic_watch import TopicWatch

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

# The number of brokers that must agree on a new topic id before the topic counts as recreated: one may lag.
_OTHER_ID_LOOKS = 3


class TopicLosses:
    """Finds topics of a query that were deleted or recreated; raises, or warns and leaves them out of a position.

    Runs on: driver, one per query run; methods block on look-ups, with a deadline.

    Args:
        options: of the stream: whether data loss is an error, and the maximum time for which topics may be missing.
        offset_reader: looks up topics and offsets.
        watch: the ids of the topics that the query has read.
        clock: monotonic seconds.
        counts_deleted: whether a look-up counts the partitions of topics that were deleted; a plan may count them.
    """

    def __init__(
        self,
        options: StreamReadOptions,
        offset_reader: KafkaOffsetReader,
        watch: TopicWatch,
        clock: Callable[[], float] = time.monotonic,
        *,
        counts_deleted: bool = True,
    ) -> None:
        self._counts_deleted = counts_deleted
        self._fail_on_data_loss = options.fail_on_data_loss
        # An attempt of a look-up may take the first, an outage the second.
        self._timeout_ms = max(options.connection.api_timeout_ms, options.outage_timeout_ms)
        self._offset_reader = offset_reader
        self._watch = watch
        self._clock = clock
        # The new ids of recreated topics that were reported.
        self._reported: Mapping[str, str] = {}

    def raise_or_warn(self, error: DataLossError, offsets: int) -> None:
        """Raise an error about lost data; log it as a warning, and count it, if `failOnDataLoss` is false.

        Args:
            error: the loss.
            offsets: the number of lost offsets; 1 for a partition with an unknown number; 0 if a plan will count them.
        """
        if self._fail_on_data_loss:
            # Without the error of the look-up as its cause: a reader needs the hint of this error first.
            raise error from None
        # Without its hint, which is to set failOnDataLoss.
        _LOG.warning("[%s] %s The query continues, because 'failOnDataLoss' is false.", error.condition, error.message)
        COUNTERS.add(LOST_OFFSETS, offsets)

    def fetch_latest_offsets(
        self, known: Mapping[TopicPartition, int]
    ) -> tuple[Assignment, Mapping[TopicPartition, int]]:
        """Return the currently subscribed partitions and the end of each, without deleted topics.

        Args:
            known: the offsets of the query's position.

        Raises:
            DataLossError: a topic was deleted, and `failOnDataLoss` is true.
            DeadlineError: topics disappeared for longer than `outageTimeout`.
        """
        assignment, latest = self.without_deleted(
            known, lambda: self._offset_reader.fetch_assigned_latest_offsets(known)
        )
        self._watch.meet(assignment.topic_ids, _topics(known))
        return assignment, latest

    def without_deleted(self, position: Mapping[TopicPartition, int], look_up: Callable[[], T]) -> T:
        """Return the result of a look-up; topics of `position` that do not exist now are data loss, and left out.

        Each missing topic takes one more look-up. The deadline begins with the first missing topic, because topics that
        are deleted and created all the time would keep it busy forever.

        Raises:
            DataLossError: a topic was deleted, and `failOnDataLoss` is true.
            DeadlineError: topics disappeared for longer than `outageTimeout`.
        """
        deadline: Deadline | None = None
        while True:
            try:
                return look_up()
            except BrokerError as error:
                topic = error.parameters.get("topic", "")
                if error.condition != "UNKNOWN_TOPIC" or topic not in _topics(position):
                    raise
                lost = sum(tp.topic == topic for tp in position) if self._counts_deleted else 0
                self.raise_or_warn(deleted_topic(topic, position), lost)
                deadline = deadline or Deadline(self._timeout_ms, clock=self._clock)
                deadline.check("A look-up that leaves out deleted topics", error)
                self._offset_reader.leave_out_missing(topic)

    def without_recreated(
        self, position: Mapping[TopicPartition, int], assignment: Assignment
    ) -> Mapping[TopicPartition, int]:
        """Return a position without recreated topics, which are then read as new ones.

        Raises:
            DataLossError: a topic was recreated, and `failOnDataLoss` is true.
        """
        recreated, topic_ids = self._recreated(assignment.topic_ids, _topics(position))
        if recreated:
            self._report_recreated(recreated, topic_ids)
        return _without(position, recreated)

    def without_restarting(
        self, start: Mapping[TopicPartition, int], end: KafkaSourceOffset, assignment: Assignment | None
    ) -> Mapping[TopicPartition, int]:
        """Return the start of a micro-batch without recreated topics that it reads from their beginning.

        They are noted before any task reads, so that a repeated plan returns the same batch.

        Args:
            start: the start of the micro-batch.
            end: its end.
            assignment: the subscribed partitions when `end` was found; None: another run found it.

        Raises:
            DataLossError: a topic was recreated, and `failOnDataLoss` is true.
        """
        topics = _topics(start) | _topics(end.partitions)
        found = assignment or self.without_deleted(end.partitions, lambda: self._offset_reader.fetch_assignment(topics))
        # Topics of a batch that another run has planned are new to this run; their ids travel with the ranges.
        self._watch.meet(found.topic_ids, topics)
        return self._without_restarting(start, found, end.json())

    def without_restarting_from(
        self, start: Mapping[TopicPartition, int], assignment: Assignment
    ) -> Mapping[TopicPartition, int]:
        """Return the start of a continuous read without recreated topics, which it reads from their beginning.

        They are noted before any task reads: a repeated plan from this start reads them from their beginning again, and
        a plan from a later start does not.

        Args:
            start: the start of the plan.
            assignment: the currently subscribed partitions.

        Raises:
            DataLossError: a topic was recreated, and `failOnDataLoss` is true.
        """
        # A topic that is not in the start is new, even if a topic of the same name was read before.
        self._watch.meet(assignment.topic_ids, _topics(start))
        return self._without_restarting(start, assignment, f"from {KafkaSourceOffset(start).json()}")

    def _without_restarting(
        self, start: Mapping[TopicPartition, int], found: Assignment, plan: str
    ) -> Mapping[TopicPartition, int]:
        recreated, topic_ids = self._recreated(found.topic_ids, _topics(start))
        if recreated:
            self._report_recreated(recreated, topic_ids)
            self._watch.restart(recreated, topic_ids, plan)
        return _without(start, self._watch.restarting(plan))

    def _recreated(
        self, topic_ids: Mapping[str, str], topics: Collection[str]
    ) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """Return the recreated topics, and the ids of all.

        A broker that returns another id may lag, so other brokers are asked. While their ids differ, no topic counts
        as recreated, and the next trigger asks again.
        """
        recreated = self._watch.recreated(topic_ids, topics)
        for _ in range(_OTHER_ID_LOOKS - 1):
            if not recreated or {topic: topic_ids[topic] for topic in recreated} == self._reported:
                break
            topic_ids = {**topic_ids, **self._offset_reader.fetch_topic_ids_elsewhere(recreated)}
            recreated = self._watch.recreated(topic_ids, recreated)
        return recreated, topic_ids

    def _report_recreated(self, recreated: tuple[str, ...], topic_ids: Mapping[str, str]) -> None:
        found = {topic: topic_ids[topic] for topic in recreated}
        # A recreated topic without records is found again at each trigger: one warning.
        if self._fail_on_data_loss or found != self._reported:
            self.raise_or_warn(self._watch.error(recreated, topic_ids), len(recreated))
        self._reported = found


def _topics(position: Iterable[TopicPartition]) -> set[str]:
    return {topic_partition.topic for topic_partition in position}


def _without(position: Mapping[TopicPartition, int], topics: tuple[str, ...]) -> Mapping[TopicPartition, int]:
    if not topics:
        return position
    return {tp: offset for tp, offset in position.items() if tp.topic not in topics}
