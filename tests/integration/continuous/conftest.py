"""No query outlives its test: it would hold the slots of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.continuous.query.runner import QueryRunner

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        assert runner.wait(90), "a query did not stop"
