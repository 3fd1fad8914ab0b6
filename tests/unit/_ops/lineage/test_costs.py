"""Reports cost the program little: at ten a second, the sender needs at most 3 % of a processor."""

from __future__ import annotations

import json
from datetime import datetime, timezone

from openlineage.client.serde import Serde
from pyspark.sql.streaming.listener import QueryProgressEvent

from kit.costs import processor_s
from kit.waiting import PATIENCE_S
from pyspark_kafka._ops.lineage.events import run_event
from pyspark_kafka._ops.lineage.listener import LineageListener
from pyspark_kafka._ops.lineage.naming import ApplicationNames
from pyspark_kafka._ops.lineage.runs import Application, QueryParts, ReadPart, WritePart
from pyspark_kafka._ops.lineage.values import DatasetColumn

ID = "8c0e2b1e-0000-4000-8000-000000000001"
APPLICATION = Application(ApplicationNames("default", "app"), "4.2.0")
SERVERS = {"kafka.bootstrap.servers": "a:9092"}
COLUMNS = tuple(DatasetColumn(name, "binary") for name in ("key", "value"))
PARTITIONS = 100
REPORT = {
    "id": ID,
    "runId": ID,
    "name": "copying",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "batchId": 1,
    "batchDuration": 100,
    "numInputRows": 1_000,
    "inputRowsPerSecond": 10_000.0,
    "processedRowsPerSecond": 10_000.0,
    "durationMs": {},
    "stateOperators": [],
    "sources": [
        {
            "description": "pyspark_kafka",
            "startOffset": None,
            "endOffset": json.dumps({"orders": {str(partition): 5 for partition in range(PARTITIONS)}}),
            "latestOffset": None,
            "numInputRows": 1_000,
            "inputRowsPerSecond": 10_000.0,
            "processedRowsPerSecond": 10_000.0,
        }
    ],
    "sink": {"description": "pyspark_kafka", "numOutputRows": 1_000},
}


class NoClient:
    """Sends nothing."""

    is_disabled = False

    def event(self, *_: object) -> None:
        """Make nothing."""

    emit = close = event


def parts() -> QueryParts:
    read = ReadPart(SERVERS | {"subscribe": "orders"}, COLUMNS)
    return QueryParts("ContinuousQuery", [read], [WritePart(SERVERS | {"topic": "copy"}, COLUMNS)], is_straight=True)


def test_report_costs_at_most_three_milliseconds_of_the_processor() -> None:
    listener = LineageListener(NoClient(), lambda: APPLICATION)  # type: ignore[arg-type]
    listener._post_start(ID, parts)
    reports = [QueryProgressEvent.fromJson({"progress": dict(REPORT)}) for _ in range(100)]

    def hear() -> None:
        for report in reports:
            listener.onQueryProgress(report)
        assert listener.flush(PATIENCE_S)

    assert processor_s(hear) < 0.3
    listener.stop()


def test_event_costs_at_most_thirty_milliseconds_of_the_processor() -> None:
    """It is sent every ten seconds."""
    now = datetime.now(timezone.utc)

    def make() -> None:
        for _ in range(10):
            Serde.to_json(run_event(APPLICATION.facts(parts(), ID), "RUNNING", now))

    assert processor_s(make) < 0.3
