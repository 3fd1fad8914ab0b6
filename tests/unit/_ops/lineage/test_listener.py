"""What a listener sends about continuous queries, on a stand-in for a session and for OpenLineage's client."""

from __future__ import annotations

import gc
import logging
import uuid
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from kit.listened_session import StandInSession
from kit.waiting import PATIENCE_S
from pyspark_kafka import lineage
from pyspark_kafka._connector.spark.local_bus import session_key
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka._ops.lineage import listener as module
from pyspark_kafka._ops.lineage.values import RunFacts
from pyspark_kafka.continuous.query.frame_plan import FramePlan, QueryEnds
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.continuous.query.streams import STREAMS
from pyspark_kafka.continuous.reports.events import QueryEvents, QueryNames
from pyspark_kafka.continuous.task.stages import MapBatches, Select, Stage, Where

ID = "8c0e2b1e-0000-4000-8000-000000000001"
SERVERS = {"kafka.bootstrap.servers": "a:9092"}
SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])


class StandInConf:
    """The settings of a session."""

    def get(self, name: str, default: str | None = None) -> str | None:
        return {"spark.app.name": "Orders App"}.get(name, default)


class LineageSession(StandInSession):
    """A session with settings."""

    version = "4.2.0"
    conf = StandInConf()


class StandInClient:
    """Keeps events as facts."""

    def __init__(self) -> None:
        self.is_disabled = self.is_closed = self.is_down = False
        self.events: list[tuple[str, RunFacts]] = []

    def event(self, facts: RunFacts, state: str, _: object) -> tuple[str, RunFacts]:
        return state, facts

    def emit(self, event: tuple[str, RunFacts]) -> None:
        if self.is_down:
            raise ConnectionError("refused")
        self.events.append(event)

    def close(self) -> None:
        self.is_closed = True

    @property
    def states(self) -> list[str]:
        return [state for state, _ in self.events]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> StandInClient:
    made = StandInClient()
    monkeypatch.setattr(module, "open_client", lambda: made)
    return made


@pytest.fixture
def session() -> LineageSession:
    return LineageSession()


@pytest.fixture
def listener(session: LineageSession, client: StandInClient) -> Iterator[lineage.LineageListener]:
    made = lineage.listen(session)  # type: ignore[arg-type]
    assert client.events == []
    yield made
    made.stop()


class RunningQuery:
    """A query that the process runs, as its engine reports it."""

    def __init__(self, session: LineageSession, steps: tuple[Stage, ...] = (), **names: Any) -> None:
        self.names = QueryNames(ID, str(uuid.uuid4()), "copying", "pyspark_kafka", "pyspark_kafka")
        frame = FramePlan(
            session,  # type: ignore[arg-type]
            KafkaTable(),
            SERVERS | {"subscribe": "orders"},
            SCHEMA,
            steps,
            loaded=SCHEMA,
        )
        ends = QueryEnds(frame, None, None, names.get("sink", "pyspark_kafka"), SERVERS | {"topic": "copy"})  # type: ignore[arg-type]
        self.query = ContinuousQuery(None, self.names, None, ends=ends)  # type: ignore[arg-type]
        self.events = QueryEvents(self.names, session_key(session))
        STREAMS.began(self.query)

    def start(self) -> RunningQuery:
        self.events.started()
        return self

    def commit(self, rows: int) -> None:
        entry = {
            "id": ID,
            "runId": self.names.run_id,
            "name": "copying",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "batchId": 1,
            "batchDuration": 5,
            "numInputRows": rows,
            "inputRowsPerSecond": 0.0,
            "processedRowsPerSecond": 0.0,
            "durationMs": {},
            "stateOperators": [],
            "sources": [
                {
                    "description": "pyspark_kafka",
                    "startOffset": None,
                    "endOffset": '{"orders":{"0":5}}',
                    "latestOffset": None,
                    "numInputRows": rows,
                    "inputRowsPerSecond": 0.0,
                    "processedRowsPerSecond": 0.0,
                }
            ],
            "sink": {"description": "pyspark_kafka", "numOutputRows": rows - 1},
        }
        self.events.progressed(lambda: StreamingQueryProgress.fromJson(entry))

    def end(self, failure: BaseException | None = None) -> None:
        STREAMS.ended(self.query, failure)
        self.events.terminated(failure)


