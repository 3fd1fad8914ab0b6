"""What a committed epoch becomes: a report with the fields of Spark's, and those of a continuous query."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka.connector import ContinuousStream
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.latencies import LaneMetrics
from pyspark_kafka.continuous.reports.events import QueryNames
from pyspark_kafka.continuous.reports.progress import ProgressLog

NAMES = QueryNames(str(uuid.uuid4()), str(uuid.uuid4()), "orders", "pyspark_kafka", "files")


class Stream(KafkaContinuousStream):
    """The part of a Kafka stream that reads positions; it knows no cluster."""

    def __init__(self) -> None:
        pass


class Events:
    """Notes what listeners would get."""

    def __init__(self) -> None:
        self.reports: list[StreamingQueryProgress] = []
        self.idles = 0

    def progressed(self, progress: Callable[[], StreamingQueryProgress]) -> None:
        self.reports.append(progress())

    def idle(self) -> None:
        self.idles += 1


def log_of(stream: ContinuousStream | None = None) -> tuple[ProgressLog, Events]:
    events: Any = Events()
    return ProgressLog(NAMES, stream or Stream(), events), events


def report(
    lane: int, *, read: int, latest: str | None = None, latency: float | None = None, since_record: bool = True
) -> LaneReport:
    figures = LaneMetrics(() if latest is None else (latest,), at_ms=1_000_000.0, since_record=since_record)
    if latency is not None:
        figures.sent.add_latency(latency, read)
        figures.ages.add_latency(latency + 100, read)
    return LaneReport(lane, 7, "{}", "{}", read, read * 2, figures.to_text())


def add(
    log: ProgressLog, *reports: LaneReport, seconds: float = 10.0, epoch: int = 7, clock_s: float = 1_000.4
) -> None:
    end = KafkaSourceOffset.from_json('{"t":{"0":50,"1":60}}')
    log.add_progress(epoch, reports, ('{"t":{"0":1}}', end), {"triggerExecution": 5}, (clock_s, seconds))


def test_report_has_every_field_of_sparks() -> None:
    log, _ = log_of()
    log.begin(8.0)
    add(log, report(0, read=10), report(1, read=30))
    progress = log.last
    assert isinstance(progress, StreamingQueryProgress)
    fields = {name for name, value in vars(StreamingQueryProgress).items() if isinstance(value, property)}
    for name in fields:
        getattr(progress, name)
    assert progress.id == uuid.UUID(NAMES.id)
    assert (progress["id"], progress["runId"], progress.name) == (NAMES.id, NAMES.run_id, "orders")
    assert (progress.batchId, progress.numInputRows, progress.batchDuration) == (7, 40, 2_000)
    assert progress.timestamp == "1970-01-01T00:16:40.400Z"
    assert progress.inputRowsPerSecond == progress.processedRowsPerSecond == 20
    assert progress.durationMs == {"triggerExecution": 5}
    (source,) = progress.sources
    assert (source.description, source.numInputRows, source.inputRowsPerSecond) == ("pyspark_kafka", 40, 20)
    assert (source.startOffset, source.endOffset) == ('{"t":{"0":1}}', '{"t":{"0":50,"1":60}}')
    assert (progress.sink.description, progress.sink.numOutputRows) == ("files", 80)
    assert json.loads(progress.json)["latencySince"] == "record"
    assert "latencyMs" in progress.prettyJson


def test_report_has_the_length_of_epochs_and_what_makes_them_longer() -> None:
    log, _ = log_of()
    found = []
    for interval in ((1_000, ""), (4_400, "transaction markers")):
        log.set_interval(*interval)
        add(log, report(0, read=10))
        progress: Any = log.last
        found.append((progress["epochIntervalMs"], progress["epochIntervalReason"]))
    assert found == [(1_000, ""), (4_400, "transaction markers")]


def test_lag_is_between_the_end_of_the_epoch_and_what_readers_have_heard_of() -> None:
    log, _ = log_of()
    add(log, report(0, read=1, latest='{"t":{"0":50}}'), report(1, read=1, latest='{"t":{"1":90}}'), report(2, read=0))
    progress = log.last
    assert progress is not None
    (source,) = progress.sources
    assert json.loads(source.latestOffset) == {"t": {"0": 50, "1": 90}}
    assert source.metrics == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "30",
        "avgOffsetsBehindLatest": "15.0",
        "offsetsBehindLatest": '{"t":{"1":30}}',
    }


def test_lag_that_is_not_known_is_left_out() -> None:
    log, _ = log_of()
    add(log, report(0, read=1))
    progress = log.last
    assert progress is not None
    # As PySpark shows it: "None" before 4.2.
    assert progress.sources[0].latestOffset in {"null", "None"}
    assert progress.sources[0].metrics == {}


def test_source_that_fails_to_say_its_lag_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Stream):
        def mergeLatestOffsets(self, offsets: Any) -> Any:
            raise RuntimeError("no such thing")

    log, _ = log_of(Broken())
    add(log, report(0, read=1, latest='{"t":{"0":50}}'))
    assert log.last is not None
    assert log.last.sources[0].metrics == {}
    add(log, report(0, read=1, latest='{"t":{"0":50}}'))
    assert caplog.text.count("The lag of continuous query") == 1


def test_unreadable_metrics_are_logged_once_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    log, _ = log_of()
    add(log, LaneReport(3, 7, "{}", "{}", 5, 5, "soon"))
    assert log.last is not None
    assert log.last["latencyMs"] == {}
    add(log, LaneReport(3, 8, "{}", "{}", 5, 5, "soon"))
    assert caplog.text.count("Lane 3 has sent metrics that cannot be read") == 1


def test_latencies_of_all_lanes_are_one_summary() -> None:
    log, _ = log_of()
    # The lanes ended their epoch at 1,000 s; it was committed 400 ms later.
    add(log, report(0, read=99, latency=10.0), report(1, read=1, latency=2_000.0))
    progress = log.last
    assert progress is not None
    assert progress["latencyMs"] == {
        "p50": pytest.approx(10, rel=0.05), "p99": pytest.approx(10, rel=0.05), "max": 2_000,
    }  # fmt: skip
    assert progress["commitLatencyMs"] == {
        "p50": pytest.approx(510, rel=0.06), "p99": pytest.approx(510, rel=0.06), "max": 2_500,
    }  # fmt: skip
    assert progress["latencySince"] == "record"


def test_latency_begins_with_the_read_if_one_lane_has_no_record_times() -> None:
    log, _ = log_of()
    add(log, report(0, read=1, latency=10.0), report(1, read=1, latency=10.0, since_record=False))
    assert log.last is not None
    assert log.last["latencySince"] == "read"


def test_last_hundred_reports_are_kept_and_each_is_the_readers_own() -> None:
    log, events = log_of()
    assert (log.last, log.recent) == (None, [])
    for epoch in range(120):
        add(log, report(0, read=1), epoch=epoch, seconds=epoch + 1.0)
    assert [each.batchId for each in log.recent] == list(range(20, 120))
    assert log.last is not None
    log.last["batchId"] = -1
    assert log.last.batchId == 119
    assert [each.batchId for each in events.reports] == list(range(120))


def test_rate_of_an_epoch_without_a_begin_is_zero() -> None:
    log, _ = log_of()
    add(log, report(0, read=1))
    assert log.last is not None
    assert (log.last.inputRowsPerSecond, log.last.batchDuration) == (0, 0)


def test_query_at_rest_says_so_every_ten_seconds() -> None:
    log, events = log_of()
    log.rest(5.0)
    log.begin(10.0)
    for moment in (11.0, 19.9):
        log.rest(moment)
    assert events.idles == 0
    for moment in (20.0, 21.0, 29.9, 30.0):
        log.rest(moment)
    assert events.idles == 2
    add(log, report(0, read=1), seconds=31.0)
    log.rest(40.0)
    assert events.idles == 2
    log.rest(41.0)
    assert events.idles == 3
