"""Commits the position of a stream to a consumer group, so that Kafka's own tools show its lag."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._connector.source.driver.reporting.latest_value_worker import LatestValueWorker
from pyspark_kafka._connector.source.driver.reporting.log_rate_limiter import LogRateLimiter
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import ConnectionOptions

_LOG = logging.getLogger(__name__)

# Tools poll every few seconds at most, and each position is a record that brokers keep.
_PAUSE_S = 1.0
# Brokers delete positions that were not committed again for `offsets.retention.minutes`, by default 7 days.
_REFRESH_S = 3_600.0
# After a failure: of a query with a batch each 100 ms, not each batch tries again.
_PAUSE_AFTER_FAILURE_S = 10.0
_WARN_EVERY_S = 60.0
# The maximum wait for the last commit at the end of a run.
FLUSH_S = 2.0


class CommittedGroup:
    """The consumer group of one stream: holds the ends of finished batches, soon after they are finished.

    In the background, at most once a second, always with the newest ends; only positions that changed since the last
    commit are sent, and all of them once an hour. A failure is a warning, at most one a minute; the next batch
    commits the missing positions.

    Runs on: driver; `note` does not block.

    Args:
        connection: the connection to the cluster.
        group_id: the group.
        clock: monotonic seconds.

    Attributes:
        group_id: the group.
    """

    def __init__(
        self, connection: ConnectionOptions, group_id: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.group_id = group_id
        self._connection, self._clock = connection, clock
        self._committed: dict[TopicPartition, int] = {}
        self._refreshed_at = 0.0
        self._retry_at = 0.0
        self._newest: Mapping[TopicPartition, int] | None = None
        # Until when refused partitions are left out; the others are committed in the meantime.
        self._refused_until: dict[TopicPartition, float] = {}
        self._log_limiter = LogRateLimiter(_WARN_EVERY_S)
        # The ends, and whether they are tried without regard to failures before.
        self._thread: LatestValueWorker[tuple[Mapping[TopicPartition, int], bool]] = LatestValueWorker(
            f"commits to group {group_id}", self._commit, pause_s=_PAUSE_S, clock=clock
        )

    def note(self, ends: Mapping[TopicPartition, int]) -> None:
        """Schedule the commit of a finished batch's ends.

        Args:
            ends: next offset to read by partition; not changed afterwards.
        """
        self._newest = ends
        self._thread.offer((ends, False))

    def flush(self, timeout_s: float = FLUSH_S, *, once_more: bool = False) -> bool:
        """Wait until the noted ends are committed, or have failed; return whether that happened in time.

        Args:
            timeout_s: the maximum wait.
            once_more: whether refused partitions are tried again immediately, because this is the last commit.
        """
        if once_more and self._newest is not None:
            self._thread.offer((self._newest, True))
        return self._thread.flush(timeout_s)

    def _commit(self, work: tuple[Mapping[TopicPartition, int], bool]) -> None:
        ends, once_more = work
        if once_more:
            # Here and not at the request: a running commit may still fail, and begin a pause.
            self._retry_at, self._refused_until = 0.0, {}
        now = self._clock()
        if now < self._retry_at:
            return
        if now - self._refreshed_at >= _REFRESH_S:
            self._committed, self._refreshed_at = {}, now
        changed = {
            tp: offset
            for tp, offset in ends.items()
            if self._committed.get(tp) != offset and self._refused_until.get(tp, 0.0) <= now
        }
        if not changed:
            return
        # Only streams with a group need it.
        from pyspark_kafka._client.client.transactions.group_commits import GroupCommits  # noqa: PLC0415

        try:
            with borrow_client(self._connection) as client:
                refused = GroupCommits(client, self.group_id).commit_positions(changed)
        except ConnectorError as error:
            self._retry_at = now + _PAUSE_AFTER_FAILURE_S
            self._warn("The ends of finished batches", error)
            return
        for topic_partition in changed:
            self._refused_until.pop(topic_partition, None)
        for topic_partition in refused:
            del changed[topic_partition]
            self._refused_until[topic_partition] = now + _PAUSE_AFTER_FAILURE_S
        # Partitions that are no longer read are removed here; the group keeps their positions.
        self._committed = {tp: offset for tp, offset in {**self._committed, **changed}.items() if tp in ends}
        self._refused_until = {tp: until for tp, until in self._refused_until.items() if tp in ends}
        if refused:
            self._warn(f"The ends of finished batches in {len(refused):,} partitions", next(iter(refused.values())))
        elif not self._refused_until and self._log_limiter.clear(self.group_id):
            _LOG.info("The ends of finished batches are committed to consumer group '%s' again.", self.group_id)

    def _warn(self, what: str, error: ConnectorError) -> None:
        if self._log_limiter.is_due(self.group_id, self._clock()):
            _LOG.warning(
                "%s could not be committed to consumer group '%s', where Kafka's tools see them. The query continues, "
                "and tries again. %s",
                what,
                self.group_id,
                error,
            )
