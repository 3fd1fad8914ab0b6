"""Listens to the queries of a session, and sends events of OpenLineage about those with a part in Kafka.

Spark's calls only note what has happened. All else, also reading the plan of a query, is done in the sender's thread.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import uuid
import weakref
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._connector.spark.local_bus import LOCAL_BUS, session_key
from pyspark_kafka._connector.spark.processes.process_log import stand_in
from pyspark_kafka._ops.lineage.batch_ends import BatchEnds, await_reports
from pyspark_kafka._ops.lineage.client import open_client
from pyspark_kafka._ops.lineage.connect_queries import ConnectQueries
from pyspark_kafka._ops.lineage.naming import application_names
from pyspark_kafka._ops.lineage.plans.connect_plans import parts_of
from pyspark_kafka._ops.lineage.plans.continuous_queries import continuous_parts
from pyspark_kafka._ops.lineage.plans.spark_plans import batch_parts, stream_execution, streaming_parts
from pyspark_kafka._ops.lineage.reports import failure_message, kafka_reads, written_rows
from pyspark_kafka._ops.lineage.runs import Application, QueryParts, StreamingRuns
from pyspark_kafka._ops.lineage.sender import EventSender
from pyspark_kafka._ops.metrics.connect_bus import join_again, join_bus, leave_bus
from pyspark_kafka._ops.metrics.text_events import TextEventsListener
from pyspark_kafka.continuous.query.handle import ends_of
from pyspark_kafka.continuous.query.streams import STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from pyspark_kafka._ops.lineage.client import ClientOfOpenLineage
    from pyspark_kafka._ops.lineage.connect_queries import ConnectRun
    from pyspark_kafka._ops.lineage.values import RunFacts, State

_LOG = logging.getLogger("pyspark_kafka.lineage")


class LineageListener(TextEventsListener):
    """Sends the lineage of a session's queries.

    Never raises into Spark's listener bus, and never waits for the collector.

    Runs on: driver, or the client with Spark Connect.

    Args:
        client: of OpenLineage.
        application: returns what all queries of the session have in common; may block.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        client: ClientOfOpenLineage,
        application: Callable[[], Application],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._application, self._clock = client, application, clock
        self._sender = EventSender(client.emit, client.close)
        # Of the sender's thread alone.
        self._runs: StreamingRuns | None = None
        self._known: Application | None = None
        # Not the session itself: Spark may hold the listener for as long as the program lives.
        self._session: weakref.ref[SparkSession] | None = None
        self._stopped = False
        own = weakref.ref(self)
        # The JVM may hold it for as long as the program lives.
        self._batches = BatchEnds(partial(_batch_ended, own))
        self._connect = ConnectQueries(self)
        self._at_exit = partial(_finish, own)
        # Without a session nobody stops it, and the thread ends automatically.
        weakref.finalize(self, self._sender.end).atexit = False

    @property
    def sent(self) -> int:
        """The number of events that the collector has taken."""
        return self._sender.sent

    @property
    def lost(self) -> int:
        """The number of events that could not be built or sent, or were dropped behind a collector that is too slow."""
        return self._sender.failed + self._sender.dropped

    def attach(self, session: SparkSession) -> None:
        """Begin to listen to the queries of a session, running queries included."""
        self.belong_to(session)
        atexit.register(self._at_exit)
        join_bus(session, self)
        LOCAL_BUS.add_listener(self, session_key(session), weakly=True)
        self._batches.join(session)
        for running in session.streams.active:
            self._begin(session, str(running.id), str(running.runId), running.name)
        key = session_key(session)
        for query in STREAMS.active:
            ends = ends_of(query)
            if ends is not None and session_key(ends.frame.spark) == key:
                self._post_start(query.runId, partial(continuous_parts, ends, query.name))

    def belong_to(self, session: Any) -> None:
        """Live as long as this object of the session: PySpark's client of Spark Connect drops its listeners at will."""
        if not self._connect.join(session):
            _LOG.warning(
                "Lineage: the requests of this client of Spark Connect cannot be seen. Continuous queries have events; "
                "batches and micro-batches have none."
            )
        self._session = weakref.ref(session)
        session._pyspark_kafka_lineage = self  # noqa: SLF001 - PySpark has no place for what belongs to a session

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until the events so far are sent or given up; return whether they are.

        Args:
            timeout_s: the longest wait, in seconds, for Spark's reports and for the collector.
        """
        deadline = Deadline(timeout_s * 1_000)
        LOCAL_BUS.flush(self, timeout_s)
        session = None if self._session is None else self._session()
        if session is not None:
            try:
                await_reports(session, deadline.remaining_s())
            except Exception:  # noqa: BLE001 - a report that is late has no event
                _LOG.debug("Lineage: Spark has more reports.", exc_info=True)
        return self._sender.flush(deadline.remaining_s())

    def finish(self) -> None:
        """Send the last events of a program that ends; waits for at most some seconds.

        Spark's session may have ended, so the listener is not removed from it.
        """
        self.flush()
        self._stopped = True
        self._sender.stop(0.0)

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop listening, and send the pending events. Safe to repeat.

        Args:
            timeout_s: the longest wait for the collector, in seconds.
        """
        with _LOCK:
            attached, self._session = self._session, None
            for key, listener in list(_LISTENERS.items()):
                if listener is self:
                    del _LISTENERS[key]
        if attached is not None:
            LOCAL_BUS.remove(self, timeout_s)
            session = attached()
            self._batches.leave()
            if session is not None:
                self._connect.leave(session)
                leave_bus(session, self)
                vars(session).pop("_pyspark_kafka_lineage", None)
            # Spark may still call the listener of an ended session.
            self._stopped = True
            atexit.unregister(self._at_exit)
        self._sender.stop(timeout_s)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Note that a query has started."""
        try:
            run_id = str(event.runId)
            query = next((each for each in STREAMS.active if each.runId == run_id), None)
            ends = None if query is None else ends_of(query)
            if ends is not None:
                self._post_start(run_id, partial(continuous_parts, ends, event.name))
                return
            session = None if self._session is None else self._session()
            if session is not None:
                self._begin(session, str(event.id), run_id, event.name)
        except Exception:  # noqa: BLE001 - logged
            _LOG.warning("Lineage: the start of a query cannot be read; it is ignored.", exc_info=True)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Note what a micro-batch or an epoch has read and written."""
        progress, at = event.progress, _now()

        def build() -> Iterator[RunFacts | None]:
            rows = kafka_reads(progress), written_rows(progress)
            yield self._known_runs.progress(str(progress.runId), *rows)

        self._connect.after_starts(lambda: self._post(build, "RUNNING", at))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: an idle query has read and written nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Note that a query has ended, or why it has failed."""
        run_id, reason, at = str(event.runId), event.exception, _now()

        def build() -> Iterator[RunFacts | None]:
            yield self._known_runs.end(run_id, None if reason is None else failure_message(reason))

        def post() -> None:
            self._post(build, "COMPLETE" if reason is None else "FAIL", at)
            self._connect.stream_ended(run_id)

        self._connect.after_starts(post)

    def connect_stream_started(self, run: ConnectRun, run_id: str) -> None:
        """Note that the client of Spark Connect has started a stream."""
        self._post_start(run_id, partial(parts_of, run.query, run.columns))

    def connect_batch_ended(self, run: ConnectRun, error: BaseException | None) -> None:
        """Note that a batch query of the client of Spark Connect has ended."""
        parts = partial(parts_of, run.query, run.columns, run.metrics)
        self._post_batch(parts, run.began, _now(), None if error is None else str(error))

    def batch_ended(self, execution: Any, duration_ns: int, error: str | None) -> None:
        """Note that a batch query has ended.

        Args:
            execution: the JVM's `QueryExecution`.
            duration_ns: how long the query took.
            error: why it failed; None if it did not.
        """
        at = _now()
        began = at - timedelta(microseconds=duration_ns // 1_000)
        self._post_batch(partial(batch_parts, execution), began, at, error)

    def _post_batch(self, parts: Callable[[], QueryParts], began: datetime, at: datetime, error: str | None) -> None:
        message = None if error is None else failure_message(error)

        def build() -> Iterator[tuple[RunFacts, State, datetime]]:
            found = parts()
            if found.has_topics:
                facts = self._application_facts.facts(found, str(uuid.uuid4()), message)
                yield replace(facts, error=None), "START", began
                yield facts, "COMPLETE" if message is None else "FAIL", at

        if not self._stopped:
            self._sender.post(lambda: (self._client.event(*each) for each in build()))

    def _begin(self, session: SparkSession, query_id: str, run_id: str, name: str | None) -> None:
        # Now: a query that ends soon is not known later.
        execution = stream_execution(session, query_id)
        if execution is not None:
            self._post_start(run_id, partial(streaming_parts, execution, name))

    @property
    def _application_facts(self) -> Application:
        if self._known is None:
            self._known = self._application()
        return self._known

    @property
    def _known_runs(self) -> StreamingRuns:
        if self._runs is None:
            self._runs = StreamingRuns(self._application_facts, self._clock)
        return self._runs

    def _post_start(self, run_id: str, parts: Callable[[], QueryParts]) -> None:
        def build() -> Iterator[RunFacts | None]:
            yield self._known_runs.start(run_id, parts())

        self._post(build, "START", _now())

    def _post(self, build: Callable[[], Iterator[RunFacts | None]], state: State, at: datetime) -> None:
        if self._stopped:
            return
        self._sender.post(
            lambda: (self._client.event(facts, state, at) for facts in build() if facts is not None),
        )


_LOCK = threading.Lock()
# By session. Spark holds a listener for as long as it is registered; with the session it goes, and so does its entry.
_LISTENERS: weakref.WeakValueDictionary[Any, LineageListener] = weakref.WeakValueDictionary()


def listen(session: SparkSession) -> LineageListener:
    """Send events of OpenLineage about the queries of a session that read or write Kafka with this package.

    A second call for the same session has no effect and returns the same listener. Events are sent in a thread of their
    own: a collector that is slow or away delays no query. What cannot be sent is given up, and logged once.

    Runs on: driver, or the client with Spark Connect. Needs the extra `lineage`.

    Args:
        session: classic or Spark Connect.

    Returns:
        The listener; `stop()` ends it. If `OPENLINEAGE_DISABLED` is true, it sends nothing.

    Raises:
        MissingDependencyError: the package `openlineage-python` is not installed.
        SetupError: the configuration of OpenLineage's client is not valid.
        OptionError: `PYSPARK_KAFKA_REFERENCES` is set and does not allow the file of this configuration.
    """
    key = session_key(session)
    stand_in(_LOG.name)
    with _LOCK:
        listener = _LISTENERS.get(key)
        if listener is not None:
            # The object that it was made for may be gone.
            listener.belong_to(session)
            join_again(session, listener)
            return listener
        client = open_client()
        own = weakref.ref(session)
        listener = LineageListener(client, lambda: _application_of(own))
        if not client.is_disabled:
            listener.attach(session)
            _LISTENERS[key] = listener
        return listener


def _application_of(own: weakref.ref[SparkSession]) -> Application:
    session = own()
    if session is None:
        raise RuntimeError("the session of the queries is gone")

    def setting(name: str) -> str | None:
        value = session.conf.get(name, None)
        return None if value is None else str(value)

    return Application(application_names(setting, os.environ), session.version)


def _finish(own: weakref.ref[LineageListener]) -> None:
    """Send the last events of a program that ends."""
    listener = own()
    if listener is not None:
        listener.finish()


def _batch_ended(own: weakref.ref[LineageListener], execution: Any, duration_ns: int, error: str | None) -> None:
    listener = own()
    if listener is not None:
        listener.batch_ended(execution, duration_ns, error)


def _now() -> datetime:
    return datetime.now(timezone.utc)
