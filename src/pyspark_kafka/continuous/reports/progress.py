"""The progress reports of a continuous query, in the form of Spark's `StreamingQueryProgress`."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pyspark_kafka.continuous.epochs.latencies import LaneMetrics, LatencyHistogram
from pyspark_kafka.continuous.reports.state_operators import event_time, merged_steps, state_operators, waiting_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from pyspark_kafka.checkpoint.continuous_files import WaitingStep
    from pyspark_kafka.connector import ContinuousStream, Offset
    from pyspark_kafka.continuous.epochs.coordinator import LaneReport
    from pyspark_kafka.continuous.epochs.step_metrics import StepMetrics
    from pyspark_kafka.continuous.reports.events import QueryEvents, QueryNames
    from pyspark_kafka.continuous.reports.state_operators import OperatorName

_LOG = logging.getLogger(__name__)

# `spark.sql.streaming.numRecentProgressUpdates`.
_KEPT = 100
# `spark.sql.streaming.noDataProgressEventInterval`.
_IDLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class EpochMetrics:
    """The metrics of one epoch.

    Attributes:
        lanes: of each lane, or of lanes together, as far as they can be read.
        steps: of the steps with state; empty if the metrics of a lane are missing, because sums would be too small.
    """

    lanes: Sequence[LaneMetrics]
    steps: Sequence[StepMetrics]


class ProgressLog:
    """The progress of the last epochs.

    Runs on: driver; who commits an epoch adds it, any thread reads.

    Args:
        names: of the query.
        stream: what is read; it says how far the query is behind.
        events: gets each epoch, and that there is none.
        operators: the steps with state.
    """

    def __init__(
        self,
        names: QueryNames,
        stream: ContinuousStream,
        events: QueryEvents,
        operators: Sequence[OperatorName] = (),
    ) -> None:
        self._operators = operators
        self._names = names
        self._stream = stream
        self._events = events
        self._lock = threading.Lock()
        self._recent: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._since: float | None = None
        self._said_at: float | None = None
        # The epoch length in ms, and the reason if it is longer than the trigger's.
        self._interval: tuple[int | None, str] = None, ""
        # Metrics that could not be computed: what is wrong once is wrong in each epoch, ten times a second.
        self._missing: set[object] = set()

    @property
    def recent(self) -> list[StreamingQueryProgress]:
        """Return the last epochs, oldest first."""
        with self._lock:
            return [_progress(each) for each in self._recent]

    @property
    def last(self) -> StreamingQueryProgress | None:
        """Return the newest epoch; None before the first."""
        with self._lock:
            return _progress(self._recent[-1]) if self._recent else None

    def begin(self, monotonic_s: float) -> None:
        """Record the start of a run's first epoch."""
        self._since = self._said_at = monotonic_s

    def set_interval(self, interval_ms: int, reason: str) -> None:
        """Record the length of later epochs.

        Args:
            interval_ms: the epoch length.
            reason: the reason for a longer one than the trigger's; empty for none.
        """
        self._interval = interval_ms, reason

    def rest(self, monotonic_s: float) -> None:
        """Record that no lane has moved since the last epoch ended: listeners are notified every 10 s."""
        if self._said_at is not None and monotonic_s - self._said_at >= _IDLE_SECONDS:
            self._said_at = monotonic_s
            self._events.idle()

    def read_metrics(self, reports: Sequence[LaneReport]) -> EpochMetrics:
        """Return the metrics in the reports of an epoch."""
        lanes = [found for report in reports if (found := self._metrics_of(report)) is not None]
        are_all = len(lanes) == sum(bool(report.metrics) for report in reports)
        steps = merged_steps([each.steps for each in lanes] if are_all else [], len(self._operators))
        return EpochMetrics(lanes, steps)

    def waiting(self, metrics: EpochMetrics) -> Sequence[WaitingStep]:
        """Return the steps with timers after an epoch."""
        return waiting_steps(self._operators, metrics.steps)

    def add_progress(
        self,
        epoch: int,
        reports: Sequence[LaneReport],
        read: EpochMetrics,
        offsets: tuple[str | None, Offset],
        durations_ms: dict[str, int],
        times: tuple[float, float],
    ) -> None:
        """Add a committed epoch.

        Args:
            epoch: its number.
            reports: of its lanes.
            read: their metrics.
            offsets: where it begins, as JSON, and ends.
            durations_ms: of its steps on the driver.
            times: the seconds of the system's clock, and of the monotonic one.
        """
        clock_s, monotonic_s = times
        seconds = 0.0 if self._since is None else max(monotonic_s - self._since, 1e-3)
        self._since = self._said_at = monotonic_s
        rows = sum(report.rows_read for report in reports)
        rate = round(rows / seconds, 3) if seconds else 0.0
        start, end = offsets
        lanes, steps = read.lanes, read.steps
        latest, metrics = self._lag(end, lanes)
        state_ms = max((max(report.state_ms, report.late_state_ms) for report in reports), default=0)
        moment = datetime.fromtimestamp(clock_s, timezone.utc).isoformat(timespec="milliseconds")
        entry = {
            "id": self._names.id,
            "runId": self._names.run_id,
            "name": self._names.name,
            "timestamp": moment.replace("+00:00", "Z"),
            "batchId": epoch,
            "batchDuration": round(seconds * 1000),
            "numInputRows": rows,
            "inputRowsPerSecond": rate,
            "processedRowsPerSecond": rate,
            "durationMs": durations_ms,
            "eventTime": event_time(self._operators, steps),
            "stateOperators": state_operators(self._operators, steps, state_ms),
            "sources": [
                {
                    "description": self._names.source,
                    # As text, as PySpark has them; None becomes "null".
                    "startOffset": start,
                    "endOffset": end.json(),
                    "latestOffset": latest,
                    "numInputRows": rows,
                    "inputRowsPerSecond": rate,
                    "processedRowsPerSecond": rate,
                    "metrics": metrics,
                }
            ],
            "sink": {
                "description": self._names.sink,
                "numOutputRows": sum(report.rows_written for report in reports),
                "metrics": {},
            },
            **_latencies(lanes, clock_s * 1000),
            **dict(zip(_INTERVAL, self._interval, strict=True)),
        }
        with self._lock:
            self._recent.append(entry)
        self._events.progressed(lambda: _progress(entry))

    def _lag(self, end: Offset, lanes: Sequence[LaneMetrics]) -> tuple[str | None, Mapping[str, str]]:
        """Return the latest offset that the readers know, as JSON, and how far the epoch's end is behind it."""
        known = [position for each in lanes for position in each.latest]
        if not known:
            return None, {}
        stream = self._stream
        try:
            parts = [stream.deserializePartitionOffset(text) for text in known]
            latest = stream.mergeLatestOffsets(parts)
            return latest.json(), dict(stream.lagMetrics(end, latest))
        except Exception:  # noqa: BLE001 - logged
            # The epoch is committed; that its progress lacks a metric must not end the query.
            if self._is_new("lag"):
                _LOG.warning(
                    "The lag of continuous query %s is not known. This is logged once.",
                    self._names.id,
                    exc_info=True,
                )
            return None, {}

    def _metrics_of(self, report: LaneReport) -> LaneMetrics | None:
        try:
            return LaneMetrics.from_text(report.metrics) if report.metrics else None
        except ValueError as error:
            if self._is_new(report.lane):
                _LOG.warning(
                    "Lane %d has sent metrics that cannot be read: %s. This is logged once.", report.lane, error
                )
            return None

    def _is_new(self, missing: object) -> bool:
        is_new = missing not in self._missing
        self._missing.add(missing)
        return is_new


