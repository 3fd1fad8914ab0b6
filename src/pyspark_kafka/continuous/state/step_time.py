"""The time of one step with state: its timers and its watermark, by key group."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.continuous.epochs.step_metrics import EventTimes, GroupWatermark
from pyspark_kafka.continuous.state.idle_groups import IdleGroups
from pyspark_kafka.continuous.state.timers import NearTimers, first_after, key_of, time_of, timer_of
from pyspark_kafka.continuous.state.times import MAX_TIME_MS, MIN_TIME_MS
from pyspark_kafka.toolkit import SplitRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark_kafka.continuous.state.lane_state import LaneState

TIMERS = pa.schema([pa.field("key", pa.binary()), pa.field("expiryTimeInMs", pa.int64())])
# Timers in memory of all key groups of a lane, and at least of each. Their keys may be large.
_MAX_NEAR, _MIN_NEAR = 20_000, 100
_MAX_NEAR_BYTES = 4 * 1024 * 1024
# Timers of one call of the function.
_MAX_AT_ONCE = 4096
_MAX_BYTES_AT_ONCE = 4 * 1024 * 1024
# Calls of one turn; an epoch can end after it, and a transaction lasts for some epochs only.
_MAX_TURN_S = 1.0
# The watermark is beside the timers, which are longer.
_WATERMARK = b""


class StepTime:
    """The timers of one step of a lane, and its watermarks if it has event time.

    Timers and watermarks are a state like the values of the keys: they are part of the epoch in which they change.

    Runs on: executor, on the thread of the functions.

    Args:
        states: of the lane.
        step: the number of the state with timers and watermarks.
        delay_ms: how far a row may be behind the newest row of its key group; None for processing time.
        now_ms: the clock.
        clock: monotonic seconds, for the length of a turn.
        idle_s: the time without rows after which all timers of a key group expire; None for never. Only with event
            time.
        closes: whether timers that functions of timers set then expire as well, because there is an end of them.
    """

    def __init__(
        self,
        states: LaneState,
        step: int,
        delay_ms: int | None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        clock: Callable[[], float] = time.monotonic,
        *,
        idle_s: float | None = None,
        closes: bool = False,
    ) -> None:
        self._idle = None if idle_s is None or delay_ms is None else IdleGroups(states.key_groups, idle_s)
        self._closes = closes
        self._states, self._step, self._delay_ms, self.now_ms = states, step, delay_ms, now_ms
        self._clock = clock
        # Key groups that the last turn has not finished.
        self._left: list[str] = []
        # Key groups that may have a timer that is due: in the others, no timer was set and no watermark has moved since
        # they had none. A lane may have thousands of key groups, and asks after each batch.
        self._open: dict[str, None] = dict.fromkeys(states.key_groups)
        # With processing time: when the next timer of the others is due, and the least of these times.
        self._wakes: dict[str, int] = {}
        self._first_wake_ms = MAX_TIME_MS
        self._near: dict[str, NearTimers] = {}
        self._watermarks: dict[str, int | None] = {}
        self._row_watermarks: Any = None
        # While the function of timers runs: the last timer that it got, and timers up to it that it has set.
        self._expired: bytes | None = None
        self._held: set[bytes] = set()
        # Since the last report.
        self._times: EventTimes | None = None
        self._timers_set = self._timers_expired = 0

    @property
    def watermark_ms(self) -> int | None:
        """The watermark of the key group; None before its first row, and with processing time."""
        key_group = self._states.key_group
        if self._delay_ms is not None and key_group not in self._watermarks:
            (found,) = self._states.get_all(self._step, [_WATERMARK])
            self._watermarks[key_group] = None if found is None else int.from_bytes(found, "big", signed=True)
        return self._watermarks.get(key_group)

    def set(self, keys: Sequence[bytes], times_ms: Sequence[int]) -> None:
        """Set timers; one that is set already is set once.

        Raises:
            StateError: a key is too large.
        """
        timers = [timer_of(*each) for each in zip(times_ms, keys, strict=True)]
        self._timers_set += len(timers)
        near, last = self._timers(), self._expired
        new = [timer for timer in timers if near.lacks(timer)]
        self._states.put_all(self._step, new, [b""] * len(new), had=False)
        if len(new) < len(timers):
            left = [timer for timer in timers if not near.lacks(timer)]
            self._states.put_all(self._step, left, [b""] * len(left))
        # Otherwise a function that sets the timer again that it got would never end.
        self._held.update(timer for timer in timers if last is not None and timer <= last)
        self._open[self._states.key_group] = None
        near.add_timers(timer for timer in timers if timer not in self._held)

    def delete(self, keys: Sequence[bytes], times_ms: Sequence[int]) -> None:
        """Delete timers. Timers that nobody has set are not an error."""
        timers = [timer_of(*each) for each in zip(times_ms, keys, strict=True)]
        self._states.put_all(self._step, timers, [None] * len(timers))
        self._held.difference_update(timers)
        self._timers().remove(timers)

    def split(self, rows: pa.RecordBatch, times: pa.Array, event_times: pa.Array | None = None) -> SplitRows:
        """Split rows by the watermark: a row below it is late, and so is a row without a time.

        Each row moves the watermark for the rows after it in its key group, also for those in its batch: so the size of
        batches does not change which rows are late.

        Args:
            rows: of the key group.
            times: of each row, in milliseconds since 1970; the row is late if the watermark is above.
            event_times: the times that move the watermark; None for the same.
        """
        if self._idle is not None and rows.num_rows:
            self._idle.has_rows(self._states.key_group)
        watermarks = self._watermarks_of(times, times if event_times is None else event_times)
        if watermarks is not None:
            on_time = times.is_valid().to_numpy(zero_copy_only=False)
            on_time &= times.fill_null(MIN_TIME_MS).to_numpy() >= watermarks
            self._row_watermarks = watermarks[on_time]
            on_time = pa.array(on_time)
        else:
            watermark = self.watermark_ms
            self._row_watermarks = None
            on_time = times.is_valid() if watermark is None else pc.greater_equal(times, watermark).fill_null(False)
        if on_time.true_count == rows.num_rows:
            return SplitRows(rows, rows.slice(0, 0))
        return SplitRows(rows.filter(on_time), rows.filter(pc.invert(on_time)))

    @property
    def row_watermarks(self) -> Any:
        """The watermark of each row that the last `split` found on time, in an array of NumPy; None for one of all."""
        return self._row_watermarks

    def _watermarks_of(self, times: pa.Array, event_times: pa.Array) -> Any:
        """Return the watermark of each row; None if no row moves it for the rows after it."""
        if self._delay_ms is None or len(times) < 2:
            return None
        # A row without a time, or with one out of range, says nothing about others.
        moving = pc.if_else(times.is_valid(), event_times, None).fill_null(MIN_TIME_MS).to_numpy()
        delay_ms = min(self._delay_ms, MAX_TIME_MS)
        before = MIN_TIME_MS if self.watermark_ms is None else self.watermark_ms
        newest = np.maximum.accumulate(moving[:-1])
        if int(newest[-1]) - delay_ms <= before:
            return None
        watermarks = np.full(len(moving), before)
        # A difference below the least time would wrap around.
        np.maximum(before, np.maximum(newest, MIN_TIME_MS + delay_ms) - delay_ms, out=watermarks[1:])
        return watermarks

    def advance(self, times: pa.Array) -> None:
        """Move the watermark of the key group after rows; never back.

        Args:
            times: of the rows, in milliseconds since 1970; null for a row that says nothing about others.
        """
        if times.null_count:
            times = times.drop_null()
        if self._delay_ms is None or not len(times):
            return
        values = times.to_numpy()
        newest = int(values.max())
        seen = EventTimes(int(values.min()), newest, float(values.sum(dtype=float)), len(values))
        self._times = seen.plus(self._times)
        reached, before = max(newest - self._delay_ms, MIN_TIME_MS), self.watermark_ms
        if before is None or reached > before:
            self._move_to(reached)

    def _move_to(self, watermark_ms: int) -> None:
        had = self.watermark_ms is not None
        self._watermarks[self._states.key_group] = watermark_ms
        self._open[self._states.key_group] = None
        self._states.put_all(self._step, [_WATERMARK], [watermark_ms.to_bytes(8, "big", signed=True)], had=had)

    @property
    def can_be_idle(self) -> bool:
        """Whether key groups without rows become idle."""
        return self._idle is not None

    def poll(self, now_s: float) -> None:
        """Record that the reader has no rows, and move the watermarks of idle key groups to their last timers.

        Args:
            now_s: monotonic seconds.
        """
        if self._idle is None:
            return
        for key_group in self._idle.poll(now_s):
            self._states.point_at(key_group)
            last, watermark_ms = self._timers().last(first_after(MAX_TIME_MS)), self.watermark_ms
            if last is None:
                self._idle.forget(key_group)
                continue
            if watermark_ms is None or time_of(last) > watermark_ms:
                self._move_to(time_of(last))
            if not self._closes:
                # Functions may set a timer whenever one expires: without a pause, event time would run away.
                self._idle.wait_again(key_group)

    def take_times(self) -> EventTimes | None:
        """Return the times of rows since the last call; None without rows, and with processing time."""
        taken, self._times = self._times, None
        return taken

    def take_timer_counts(self) -> tuple[int, int]:
        """Return the number of timers that were set since the last call, and of timers that have expired."""
        taken = self._timers_set, self._timers_expired
        self._timers_set = self._timers_expired = 0
        return taken

    def timers(self) -> int:
        """Return the number of timers that wait, as of the last commit."""
        # The states of key groups have their watermark beside the timers.
        watermarks = sum(watermark is not None for watermark in self._watermarks.values())
        return sum(self._states.rows(self._step, each) for each in self._states.key_groups) - watermarks

    def extremes(self) -> tuple[GroupWatermark | None, GroupWatermark | None]:
        """Return the lowest and the highest watermark, as of the last commit; None with processing time.

        The lowest one is of a key group with timers, if there is one: others hold nothing back.
        """
        known = [(ms, key_group) for key_group, ms in self._watermarks.items() if ms is not None]
        if not known:
            return None, None
        holding = [each for each in known if self._states.rows(self._step, each[1]) > 1]
        watermark_ms, key_group = min(holding or known)
        timer_ms = None
        if holding:
            self._states.point_at(key_group)
            timer = self._timers().first()
            timer_ms = None if timer is None else time_of(timer)
        return GroupWatermark(watermark_ms, key_group, timer_ms), GroupWatermark(*max(known))

    def is_due(self) -> bool:
        """Return whether a timer of any key group is due."""
        for key_group in self._candidates():
            self._states.point_at(key_group)
            end = self._end()
            timer = None if end is None else self._timers().first()
            if end is not None and timer is not None:
                if timer < end:
                    return True
                if self._delay_ms is None:
                    self._wakes[key_group] = time_of(timer)
                    self._first_wake_ms = min(self._first_wake_ms, self._wakes[key_group])
            del self._open[key_group]
        return False

    def expired(self) -> Iterator[pa.RecordBatch]:
        """Return the due timers, key group by key group, in their order; each is deleted.

        Timers that a function sets in the meantime follow if they are due, and later than the timers that it got. If
        the functions take long, the turn ends with some timers left: see `has_left`.
        """
        until = self._clock() + _MAX_TURN_S
        self._left = self._left or self._candidates()
        while self._left:
            self._states.point_at(self._left[0])
            end, near = self._end(), self._timers()
            is_long = False
            try:
                while (
                    not is_long and end is not None and (timers := near.take_due(end, _MAX_AT_ONCE, _MAX_BYTES_AT_ONCE))
                ):
                    self._states.put_all(self._step, timers, [None] * len(timers), had=True)
                    self._timers_expired += len(timers)
                    self._expired = timers[-1]
                    columns = [pa.array(map(key_of, timers), pa.binary()), pa.array(map(time_of, timers), pa.int64())]
                    yield pa.RecordBatch.from_arrays(columns, schema=TIMERS)
                    is_long = self._clock() >= until
                timer = near.first() if is_long else None
                if end is None or timer is None or timer >= end:
                    self._left.pop(0)
            finally:
                near.add_timers(self._held)
                self._expired, self._held = None, set()
            if is_long:
                return

    def has_left(self) -> bool:
        """Return whether the last turn ended before every timer that was due had expired."""
        return bool(self._left)

    def _candidates(self) -> list[str]:
        """Return the key groups that may have a due timer."""
        if self._wakes and (now_ms := self.now_ms()) >= self._first_wake_ms:
            woken = [key_group for key_group, wake_ms in self._wakes.items() if wake_ms <= now_ms]
            self._open.update(dict.fromkeys(woken))
            for key_group in woken:
                del self._wakes[key_group]
            self._first_wake_ms = min(self._wakes.values(), default=MAX_TIME_MS)
        return list(self._open)

    def _end(self) -> bytes | None:
        """Return the end of the key group's due timers, as a key; None if none can be due."""
        reached = self.now_ms() if self._delay_ms is None else self.watermark_ms
        return None if reached is None else first_after(reached)

    def _timers(self) -> NearTimers:
        key_group = self._states.key_group
        if key_group not in self._near:

            def stored(first: bytes) -> Iterator[bytes]:
                return (key for key in self._states.keys(self._step, first) if key != _WATERMARK)

            key_groups = len(self._states.key_groups)
            maximum = max(_MAX_NEAR // key_groups, _MIN_NEAR)
            self._near[key_group] = NearTimers(stored, maximum, _MAX_NEAR_BYTES // key_groups)
        return self._near[key_group]
