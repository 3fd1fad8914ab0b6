"""Figures from progress events, as Spark Connect's client builds them from Spark's JSON; no JVM."""

from __future__ import annotations

import json
import logging
import uuid
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StateOperatorProgress,
)

from kit.fixtures.leftovers import collect_quietly
from pyspark_kafka import metrics
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.spark.processes.process_log import StandInHandler
from pyspark_kafka._ops.metrics import values
from pyspark_kafka._ops.metrics.export.families import query_families
from pyspark_kafka._ops.metrics.listener import MetricsListener, _make_visible
from pyspark_kafka._ops.metrics.store import MetricsStore
from pyspark_kafka._ops.metrics.text_events import _TextListener
from pyspark_kafka._ops.metrics.values import GroupTime, QueryMetrics, SourceMetrics, StateMetrics

PYTHON_STREAM = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamWithTriggerAvailableNow@1f"
QUERY, RUN = "8c0e2b1e-0000-4000-8000-000000000001", "51f20000-0000-4000-8000-000000000002"


def source(
    end: object, latest: object, *, rows: int = 0, description: str = PYTHON_STREAM, start: object = None
) -> dict[str, Any]:
    return {
        "description": description,
        "startOffset": start,
        "endOffset": end,
        "latestOffset": latest,
        "numInputRows": rows,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 0.0,
    }


def progress(*sources: Mapping[str, Any], query: str = QUERY, run: str = RUN, batch: int = 7) -> QueryProgressEvent:
    return QueryProgressEvent.fromJson(
        {
            "progress": {
                "id": query,
                "runId": run,
                "name": "orders",
                "timestamp": "2026-01-01T00:00:00.000Z",
                "batchId": batch,
                "batchDuration": 5,
                "numInputRows": sum(one["numInputRows"] for one in sources),
                "inputRowsPerSecond": 0.0,
                "processedRowsPerSecond": 0.0,
                "durationMs": {},
                "stateOperators": [],
                "sources": list(sources),
                "sink": {"description": "sink", "numOutputRows": 0},
            }
        }
    )


def test_state_of_a_continuous_query_and_of_a_micro_batch_is_read(
    listener: MetricsListener, store: MetricsStore
) -> None:
    event = progress(source({"a": {"0": 3}}, {"a": {"0": 9}}, rows=8))
    fields = {
        "operatorName": "stateStoreSave", "numRowsTotal": 5, "numRowsUpdated": 3, "numRowsRemoved": 2,
        "allUpdatesTimeMs": 1, "allRemovalsTimeMs": 1, "commitTimeMs": 250, "memoryUsedBytes": None,
        "numRowsDroppedByWatermark": 1, "numShufflePartitions": None, "numStateStoreInstances": 2,
        "customMetrics": {"stateOnCurrentVersionSizeBytes": 99, "numTimers": 4},
    }  # fmt: skip
    of_spark = StateOperatorProgress.fromJson({**fields, "customMetrics": {}})
    ours = StateOperatorProgress.fromJson(fields)
    ours["watermarks"] = {
        "lowest": {"topicPartition": "a-b-7", "watermark": "1970-01-01T00:01:00.000Z", "firstTimer": "soon"},
        "highest": {"topicPartition": "a-b-3", "watermark": str(2**62)},
    }
    event.progress["stateOperators"] = [of_spark, ours]
    event.progress["eventTime"] = {"watermark": "1970-01-01T00:01:00.000Z"}
    listener.onQueryProgress(event)
    found = store.get(QUERY)
    assert found is not None
    assert found.watermark_s == 60.0
    assert found.states == (
        StateMetrics(0, "stateStoreSave", 5, 3, 2, 1, 250.0),
        StateMetrics(
            1,
            "stateStoreSave",
            5,
            3,
            2,
            1,
            250.0,
            99,
            4,
            GroupTime("a-b", "7", 60.0),
            GroupTime("a-b", "3", 2**62 / 1000),
        ),
    )
    # Spark's watermark before the first rows.
    event.progress["eventTime"] = {"watermark": "1970-01-01T00:00:00.000Z"}
    listener.onQueryProgress(event)
    found = store.get(QUERY)
    assert found is not None
    assert found.watermark_s is None


