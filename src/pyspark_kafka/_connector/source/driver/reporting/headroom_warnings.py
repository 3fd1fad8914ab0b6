"""Warns before brokers delete unread records of a stream."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._connector.planning.retention import HeadroomReason
from pyspark_kafka._connector.source.driver.reporting.latest_value_worker import LatestValueWorker
from pyspark_kafka._connector.source.driver.reporting.log_rate_limiter import LogRateLimiter
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions, StreamReadOptions
    from pyspark_kafka._connector.planning.lag import Log
    from pyspark_kafka._connector.planning.retention import Headroom, RetentionPolicy

_LOG = logging.getLogger(__name__)

_PAUSE_S = 60.0
_WARN_EVERY_S = 600.0
# With more topics, each check would log warnings.
_MAX_TOPICS = 100_000
# Retention is changed by hand, and seldom.
_POLICIES_S = 300.0
_TEXT = (
    "Brokers may soon delete records of topic '%s' that this query has not read: the next one of %s-%d in %d s, at %s, "
    "by %s. Of the query's %d partitions, %d of this topic have less than %d s. Hint: Let the query read faster (a "
    "larger maxOffsetsPerTrigger, more cores), or raise %s of the topic until it has caught up; pyspark-kafka lag "
    "shows where it stands."
)


@dataclass(frozen=True, slots=True)
class Short:
    """A partition whose next record may be deleted soon.

    Attributes:
        topic_partition: the partition.
        headroom: the time for which the record is certain to stay.
    """

    topic_partition: TopicPartition
    headroom: Headroom


class HeadroomWarnings:
    """Checks the headroom of the next record of each partition, and warns: as batches begin, at most once a minute.

    At most one warning per topic, and one log line about failed checks, in ten minutes; the query continues.
    Records that are already deleted do not count here: the next batch reports their loss.

    Runs on: driver; `note` does not block.

    Args:
        connection: the connection to the cluster.
        warn_ms: the headroom below which it warns.
        clock: monotonic seconds.
        now_ms: ms since 1970.
    """

    def __init__(
        self,
        connection: ConnectionOptions,
        warn_ms: int,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._connection, self._warn_ms, self._clock, self._now_ms = connection, warn_ms, clock, now_ms
        self._log_limiter = LogRateLimiter(_WARN_EVERY_S, max_subjects=_MAX_TOPICS)
        self._policies: dict[str, RetentionPolicy] = {}
        self._policies_at = -_POLICIES_S
        # Ends, and the time of their look-up: the growth of logs is measured between two checks.
        self._before: tuple[Mapping[TopicPartition, int], int] = ({}, 0)
        self._thread: LatestValueWorker[Mapping[TopicPartition, int]] = LatestValueWorker(
            "headroom of a stream", self.look, pause_s=_PAUSE_S, clock=clock
        )

    @classmethod
    def from_options(cls, options: StreamReadOptions) -> HeadroomWarnings | None:
        """Build it from the options of a stream; None if they want no warnings."""
        return None if options.warn_headroom_ms is None else cls(options.connection, options.warn_headroom_ms)

    def note(self, positions: Mapping[TopicPartition, int]) -> None:
        """Record the position of the stream.

        Args:
            positions: next offset to read by partition; not changed afterwards.
        """
        self._thread.offer(positions)

    def stop(self) -> None:
        """Stop. Does not wait for a running check."""
        self._thread.close()

    def look(self, positions: Mapping[TopicPartition, int]) -> None:
        """Fetch the headroom from the brokers, and warn. Blocks."""
        try:
            with borrow_client(self._connection) as client:
                short = self._find_short(client, positions, client.deadline())
        except ConnectorError as error:
            if self._log_limiter.is_due("", self._clock()):
                _LOG.warning("How long records of this query stay is not known; the query continues. %s", error)
            return
        by_topic: dict[str, list[Short]] = defaultdict(list)
        for each in short:
            by_topic[each.topic_partition.topic].append(each)
        for topic, found in by_topic.items():
            if self._log_limiter.is_due(f"topic {topic}", self._clock()):
                self._warn(topic, sorted(found, key=lambda each: each.headroom.ms or 0), len(positions))

    def _find_short(
        self, client: KafkaClient, positions: Mapping[TopicPartition, int], deadline: Deadline
    ) -> list[Short]:
        # Only streams that warn need it.
        from pyspark_kafka._connector.source.positions import query_positions  # noqa: PLC0415

        self._refresh_policies(client, {each.topic for each in positions}, deadline)
        watched = {
            each: at
            for each, at in positions.items()
            if (at_topic := self._policies.get(each.topic)) and at_topic.deletes
        }
        found = query_positions(client, watched, deadline, newest=False, now_ms=self._now_ms)
        logs = {each: log for each in watched if (log := found.log_of(each, self._policies[each.topic])) is not None}
        rates = self._rates(logs, found.now_ms)
        short = []
        for each, log in logs.items():
            headroom = log.headroom(watched[each], found.now_ms, rates.get(each))
            if headroom is None or headroom.ms is None or headroom.reason is HeadroomReason.LOST:
                continue
            if headroom.ms < self._warn_ms:
                short.append(Short(each, headroom))
        return short

    def _refresh_policies(self, client: KafkaClient, topics: set[str], deadline: Deadline) -> None:
        if self._clock() - self._policies_at < _POLICIES_S and topics <= self._policies.keys():
            return
        from pyspark_kafka._connector.source.positions import fetch_policies  # noqa: PLC0415 - as above

        self._policies, failures = fetch_policies(client, topics, deadline)
        if failures and self._log_limiter.is_due("configurations", self._clock()):
            topic = min(failures)
            _LOG.warning(
                "How long records stay is not known of %d topics, such as '%s'; the query continues. %s",
                len(failures),
                topic,
                failures[topic],
            )
        self._policies_at = self._clock()

    def _rates(self, logs: Mapping[TopicPartition, Log], now_ms: int) -> dict[TopicPartition, float]:
        """Return the number of records per second that were written to each log since the last check."""
        ends = {each: log.end for each, log in logs.items()}
        before, before_ms = self._before
        self._before = ends, now_ms
        seconds = (now_ms - before_ms) / 1000
        return {
            each: max(0, end - before[each]) / seconds for each, end in ends.items() if each in before and seconds > 0
        }

    def _warn(self, topic: str, short: list[Short], partitions: int) -> None:
        first, headroom = short[0].topic_partition, short[0].headroom
        left_ms = headroom.ms or 0
        moment = datetime.fromtimestamp((self._now_ms() + left_ms) / 1000).astimezone()
        _LOG.warning(
            _TEXT,
            topic,
            first.topic,
            first.partition,
            left_ms // 1000,
            moment.isoformat(timespec="seconds"),
            headroom.reason.value,
            partitions,
            len(short),
            self._warn_ms // 1000,
            headroom.reason.value,
        )
