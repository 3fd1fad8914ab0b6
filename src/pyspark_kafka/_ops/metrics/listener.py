"""Listens to the progress of streaming queries: logs and keeps how far they are behind the ends of their topics.

Nothing that reads records imports this.
"""

from __future__ import annotations

import logging
import threading
import weakref
from typing import TYPE_CHECKING, Any

from pyspark_kafka._connector.spark.local_bus import LOCAL_BUS, session_key
from pyspark_kafka._connector.spark.processes.process_log import stand_in
from pyspark_kafka._connector.spark.processes.python_choice import warn_without_package
from pyspark_kafka._ops.metrics.connect_bus import join_again, join_bus, leave_bus
from pyspark_kafka._ops.metrics.store import MetricsStore
from pyspark_kafka._ops.metrics.text_events import TextEventsListener
from pyspark_kafka._ops.metrics.values import query_metrics, reads_other_data

if TYPE_CHECKING:
    from uuid import UUID

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_kafka._ops.metrics.values import QueryMetrics

_LOG = logging.getLogger("pyspark_kafka.metrics")


class MetricsListener(TextEventsListener):
    """A log line for every micro-batch and every epoch of continuous queries; keeps each query's newest figures.

    Never raises into Spark's listener bus: an event that cannot be read is logged as a warning.

    Runs on: driver, or the client with Spark Connect; Spark calls it in a thread of its own, after the micro-batch.

    Args:
        store: where the newest figures are kept.
    """

    def __init__(self, store: MetricsStore) -> None:
        self._store = store
        # Not the session itself: Spark may hold the listener for as long as the program lives.
        self._session: weakref.ref[SparkSession] | None = None
        self._stopped = False

    def attach(self, session: SparkSession) -> None:
        """Begin to listen to the queries of a session."""
        self.belong_to(session)
        join_bus(session, self)
        # Spark knows nothing of continuous queries, which run in this process.
        LOCAL_BUS.add_listener(self, session_key(session), weakly=True)
        self._take_in(session)

    def _take_in(self, session: SparkSession) -> None:
        """Record the queries that run already, whose start is not reported."""
        try:
            for query in session.streams.active:
                self._store.start(str(query.id), str(query.runId), query.name, "", by=self)
                # Its end may have been heard of before.
                if not query.isActive:
                    self._store.terminate(str(query.id), str(query.runId), failed=query.exception() is not None)
        except Exception:  # noqa: BLE001 - logged
            _LOG.warning("The queries that run already could not be listed; each is heard of later.", exc_info=True)

    def belong_to(self, session: Any) -> None:
        """Live as long as this object of the session: PySpark's client of Spark Connect drops its listeners at will."""
        self._session = weakref.ref(session)
        session._pyspark_kafka_metrics = self  # noqa: SLF001 - PySpark has no place for what belongs to a session

    def stop(self) -> None:
        """Stop listening; the figures stay, and figures of running queries are marked as `unheard`. Safe to repeat.

        On Spark Connect it waits for pending events, at most 60 s for them; if the server does not respond, it logs a
        warning. Call it before the session is stopped: Spark warns of listeners that are left. On classic Spark, call
        it while the program holds the session that it was made for: else Spark still calls it, and it does nothing.
        """
        with _LOCK:
            attached, self._session = self._session, None
            for key, listener in list(_LISTENERS.items()):
                if listener is self:
                    del _LISTENERS[key]
        if attached is not None:
            LOCAL_BUS.remove(self)
            session = attached()
            if session is not None:
                leave_bus(session, self)
                vars(session).pop("_pyspark_kafka_metrics", None)
            # Spark may still call the listener of an ended session.
            self._stopped = True

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` has been called and has returned."""
        return self._stopped

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Record that a query runs, whatever it reads: one may fail in its first micro-batch."""
        try:
            if not self._stopped:
                self._store.start(str(event.id), str(event.runId), event.name, event.timestamp, by=self)
        except Exception:  # noqa: BLE001 - logged
            _LOG.warning("The start of a streaming query cannot be read; it is ignored.", exc_info=True)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Compute, log and keep the figures of a micro-batch."""
        try:
            metrics = query_metrics(event.progress)
            if self._stopped:
                return
            if metrics is not None:
                self._store.put(metrics, by=self)
                _LOG.info("%s", metrics)
            elif reads_other_data(event.progress):
                self._store.dismiss(str(event.progress.id), str(event.progress.runId))
            else:
                self._store.touch(str(event.progress.id), str(event.progress.runId), by=self)
        except Exception:  # noqa: BLE001 - logged
            _LOG.warning("A progress event of a streaming query cannot be read; it is ignored.", exc_info=True)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Record that an idle query still runs; Spark reports this every 10 s."""
        try:
            if not self._stopped:
                self._store.touch(str(event.id), str(event.runId), by=self)
        except Exception:  # noqa: BLE001 - logged
            _LOG.warning("An idle event of a streaming query cannot be read; it is ignored.", exc_info=True)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Mark the figures of the run as its last."""
        try:
            self._store.terminate(str(event.id), str(event.runId), failed=event.exception is not None)
        except Exception:  # noqa: BLE001 - logged
            _LOG.warning("The end of a streaming query cannot be read; it is ignored.", exc_info=True)


STORE = MetricsStore()
"""The figures of this process."""

_LOCK = threading.Lock()
# By session. Spark holds a listener for as long as it is registered; with the session it goes, and so does its entry.
_LISTENERS: weakref.WeakValueDictionary[Any, MetricsListener] = weakref.WeakValueDictionary()


def listen(session: SparkSession) -> MetricsListener:
    """Log and keep how far each streaming query of a session is behind: the queries that run, and those to come.

    A second call for the same session has no effect and returns the same listener.

    The lines are at level INFO, which Python does not log by default. So the logger `pyspark_kafka.metrics` is set to
    that level, and writes to standard error if the program has no handler for it. A level that the program sets for it,
    or for `pyspark_kafka`, before or afterwards, takes precedence.

    Runs on: driver, or the client with Spark Connect.

    Args:
        session: classic or Spark Connect.

    Returns:
        The listener; `stop()` ends it.
    """
    key = session_key(session)
    _make_visible()
    with _LOCK:
        listener = _LISTENERS.get(key)
        if listener is None:
            listener = MetricsListener(STORE)
            listener.attach(session)
            _LISTENERS[key] = listener
            warn_without_package(session)
        else:
            # The object that it was made for may be gone.
            listener.belong_to(session)
            join_again(session, listener)
        return listener


def _make_visible() -> None:
    if logging.NOTSET == _LOG.level == logging.getLogger("pyspark_kafka").level:
        _LOG.setLevel(logging.INFO)
    # `logging.config` disables by default what existed before: by accident, while this call requires lines.
    _LOG.disabled = False
    stand_in(_LOG.name)


def latest(query: StreamingQuery | UUID | str) -> QueryMetrics | None:
    """Return the newest figures of a query, by the query or its id; None if nothing was heard of it.

    They stay when the query ends, marked as `terminated`, and when nobody listens any more, marked as `unheard`.
    Figures of the latest 1,000 queries are kept.
    """
    return STORE.get(str(getattr(query, "id", query)))


def snapshot() -> tuple[QueryMetrics, ...]:
    """Return the newest figures of all queries, of all sessions that are listened to; the latest comes last."""
    return STORE.all()
