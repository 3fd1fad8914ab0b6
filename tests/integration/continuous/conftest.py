"""No query outlives its test: it would hold the slots of the session. Functions of the tests travel to the tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import cloudpickle

from kit import continuous as kit_continuous
from kit import continuous_state
from kit.waiting import PATIENCE_S
from pyspark_kafka.continuous.query.runner import QueryRunner


@pytest.fixture(autouse=True)
def stop_what_was_started(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop the queries of a test, also where it failed."""
    started: list[QueryRunner] = []
    start = QueryRunner.start

    def noted(runner: QueryRunner) -> None:
        started.append(runner)
        start(runner)

    monkeypatch.setattr(QueryRunner, "start", noted)
    yield
    for runner in started:
        runner.stop()
        assert runner.wait(PATIENCE_S), "a query did not stop"


@pytest.fixture(autouse=True)
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send classes and functions of the tests with the code: Spark's workers do not find their modules."""
    modules = kit_continuous, continuous_state, request.module
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