def _latencies(lanes: Sequence[LaneMetrics], committed_ms: float) -> dict[str, Any]:
    sent, committed = LatencyHistogram(), LatencyHistogram()
    for each in lanes:
        sent.merge(each.sent)
        # Between two clocks, the lane's machine's and this one, as the timestamps themselves are.
        committed.merge(each.ages, later_ms=committed_ms - each.at_ms)
    since_record = all(each.since_record for each in lanes)
    return {
        "latencyMs": sent.summary(),
        "commitLatencyMs": committed.summary(),
        "latencySince": "record" if since_record else "read",
    }


_INTERVAL = ("epochIntervalMs", "epochIntervalReason")
_ADDED_TO_OPERATORS = ("watermarks",)
_ADDED = ("latencyMs", "commitLatencyMs", "latencySince", *_INTERVAL)


def _progress(entry: Mapping[str, Any]) -> StreamingQueryProgress:
    from pyspark.sql.streaming.listener import StreamingQueryProgress  # noqa: PLC0415 - on the driver, when asked

    made: StreamingQueryProgress = StreamingQueryProgress.fromJson(dict(entry))
    # What Spark's reports do not have.
    made.update({name: entry[name] for name in _ADDED})
    for operator, fields in zip(made.stateOperators, entry["stateOperators"], strict=True):
        operator.update({name: fields[name] for name in _ADDED_TO_OPERATORS if name in fields})
    return made
