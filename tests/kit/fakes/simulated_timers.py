"""A continuous query with timers that writes exactly once, without Kafka: `simulated_state`, and time in its state.

With event time the query counts rows in windows: a timer writes the count of a window and forgets it when the watermark
has passed its end, and in some queries when its partition is idle; late rows are written apart. With processing time a
timer writes each row a second time. Watermarks, timers, rows and positions are decided together, so each window is
written once, with all of its rows, and at the moment at which the watermark passes it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import Any
from unittest import mock

import pyarrow as pa

from kit.fakes.simulated_state import COUNTED, StatefulSimulation
from kit.fakes.simulated_transactions import SimulatedBrokers
from pyspark_kafka.continuous.state.by_key import StateByKey
from pyspark_kafka.continuous.state.step_time import StepTime
from pyspark_kafka.continuous.task import stages
from pyspark_kafka.continuous.task.stages import MapWithState, TimeMode

_KEYS = 2
_WINDOW_MS = 50
_DELAY_MS = 10
_WAIT_MS = 700
# Of the time in which a lane waits for rows.
_IDLE_MS = 100
_COUNT = pa.schema({"count": pa.int64()})
# In the place of a count, of a row.
_ON_TIME, _LATE = 0, -1


def event_time(number: int) -> int:
    """Return the time of a row: now and then a row is behind the one before it, by more than the delay."""
    return number * 10 - 60 * (number % 4 == 3)


def _window(name: str, number: int) -> str:
    return f"{name}/{number % _KEYS}/{event_time(number) // _WINDOW_MS}"


def _end_of(window: str) -> int:
    return (int(window.split("/")[2]) + 1) * _WINDOW_MS


def _written(names: list[str], numbers: list[int], counts: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(names), pa.array(numbers), pa.array(counts)], schema=COUNTED)


def _with_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    times = [event_time(number) for number in rows.column("number").to_pylist()]
    return rows.append_column("time", pa.array(times, pa.int64()))


def count_in_windows(rows: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
    """Count rows by window, and return them."""
    names, numbers = rows.column("partition").to_pylist(), rows.column("number").to_pylist()
    added = Counter(map(_window, names, numbers))
    windows = pa.array(sorted(added))
    known = state.get(windows).column("count").to_pylist()
    counts = [added[window] + (count or 0) for window, count in zip(windows.to_pylist(), known, strict=True)]
    state.update(windows, count=counts)
    state.registerTimer(windows, [_end_of(window) for window in windows.to_pylist()])
    return _written(names, numbers, [_ON_TIME] * len(names))


def close_windows(timers: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
    """Return windows with their counts, and forget them."""
    keys = timers.column("key")
    counts = state.get(keys).column("count").to_pylist()
    state.remove(keys)
    windows = [key.decode().split("/") for key in keys.to_pylist()]
    names = ["/".join(window) for window in windows]
    return _written(names, [0] * len(names), [count or 0 for count in counts])


def late(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return late rows as such."""
    names, numbers = rows.column("partition").to_pylist(), rows.column("number").to_pylist()
    return _written(names, numbers, [_LATE] * len(names))


