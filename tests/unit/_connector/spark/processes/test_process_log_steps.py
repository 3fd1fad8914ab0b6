"""What happens before and after a step that Spark calls, and in which order."""

from __future__ import annotations

import contextlib

import pytest

from pyspark_kafka._connector.spark.processes import process_log
from pyspark_kafka._connector.spark.processes.process_log import spark_step


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    monkeypatch.setattr(process_log, "log_as_spark", lambda *args: found.append(args))
    monkeypatch.setattr(process_log, "freeze_gc", lambda: found.append("freeze"))
    return found


def test_step_logs_before_it_freezes_garbage(calls: list[object]) -> None:
    with spark_step("committing", freeze=True):
        calls.append("step")
    assert calls == [("committing", "", ""), "freeze", "step"]


@pytest.mark.parametrize("fails", [False, True])
def test_step_of_a_query_leaves_the_log_to_the_next_query(calls: list[object], fails: bool) -> None:
    with contextlib.suppress(OSError), spark_step(query_id="8c0e"):
        if fails:
            raise OSError("gone")
    assert calls == [("", "8c0e", ""), ()]
