"""The state and the event time of a query, as `stateOperators` and `eventTime` of Spark's progress have them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from pyspark_kafka.checkpoint.continuous_files import WaitingStep
from pyspark_kafka.continuous.epochs.step_metrics import COUNTS, StepMetrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.continuous.epochs.step_metrics import GroupWatermark
    from pyspark_kafka.continuous.task.stages import MapWithState

# Counts without a field in Spark's progress.
_CUSTOM = ("stateOnCurrentVersionSizeBytes", "numTimers", "numRegisteredTimers", "numExpiredTimers")
# Fields that are not known here: no rows are shuffled, and the memory of a lane belongs to all of its steps.
_UNKNOWN = ("memoryUsedBytes", "numShufflePartitions")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class OperatorName:
    """The name of a step with state, and what it has.

    Attributes:
        name: the name in reports.
        has_timers: whether it has timers.
        has_event_time: whether it has a watermark.
    """

    name: str
    has_timers: bool = False
    has_event_time: bool = False

    @classmethod
    def of(cls, step: MapWithState) -> OperatorName:
        """Return the operator of a step."""
        mode = step.time_mode
        return cls(step.operator, mode is not None, mode is not None and mode.event_time is not None)


def merged_steps(lanes: Sequence[Sequence[StepMetrics]], number: int) -> list[StepMetrics]:
    """Return the metrics of each step over all lanes; empty if a lane has not reported all of them.

    Args:
        lanes: the metrics of each lane.
        number: of the steps.
    """
    if not lanes or any(len(steps) != number for steps in lanes):
        return []
    merged = [StepMetrics() for _ in range(number)]
    for steps in lanes:
        for step, of_lane in zip(merged, steps, strict=True):
            step.merge(of_lane)
    return merged


def state_operators(
    operators: Sequence[OperatorName], steps: Sequence[StepMetrics], commit_ms: int
) -> list[dict[str, Any]]:
    """Return the fields of each step; a number that is not known is None.

    Args:
        operators: the steps of the query.
        steps: their metrics; empty if they are not known.
        commit_ms: the time of the lane that took longest to write its state.
    """
    return [_fields(*pair, commit_ms) for pair in zip(operators, steps, strict=True)] if steps else []


def event_time(operators: Sequence[OperatorName], steps: Sequence[StepMetrics]) -> dict[str, str]:
    """Return the fields of `eventTime`; empty without event time, and before the first rows."""
    timed = [step for operator, step in zip(operators, steps, strict=True) if operator.has_event_time] if steps else []
    lowest = [step.lowest for step in timed if step.lowest is not None]
    made: dict[str, str] = {}
    # Later steps get the rows of earlier ones.
    if timed and (times := timed[0].times) is not None:
        made = {
            "max": time_text(times.greatest_ms),
            "min": time_text(times.least_ms),
            "avg": time_text(round(times.sum_ms / times.rows)),
        }
    if lowest:
        made["watermark"] = time_text(min(lowest, key=lambda each: each.order).watermark_ms)
    return made


def waiting_steps(operators: Sequence[OperatorName], steps: Sequence[StepMetrics]) -> list[WaitingStep]:
    """Return the steps with timers that wait for event time, for the checkpoint."""
    return [
        WaitingStep(number, operators[number].name, lowest.key_group, lowest.watermark_ms, lowest.timer_ms)
        for number, step in enumerate(steps)
        if (lowest := step.lowest) is not None and lowest.timer_ms is not None
    ]


def time_text(time_ms: int) -> str:
    """Return a time in UTC as Spark writes it; a time outside the years 1 to 9999 as its milliseconds since 1970."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(operator: OperatorName, step: StepMetrics, commit_ms: int) -> dict[str, Any]:
    counts = dict(zip(COUNTS, step.counts, strict=True))
    custom = {name: counts.pop(name) for name in _CUSTOM}
    if not operator.has_timers:
        custom = {_CUSTOM[0]: custom[_CUSTOM[0]]}
    fields = {"operatorName": operator.name, **counts, "commitTimeMs": commit_ms, **dict.fromkeys(_UNKNOWN)}
    fields["customMetrics"] = custom
    if operator.has_event_time:
        found = {"lowest": step.lowest, "highest": step.highest}
        fields["watermarks"] = {name: _watermark(each) for name, each in found.items() if each is not None}
    return fields


def _watermark(found: GroupWatermark) -> dict[str, str]:
    made = {"topicPartition": found.key_group, "watermark": time_text(found.watermark_ms)}
    return made if found.timer_ms is None else {**made, "firstTimer": time_text(found.timer_ms)}