def terminated(query: str = QUERY, run: str = RUN) -> QueryTerminatedEvent:
    return QueryTerminatedEvent(uuid.UUID(query), uuid.UUID(run), None, None)


@pytest.fixture
def store() -> MetricsStore:
    return MetricsStore()


@pytest.fixture
def listener(store: MetricsStore) -> MetricsListener:
    return MetricsListener(store)


def test_a_micro_batch_gives_the_figures_of_sparks_connector_and_one_line(
    listener: MetricsListener, store: MetricsStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pyspark_kafka.metrics")
    listener.onQueryProgress(
        progress(source({"a": {"0": 3, "10": 5}}, {"a": {"0": 9, "10": 5}, "b": {"0": 3}}, rows=8))
    )
    found = store.get(QUERY)
    assert found == QueryMetrics(
        query_id=QUERY,
        run_id=RUN,
        name="orders",
        batch_id=7,
        timestamp="2026-01-01T00:00:00.000Z",
        num_input_rows=8,
        # A partition that is not in the end offset has read nothing.
        sources=(SourceMetrics(0, ("a", "b"), 8, 0, 6, 3.0),),
    )
    assert found.sources[0].metrics == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "6",
        "avgOffsetsBehindLatest": "3.0",
    }
    (line,) = caplog.messages
    assert line == (f"query 'orders' {QUERY[:8]} batch 7: source 0 (a, b) rows=8 behind min=0 max=6 avg=3.0")


def test_latest_offset_of_a_stream_without_read_limits_is_no_end_of_the_log(
    listener: MetricsListener, store: MetricsStore, caplog: pytest.LogCaptureFixture
) -> None:
    """PySpark 4.0 and 4.1 show the end of the batch there: 5 of 50 records with a limit of 5."""
    caplog.set_level(logging.INFO, "pyspark_kafka.metrics")
    description = PYTHON_STREAM.partition("With")[0] + "@1f"
    listener.onQueryProgress(progress(source({"a": {"0": 5}}, {"a": {"0": 5}}, rows=5, description=description)))
    found = store.get(QUERY)
    assert found is not None
    (one,) = found.sources
    assert (one.min_offsets_behind_latest, one.max_offsets_behind_latest, one.avg_offsets_behind_latest) == (
        None,
        None,
        None,
    )
    assert (one.metrics, one.behind, one.positions) == ({}, {}, {TopicPartition("a", 0): 5})
    (line,) = caplog.messages
    assert line == f"query 'orders' {QUERY[:8]} batch 7: source 0 (a) rows=5 behind unknown"


def test_several_sources_are_told_apart_by_their_place_in_the_query(
    listener: MetricsListener, store: MetricsStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pyspark_kafka.metrics")
    event = progress(
        source({"a": {"0": 1}}, {"a": {"0": 2}}, rows=1),
        source(0, 0, description="RateStreamV2[rowsPerSecond=1]", rows=4),
        source({"a": {"0": 2}}, {"a": {"0": 2}}, rows=2),
    )
    listener.onQueryProgress(event)
    found = store.get(QUERY)
    assert found is not None
    assert [(one.index, one.max_offsets_behind_latest, one.num_input_rows) for one in found.sources] == [
        (0, 1, 1),
        (2, 0, 2),
    ]
    assert found.num_input_rows == 7
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    "other",
    [
        source(5, 9),
        source({"offset": 5}, {"offset": 9}),
        source({"shard": {"x": 5}}, {"shard": {"x": 5}}),
        source({}, {}),
        source({"a": {"0": 1}}, None),
        source({"a": {"0": 1}}, {"a": {"0": 1}}, description="KafkaV2[Subscribe[a]]"),
        source("text", "text"),
    ],
    ids=["number", "nested", "no partition", "no partitions", "no latest", "Spark's connector", "text"],
)
def test_listener_leaves_out_other_sources_silently(
    listener: MetricsListener, store: MetricsStore, caplog: pytest.LogCaptureFixture, other: Mapping[str, Any]
) -> None:
    listener.onQueryProgress(progress(other))
    assert store.all() == ()
    assert caplog.messages == []


