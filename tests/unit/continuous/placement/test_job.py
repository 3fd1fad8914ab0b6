"""What a task of a continuous query does beside its lanes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import TaskContext

from pyspark_kafka._client.client.net.client_id import current_client_id, forget_task
from pyspark_kafka._connector.spark.processes import process_log
from pyspark_kafka.continuous.placement import job


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(process_log, "_query_id", "")
    monkeypatch.setattr(process_log, "stand_in", lambda: None)
    context: Any = SimpleNamespace(
        partitionId=lambda: 1, taskAttemptId=lambda: 12, stageId=lambda: 3, getLocalProperty=lambda _: None
    )
    TaskContext._setTaskContext(context)
    yield
    TaskContext._setTaskContext(None)
    forget_task()


@pytest.mark.usefixtures("task")
@pytest.mark.parametrize("fails", [False, True])
def test_lines_and_requests_of_a_task_name_its_query_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    seen = []

    def run_task(_: Any, task: int, attempt: int) -> None:
        seen.append((process_log._query_id, current_client_id(), task, attempt))
        if fails:
            raise OSError("the driver is gone")

    monkeypatch.setattr(job, "run_task", run_task)
    plan: Any = SimpleNamespace(query_id="8c0e", run_id="53f2")
    try:
        assert list(job.task_function(plan)(iter(()))) == []
    except OSError:
        assert fails
    assert seen == [("8c0e", "pyspark-kafka-q8c0e-r53f2-t1", 1, 12)]
    assert process_log._query_id == ""
