"""Batches from Spark's progress and event logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.operations.reports.progress import progress_batches, read_event_log

_DURATIONS = {"addBatch": 700, "latestOffset": 100, "triggerExecution": 900}


def progress(number: int, **changed: Any) -> dict[str, Any]:
    return {
        "id": "query",
        "runId": "run",
        "batchId": number,
        "timestamp": "2026-11-22T10:00:00.500Z",
        "numInputRows": 42,
        "durationMs": dict(_DURATIONS),
        **changed,
    }


def test_batch_has_times_rows_and_phases() -> None:
    (found,) = progress_batches([progress(7)])
    assert (found.batch_id, found.rows, found.run_id, found.is_finished) == (7, 42, "run", True)
    assert (found.begun_ms, found.finished_ms) == (1_795_341_600_500, 1_795_341_601_400)
    assert found.phases_ms == {"addBatch": 700, "latestOffset": 100}


@pytest.mark.parametrize("whole", [10**17, -(10**17)])
def test_end_that_is_no_time_is_not_known(whole: int) -> None:
    (found,) = progress_batches([progress(7, durationMs={**_DURATIONS, "triggerExecution": whole})])
    assert (found.begun_ms, found.finished_ms) == (1_795_341_600_500, None)


def test_trigger_that_found_nothing_is_no_batch() -> None:
    idle = progress(8, numInputRows=0, durationMs={"latestOffset": 3, "triggerExecution": 4})
    assert progress_batches([idle]) == []


def test_epoch_of_a_continuous_query_ends_when_it_is_told() -> None:
    (found,) = progress_batches([progress(3, batchDuration=400, durationMs={"walCommit": 2})])
    assert (found.begun_ms, found.finished_ms) == (1_795_341_600_100, 1_795_341_600_500)


def test_last_word_about_a_batch_counts() -> None:
    found = progress_batches([progress(1, numInputRows=1), progress(0), progress(1, numInputRows=2)])
    assert [(each.batch_id, each.rows) for each in found] == [(0, 42), (1, 2)]


def test_other_queries_are_left_out() -> None:
    assert [each.batch_id for each in progress_batches([progress(0), progress(1, id="other")], "query")] == [0]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"batchId": "x"},
        progress(0, durationMs=["x"]),
        progress(0, timestamp="yesterday"),
        progress(0, numInputRows=10**400),
        progress(0, numInputRows=float("inf")),
        progress(0, durationMs={**_DURATIONS, "addBatch": 10**400}),
        progress(0, durationMs={1: "x"}),
    ],
)
def test_progress_that_cannot_be_read_is_left_out(broken: dict[str, Any]) -> None:
    assert [each.batch_id for each in progress_batches([broken, progress(5)])] == [5]


def test_event_log_of_spark_is_read() -> None:
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    lines = [
        json.dumps({"Event": "SparkListenerTaskEnd", "Task Info": {"QueryProgressEvent": 1}}),
        json.dumps({"Event": "SparkListenerLogStart", "Spark Version": "4.2.0"}),
        json.dumps({"Event": event, "progress": progress(1)}),
        "",
        json.dumps(progress(2)),
        json.dumps({"Event": event, "progress": progress(3)})[:-20],
    ]
    assert [each["batchId"] for each in read_event_log(lines)] == [1, 2]


def test_file_that_is_no_event_log_is_an_error() -> None:
    with pytest.raises(ConnectorError, match="none of them is JSON") as raised:
        list(read_event_log(["PAR1\x15", "nonsense"]))
    assert raised.value.condition == "REPORT_PROGRESS_INVALID"
