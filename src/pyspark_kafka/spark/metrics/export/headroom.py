"""Looks now and then how long the records that queries read next are certain to stay, in a thread of its own."""

from __future__ import annotations

import heapq
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.cluster.pool import borrow_client
from pyspark_kafka.client.deadline import Deadline
from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.operations.lag.figures import with_rates
from pyspark_kafka.operations.lag.looking import isolation_of
from pyspark_kafka.operations.lag.measuring import measure_lag
from pyspark_kafka.operations.lag.positions import LagPositions
from pyspark_kafka.operations.settings import resolve_settings
from pyspark_kafka.spark.metrics.export.families import PARTITION_LABELS, Family, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka.operations.lag.values import LagReport
    from pyspark_kafka.spark.metrics.store import MetricsStore
    from pyspark_kafka.spark.metrics.values import QueryMetrics

_LOG = logging.getLogger(__name__)

INTERVAL_S = 60.0
"""How often brokers are asked."""

_LOOK_S = 15.0
_STOP_S = 2 * _LOOK_S

HEADROOM = Family(
    "pyspark_kafka_headroom_seconds",
    Kind.GAUGE,
    "seconds",
    "Time until brokers may delete the record that is read next, by the retention of the topic; +Inf if it stays. Only "
    "the partitions with the least.",
    PARTITION_LABELS,
)
TIME_BEHIND = Family(
    "pyspark_kafka_time_behind_seconds",
    Kind.GAUGE,
    "seconds",
    "How old the record that is read next is, by its timestamp; 0 if none waits. Of the same partitions.",
    PARTITION_LABELS,
)

HEADROOM_FAMILIES = (HEADROOM, TIME_BEHIND)
"""What is shown if there are options of a connection."""

_Row = tuple[tuple[str, ...], float, "float | None"]


class HeadroomWatch:
    """Asks the brokers at intervals where the logs of the queries' topics begin, and by which limits they delete.

    What was found is kept until the next look; if that fails, nothing is known, and a line of the log says so.

    Runs on: driver, or the client of Spark Connect; a daemon thread between `start` and `stop`. A look asks each broker
    a few times and waits at most 15 s for each source; it delays neither queries nor scrapes.

    Args:
        connection: options of the cluster, as Spark takes them.
        store: has the positions of the queries.
        most: how many partitions are shown: those with the least head-room.
        interval_s: seconds between two looks.
        measure: returns a report about positions; tests pass their own.

    Raises:
        OptionError: the options are not valid.
    """

    def __init__(
        self,
        connection: Mapping[str, Any],
        store: MetricsStore,
        most: int,
        interval_s: float = INTERVAL_S,
        measure: Callable[[LagPositions], LagReport] | None = None,
    ) -> None:
        self._settings = resolve_settings(connection).with_time(_LOOK_S * 1000)
        self._store = store
        self._most = most
        self._interval_s = interval_s
        self._measure = self._ask if measure is None else measure
        self._rows: list[_Row] = []
        # The last look at each source: only two looks show how fast its logs grow, so their head-room by size.
        self._reports: dict[tuple[str, int], LagReport] = {}
        self._failed = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look now, and then at intervals."""
        self._thread = threading.Thread(target=self._run, name="pyspark-kafka-headroom", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more. Safe to repeat; waits for a look that is not over."""
        self._stopped.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_STOP_S)

    def families(self) -> list[Family]:
        """Return what the last look has found, of queries that still run."""
        running = {each.query_id for each in self._store.all() if each.is_running}
        rows = [row for row in self._rows if row[0][1] in running]
        return [
            HEADROOM.of((labels, seconds) for labels, seconds, _ in rows),
            TIME_BEHIND.of((labels, age) for labels, _, age in rows if age is not None),
        ]

    def look(self) -> None:
        """Ask the brokers once. Raises nothing."""
        found: list[_Row] = []
        running = {each.query_id for each in self._store.all() if each.is_running}
        self._reports = {key: report for key, report in self._reports.items() if key[0] in running}
        try:
            for query in self._store.all():
                if query.is_running:
                    found += self._rows_of(query)
        except ConnectorError as error:
            self._rows = []
            if not self._failed:
                _LOG.warning("The head-room of queries is not known, and is looked for again: %s", error)
            self._failed = True
            return
        except Exception:  # noqa: BLE001 - logged
            self._rows = []
            _LOG.exception("The head-room of queries could not be looked for.")
            return
        self._failed = False
        self._rows = heapq.nsmallest(self._most, found, key=lambda row: (row[1], row[0]))

    def _rows_of(self, query: QueryMetrics) -> list[_Row]:
        rows: list[_Row] = []
        for source in query.sources:
            report = self._measure(LagPositions(f"query {query.query_id}", source.positions))
            before = self._reports.get((query.query_id, source.index))
            self._reports[query.query_id, source.index] = report
            if before is not None:
                report = with_rates(report, before)
            labels = (query.name or "", query.query_id, str(source.index))
            rows += [
                ((*labels, each.topic, str(each.partition)), each.headroom_s, each.seconds_behind)
                for each in report
                if each.headroom_s is not None
            ]
        return rows

    def _ask(self, positions: LagPositions) -> LagReport:
        deadline = Deadline(_LOOK_S * 1000)
        with borrow_client(self._settings.connection) as client:
            return measure_lag(client, positions, deadline, isolation_level=isolation_of(self._settings))

    def _run(self) -> None:
        looked_at: set[str] = set()
        next_at = 0.0
        while not self._stopped.wait(min(1.0, self._interval_s)):
            running = {each.query_id for each in self._store.all() if each.is_running}
            # A query that is heard of for the first time does not wait for the next look.
            if running and (time.monotonic() >= next_at or running - looked_at):
                self.look()
                looked_at, next_at = running, time.monotonic() + self._interval_s
