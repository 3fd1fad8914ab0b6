"""The newest figures of the streaming queries of this process."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from dataclasses import replace
from typing import Protocol

from pyspark_kafka._ops.metrics import values
from pyspark_kafka._ops.metrics.totals import QueryTotals
from pyspark_kafka._ops.metrics.values import QueryMetrics

# A driver may start queries for weeks. The figures of one are small, but each query has its own.
_KEPT_QUERIES = 1_000
_KEPT_ENDS = 100


class Hears(Protocol):
    """Hears of queries, until it is stopped, or nobody has it any more."""

    @property
    def is_stopped(self) -> bool:
        """Whether it hears no more."""


class MetricsStore:
    """The newest figures by query, for a bounded number of queries. Safe to use from several threads.

    Figures of a run whose listener is stopped, or gone, are marked as `unheard` until somebody hears of it again.

    Args:
        capacity: how many queries are kept; ended queries are dropped first, then the least recently reported.
    """

    def __init__(self, capacity: int = _KEPT_QUERIES) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        # The most recently reported one comes last.
        self._by_id: OrderedDict[str, QueryMetrics] = OrderedDict()
        self._totals: dict[str, QueryTotals] = {}
        # Runs of which nothing but the end was heard, and whether they have failed.
        self._ended_first: OrderedDict[str, bool] = OrderedDict()
        # Who heard of a query last. Spark may drop a listener silently.
        self._by: dict[str, weakref.ref[Hears]] = {}

    def put(self, metrics: QueryMetrics, by: Hears | None = None) -> None:
        """Store newer figures of a query.

        Args:
            metrics: the figures.
            by: who hears of the query; None if that does not end.
        """
        with self._lock:
            self._totals[metrics.query_id] = self._totals.get(metrics.query_id, QueryTotals()).plus(metrics)
            self._keep(metrics, by)

    def start(self, query_id: str, run_id: str, name: str | None, timestamp: str, by: Hears | None = None) -> None:
        """Record a run without figures: before its first micro-batch its sources are unknown.

        Args:
            query_id: the query.
            run_id: its run; nothing happens if the run is already known.
            name: of the query.
            timestamp: when it was started.
            by: as in `put`.
        """
        with self._lock:
            known = self._by_id.get(query_id)
            if known is not None and known.run_id == run_id:
                return
            self._keep(QueryMetrics(query_id, run_id, name, -1, timestamp, 0, (), heard_at=values.now()), by)
            if run_id in self._ended_first:
                self._end(query_id, failed=self._ended_first.pop(run_id))

    def dismiss(self, query_id: str, run_id: str) -> None:
        """Forget a run that turns out to read nothing of Kafka, unless there are figures of it."""
        with self._lock:
            known = self._by_id.get(query_id)
            if known is not None and known.run_id == run_id and not known.sources:
                self._drop(query_id)

    def terminate(self, query_id: str, run_id: str, *, failed: bool = False) -> None:
        """Mark a run as ended, unless the query runs again already."""
        with self._lock:
            known = self._by_id.get(query_id)
            if known is not None and known.run_id == run_id:
                self._end(query_id, failed=failed)
            else:
                # On Spark Connect, start and end are heard of in two threads.
                self._ended_first[run_id] = failed
                if len(self._ended_first) > _KEPT_ENDS:
                    self._ended_first.popitem(last=False)

    def touch(self, query_id: str, run_id: str, by: Hears | None = None) -> None:
        """Record that a run is alive without a micro-batch; `by` as in `put`."""
        with self._lock:
            known = self._by_id.get(query_id)
            if known is not None and known.run_id == run_id:
                self._note(query_id, by)
                self._by_id[query_id] = replace(known, heard_at=values.now(), unheard=False)

    def get(self, query_id: str) -> QueryMetrics | None:
        """Return the figures of a query; None if there are none."""
        with self._lock:
            return self._known(query_id) if query_id in self._by_id else None

    def all(self) -> tuple[QueryMetrics, ...]:
        """Return the figures of all queries; the most recently reported one comes last."""
        with self._lock:
            return tuple(map(self._known, self._by_id))

    def with_totals(self) -> tuple[tuple[QueryMetrics, QueryTotals], ...]:
        """Return the figures of all queries, each with its sums since it was first heard of."""
        with self._lock:
            return tuple((self._known(query_id), self._totals[query_id]) for query_id in self._by_id)

    def _keep(self, metrics: QueryMetrics, by: Hears | None) -> None:
        self._note(metrics.query_id, by)
        self._by_id[metrics.query_id] = metrics
        self._by_id.move_to_end(metrics.query_id)
        self._totals.setdefault(metrics.query_id, QueryTotals())
        if len(self._by_id) > self._capacity:
            ended = (query_id for query_id in self._by_id if not self._known(query_id).is_running)
            self._drop(next(ended, next(iter(self._by_id))))

    def _drop(self, query_id: str) -> None:
        del self._by_id[query_id], self._totals[query_id]
        self._by.pop(query_id, None)

    def _end(self, query_id: str, *, failed: bool) -> None:
        known = self._by_id[query_id]
        # A thousand ended queries of many partitions would take much memory.
        sources = tuple(replace(source, behind={}, positions={}) for source in known.sources)
        self._by_id[query_id] = replace(known, sources=sources, terminated=True, failed=failed, ended_at=values.now())
        if failed and not known.terminated:
            totals = self._totals[query_id]
            self._totals[query_id] = replace(totals, failures=totals.failures + 1)

    def _note(self, query_id: str, by: Hears | None) -> None:
        if by is None:
            self._by.pop(query_id, None)
        else:
            self._by[query_id] = weakref.ref(by)

    def _known(self, query_id: str) -> QueryMetrics:
        """Return a kept query's figures, marked if no listener reports the query any more."""
        metrics = self._by_id[query_id]
        if metrics.is_running and query_id in self._by:
            by = self._by[query_id]()
            if by is None or by.is_stopped:
                metrics = self._by_id[query_id] = replace(metrics, unheard=True)
        return metrics
