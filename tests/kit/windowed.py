"""A lane with an aggregation in windows, without a reader; and the same aggregation row by row, in plain Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from kit.continuous import FilesTable
from pyspark_kafka.continuous.query.builder import ContinuousFrame
from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.state.versions import StatePlan
from pyspark_kafka.continuous.steps.window_times import SessionWindow, TimeWindow
from pyspark_kafka.continuous.task.stages import TICK, MapWithState, Stages

NO_SESSION: Any = None


def aggregated(
    schema: pa.Schema, delay: str, groups: Sequence[Any], late: Callable[[pa.RecordBatch], None], **aggregates: Any
) -> ContinuousFrame:
    """Return rows with the time "t" that are aggregated; after a second without rows their windows end."""
    rows = ContinuousFrame(NO_SESSION, FilesTable(), {}, schema).withWatermark("t", delay, "1 second")
    return rows.groupBy(*groups).agg(handleLateRows=late, **aggregates)


class WindowLane:
    """The last step of a frame in a lane with one key group, which can be started again from its state.

    Args:
        frame: of `aggregated`.
        place: a directory.
    """

    def __init__(self, frame: ContinuousFrame, place: Path) -> None:
        self._frame, self._place, self._epoch, self._now_s = frame, place, 0, 0.0
        self._heads: dict[str, str] = {}
        self._open()

    def __call__(self, *batches: pa.RecordBatch, ticks: bool = True) -> list[dict[str, Any]]:
        """Return the rows that are made of batches; after each of them timers expire, unless `ticks` is false."""

        def given() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch
                while ticks and (self.stages.has_timer_due() or self.stages.has_timer_left()):
                    yield TICK

        return [row for made in self.stages(given()) for row in made.to_pylist()]

    def tick(self) -> list[dict[str, Any]]:
        """Return the rows that are made of timers that are due."""
        return [row for made in self.stages(iter([TICK])) for row in made.to_pylist()]

    def idle(self) -> list[dict[str, Any]]:
        """Return the rows that are made when there have been no rows for a second."""
        made: list[dict[str, Any]] = []
        for _ in range(2):
            self._now_s += 1
            self.stages.poll(self._now_s)
        while self.stages.has_timer_due():
            made += self.tick()
            # A sum of such times has no rounding.
            self._now_s += 0.125
            self.stages.poll(self._now_s)
        return made

    def restart(self) -> None:
        """Commit an epoch, and begin again with its state."""
        pending = self.states.end_epoch()
        pending.write()
        self._heads.update(json.loads(pending.text or "{}"))
        self.close()
        self._open()

    def kept(self) -> tuple[int, int]:
        """Return how many values and how many timers there are."""
        return len(list(self.states.keys(0))), len([key for key in self.states.keys(1) if key])

    def close(self) -> None:
        """Give up the local store."""
        self.states.close()

    def _open(self) -> None:
        self._epoch += 1
        plan = StatePlan(str(self._place / "c"), f"r{self._epoch}", {0: ("g",)}, self._heads, (0, 0))
        self.states = LaneState(plan, 0, 0)
        self.states.begin_epoch(self._epoch)
        self.states.point_at(None)
        step = self._frame.steps[-1]
        assert isinstance(step, MapWithState)
        self.stages = Stages([step]).holding(self.states)


@contextmanager
def lane_of(frame: ContinuousFrame, place: Path) -> Iterator[WindowLane]:
    """Return a lane, and close it at the end."""
    lane = WindowLane(frame, place)
    try:
        yield lane
    finally:
        lane.close()


@dataclass
class PlainWindows:
    """The groups that are open, with the values of their rows, one row after the other.

    Attributes:
        window: the window.
        delay_ms: of the watermark.
        watermark_ms: the watermark.
        open: for each key its windows: start, end, values of the rows.
        late: the values of late rows.
    """

    window: TimeWindow | SessionWindow
    delay_ms: int
    watermark_ms: int | None = None
    open: dict[Any, list[tuple[int, int, list[Any]]]] = field(default_factory=dict)
    late: list[Any] = field(default_factory=list)

    def add(self, rows: Sequence[tuple[int, Any, Any]]) -> None:
        """Add rows of a batch: microseconds, key, value. The watermark moves with each of them."""
        # Sessions that end within a batch are returned after it, and grow until then.
        ended_ms = self.watermark_ms
        for time_us, key, value in rows:
            windows = [each for each in self._windows_of(time_us) if not self.has_ended(each[1])]
            if not windows:
                self.late.append(value)
            for start, end in windows:
                self._put(self.open.setdefault(key, []), start, end, value, ended_ms)
            # As Spark: down, also before 1970 (`DateTimeUtils.microsToMillis`).
            reached = time_us // 1000 - self.delay_ms
            self.watermark_ms = reached if self.watermark_ms is None else max(reached, self.watermark_ms)

    def close(self) -> list[tuple[int, int, Any, list[Any]]]:
        """Return the windows that have ended: start, end, key, values."""
        closed = [
            (start, end, key, values)
            for key, windows in self.open.items()
            for start, end, values in windows
            if self.has_ended(end)
        ]
        for key, windows in self.open.items():
            self.open[key] = [each for each in windows if not self.has_ended(each[1])]
        return closed

    def be_idle(self) -> list[tuple[int, int, Any, list[Any]]]:
        """Return the windows that end if no more rows come: all. Later rows of them are late."""
        ends = [end for windows in self.open.values() for _, end, _ in windows]
        if ends:
            # Watermarks have milliseconds.
            last_ms = -(-max(ends) // 1000)
            self.watermark_ms = last_ms if self.watermark_ms is None else max(last_ms, self.watermark_ms)
        return self.close()

    def has_ended(self, end: int) -> bool:
        """Return whether the watermark has reached an end."""
        return self.watermark_ms is not None and end <= self.watermark_ms * 1000

    def _windows_of(self, time_us: int) -> list[tuple[int, int]]:
        if isinstance(self.window, SessionWindow):
            return [(time_us, time_us + self.window.gap_us)]
        duration, slide, first = self.window.duration_us, self.window.slide_us, self.window.start_us
        near = (time_us - first) // slide
        starts = (first + (near + number) * slide for number in range(-duration // slide - 1, 2))
        return [(start, start + duration) for start in starts if start <= time_us < start + duration]

    def _put(
        self, windows: list[tuple[int, int, list[Any]]], start: int, end: int, value: Any, ended_ms: int | None
    ) -> None:
        if isinstance(self.window, SessionWindow):
            open_ones = [each for each in windows if ended_ms is None or each[1] > ended_ms * 1000]
            near = [each for each in open_ones if each[0] <= end and start <= each[1]]
        else:
            near = [each for each in windows if each[0] == start]
        for each in near:
            windows.remove(each)
        values = [found for each in near for found in each[2]] + [value]
        windows.append((min([start, *(each[0] for each in near)]), max([end, *(each[1] for each in near)]), values))


def plain_aggregate(function: str, values: Sequence[Any]) -> Any:
    """Return an aggregate of values, as Spark computes it."""
    given = [value for value in values if value is not None]
    if function == "count":
        return len(given)
    if not given:
        return None
    by_function: Mapping[str, Callable[[list[Any]], Any]] = {
        "sum": sum, "min": min, "max": max, "avg": lambda found: sum(found) / len(found),
    }  # fmt: skip
    return by_function[function](given)
