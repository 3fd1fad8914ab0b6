"""Deleted and recreated topics of a stream: an error, or a warning.

All decisions of a stream by `failOnDataLoss` are here. `topic_watch` remembers the ids of topics.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._connector.planning import (
    DataLossKind,
    data_loss_error,
    deleted_topic,
    find_lost_beginnings,
    find_lost_positions,
    past_loss_error,
)
from pyspark_kafka.errors import BrokerError, ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import StreamReadOptions
    from pyspark_kafka._connector.planning import DataLoss
    from pyspark_kafka._connector.source.driver.assignment import Assignment
    from pyspark_kafka._connector.source.driver.offset_reader import KafkaOffsetReader
    from pyspark_kafka._connector.source.driver.topic_watch import TopicWatch
    from pyspark_kafka.errors import DataLossError

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

# The number of brokers that must agree on a new topic id before the topic counts as recreated: one may lag.
_OTHER_ID_LOOKS = 3
# The time limit of the look-up that says more about a loss which is found already.
_EXISTS_MS = 2_000
_MISSING = (
    DataLossKind.PARTITIONS_DELETED,
    DataLossKind.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT,
    DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS,
)


class TopicLosses:
    """A check for a query's deleted or recreated topics; raises, or warns and leaves them out of a position.

    Runs on: driver, one per query run; methods block on look-ups, with a deadline.

    Args:
        options: of the stream: whether data loss is an error, and the maximum time for which topics may be missing.
        offset_reader: looks up topics and offsets.
        watch: the ids of the topics that the query has read.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        options: StreamReadOptions,
        offset_reader: KafkaOffsetReader,
        watch: TopicWatch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fail_on_data_loss = options.fail_on_data_loss
        # An attempt of a look-up may take the first, an outage the second.
        self._timeout_ms = max(options.connection.api_timeout_ms, options.outage_timeout_ms)
        self._offset_reader = offset_reader
        self._watch = watch
        self._clock = clock
        self._group_id = options.group_id
        # The topic ids before the last look-up of ends, and in it.
        self._compared_ids: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        # The new ids of reported recreated topics.
        self._reported: Mapping[str, str] = {}

    def raise_or_warn(self, error: DataLossError) -> None:
        """Raise an error about lost data; log it as a warning if `failOnDataLoss` is false."""
        if self._fail_on_data_loss:
            # Without the error of the look-up as its cause: a reader needs the hint of this error first.
            raise error from None
        # Without its hint, which is to set failOnDataLoss.
        _LOG.warning("[%s] %s The query continues, because 'failOnDataLoss' is false.", error.condition, error.message)

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
        ids = self._watch.ids
        assignment, latest = self.without_deleted(
            known, lambda: self._offset_reader.fetch_assigned_latest_offsets(known, ids)
        )
        self._compared_ids = ids, assignment.topic_ids
        self._watch.meet(assignment.topic_ids, _topics(known))
        return assignment, latest

    def refuse_lost_positions(
        self, position: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> None:
        """Raise if the ends that were just looked up lack partitions of the position, or are before it.

        Before the end of a micro-batch is returned: the engine keeps that end, and plans it again in every later run.
        Nothing happens if data loss is tolerated: the plan warns.

        Raises:
            DataLossError: as above, and `failOnDataLoss` is true.
        """
        if self._fail_on_data_loss and (lost := find_lost_positions(position, latest, group_id=self._group_id)):
            raise data_loss_error(self._looked_up(lost), is_planned=False)

    def find_beginnings(
        self, position: Mapping[TopicPartition, int], new: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int] | None:
        """Return the first offsets of the new partitions of a micro-batch; None without a look-up if loss is tolerated.

        Before its end is returned, as `refuse_lost_positions`.

        Raises:
            DataLossError: a new partition does not begin at offset 0, or is deleted, and `failOnDataLoss` is true.
        """
        if not self._fail_on_data_loss:
            return None
        first = self.without_deleted(position, lambda: self._offset_reader.fetch_earliest_offsets_of_new(new))
        if lost := find_lost_beginnings(new, first):
            raise data_loss_error(self._looked_up(lost), is_planned=False)
        return first

    def report_planned(
        self, findings: Sequence[DataLoss], start: Mapping[TopicPartition, int], place: Callable[[], tuple[str, str]]
    ) -> None:
        """Raise the losses of a plan, or log them as a warning.

        A batch of another run may have losses that are not losses now: they have an error of their own.

        Args:
            findings: the losses of the plan.
            start: of the batch.
            place: returns the location of the checkpoint and the number of the last finished batch, or words in their
                place.

        Raises:
            DataLossError: `failOnDataLoss` is true.
        """
        if self._fail_on_data_loss:
            past = self._past(findings, start)
            if past:
                raise past_loss_error(past, *place())
        self.raise_or_warn(data_loss_error(findings))

    def _looked_up(self, findings: Sequence[DataLoss]) -> list[DataLoss]:
        """Return losses with the cluster's information; as they are without a response within a short time."""
        before, now = self._compared_ids
        topics = {found.topic_partition.topic for found in findings if found.kind in _MISSING}
        there: Collection[TopicPartition] | None = frozenset()
        if topics:
            try:
                there = frozenset(self._offset_reader.find_assignment_once(_EXISTS_MS, topics).partitions)
            except ConnectorError as error:
                _LOG.debug("Whether the missing partitions exist is unknown: %s", error)
                there = None
        return [
            replace(
                found,
                is_there=found.topic_partition in there if found.kind in _MISSING and there is not None else None,
                is_same_topic=before.get(topic := found.topic_partition.topic) == now.get(topic, ""),
            )
            for found in findings
        ]

    def _past(self, findings: Sequence[DataLoss], position: Mapping[TopicPartition, int]) -> list[DataLoss]:
        _, latest = self.fetch_latest_offsets(position)
        past = []
        for found in self._looked_up(findings):
            end = latest.get(found.topic_partition)
            if found.kind is DataLossKind.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS:
                is_past = found.is_there is True and end is None
            else:
                is_past = end is not None and found.expected_offset is not None and end >= found.expected_offset
            if is_past and found.kind is not DataLossKind.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO:
                past.append(found)
        return past

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
                self.raise_or_warn(deleted_topic(topic, position))
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

        A broker that returns another id may lag, so other brokers are queried. While their ids differ, no topic counts
        as recreated, and the next trigger repeats the query.
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
            self.raise_or_warn(self._watch.error(recreated, topic_ids))
        self._reported = found


def _topics(position: Iterable[TopicPartition]) -> set[str]:
    return {topic_partition.topic for topic_partition in position}


def _without(position: Mapping[TopicPartition, int], topics: tuple[str, ...]) -> Mapping[TopicPartition, int]:
    if not topics:
        return position
    return {tp: offset for tp, offset in position.items() if tp.topic not in topics}
