"""What reports of Spark say of topics, rows and failures."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from pyspark_kafka._ops.lineage.reports import failure_message, kafka_reads, written_rows

PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1f"


def report(*sources: tuple[str, Any, int], written: int = -1) -> StreamingQueryProgress:
    made: StreamingQueryProgress = StreamingQueryProgress.fromJson(
        {
            "id": "8c0e2b1e-0000-4000-8000-000000000001",
            "runId": "8c0e2b1e-0000-4000-8000-000000000002",
            "name": None,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "batchId": 1,
            "batchDuration": 5,
            "numInputRows": 0,
            "inputRowsPerSecond": 0.0,
            "processedRowsPerSecond": 0.0,
            "durationMs": {},
            "stateOperators": [],
            "sources": [
                {
                    "description": description,
                    "startOffset": None,
                    "endOffset": end,
                    "latestOffset": None,
                    "numInputRows": rows,
                    "inputRowsPerSecond": 0.0,
                    "processedRowsPerSecond": 0.0,
                }
                for description, end, rows in sources
            ],
            "sink": {"description": "sink", "numOutputRows": written},
        }
    )
    return made


def test_reads_are_of_kafka_sources_in_their_order() -> None:
    found = kafka_reads(
        report(
            ("FileStreamSource[/in]", {"logOffset": 1}, 9),
            (PYTHON, '{"a":{"0":5},"b":{"1":7}}', 4),
            (PYTHON, '{"of another":"source"}', 9),
            (PYTHON, {"c": {"0": 5}}, -1),
            (PYTHON, "null", 9),
        )
    )
    assert found == [({"a", "b"}, 4), ({"c"}, 0)]


def test_written_rows_are_unknown_if_spark_does_not_count_them() -> None:
    assert written_rows(report(written=-1)) is None
    assert written_rows(report(written=0)) == 0


@pytest.mark.parametrize(
    "after",
    [
        "\n\tat java.base/java.lang.Thread.run(Thread.java:840)",
        "\n=== Streaming Query ===\nplan with option x=secret",
        "\nJVM stacktrace:\norg.apache.spark.SparkException",
    ],
)
def test_message_of_a_failure_is_without_stack_and_plan(after: str) -> None:
    assert failure_message(f"Job aborted.\nNo broker.{after}") == "Job aborted.\nNo broker."


def test_message_of_a_failure_is_without_logins_in_addresses() -> None:
    text = "GET https://user:pa$$word@registry:8081/subjects failed"
    assert failure_message(text) == "GET https://registry:8081/subjects failed"