def wait(rows: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
    """Set a timer for each row, and return the rows."""
    names, numbers = rows.column("partition").to_pylist(), rows.column("number").to_pylist()
    keys = pa.array([f"{name}/{number}" for name, number in zip(names, numbers, strict=True)])
    now = state.getCurrentProcessingTimeInMs()
    state.registerTimer(keys, [now + _WAIT_MS * (number % 3) for number in numbers])
    return _written(names, numbers, [_ON_TIME] * len(names))


def after_wait(timers: pa.RecordBatch, _: StateByKey) -> pa.RecordBatch:
    """Return the rows again."""
    names = [key.decode() for key in timers.column("key").to_pylist()]
    return _written(names, [0] * len(names), [1] * len(names))


class TimedBrokers(SimulatedBrokers):
    """Brokers whose logs show whether each window, or each wait, is right."""

    def __init__(self, *, has_windows: bool, can_be_idle: bool = False) -> None:
        super().__init__()
        self._has_windows, self._can_be_idle = has_windows, can_be_idle
        self.wrong: list[str] = []
        self.open: Counter[str] = Counter()
        self.closed: set[str] = set()
        self.watermarks: dict[str, int] = {}
        self.late = 0
        # Windows that were closed because their partition was idle.
        self.idle = 0

    def end(self, transaction: Any, *, commit: bool) -> Any:
        self._check(transaction)
        written: list[Any] = self._rows.get(transaction.name, [])
        if commit:
            for row in written:
                self._take(*row)
        rows = [(name, number) for name, number, _ in written if "/" not in name]
        # Late rows come before others of their batch.
        self._rows[transaction.name] = sorted(rows) if self._has_windows else rows
        return super().end(transaction, commit=commit)

    def _take(self, name: str, number: int, count: int) -> None:
        if "/" in name:
            self._close(name, count)
            return
        if count == _LATE:
            self.late += 1
            if event_time(number) >= self.watermarks.get(name, event_time(number)):
                self.wrong.append(f"row {number} of partition {name} is late, and is not")
            return
        window = _window(name, number) if self._has_windows else f"{name}/{number}"
        if window in self.closed:
            self.wrong.append(f"row {number} is in window {window}, which is closed")
        self.open[window] += 1
        newest = max(event_time(number) - _DELAY_MS, self.watermarks.get(name, -(10**9)))
        self.watermarks[name] = newest

    def _close(self, window: str, count: int) -> None:
        if self.open.pop(window, 0) != count:
            self.wrong.append(f"window {window} is closed with {count} rows, or twice")
        self.closed.add(window)
        name = window.partition("/")[0]
        if self._has_windows and _end_of(window) > self.watermarks[name]:
            self.idle += 1
            self.watermarks[name] = _end_of(window)
            if not self._can_be_idle:
                self.wrong.append(f"window {window} is closed before its end")

    def look_for_open_windows(self) -> None:
        """Take note of windows that the watermark has passed, and that nobody has written."""
        for window in self.open:
            if _end_of(window) <= self.watermarks[window.split("/")[0]]:
                self.wrong.append(f"window {window} was not closed")


class TimedSimulation(StatefulSimulation):
    """A query with timers that writes exactly once.

    Args:
        seed: of everything.
        time: `StepTime`, or one with a fault.
        faults: of `StatefulSimulation`.
    """

    def __init__(self, seed: int, *, time: type[StepTime] = StepTime, **faults: Any) -> None:
        self.has_windows = seed % 2 == 0
        can_be_idle = False
        if self.has_windows:
            can_be_idle = seed % 4 == 2
            mode = TimeMode(close_windows, "time", _DELAY_MS, late, idle_ms=_IDLE_MS if can_be_idle else None)
            steps: list[Any] = [_WithTime(), MapWithState(count_in_windows, COUNTED, _COUNT, 0, mode)]
        else:
            steps = [MapWithState(wait, COUNTED, _COUNT, 0, TimeMode(after_wait))]
        super().__init__(seed, **{"stages": steps, **faults})
        self.brokers: Any = TimedBrokers(has_windows=self.has_windows, can_be_idle=can_be_idle)
        self._time, self._has_waited = time, False

    def run(self, lives: int) -> None:
        def on_my_clock(states: Any, step: int, delay_ms: int | None, **idle: Any) -> StepTime:
            return self._time(states, step, delay_ms, lambda: self.now, **idle)

        with ExitStack() as patched:
            patched.enter_context(mock.patch.object(stages, "StepTime", on_my_clock))
            super().run(lives)

    def check(self) -> None:
        """Every window is right, or every row has waited once, beside what holds without time."""
        if self.has_windows:
            self.brokers.look_for_open_windows()
        super().check()
        waiting = set() if self.has_windows else set(self.brokers.open)
        if waiting and not self._has_waited:
            self._has_waited = True
            self.now += 3 * _WAIT_MS
            self._live(1)
            self.check()
            self.brokers.wrong += [f"row {each} waits for ever" for each in waiting & set(self.brokers.open)]
            super().check()


class _WithTime:
    """Adds the time of each row."""

    def __call__(self, batches: Any) -> Any:
        return map(_with_time, batches)
