"""How far queries are behind the ends of their topics, from the progress events that Spark sends to listeners.

PySpark does not ask a Python source for metrics, so they are computed from the offsets that every progress event holds.
What must not live here: anything that the reading of records needs. Layer: spark.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_kafka.errors import CheckpointError
from pyspark_kafka.offsets import KafkaSourceOffset
from pyspark_kafka.planning import offsets_behind_latest
from pyspark_kafka.spark.process_log import stand_in
from pyspark_kafka.spark.python_choice import warn_without_package

if TYPE_CHECKING:
    from uuid import UUID

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        SourceProgress,
        StreamingQueryProgress,
    )
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger("pyspark_kafka.metrics")

# How Spark describes the stream of any Python source: this class of its JVM side, or one whose name goes on from it.
_PYTHON_STREAM = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream"
# A driver that starts queries for weeks; the figures of one are small, but there is one set for each.
_KEPT_QUERIES = 1_000
_SHOWN_ID = 8
# A pattern may mean thousands of topics; a log line names so many.
_LISTED_TOPICS = 5


def _now() -> float:
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """How far one Kafka source of a query is behind, after a micro-batch.

    Attributes:
        index: the place of the source among all sources of the query, from 0, as in Spark's progress.
        topics: the topics that it reads, by name.
        num_input_rows: records that the micro-batch read from it.
        min_offsets_behind_latest: offsets between the end of the micro-batch and the end of the log that the trigger
            saw at its start, of the partition where it is least.
        max_offsets_behind_latest: the same where it is most.
        avg_offsets_behind_latest: the mean over all partitions.
    """

    index: int
    topics: tuple[str, ...]
    num_input_rows: int
    min_offsets_behind_latest: int
    max_offsets_behind_latest: int
    avg_offsets_behind_latest: float

    @property
    def metrics(self) -> dict[str, str]:
        """The three figures with the names and in the text form of Spark's own connector."""
        return {
            "minOffsetsBehindLatest": str(self.min_offsets_behind_latest),
            "maxOffsetsBehindLatest": str(self.max_offsets_behind_latest),
            "avgOffsetsBehindLatest": str(self.avg_offsets_behind_latest),
        }


@dataclass(frozen=True, slots=True)
class QueryMetrics:
    """The newest figures of one streaming query.

    Attributes:
        query_id: the same over restarts from one checkpoint.
        run_id: of this run.
        name: as given with `queryName`; None without.
        batch_id: of the micro-batch that the figures are of.
        timestamp: when its trigger began, ISO 8601 in UTC.
        num_input_rows: records that it read from all sources, also from those that are not of this package.
        sources: the Kafka sources of this package, in the order of the query.
        terminated: whether the run has ended.
        heard_at: when Spark last said that the query had run a micro-batch or had nothing to do, in seconds of
            `time.monotonic`; see `seconds_since_progress`.
    """

    query_id: str
    run_id: str
    name: str | None
    batch_id: int
    timestamp: str
    num_input_rows: int
    sources: tuple[SourceMetrics, ...]
    terminated: bool = False
    heard_at: float = field(default=0.0, compare=False, repr=False)

    @property
    def seconds_since_progress(self) -> float | None:
        """For how long the query has neither ended a micro-batch nor been idle, now; None when it has ended.

        It grows while the query waits for brokers, whichever process of it waits, and in a long micro-batch as well.
        """
        return None if self.terminated else _now() - self.heard_at

    def __str__(self) -> str:
        # The first digits of the id tell queries of one name apart; the whole ids are attributes.
        known_as = f"{self.name!r} {self.query_id[:_SHOWN_ID]}" if self.name else self.query_id[:_SHOWN_ID]
        return f"query {known_as} batch {self.batch_id}: {'; '.join(map(_source_text, self.sources))}"


def _source_text(source: SourceMetrics) -> str:
    more = f" and {len(source.topics) - _LISTED_TOPICS} more" if len(source.topics) > _LISTED_TOPICS else ""
    return (
        f"source {source.index} ({', '.join(source.topics[:_LISTED_TOPICS])}{more}) rows={source.num_input_rows} "
        f"behind min={source.min_offsets_behind_latest} max={source.max_offsets_behind_latest} "
        f"avg={source.avg_offsets_behind_latest:.1f}"
    )


class MetricsStore:
    """The newest figures by query, for a bounded number of queries. Safe to use from several threads.

    Args:
        capacity: how many queries are kept; what ended goes first, then what was heard of longest ago.
    """

    def __init__(self, capacity: int = _KEPT_QUERIES) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        # The one that was heard of last comes last.
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
                self._by_id[query_id] = replace(known, heard_at=_now())

    def get(self, query_id: str) -> QueryMetrics | None:
        """Give the figures of a query; None where none are known."""
        with self._lock:
            return self._by_id.get(query_id)

    def all(self) -> tuple[QueryMetrics, ...]:
        """Give the figures of all queries; the one that was heard of last comes last."""
        with self._lock:
            return tuple(self._by_id.values())


