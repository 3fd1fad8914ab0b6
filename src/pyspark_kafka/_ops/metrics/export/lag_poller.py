"""A thread that fetches the lag and the headroom of queries from brokers at intervals."""

from __future__ import annotations

import heapq
import logging
import time
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.threads import BackgroundLoop
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._ops.metrics.export.families import PARTITION_LABELS, Family, Kind
from pyspark_kafka._ops.operations.lag.compute import with_rates
from pyspark_kafka._ops.operations.lag.measure import measure_lag
from pyspark_kafka._ops.operations.lag.positions import LagPositions
from pyspark_kafka._ops.operations.settings import resolve_settings
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._ops.metrics.store import MetricsStore
    from pyspark_kafka._ops.metrics.values import QueryMetrics, SourceMetrics
    from pyspark_kafka._ops.operations.lag.values import LagReport

_LOG = logging.getLogger(__name__)

INTERVAL_S = 60.0
"""How often brokers are asked."""

_LOOK_S = 15.0
_STOP_S = 2 * _LOOK_S

HEADROOM = Family(
    "pyspark_kafka_headroom_seconds",
    Kind.GAUGE,
    "seconds",
    "Time until brokers may delete the next unread record, by the retention of the topic; +Inf if they keep it. Only "
    "the partitions with the smallest values.",
    PARTITION_LABELS,
)
TIME_BEHIND = Family(
    "pyspark_kafka_time_behind_seconds",
    Kind.GAUGE,
    "seconds",
    "Age of the next unread record, by its timestamp; 0 if there is none. Only the partitions with the oldest records.",
    PARTITION_LABELS,
)

POLLED_FAMILIES = (HEADROOM, TIME_BEHIND)
"""What is shown if there are options of a connection."""

_Row = tuple[tuple[str, ...], float]


class LagPoller:
    """A poller that fetches log bounds and retention limits of the queries' topics from the brokers at intervals.

    The results are kept until the next poll; if it fails, nothing is known, and a log line says so.

    Runs on: driver, or the client of Spark Connect; a daemon thread between `start` and `stop`. A poll sends a few
    requests to each broker and waits at most 15 s for each source; it delays neither queries nor scrapes.

    Args:
        connection: options of the cluster, as Spark takes them.
        store: has the positions of the queries.
        max_partitions: the maximum of exported partitions: those with the least headroom, and the oldest records.
        interval_s: seconds between two polls.
        measure: returns a report about positions; tests pass their own.

    Raises:
        OptionError: the options are not valid.
    """

    def __init__(
        self,
        connection: Mapping[str, Any],
        store: MetricsStore,
        max_partitions: int,
        interval_s: float = INTERVAL_S,
        measure: Callable[[LagPositions], LagReport] | None = None,
    ) -> None:
        self._settings = resolve_settings(connection).with_time(_LOOK_S * 1000)
        self._store = store
        self._max_partitions = max_partitions
        self._interval_s, self._turn_s = interval_s, min(1.0, interval_s)
        self._measure = self._ask if measure is None else measure
        self._headroom: list[_Row] = []
        self._ages: list[_Row] = []
        self._behind: dict[tuple[str, int], dict[TopicPartition, int]] = {}
        # The last look at each source: only two looks show how fast its logs grow, so their headroom by size.
        self._reports: dict[tuple[str, int], LagReport] = {}
        self._failed = False
        self._looked_at: set[str] = set()
        self._next_at = 0.0
        self._loop = BackgroundLoop("pyspark-kafka-lag", self._look_if_due, self._turn_s)

    def start(self) -> None:
        """Poll now, and then at intervals."""
        self._loop.start()

    def stop(self) -> None:
        """Stop polling. Safe to repeat; waits for an unfinished poll."""
        self._loop.end(_STOP_S)

    def families(self) -> list[Family]:
        """Return the results of the last poll, for queries that still run."""
        running = {each.query_id for each in self._store.all() if each.is_running}
        return [
            HEADROOM.of(row for row in self._headroom if row[0][1] in running),
            TIME_BEHIND.of(row for row in self._ages if row[0][1] in running),
        ]

    def behind(self) -> dict[tuple[str, int], dict[TopicPartition, int]]:
        """Return the lag in records of partitions at the last poll, by the id of the query and its source."""
        return self._behind

    def look(self) -> None:
        """Poll the brokers once. Raises nothing."""
        headroom: list[_Row] = []
        ages: list[_Row] = []
        behind: dict[tuple[str, int], dict[TopicPartition, int]] = {}
        queries = [each for each in self._store.all() if each.is_running]
        running = {each.query_id for each in queries}
        self._reports = {key: report for key, report in self._reports.items() if key[0] in running}
        try:
            for query in queries:
                for source in query.sources:
                    report = self._report_of(query, source)
                    labels = (query.name or "", query.query_id, str(source.index))
                    for each in report:
                        row = (*labels, each.topic, str(each.partition))
                        if each.headroom_s is not None:
                            headroom.append((row, each.headroom_s))
                        if each.seconds_behind is not None:
                            ages.append((row, each.seconds_behind))
                    behind[query.query_id, source.index] = {
                        each.topic_partition: each.records_behind for each in report if each.records_behind is not None
                    }
        except ConnectorError as error:
            self._forget()
            if not self._failed:
                _LOG.warning("Lag and headroom of queries are not known, and are looked for again: %s", error)
            self._failed = True
            return
        except Exception:  # noqa: BLE001 - logged
            self._forget()
            _LOG.exception("Lag and headroom of queries could not be measured.")
            return
        self._failed = False
        self._headroom = heapq.nsmallest(self._max_partitions, headroom, key=lambda row: (row[1], row[0]))
        self._ages = heapq.nsmallest(self._max_partitions, ages, key=lambda row: (-row[1], row[0]))
        self._behind = behind

    def _forget(self) -> None:
        self._headroom, self._ages, self._behind = [], [], {}

    def _report_of(self, query: QueryMetrics, source: SourceMetrics) -> LagReport:
        report = self._measure(LagPositions(f"query {query.query_id}", source.positions))
        before = self._reports.get((query.query_id, source.index))
        self._reports[query.query_id, source.index] = report
        return report if before is None else with_rates(report, before)

    def _ask(self, positions: LagPositions) -> LagReport:
        deadline = Deadline(_LOOK_S * 1000)
        with borrow_client(self._settings.connection) as client:
            return measure_lag(client, positions, deadline, isolation_level=self._settings.isolation_level)

    def _look_if_due(self) -> float:
        running = {each.query_id for each in self._store.all() if each.is_running and each.sources}
        # A new query does not wait for the next poll.
        if running and (time.monotonic() >= self._next_at or running - self._looked_at):
            self.look()
            self._looked_at, self._next_at = running, time.monotonic() + self._interval_s
        return self._turn_s