@pytest.mark.parametrize("missing", ["None", "null"])
def test_offsets_that_are_not_known_are_left_out(listener: MetricsListener, store: MetricsStore, missing: str) -> None:
    listener.onQueryProgress(progress(source('{"a": {"0": 1}}', missing)))
    assert store.all() == ()


def test_line_of_a_batch_that_read_all_it_saw_names_no_lag(
    listener: MetricsListener, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pyspark_kafka.metrics")
    listener.onQueryProgress(progress(source({"a": {"0": 3}}, {"a": {"0": 3}}, rows=8)))
    assert caplog.messages == [f"query 'orders' {QUERY[:8]} batch 7: source 0 (a) rows=8 behind unknown"]


def started(query: str = QUERY, run: str = RUN) -> QueryStartedEvent:
    report = {"id": query, "runId": run, "name": "orders", "timestamp": "2026-01-01T00:00:00.000Z"}
    return QueryStartedEvent.fromJson(report)


def test_query_that_fails_in_its_first_batch_is_heard_of(listener: MetricsListener, store: MetricsStore) -> None:
    listener.onQueryStarted(started())
    assert [(each.batch_id, each.sources, each.is_running) for each in store.all()] == [(-1, (), True)]
    listener.onQueryTerminated(QueryTerminatedEvent(uuid.UUID(QUERY), uuid.UUID(RUN), "poison", None))
    assert [(each.name, each.terminated, each.failed) for each in store.all()] == [("orders", True, True)]


def test_start_that_is_heard_after_a_batch_changes_nothing(listener: MetricsListener, store: MetricsStore) -> None:
    listener.onQueryProgress(progress(source({"a": {"0": 3}}, {"a": {"0": 4}})))
    listener.onQueryStarted(started())
    assert [each.batch_id for each in store.all()] == [7]


@pytest.mark.parametrize("other", [source(5, 9), source({"a": {"0": 1}}, {}, description="KafkaV2[Subscribe[a]]")])
def test_query_whose_batch_shows_other_sources_is_forgotten(
    listener: MetricsListener, store: MetricsStore, other: Mapping[str, Any]
) -> None:
    listener.onQueryStarted(started())
    listener.onQueryProgress(progress(source("null", "null")))
    assert len(store.all()) == 1
    listener.onQueryProgress(progress(other))
    listener.onQueryTerminated(terminated())
    assert store.all() == ()


@pytest.mark.parametrize("failed", [False, True])
def test_query_that_runs_already_is_heard_of_when_listening_begins(store: MetricsStore, failed: bool) -> None:
    session: Any = StandInSession(str(uuid.uuid4()))
    error = ValueError("poison") if failed else None
    query = SimpleNamespace(id=QUERY, runId=RUN, name="orders", isActive=not failed, exception=lambda: error)
    session.streams.active.append(query)
    MetricsListener(store).attach(session)
    assert [(each.name, each.terminated, each.failed) for each in store.all()] == [("orders", failed, failed)]


def test_a_log_line_names_few_of_many_topics(listener: MetricsListener, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pyspark_kafka.metrics")
    offsets = {f"t{number}": {"0": 1} for number in range(8)}
    listener.onQueryProgress(progress(source(offsets, offsets)))
    assert "source 0 (t0, t1, t2, t3, t4 and 3 more) rows=" in caplog.text


def test_an_event_that_cannot_be_read_is_logged_and_nothing_is_raised(
    listener: MetricsListener, store: MetricsStore, caplog: pytest.LogCaptureFixture
) -> None:
    event = progress(source({"a": {"0": 1}}, {"a": {"0": 1}}))
    event.progress["sources"] = None
    listener.onQueryProgress(event)
    unreadable: Any = None
    listener.onQueryTerminated(unreadable)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert caplog.records[0].exc_info is not None
    assert store.all() == ()


def test_a_query_that_ends_keeps_its_last_figures_and_is_marked(listener: MetricsListener, store: MetricsStore) -> None:
    listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}})))
    listener.onQueryTerminated(terminated())
    assert [(one.query_id, one.terminated) for one in store.all()] == [(QUERY, True)]


