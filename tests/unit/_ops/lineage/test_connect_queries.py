"""Which queries of a Spark Connect client are reported, and that the client notices nothing."""

from __future__ import annotations

import gc
import logging
import threading
import uuid
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from pyspark.sql.connect import proto
from pyspark.sql.metrics import PlanMetrics
from pyspark.sql.types import StructType

from kit.waiting import PATIENCE_S
from pyspark_kafka._ops.lineage.connect_queries import ConnectQueries, ConnectRun

RUN = str(uuid.uuid4())


class StandInClient:
    """Runs requests as PySpark's client does: each is a generator of items."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)
        self.closed = self.schemas = 0

    def _execute_and_fetch_as_iterator(self, request: Any, observations: Any) -> Generator[Any, None, None]:  # noqa: ARG002
        try:
            for item in self.items:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.closed += 1

    def run(self, plan: proto.Plan) -> Iterator[Any]:
        found: Iterator[Any] = self._execute_and_fetch_as_iterator(proto.ExecutePlanRequest(plan=plan), {})
        return found

    def schema(self, plan: proto.Plan) -> StructType:
        assert plan.root.read.data_source.format == "pyspark_kafka"
        self.schemas += 1
        return StructType().add("value", "binary")


class StandInSession:
    """A session of Spark Connect."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.running: list[Any] = []

    @property
    def streams(self) -> Any:
        return self

    @property
    def active(self) -> list[Any]:
        return self.running


class Notes:
    """What a follower notes."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[tuple[ConnectRun, BaseException | None]] = []
        self.is_broken = False

    def connect_stream_started(self, run: ConnectRun, run_id: str) -> None:
        assert run.query.is_stream
        self.started.append(run_id)

    def connect_batch_ended(self, run: ConnectRun, error: BaseException | None) -> None:
        if self.is_broken:
            raise ValueError("broken")
        self.ended.append((run, error))


def batch_plan() -> proto.Plan:
    plan = proto.Plan()
    plan.root.read.data_source.format = "pyspark_kafka"
    return plan


def stream_plan() -> proto.Plan:
    plan = proto.Plan()
    plan.command.write_stream_operation_start.input.read.data_source.format = "pyspark_kafka"
    return plan


def started() -> dict[str, Any]:
    result = proto.WriteStreamOperationStartResult()
    result.query_id.run_id = RUN
    return {"write_stream_operation_start_result": result}


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def queries(notes: Notes) -> ConnectQueries:
    return ConnectQueries(notes)


def joined(queries: ConnectQueries, *items: Any) -> StandInClient:
    client = StandInClient(*items)
    assert queries.join(StandInSession(client))
    return client


def test_batch_ends_with_the_steps_of_its_plan_and_returns_the_same_items(
    queries: ConnectQueries, notes: Notes
) -> None:
    steps = [PlanMetrics("BatchScan", 1, 2, [])]
    client = joined(queries, StructType(), *steps)
    assert list(client.run(batch_plan())) == [StructType(), *steps]
    ((run, error),) = notes.ended
    assert (run.metrics, error) == (steps, None)
    assert [each.name for each in run.columns(run.query.relation)] == ["value"]
    assert [each.name for each in run.columns(run.query.relation)] == ["value"]
    assert client.schemas == 1


def test_batch_that_fails_raises_the_same_error(queries: ConnectQueries, notes: Notes) -> None:
    failure = RuntimeError("refused")
    client = joined(queries, failure)
    with pytest.raises(RuntimeError) as raised:
        list(client.run(batch_plan()))
    assert raised.value is failure
    assert notes.ended[0][1] is failure


def test_rows_that_nobody_reads_to_their_end_close_the_request(queries: ConnectQueries, notes: Notes) -> None:
    client = joined(queries, 1, 2)
    rows = client.run(batch_plan())
    assert next(rows) == 1
    del rows
    gc.collect()
    assert client.closed == 1
    assert notes.ended[0][1] is None


def test_follower_that_breaks_fails_no_query(
    queries: ConnectQueries, notes: Notes, caplog: pytest.LogCaptureFixture
) -> None:
    notes.is_broken = True
    with caplog.at_level(logging.WARNING, "pyspark_kafka.lineage"):
        assert list(joined(queries, 1).run(batch_plan())) == [1]
    assert "ignored" in caplog.text


def test_columns_that_the_server_does_not_return_are_none(queries: ConnectQueries, notes: Notes) -> None:
    client = joined(queries)
    list(client.run(batch_plan()))
    (run, _) = notes.ended[0]
    other = proto.Relation()
    assert run.columns(other) == ()


def test_reports_of_a_stream_wait_for_its_start(queries: ConnectQueries, notes: Notes) -> None:
    client = joined(queries, started())
    order: list[str] = []
    request = client.run(stream_plan())
    queries.after_starts(lambda: order.append("before"))
    assert next(request) == started()
    queries.after_starts(lambda: order.append("progress"))
    assert order == ["before"]
    assert notes.started == [RUN]
    assert list(request) == []
    assert order == ["before", "progress"]
    queries.after_starts(lambda: order.append("later"))
    assert order[-1] == "later"


def test_start_that_fails_holds_nothing_back(queries: ConnectQueries, notes: Notes) -> None:
    request = joined(queries, None, ValueError("refused")).run(stream_plan())
    next(request)
    order: list[str] = []
    queries.after_starts(lambda: order.append("of another query"))
    with pytest.raises(ValueError, match="refused"):
        next(request)
    assert order == ["of another query"]
    assert notes.started == []


def test_end_of_a_program_waits_for_the_reports_of_streams_that_have_ended(queries: ConnectQueries) -> None:
    client = StandInClient(started())
    session = StandInSession(client)
    queries.join(session)
    list(client.run(stream_plan()))
    waiting = threading.Thread(target=queries.await_ends, args=(session, PATIENCE_S))
    waiting.start()
    queries.stream_ended(RUN)
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()


def test_end_of_a_program_does_not_wait_for_streams_that_run(queries: ConnectQueries) -> None:
    client = StandInClient(started())
    session = StandInSession(client)
    queries.join(session)
    list(client.run(stream_plan()))
    running = type("Query", (), {"runId": RUN})()
    session.running = [running]
    queries.await_ends(session, PATIENCE_S)


def test_client_is_as_before_once_nobody_follows_it(queries: ConnectQueries, notes: Notes) -> None:
    client = joined(queries, 1)
    assert queries.join(StandInSession(client))
    queries.leave(StandInSession(client))
    assert list(client.run(batch_plan())) == [1]
    assert notes.ended == []
    assert "_execute_and_fetch_as_iterator" not in vars(client)


def test_client_does_not_keep_its_follower(notes: Notes) -> None:
    queries = ConnectQueries(notes)
    client = joined(queries, 1)
    del queries
    gc.collect()
    assert list(client.run(batch_plan())) == [1]
    assert notes.ended == []


def test_client_without_the_method_cannot_be_followed(queries: ConnectQueries) -> None:
    assert not queries.join(StandInSession(object()))
