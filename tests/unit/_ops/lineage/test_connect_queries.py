"""Which queries of a Spark Connect client are reported, and that the client notices nothing."""

from __future__ import annotations

import gc
import logging
import math
import threading
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql.connect import proto
from pyspark.sql.metrics import PlanMetrics
from pyspark.sql.types import StructType

from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka._ops.lineage import connect_queries as module
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


def terminated() -> dict[str, Any]:
    result = proto.StreamingQueryCommandResult()
    result.query_id.run_id = RUN
    result.await_termination.terminated = True
    return {"streaming_query_command_result": result}


def about_stream(name: str) -> proto.Plan:
    plan = proto.Plan()
    command = plan.command.streaming_query_command
    command.query_id.run_id = RUN
    if name == "await_termination":
        command.await_termination.SetInParent()
    else:
        setattr(command, name, True)
    return plan


@pytest.mark.parametrize(
    ("command", "item"),
    [("stop", None), ("await_termination", terminated()), ("await_termination", ValueError("failed"))],
    ids=["stop", "end", "failure"],
)
def test_stream_that_ends_waits_for_its_report(
    command: str, item: Any, queries: ConnectQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REPORT_S", PATIENCE_S)
    client = joined(queries, started())
    list(client.run(stream_plan()))
    client.items = [item]
    ended = threading.Event()

    def end() -> None:
        with suppress(ValueError):
            list(client.run(about_stream(command)))
        ended.set()

    threading.Thread(target=end, daemon=True).start()
    eventually(lambda: client.closed == 2)
    assert not ended.is_set()
    queries.stream_ended(RUN)
    assert ended.wait(PATIENCE_S)


@pytest.mark.parametrize("command", ["status", "await_termination"])
def test_stream_that_runs_waits_for_nothing(
    command: str, queries: ConnectQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REPORT_S", math.inf)
    client = joined(queries, started())
    list(client.run(stream_plan()))
    client.items = [{"streaming_query_command_result": proto.StreamingQueryCommandResult()}]
    assert list(client.run(about_stream(command))) == client.items


def test_report_that_never_comes_delays_the_end_by_a_moment(
    queries: ConnectQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REPORT_S", 0.01)
    client = joined(queries, started())
    list(client.run(stream_plan()))
    client.items = [terminated()]
    assert list(client.run(about_stream("await_termination"))) == [terminated()]


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


def test_next_listener_takes_the_place_of_one_that_is_gone(notes: Notes) -> None:
    client = joined(ConnectQueries(notes), 1)
    gc.collect()
    queries = ConnectQueries(notes)
    assert queries.join(StandInSession(client))
    assert queries.join(StandInSession(client))
    assert list(client.run(batch_plan())) == [1]
    assert len(notes.ended) == 1


def test_request_of_another_form_runs_as_before(queries: ConnectQueries, caplog: pytest.LogCaptureFixture) -> None:
    client = joined(queries, 1)
    with caplog.at_level(logging.WARNING, "pyspark_kafka.lineage"):
        assert list(client._execute_and_fetch_as_iterator(object(), {})) == [1]
    assert "cannot be followed" in caplog.text


def test_client_without_the_method_cannot_be_followed(queries: ConnectQueries) -> None:
    assert not queries.join(StandInSession(object()))