def test_the_end_of_a_former_run_does_not_end_the_one_that_runs(listener: MetricsListener, store: MetricsStore) -> None:
    listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}})))
    listener.onQueryTerminated(terminated(run=str(uuid.uuid4())))
    listener.onQueryTerminated(terminated(query=str(uuid.uuid4())))
    assert [one.terminated for one in store.all()] == [False]


def test_a_stalled_query_is_seen_by_the_time_since_its_last_sign(
    listener: MetricsListener, store: MetricsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(values, "now", lambda: now[0])

    def stalled_s() -> float | None:
        found = store.get(QUERY)
        assert found is not None
        return found.seconds_since_progress

    def idle(run: str = RUN) -> QueryIdleEvent:
        return QueryIdleEvent(uuid.UUID(QUERY), uuid.UUID(run), "2026-01-01T00:00:10.000Z")

    listener.onQueryIdle(idle())  # before the first micro-batch there are no figures
    listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}})))
    now[0] += 47
    assert stalled_s() == 47
    listener.onQueryIdle(idle(run=str(uuid.uuid4())))
    assert stalled_s() == 47
    listener.onQueryIdle(idle())
    now[0] += 3
    assert stalled_s() == 3
    listener.onQueryTerminated(terminated())
    assert stalled_s() is None


def test_a_bounded_number_of_queries_is_kept_and_what_ended_goes_first() -> None:
    store = MetricsStore(capacity=3)
    listener = MetricsListener(store)
    queries = [str(uuid.uuid4()) for _ in range(5)]
    for number, query in enumerate(queries[:3]):
        listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}}), query=query))
        if number == 1:
            listener.onQueryTerminated(terminated(query))
    # Heard of again: the next that goes is the first of the others.
    listener.onQueryProgress(progress(source({"a": {"0": 2}}, {"a": {"0": 2}}), query=queries[0]))
    listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}}), query=queries[3]))
    assert [one.query_id for one in store.all()] == [queries[2], queries[0], queries[3]]
    listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}}), query=queries[4]))
    assert [one.query_id for one in store.all()] == [queries[0], queries[3], queries[4]]


def test_figures_are_immutable(listener: MetricsListener, store: MetricsStore) -> None:
    listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}})))
    (found,) = store.all()
    with pytest.raises(FrozenInstanceError):
        found.batch_id = 8  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        found.sources[0].max_offsets_behind_latest = 8  # type: ignore[misc]


class StandInStreams:
    """Stands for `streams` of a session; notes what is added and removed."""

    def __init__(self) -> None:
        self.listeners: list[object] = []
        self.removed = 0
        self.active: list[Any] = []

    def addListener(self, listener: object) -> None:  # noqa: N802 - Spark's contract
        self.listeners.append(listener)

    def removeListener(self, listener: object) -> None:  # noqa: N802 - Spark's contract
        self.listeners.remove(listener)
        self.removed += 1


class StandInSession:
    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.streams = StandInStreams()


def test_one_session_is_listened_to_once_until_it_is_stopped() -> None:
    session: Any = StandInSession("one")
    listener = metrics.listen(session)
    assert metrics.listen(session) is listener
    assert session.streams.listeners == [listener]
    other: Any = StandInSession("two")
    assert metrics.listen(other) is not listener
    listener.stop()
    listener.stop()
    assert (session.streams.listeners, session.streams.removed) == ([], 1)
    again = metrics.listen(session)
    assert again is not listener
    assert session.streams.listeners == [again]


def test_figures_are_found_by_query_and_by_id() -> None:
    session: Any = StandInSession("three")
    listener = metrics.listen(session)
    query = uuid.uuid4()
    listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 4}}), query=str(query)))

    class Query:
        id = str(query)

    found = metrics.latest(str(query))
    assert found is not None
    assert found.sources[0].avg_offsets_behind_latest == 3.0
    assert metrics.latest(query) is found
    stand_in: Any = Query()
    assert metrics.latest(stand_in) is found
    assert found in metrics.snapshot()
    assert metrics.latest(str(uuid.uuid4())) is None


