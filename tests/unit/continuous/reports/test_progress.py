"""What a committed epoch becomes: a report with the fields of Spark's, and those of a continuous query."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka.checkpoint.continuous_files import WaitingStep
from pyspark_kafka.connector import ContinuousStream
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.latencies import LaneMetrics
from pyspark_kafka.continuous.epochs.step_metrics import EventTimes, GroupWatermark, StepMetrics
from pyspark_kafka.continuous.reports.events import QueryNames
from pyspark_kafka.continuous.reports.progress import ProgressLog
from pyspark_kafka.continuous.reports.state_operators import OperatorName, time_text

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


def log_of(
    stream: ContinuousStream | None = None, operators: Sequence[OperatorName] = ()
) -> tuple[ProgressLog, Events]:
    events: Any = Events()
    return ProgressLog(NAMES, stream or Stream(), events, operators), events


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
    metrics = log.read_metrics(reports)
    log.add_progress(epoch, reports, metrics, ('{"t":{"0":1}}', end), {"triggerExecution": 5}, (clock_s, seconds))


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


OPERATORS = (OperatorName("mapWithState"), OperatorName("stateStoreSave", has_timers=True, has_event_time=True))


def with_state(lane: int, *steps: StepMetrics, state_ms: int = 0, late_state_ms: int = 0) -> LaneReport:
    text = LaneMetrics(at_ms=1_000_000.0, steps=steps).to_text()
    return LaneReport(lane, 7, "{}", "{}", metrics=text, state_ms=state_ms, late_state_ms=late_state_ms)


def test_report_has_the_state_of_each_step_with_the_names_of_spark() -> None:
    log, events = log_of(operators=OPERATORS)
    slow = GroupWatermark(1_767_222_000_000, "t-3", 1_767_222_060_000)
    ahead = GroupWatermark(1_767_222_500_000, "t-1")
    windows = StepMetrics(
        list(range(11)), slow, ahead, EventTimes(1_767_222_001_000, 1_767_222_003_000, 5.301666006e12, 3)
    )
    add(
        log,
        with_state(0, StepMetrics([1] * 11), windows, state_ms=4),
        with_state(1, StepMetrics([2] * 11), StepMetrics([100] * 11), late_state_ms=7),
    )
    progress = log.last
    assert progress is not None
    first, second = progress.stateOperators
    assert (first.operatorName, second.operatorName) == ("mapWithState", "stateStoreSave")
    assert (first.numRowsTotal, first.numRowsUpdated, first.numRowsRemoved) == (3, 3, 3)
    assert (first.commitTimeMs, second.commitTimeMs) == (7, 7)
    # Not known, and so not 0.
    assert [first[name] for name in ("memoryUsedBytes", "numShufflePartitions")] == [None, None]
    assert first.customMetrics == {"stateOnCurrentVersionSizeBytes": 3}
    assert "watermarks" not in first
    assert (second.numRowsTotal, second.allRemovalsTimeMs, second.numRowsDroppedByWatermark) == (100, 104, 105)
    assert second.numStateStoreInstances == 106
    assert second.customMetrics == {
        "stateOnCurrentVersionSizeBytes": 107,
        "numTimers": 108,
        "numRegisteredTimers": 109,
        "numExpiredTimers": 110,
    }
    assert second["watermarks"] == {
        "lowest": {
            "topicPartition": "t-3",
            "watermark": "2025-12-31T23:00:00.000Z",
            "firstTimer": "2025-12-31T23:01:00.000Z",
        },
        "highest": {"topicPartition": "t-1", "watermark": "2025-12-31T23:08:20.000Z"},
    }
    assert progress.eventTime == {
        "max": "2025-12-31T23:00:03.000Z",
        "min": "2025-12-31T23:00:01.000Z",
        "avg": "2025-12-31T23:00:02.000Z",
        "watermark": "2025-12-31T23:00:00.000Z",
    }
    assert json.loads(progress.json)["stateOperators"][1]["watermarks"] == second["watermarks"]
    (heard,) = events.reports
    assert heard.stateOperators[1]["watermarks"] == second["watermarks"]


def test_steps_with_waiting_timers_are_told_to_the_checkpoint() -> None:
    log, _ = log_of(operators=OPERATORS)
    for lowest, expected in (
        (GroupWatermark(5, "t-3", 9), [WaitingStep(1, "stateStoreSave", "t-3", 5, 9)]),
        (GroupWatermark(5, "t-3"), []),
        (None, []),
    ):
        metrics = log.read_metrics([with_state(0, StepMetrics(), StepMetrics(lowest=lowest))])
        assert log.waiting(metrics) == expected
    assert log.waiting(log.read_metrics([LaneReport(0, 7, "{}", "{}", metrics="soon")])) == []


def test_state_that_a_lane_has_not_reported_is_left_out() -> None:
    log, _ = log_of(operators=OPERATORS)
    both = StepMetrics(), StepMetrics()
    for reports in (
        [with_state(0, *both), LaneReport(1, 7, "{}", "{}", metrics="soon")],
        [with_state(0, *both), with_state(1)],
        [LaneReport(0, 7, "{}", "{}")],
    ):
        add(log, *reports)
        assert log.last is not None
        assert (log.last.stateOperators, log.last.eventTime) == ([], {})


def test_query_without_event_time_has_none() -> None:
    log, _ = log_of(operators=OPERATORS[:1])
    add(log, with_state(0, StepMetrics()))
    assert log.last is not None
    assert log.last.eventTime == {}
    assert [each.numRowsTotal for each in log.last.stateOperators] == [0]


def test_times_that_no_calendar_has_are_milliseconds() -> None:
    assert time_text(-1) == "1969-12-31T23:59:59.999Z"
    assert time_text(2**62) == str(2**62)
    assert time_text(-(2**63)) == str(-(2**63))


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
