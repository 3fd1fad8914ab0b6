"""What happens before and after a step that Spark calls, and in which order."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.counters import COUNTERS
from pyspark_kafka._connector.spark.processes import process_log
from pyspark_kafka._connector.spark.processes.process_log import spark_step


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    monkeypatch.setattr(process_log, "log_as_spark", lambda *args: found.append(args))
    monkeypatch.setattr(process_log, "freeze_gc", lambda: found.append("freeze"))
    monkeypatch.setattr(COUNTERS, "publish", lambda: found.append("publish"))
    return found


def test_step_logs_first_and_publishes_last(calls: list[object]) -> None:
    with spark_step("committing", freeze=True):
        calls.append("step")
    assert calls == [("committing", ""), "freeze", "step", "publish"]


def test_step_that_fails_publishes_its_counters(calls: list[object]) -> None:
    with pytest.raises(OSError, match="gone"), spark_step():
        raise OSError("gone")
    assert calls == [("", ""), "publish"]


def test_step_of_a_query_leaves_the_log_to_the_next_query(calls: list[object]) -> None:
    with spark_step(query_id="8c0e"):
        calls.append("step")
    assert calls == [("", "8c0e"), "step", "publish", ()]


def test_step_without_a_place_keeps_the_place_of_the_step_before(calls: list[object]) -> None:
    with spark_step(None):
        calls.append("step")
    assert calls == ["step", "publish"]
