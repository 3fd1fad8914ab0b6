"""Log lines of processes that Spark starts: their form, and who else may write them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark import TaskContext

from pyspark_kafka._base.traces.task_place import TaskPlace, current_place
from pyspark_kafka._client.client.net.client_id import current_client_id, forget_task
from pyspark_kafka._connector.spark.processes import process_log
from pyspark_kafka._connector.spark.processes.process_log import StandInHandler, log_as_spark, spark_step, stand_in

_NAME = "pyspark_kafka._connector.source.executor.range_decoder"


class StandInTask(TaskContext):
    """What a worker holds while it runs a task."""

    properties: dict[str, str]

    @classmethod
    def of(cls, properties: dict[str, str]) -> StandInTask:
        task = cls()
        task.properties = properties
        return task

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802 - Spark's contract
        return self.properties.get(key)

    def stageId(self) -> int:  # noqa: N802 - Spark's contract
        return 3

    def taskAttemptId(self) -> int:  # noqa: N802 - Spark's contract
        return 12

    def partitionId(self) -> int:  # noqa: N802 - Spark's contract
        return 7


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process in which nobody has configured logging; what is attached is gone afterwards."""
    monkeypatch.setattr(logging.getLogger("pyspark_kafka"), "handlers", [])
    monkeypatch.setattr(process_log, "_where", "")
    yield
    TaskContext._setTaskContext(None)
    forget_task()


def warn(text: str = "Offsets [3, 5) cannot be read.", *, level: int = logging.WARNING, trace: bool = False) -> None:
    """Log a line as a process does that has none of pytest's handlers."""
    root = logging.getLogger()
    pytests = [handler for handler in root.handlers if type(handler).__module__.startswith("_pytest.")]
    for handler in pytests:
        root.removeHandler(handler)
    try:
        logging.getLogger(_NAME).log(level, text, exc_info=trace)
    finally:
        for handler in pytests:
            root.addHandler(handler)


def test_a_warning_is_a_line_of_sparks_form(capsys: pytest.CaptureFixture[str]) -> None:
    log_as_spark()
    warn()
    assert re.fullmatch(
        rf"\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN {_NAME}: Offsets \[3, 5\) cannot be read\.\n", capsys.readouterr().err
    )


def test_line_of_a_task_that_does_not_know_its_query_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    TaskContext._setTaskContext(StandInTask.of({}))
    log_as_spark(query_id="8c0e")
    warn()
    log_as_spark()
    warn()
    first, second = capsys.readouterr().err.splitlines()
    assert f"{_NAME}: [queryId=8c0e stage=3 TID=12] Offsets" in first
    assert f"{_NAME}: [stage=3 TID=12] Offsets" in second


def test_line_names_the_process_if_there_is_no_task(capsys: pytest.CaptureFixture[str]) -> None:
    log_as_spark("planning a streaming read of Subscribe[a]")
    warn()
    log_as_spark("p" * 1000)
    warn()
    log_as_spark()
    warn()
    first, second, third = capsys.readouterr().err.splitlines()
    assert f"{_NAME}: [planning a streaming read of Subscribe[a]] Offsets" in first
    assert f"{_NAME}: [{'p' * 120}…] Offsets" in second
    assert f"{_NAME}: Offsets" in third


def test_a_task_says_its_query_run_and_batch(capsys: pytest.CaptureFixture[str]) -> None:
    log_as_spark("planning")
    properties = {"sql.streaming.queryId": "q", "spark.jobGroup.id": "r", "streaming.sql.batchId": "7"}
    TaskContext._setTaskContext(StandInTask.of(properties))
    warn()
    TaskContext._setTaskContext(StandInTask.of({"spark.jobGroup.id": "a group of the user's"}))
    warn()
    first, second = capsys.readouterr().err.splitlines()
    assert f"{_NAME}: [queryId=q runId=r batchId=7 stage=3 TID=12] Offsets" in first
    assert f"{_NAME}: [stage=3 TID=12] Offsets" in second


