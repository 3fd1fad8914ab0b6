"""The newest figures of the streaming queries of this process. Layer: spark."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pyspark_kafka.spark.metrics import values
from pyspark_kafka.spark.metrics.totals import QueryTotals

if TYPE_CHECKING:
    from pyspark_kafka.spark.metrics.values import QueryMetrics

# A driver may start queries for weeks. The figures of one are small, but each query has its own.
_KEPT_QUERIES = 1_000


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
        # Who heard of a query last. Spark may drop a listener silently.
        self._by: dict[str, weakref.ref[Hears]] = {}

    def put(self, metrics: QueryMetrics, by: Hears | None = None) -> None:
        """Take newer figures of a query.

        Args:
            metrics: the figures.
            by: who hears of the query; None if that does not end.
        """
        with self._lock:
            self._note(metrics.query_id, by)
            self._by_id[metrics.query_id] = metrics
            self._by_id.move_to_end(metrics.query_id)
            self._totals[metrics.query_id] = self._totals.get(metrics.query_id, QueryTotals()).plus(metrics)
            if len(self._by_id) > self._capacity:
                ended = (query_id for query_id in self._by_id if not self._known(query_id).is_running)
                dropped = next(ended, next(iter(self._by_id)))
                del self._by_id[dropped], self._totals[dropped]
                self._by.pop(dropped, None)

    def terminate(self, query_id: str, run_id: str, *, failed: bool = False) -> None:
        """Mark a run as ended, unless the query runs again already."""
        with self._lock:
            known = self._by_id.get(query_id)
            if known is not None and known.run_id == run_id:
                # A thousand ended queries of many partitions would take much memory.
                sources = tuple(replace(source, behind={}, positions={}) for source in known.sources)
                self._by_id[query_id] = replace(
                    known, sources=sources, terminated=True, failed=failed, ended_at=values.now()
                )

    def touch(self, query_id: str, run_id: str, by: Hears | None = None) -> None:
        """Note that a run is alive without a micro-batch; `by` as in `put`."""
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

    def _note(self, query_id: str, by: Hears | None) -> None:
        if by is None:
            self._by.pop(query_id, None)
        else:
            self._by[query_id] = weakref.ref(by)

    def _known(self, query_id: str) -> QueryMetrics:
        """Return the figures of a query that is kept, and mark them if nobody hears of it any more."""
        metrics = self._by_id[query_id]
        if metrics.is_running and query_id in self._by:
            by = self._by[query_id]()
            if by is None or by.is_stopped:
                metrics = self._by_id[query_id] = replace(metrics, unheard=True)
        return metrics