def query_metrics(progress: StreamingQueryProgress) -> QueryMetrics | None:
    """Compute the figures of a progress event; None where the query has no source of this package.

    A source of this package is known by being a Python source whose offsets are those of a Kafka source: the event
    tells neither the format nor the options.

    Source: Spark `KafkaMicroBatchStream.metrics`.
    """
    sources = tuple(
        found for index, source in enumerate(progress.sources) if (found := _source_metrics(index, source)) is not None
    )
    if not sources:
        return None
    return QueryMetrics(
        query_id=str(progress.id),
        run_id=str(progress.runId),
        name=progress.name,
        batch_id=progress.batchId,
        timestamp=progress.timestamp,
        num_input_rows=progress.numInputRows,
        sources=sources,
        heard_at=_now(),
    )


def _source_metrics(index: int, source: SourceProgress) -> SourceMetrics | None:
    if not source.description.startswith(_PYTHON_STREAM):
        return None
    try:
        end = KafkaSourceOffset.from_json(source.endOffset)
        latest = KafkaSourceOffset.from_json(source.latestOffset)
    except CheckpointError:
        # Of another Python source, or nothing is known yet: "null", or "None" from classic Spark.
        return None
    figures = offsets_behind_latest(end.partitions, latest.partitions)
    if not figures:
        return None
    return SourceMetrics(
        index=index,
        topics=tuple(latest.to_dict()),
        num_input_rows=source.numInputRows,
        min_offsets_behind_latest=int(figures["minOffsetsBehindLatest"]),
        max_offsets_behind_latest=int(figures["maxOffsetsBehindLatest"]),
        avg_offsets_behind_latest=float(figures["avgOffsetsBehindLatest"]),
    )


class MetricsListener(StreamingQueryListener):
    """Logs the figures of every micro-batch, and keeps the newest of every query.

    Never raises into Spark's listener bus: an event that cannot be read is logged as a warning.

    Runs on: driver, or the client with Spark Connect; Spark calls it in a thread of its own, after the micro-batch.

    Args:
        store: where the newest figures are kept.
    """

    def __init__(self, store: MetricsStore) -> None:
        self._store = store
        self._session: SparkSession | None = None

    def attach(self, session: SparkSession) -> None:
        """Begin to listen to the queries of a session."""
        self._session = session
        session.streams.addListener(self)

    def stop(self) -> None:
        """Stop listening; what is known stays. On Spark Connect it waits for events on their way. Safe to repeat.

        On Spark Connect call it before the session is stopped: Spark warns of listeners that are left.
        """
        with _LOCK:
            session, self._session = self._session, None
            for key, listener in list(_LISTENERS.items()):
                if listener is self:
                    del _LISTENERS[key]
        if session is not None:
            session.streams.removeListener(self)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: there are no figures yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Compute, log and keep the figures of a micro-batch."""
        try:
            metrics = query_metrics(event.progress)
            if metrics is not None:
                self._store.put(metrics)
                logger.info("%s", metrics)
        except Exception:
            logger.warning("A progress event of a streaming query cannot be read; it is left out.", exc_info=True)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Note that the query has looked and found nothing to do; Spark says so every 10 s."""
        try:
            self._store.touch(str(event.id), str(event.runId))
        except Exception:
            logger.warning("An idle event of a streaming query cannot be read; it is left out.", exc_info=True)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Mark the figures of the run as its last."""
        try:
            self._store.terminate(str(event.id), str(event.runId))
        except Exception:
            logger.warning("The end of a streaming query cannot be read; it is left out.", exc_info=True)


_STORE = MetricsStore()
_LOCK = threading.Lock()
# By session. Spark holds a listener for as long as it is registered; with the session it goes, and so does its entry.
_LISTENERS: WeakValueDictionary[Any, MetricsListener] = WeakValueDictionary()


def listen(session: SparkSession) -> MetricsListener:
    """Log and keep how far each streaming query of a session is behind: the queries that run, and those to come.

    Again for the same session gives the same listener, and does nothing.

    The lines are at level INFO, which Python leaves out unless it is told otherwise. Whoever calls this wants them, so
    the log `pyspark_kafka.metrics` gets that level, and standard error where the program has no handler for it. A level
    that is set for it, or for `pyspark_kafka`, before or afterwards, holds.

    Runs on: driver, or the client with Spark Connect.

    Args:
        session: classic or Spark Connect.

    Returns:
        The listener; `stop()` ends it.
    """
    key = _session_key(session)
    _make_visible()
    with _LOCK:
        listener = _LISTENERS.get(key)
        if listener is None:
            listener = MetricsListener(_STORE)
            listener.attach(session)
            _LISTENERS[key] = listener
            warn_without_package(session)
        return listener


def _make_visible() -> None:
    if logging.NOTSET == logger.level == logging.getLogger("pyspark_kafka").level:
        logger.setLevel(logging.INFO)
    stand_in(logger.name)


def latest(query: StreamingQuery | UUID | str) -> QueryMetrics | None:
    """Give the newest figures of a query, by the query or its id; None before its first micro-batch.

    They stay when the query ends, marked as `terminated`. Figures of the latest 1,000 queries are kept.
    """
    return _STORE.get(str(getattr(query, "id", query)))


def snapshot() -> tuple[QueryMetrics, ...]:
    """Give the newest figures of all queries, of all sessions that are listened to; the latest comes last."""
    return _STORE.all()


def _session_key(session: Any) -> object:
    """Give what tells sessions apart: one of classic Spark may have several Python objects."""
    java_session = getattr(session, "_jsparkSession", None)
    return session.session_id if java_session is None else java_session.sessionUUID()