def test_offsets_come_as_text_with_blanks_from_classic_spark(listener: MetricsListener, store: MetricsStore) -> None:
    listener.onQueryProgress(progress(source('{"a": {"0": 5}}', json.dumps({"a": {"0": 7}}))))
    assert [one.max_offsets_behind_latest for one in store.all()[0].sources] == [2]


def test_the_end_of_a_first_batch_counts_and_not_the_start_that_stands_beside_it(
    listener: MetricsListener, store: MetricsStore
) -> None:
    # Such an end carries where the query started, under the partition's number with a zero before it.
    listener.onQueryProgress(progress(source({"a": {"00": 2, "0": 5}}, {"a": {"0": 9}})))
    assert [one.max_offsets_behind_latest for one in store.all()[0].sources] == [4]


def idle(query: str = QUERY, run: str = RUN) -> QueryIdleEvent:
    return QueryIdleEvent(uuid.UUID(query), uuid.UUID(run), "2026-01-01T00:00:10.000Z")


def attached(store: MetricsStore) -> MetricsListener:
    """Return a listener to a session of its own, which holds it as Spark does."""
    session: Any = StandInSession(str(uuid.uuid4()))
    made = MetricsListener(store)
    made.attach(session)
    return made


def test_queries_of_a_listener_that_is_stopped_are_unheard_and_keep_their_figures(store: MetricsStore) -> None:
    ours, others = attached(store), attached(store)
    ended, theirs = str(uuid.uuid4()), str(uuid.uuid4())
    event = progress(source({"a": {"0": 1}}, {"a": {"0": 4}}))
    ours.onQueryProgress(event)
    ours.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}}), query=ended))
    ours.onQueryTerminated(terminated(ended))
    others.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 2}}), query=theirs))
    assert [each.is_running for each in store.all()] == [True, False, True]
    ours.stop()
    # Spark may still call it.
    ours.onQueryProgress(event)
    ours.onQueryIdle(idle())
    assert [(each.query_id, each.terminated, each.unheard) for each in store.all()] == [
        (QUERY, False, True),
        (ended, True, False),
        (theirs, False, False),
    ]
    found = store.get(QUERY)
    assert found is not None
    assert (found.sources[0].max_offsets_behind_latest, found.seconds_since_progress) == (3, None)
    shown = {
        each.name: {labels[1] for labels in each.samples if labels} for each in query_families(store.with_totals())
    }
    assert shown["pyspark_kafka_query_up"] == shown["pyspark_kafka_query_failed"] == {ended, theirs}
    assert shown["pyspark_kafka_time_since_progress_seconds"] == {theirs}
    assert shown["pyspark_kafka_records_behind"] == {theirs}
    others.stop()


@pytest.mark.parametrize("heard", [progress(source({"a": {"0": 1}}, {"a": {"0": 4}})), idle()], ids=["batch", "idle"])
def test_query_is_heard_again_by_the_next_listener(store: MetricsStore, heard: Any) -> None:
    former, following = attached(store), attached(store)
    former.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 4}})))
    former.stop()
    assert [each.unheard for each in store.all()] == [True]
    getattr(following, f"on{type(heard).__name__.removesuffix('Event')}")(heard)
    assert [(each.unheard, each.is_running) for each in store.all()] == [(False, True)]
    assert sum(store.all()[0].sources[0].behind.values()) == 3
    following.stop()
    assert [each.unheard for each in store.all()] == [True]


def test_queries_of_a_listener_that_nobody_has_are_unheard(store: MetricsStore) -> None:
    listener = MetricsListener(store)
    listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 4}})))
    assert [each.unheard for each in store.all()] == [False]
    del listener
    collect_quietly()
    assert [each.unheard for each in store.all()] == [True]


def test_session_that_nobody_has_is_released_with_its_listener() -> None:
    session: Any = StandInSession("released")
    gone = weakref.ref(metrics.listen(session)), weakref.ref(session)
    collect_quietly()
    assert all(each() is not None for each in gone)
    del session
    collect_quietly()
    assert [each() for each in gone] == [None, None]