def test_spans_of_a_task_say_its_query_run_and_batch() -> None:
    assert current_place() is None
    properties = {"sql.streaming.queryId": "q", "spark.jobGroup.id": "r", "streaming.sql.batchId": "7"}
    TaskContext._setTaskContext(StandInTask.of(properties))
    assert current_place() == TaskPlace("q", "r", "7", 3, 7, 12)
    TaskContext._setTaskContext(StandInTask.of({}))
    with spark_step(query_id="of a lane", run_id="its run"):
        assert current_place() == TaskPlace("of a lane", "its run", None, 3, 7, 12)


def test_a_traceback_follows_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    log_as_spark()
    try:
        int("why")
    except ValueError:
        warn("It failed.", level=logging.ERROR, trace=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith(f"ERROR {_NAME}: It failed.")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: invalid literal for int() with base 10: 'why'"


@pytest.mark.parametrize("configured", ["", "pyspark_kafka", "pyspark_kafka._connector.source"])
@pytest.mark.parametrize("first", [True, False])
def test_logging_that_the_user_configured_is_left_alone(
    capsys: pytest.CaptureFixture[str], configured: str, *, first: bool
) -> None:
    logger, taken = logging.getLogger(configured), logging.StreamHandler()
    if first:
        logger.addHandler(taken)
        log_as_spark()
    else:
        log_as_spark()
        logger.addHandler(taken)
    try:
        warn()
    finally:
        logger.removeHandler(taken)
    assert capsys.readouterr().err == "Offsets [3, 5) cannot be read.\n"


def test_lines_are_ours_again_when_the_other_handler_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    # Spark adds one for as long as it captures what a worker logs.
    log_as_spark()
    captured = logging.NullHandler()
    logging.getLogger().addHandler(captured)
    warn("first")
    logging.getLogger().removeHandler(captured)
    warn("second")
    assert capsys.readouterr().err.endswith(f"{_NAME}: second\n")


def test_one_handler_is_installed_however_often_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        log_as_spark()
    assert [type(handler) for handler in logging.getLogger("pyspark_kafka").handlers] == [StandInHandler]
    assert stand_in() is logging.getLogger("pyspark_kafka").handlers[0]
    warn()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_one_of_two_handlers_writes_the_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = "pyspark_kafka._connector.source"
    monkeypatch.setattr(logging.getLogger(part), "handlers", [])
    stand_in(part)
    log_as_spark()
    warn()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_lines_below_the_level_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    log_as_spark()
    warn("Nothing to see.", level=logging.INFO)
    assert capsys.readouterr().err == ""


def test_line_stays_one_line_whatever_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    log_as_spark()
    warn("topic a\n26/11/22 01:44:28 ERROR x: y\x1b[2J")
    assert capsys.readouterr().err.endswith("topic a\\n26/11/22 01:44:28 ERROR x: y\\x1b[2J\n")


_QUERY, _RUN = "8c0e91aa-3c1d-4f0e-9d52-0e8d5f1c2a3b", "53f2c001-77aa-4a55-8f0b-1c2d3e4f5a6b"


@pytest.mark.parametrize(
    ("properties", "continuous", "expected"),
    [
        (
            {"sql.streaming.queryId": _QUERY, "spark.jobGroup.id": _RUN, "streaming.sql.batchId": "5"},
            {},
            "pyspark-kafka-q8c0e91aa-r53f2c001-t7",
        ),
        ({}, {"query_id": _QUERY, "run_id": _RUN}, "pyspark-kafka-q8c0e91aa-r53f2c001-t7"),
        ({"spark.jobGroup.id": "nightly"}, {}, "pyspark-kafka-s3-t7"),
    ],
    ids=["micro-batch", "continuous query", "batch job"],
)
def test_requests_of_a_task_have_a_client_id_that_names_it(
    properties: dict[str, str], continuous: dict[str, Any], expected: str
) -> None:
    TaskContext._setTaskContext(StandInTask.of(properties))
    with spark_step(**continuous):
        assert current_client_id() == expected


def test_requests_without_a_task_have_the_client_id_of_the_package() -> None:
    TaskContext._setTaskContext(StandInTask.of({}))
    with spark_step():
        pass
    TaskContext._setTaskContext(None)
    with spark_step("committing batchId=5"):
        assert current_client_id() == "pyspark-kafka"
