"""The queries of a process: which run, which have ended, who waits and who listens."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQueryManager

from kit.texts import said
from pyspark_kafka import continuous
from pyspark_kafka._connector.spark.local_bus import LocalListenerBus
from pyspark_kafka.continuous.query.streams import ContinuousQueryManager
from pyspark_kafka.continuous.reports.events import QueryEvents, QueryNames
from pyspark_kafka.errors import ContinuousQueryError


class Query:
    """What the manager asks of a query."""

    def __init__(self) -> None:
        self.id, self.runId = str(uuid.uuid4()), str(uuid.uuid4())


def begun(streams: ContinuousQueryManager) -> Any:
    query: Any = Query()
    streams.began(query)
    return query


def test_manager_has_every_name_of_sparks() -> None:
    names = {name for name in vars(StreamingQueryManager) if not name.startswith("_")}
    assert names - {name for name in dir(ContinuousQueryManager) if not name.startswith("_")} == set()


def test_module_has_the_manager_of_the_process() -> None:
    assert isinstance(continuous.streams, ContinuousQueryManager)
    assert continuous.streams is continuous.streams
    with pytest.raises(AttributeError, match="no attribute 'stream'"):
        continuous.stream  # type: ignore[attr-defined]  # noqa: B018 - the look-up is the test


def test_queries_that_run_are_found_by_id() -> None:
    streams = ContinuousQueryManager()
    queries = [begun(streams), begun(streams)]
    first, second = queries
    assert streams.active == queries
    assert streams.get(second.id) == second
    assert streams.get(uuid.UUID(first.id)) == first  # type: ignore[arg-type]
    assert streams.get("other") is None
    streams.ended(first, None)
    assert streams.active == [second]
    assert streams.get(first.id) is None


def test_wait_ends_with_the_first_query_that_ends() -> None:
    streams = ContinuousQueryManager()
    query = begun(streams)
    assert streams.awaitAnyTermination(0.01) is False
    ending = threading.Thread(target=streams.ended, args=(query, None))
    ending.start()
    assert streams.awaitAnyTermination() is None
    ending.join()
    # One that has ended before counts, until it is forgotten.
    assert streams.awaitAnyTermination(30) is True
    streams.resetTerminated()
    assert streams.awaitAnyTermination(0.01) is False
    with pytest.raises(ValueError, match="positive number of seconds"):
        streams.awaitAnyTermination(0)


def test_wait_raises_why_a_query_failed() -> None:
    streams = ContinuousQueryManager()
    streams.ended(begun(streams), None)
    streams.ended(begun(streams), ContinuousQueryError("boom", condition="CONTINUOUS_RUN_FAILED", hint="Look."))
    with pytest.raises(ContinuousQueryError, match="boom"):
        streams.awaitAnyTermination(30)
    streams.resetTerminated()
    assert streams.awaitAnyTermination(0.01) is False


class Collects(StreamingQueryListener):
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def onQueryStarted(self, event: Any) -> None:
        self.events.append(event)

    def onQueryProgress(self, event: Any) -> None:
        self.events.append(event)

    def onQueryIdle(self, event: Any) -> None:
        self.events.append(event)

    def onQueryTerminated(self, event: Any) -> None:
        self.events.append(event)


def test_listeners_get_pysparks_own_events() -> None:
    bus = LocalListenerBus()
    streams, collects = ContinuousQueryManager(bus), Collects()
    names = QueryNames(str(uuid.uuid4()), str(uuid.uuid4()), "orders", "files", "files")
    events = QueryEvents(names, "session", bus)
    made: list[str] = []
    unheard: Any = made.append
    events.progressed(lambda: unheard("made for nobody"))
    assert made == []
    streams.addListener(collects)
    events.started()
    report: Any = {"batchId": 3}
    events.progressed(lambda: report)
    events.idle()
    events.terminated(None)
    events.terminated(ContinuousQueryError("boom", condition="CONTINUOUS_RUN_FAILED", hint="Look."))
    events.terminated(ValueError("odd"))
    streams.removeListener(collects)
    events.idle()
    started, progress, idle, *ended = collects.events
    for each in (started, idle, *ended):
        assert (str(each.id), str(each.runId)) == (names.id, names.run_id)
    assert (started.name, started.jobTags) == ("orders", set())
    assert started.timestamp.endswith("Z")
    assert progress.progress is report
    stopped, failed, odd = [(each.exception, each.errorClassOnException) for each in ended]
    assert (stopped, odd) == ((None, None), ("odd", None))
    assert (said(failed[0]), failed[1]) == ("[CONTINUOUS_RUN_FAILED] boom Hint: Look.", "CONTINUOUS_RUN_FAILED")