def test_continuous_query_has_events_from_its_start_to_its_end(
    session: LineageSession, listener: lineage.LineageListener, client: StandInClient
) -> None:
    query = RunningQuery(session, (Select(("key", "value")), Where(pc.field("value").is_valid()))).start()
    query.commit(5)
    query.commit(3)
    query.end()
    listener.stop(PATIENCE_S)
    assert client.states == ["START", "RUNNING", "COMPLETE"]
    facts = client.events[-1][1]
    assert (facts.run.name, facts.run.run_id) == ("orders_app.continuous_query.copy", query.names.run_id)
    assert (facts.processing, facts.job_type, facts.spark_version) == ("STREAMING", "CONTINUOUS_QUERY", "4.2.0")
    assert [(each.topic, each.rows) for each in facts.flow.inputs] == [("orders", 8)]
    assert [(each.topic, each.rows) for each in facts.flow.outputs] == [("copy", 6)]
    assert facts.flow.paths == {"key": "key", "value": "value"}
    assert (listener.sent, listener.lost, client.is_closed) == (3, 0, True)


def test_continuous_query_with_a_function_has_no_column_lineage(
    session: LineageSession, listener: lineage.LineageListener, client: StandInClient
) -> None:
    RunningQuery(session, (MapBatches(lambda batch: batch, SCHEMA),)).start().end()
    assert listener.flush(PATIENCE_S)
    assert client.events[0][1].flow.paths == {}


def test_continuous_query_that_fails_has_its_message(
    session: LineageSession, listener: lineage.LineageListener, client: StandInClient
) -> None:
    RunningQuery(session).start().end(RuntimeError("no broker\n\tat java.lang.Thread.run"))
    listener.stop(PATIENCE_S)
    state, facts = client.events[-1]
    assert (state, facts.error) == ("FAIL", "no broker")


def test_sink_of_another_table_is_no_output(
    session: LineageSession, listener: lineage.LineageListener, client: StandInClient
) -> None:
    RunningQuery(session, sink="sqlite").start().end()
    listener.stop(PATIENCE_S)
    facts = client.events[0][1]
    assert (facts.run.name, facts.flow.outputs) == ("orders_app.continuous_query.copying", ())


def test_query_that_runs_already_has_events_from_now_on(session: LineageSession, client: StandInClient) -> None:
    query = RunningQuery(session)
    listener = lineage.listen(session)  # type: ignore[arg-type]
    query.commit(1)
    query.end()
    listener.stop(PATIENCE_S)
    assert client.states == ["START", "RUNNING", "COMPLETE"]


def test_queries_of_other_sessions_have_no_events(listener: lineage.LineageListener, client: StandInClient) -> None:
    RunningQuery(LineageSession()).start().end()
    listener.stop(PATIENCE_S)
    assert client.events == []


def test_listener_is_one_for_a_session_until_it_is_stopped(
    session: LineageSession, listener: lineage.LineageListener, client: StandInClient
) -> None:
    assert lineage.listen(session) is listener  # type: ignore[arg-type]
    listener.stop()
    listener.stop()
    assert session.streams.listeners == []
    RunningQuery(session).start().end()
    assert client.events == []


def test_collector_that_is_away_is_counted_and_logged_once(
    session: LineageSession,
    listener: lineage.LineageListener,
    client: StandInClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client.is_down = True
    with caplog.at_level(logging.WARNING, "pyspark_kafka.lineage"):
        query = RunningQuery(session).start()
        query.commit(1)
        query.end()
        listener.stop(PATIENCE_S)
    assert (listener.sent, listener.lost) == (0, 3)
    assert len(caplog.records) == 1


def test_listener_that_is_disabled_listens_to_nothing(session: LineageSession, client: StandInClient) -> None:
    client.is_disabled = True
    listener = lineage.listen(session)  # type: ignore[arg-type]
    assert session.streams.listeners == []
    listener.stop()


def test_listener_goes_with_its_session(client: StandInClient) -> None:
    session = LineageSession()
    gone = weakref.ref(lineage.listen(session))  # type: ignore[arg-type]
    assert not client.events
    session.streams.listeners.clear()
    del session
    gc.collect()
    assert gone() is None


def test_listener_says_what_it_cannot_see_at_a_client_of_spark_connect(
    client: StandInClient, session: LineageSession, caplog: pytest.LogCaptureFixture
) -> None:
    listener = lineage.listen(session)  # type: ignore[arg-type]
    assert client.events == []
    (record,) = caplog.records
    assert record.getMessage() == (
        "Lineage: the requests of this client of Spark Connect cannot be seen. Continuous queries have events; batches "
        "and micro-batches have none."
    )
    listener.stop()
