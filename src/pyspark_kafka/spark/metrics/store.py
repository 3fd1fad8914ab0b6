"""The newest figures of the streaming queries of this process. Layer: spark."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka.spark.metrics import values

if TYPE_CHECKING:
    from pyspark_kafka.spark.metrics.values import QueryMetrics

# A driver may start queries for weeks. The figures of one are small, but each query has its own.
_KEPT_QUERIES = 1_000


class MetricsStore:
    """The newest figures by query, for a bounded number of queries. Safe to use from several threads.

    Args:
        capacity: how many queries are kept; ended queries are dropped first, then the least recently reported.
    """

    def __init__(self, capacity: int = _KEPT_QUERIES) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        # The most recently reported one comes last.
        self._by_id: OrderedDict[str, QueryMetrics] = OrderedDict()

    def put(self, metrics: QueryMetrics) -> None:
        """Take newer figures of a query."""
        with self._lock:
            self._by_id[metrics.query_id] = metrics
            self._by_id.move_to_end(metrics.query_id)
            if len(self._by_id) > self._capacity:
                ended = (query_id for query_id, kept in self._by_id.items() if kept.terminated)
                del self._by_id[next(ended, next(iter(self._by_id)))]

    def terminate(self, query_id: str, run_id: str) -> None:
        """Mark a run as ended, unless the query runs again already."""
        with self._lock:
            known = self._by_id.get(query_id)
            if known is not None and known.run_id == run_id:
                self._by_id[query_id] = replace(known, terminated=True)

    def touch(self, query_id: str, run_id: str) -> None:
        """Note that a run is alive without a micro-batch."""
        with self._lock:
            known = self._by_id.get(query_id)
            if known is not None and known.run_id == run_id:
                self._by_id[query_id] = replace(known, heard_at=values.now())

    def get(self, query_id: str) -> QueryMetrics | None:
        """Return the figures of a query; None if there are none."""
        with self._lock:
            return self._by_id.get(query_id)

    def all(self) -> tuple[QueryMetrics, ...]:
        """Return the figures of all queries; the most recently reported one comes last."""
        with self._lock:
            return tuple(self._by_id.values())
