"""Batches from Spark's progress and event logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_kafka._ops.operations.reports.progress import merge_batches, progress_batches, read_event_log
from pyspark_kafka._ops.operations.reports.timeline import BatchStats
from pyspark_kafka.errors import ConnectorError

# As Spark 4.3.0 writes it, with a second source: without the sum of the rows.
_WRITTEN_BY_SPARK = (
    r'{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","progress":{"id":'
    r'"5b7458cd-9c97-441c-b414-3f31b762d325","runId":"6bcd51cc-f59f-42c3-a77d-99ed9faed6dd","name":null,"timestamp":'
    r'"2026-11-29T12:27:24.815Z","batchId":0,"batchDuration":4671,"durationMs":{"triggerExecution":4660,"queryPlanning":'
    r'1901,"getBatch":19,"commitOffsets":138,"latestOffset":0,"addBatch":2189,"walCommit":312},"eventTime":{},'
    r'"stateOperators":[],"sources":[{"description":"RatePerMicroBatchStream[rowsPerBatch=5, numPartitions=1, '
    r'startTimestamp=0, advanceMsPerBatch=1000]","startOffset":null,"endOffset":"{\"offset\":5,\"timestamp\":1000}",'
    r'"latestOffset":null,"numInputRows":5,"inputRowsPerSecond":0.0,"processedRowsPerSecond":1.070434596446157,'
    r'"metrics":{}},{"description":"KafkaSource[Subscribe[orders]]","startOffset":null,"endOffset":'
    r'"{\"orders\":{\"0\":7}}","latestOffset":null,"numInputRows":7,"inputRowsPerSecond":0.0,"metrics":{}}],"sink":'
    r'{"description":"NoopTable","numOutputRows":12,"metrics":{}},"observedMetrics":{}}}'
)
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


def test_line_of_an_event_log_that_spark_wrote_has_the_rows_of_its_sources() -> None:
    (found,) = progress_batches(read_event_log([_WRITTEN_BY_SPARK]))
    assert (found.batch_id, found.rows) == (0, 12)


@pytest.mark.parametrize("sources", [[], [{"numInputRows": 5}, {"description": "cut"}], [{"numInputRows": None}], None])
def test_rows_that_a_progress_does_not_have_are_unknown(sources: Any) -> None:
    (found,) = progress_batches([progress(7, numInputRows=None, sources=sources)])
    assert found.rows is None


def test_rows_that_a_progress_does_not_have_are_those_of_the_checkpoint() -> None:
    written = BatchStats(7, 0, 900, is_finished=True, rows=40)
    (found,) = merge_batches([written], progress_batches([progress(7, numInputRows=None)]))
    assert (found.rows, found.run_id) == (40, "run")
    (found,) = merge_batches([written], progress_batches([progress(7, numInputRows=0)]))
    assert found.rows == 0


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