def test_listener_that_pyspark_drops_lives_as_long_as_its_session() -> None:
    session: Any = StandInSession("dropped")
    listener = weakref.ref(metrics.listen(session))
    session.streams.listeners.clear()
    collect_quietly()
    assert listener() is not None
    assert metrics.listen(session) is listener()
    found = listener()
    assert found is not None
    # The stand-in's own list, as PySpark would add it again.
    session.streams.listeners.append(found)
    found.stop()
    del found
    collect_quietly()
    assert listener() is None


def test_listener_belongs_to_the_object_of_its_session_that_asked_last() -> None:
    first: Any = StandInSession("twice")
    listener = metrics.listen(first)
    del first
    collect_quietly()
    second: Any = StandInSession("twice")
    second.streams.listeners.append(listener)
    assert metrics.listen(second) is listener
    listener.stop()
    assert second.streams.listeners == []


def test_listener_that_spark_holds_does_not_hold_its_session() -> None:
    session: Any = StandInSession("held")
    listener = metrics.listen(session)
    gone = weakref.ref(session)
    del session
    collect_quietly()
    assert gone() is None
    listener.stop()
    assert listener.is_stopped


def test_query_that_is_unheard_goes_before_one_that_runs() -> None:
    store = MetricsStore(capacity=2)
    former, following = attached(store), attached(store)
    queries = [str(uuid.uuid4()) for _ in range(3)]
    for listener, query in zip((following, former, following), queries, strict=True):
        listener.onQueryProgress(progress(source({"a": {"0": 1}}, {"a": {"0": 1}}), query=query))
        former.stop()
    assert [each.query_id for each in store.all()] == [queries[0], queries[2]]
    following.stop()


@pytest.fixture
def quiet_logger(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """The log as it is in a program that has not touched it."""
    log, package = logging.getLogger("pyspark_kafka.metrics"), logging.getLogger("pyspark_kafka")
    monkeypatch.setattr(log, "handlers", [])
    before = log.level, package.level
    for logger in (log, package):
        logger.setLevel(logging.NOTSET)
    yield log
    log.setLevel(before[0])
    package.setLevel(before[1])


def test_listener_writes_lines_without_any_configuration(quiet_logger: logging.Logger) -> None:
    assert not quiet_logger.isEnabledFor(logging.INFO)
    _make_visible()
    assert quiet_logger.isEnabledFor(logging.INFO)
    _make_visible()
    assert [type(handler) for handler in quiet_logger.handlers] == [StandInHandler]
    # Only this log: the rest of the package, in the user's own program, is as it was.
    assert not logging.getLogger("pyspark_kafka._connector.source").isEnabledFor(logging.INFO)


def test_lines_are_written_where_a_configuration_has_disabled_what_existed(
    quiet_logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As `logging.config.dictConfig` does, which would disable the logs of all other tests, too.
    monkeypatch.setattr(quiet_logger, "disabled", True)
    _make_visible()
    assert quiet_logger.isEnabledFor(logging.INFO)


@pytest.mark.parametrize("name", ["pyspark_kafka.metrics", "pyspark_kafka"])
def test_a_level_that_is_set_holds(quiet_logger: logging.Logger, name: str) -> None:
    logging.getLogger(name).setLevel(logging.WARNING)
    _make_visible()
    assert quiet_logger.getEffectiveLevel() == logging.WARNING


def test_a_query_without_a_name_is_known_by_its_id() -> None:
    named = QueryMetrics(QUERY, RUN, None, 7, "", 0, (SourceMetrics(0, ("a",), 0, 1, 2, 1.5),))
    assert str(named) == f"query {QUERY[:8]} batch 7: source 0 (a) rows=0 behind min=1 max=2 avg=1.5"


def test_a_report_of_classic_spark_is_taken_as_one_text(listener: MetricsListener, store: MetricsStore) -> None:
    report = progress(source({"a": {"0": 1}}, {"a": {"0": 4}})).progress

    class Report:
        def json(self) -> str:
            return json.dumps(report, default=str)

    class Event:
        def progress(self) -> Report:
            return Report()

    _TextListener(listener).onQueryProgress(Event())
    (found,) = store.all()
    assert found.sources[0].max_offsets_behind_latest == 3
