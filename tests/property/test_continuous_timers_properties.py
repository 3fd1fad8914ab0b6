"""Timers and exactly once over random orders of events: every window is written once, and planted faults are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings

from kit.fakes.simulated_ends import BrokenInvariantError, named_seed
from kit.fakes.simulated_timers import TimedSimulation
from pyspark_kafka.continuous.state.step_time import StepTime
from pyspark_kafka.continuous.state.timers import timer_of

# Of one test; the profile decides, as for the properties of Hypothesis.
SEEDS = settings().max_examples
pytestmark = pytest.mark.property
LIVES = 6


def broken_by(seed: int, **faults: Any) -> str:
    """Return which invariant a seed finds broken; empty for none."""
    try:
        TimedSimulation(seed, **faults).run(LIVES)
    except BrokenInvariantError as broken:
        return str(broken)
    return ""


@pytest.mark.parametrize("first", range(0, 2 * SEEDS, SEEDS // 4 + 1))
def test_every_window_is_right_whoever_dies_when(first: int) -> None:
    deaths = runs = fenced = closed = late = idle = 0
    seeds = SEEDS // 4 + 1
    for seed in range(first, first + seeds):
        simulation = TimedSimulation(seed)
        with named_seed(seed):
            simulation.run(LIVES)
        deaths += simulation.deaths
        runs += simulation.runs
        fenced += simulation.fenced
        closed += len(simulation.brokers.closed)
        late += simulation.brokers.late
        idle += simulation.brokers.idle
    assert deaths > seeds
    assert runs > seeds * 4
    assert fenced > seeds
    assert closed > seeds * 10
    assert late > seeds
    assert idle


class KeepsTimersInMemory(StepTime):
    """Timers are not part of the state."""

    def set(self, keys: Sequence[bytes], times_ms: Sequence[int]) -> None:
        self._open[self._states.key_group] = None
        self._timers().first()
        self._timers().add_timers([timer_of(*each) for each in zip(times_ms, keys, strict=True)])


class ForgetsTheWatermark(StepTime):
    """A restart begins without a watermark."""

    def advance(self, times: pa.Array) -> None:
        put, self._states.put_all = self._states.put_all, lambda *_, **__: None  # type: ignore[method-assign]
        try:
            super().advance(times)
        finally:
            self._states.put_all = put  # type: ignore[method-assign]


class ForgetsThatItWasIdle(StepTime):
    """A restart begins with the watermark of rows."""

    def poll(self, now_s: float) -> None:
        put, self._states.put_all = self._states.put_all, lambda *_, **__: None  # type: ignore[method-assign]
        try:
            super().poll(now_s)
        finally:
            self._states.put_all = put  # type: ignore[method-assign]


class KeepsExpiredTimers(StepTime):
    """A timer that has expired stays in the state."""

    def expired(self) -> Iterator[pa.RecordBatch]:
        put = self._states.put_all
        for timers in super().expired():
            keys, times = (column.to_pylist() for column in timers.columns)
            put(self._step, [timer_of(*each) for each in zip(times, keys, strict=True)], [b""] * len(keys))
            yield timers


class AsksOneKeyGroup(StepTime):
    """Timers of other key groups than that of the last row are not looked at."""

    def is_due(self) -> bool:
        end = self._end() if self._states._key_group is not None else None
        timer = None if end is None else self._timers().first()
        return end is not None and timer is not None and timer < end


@pytest.mark.parametrize(
    ("fault", "first"),
    [
        (KeepsTimersInMemory, 0),
        (ForgetsTheWatermark, 0),
        (KeepsExpiredTimers, 0),
        (AsksOneKeyGroup, 1),
        (ForgetsThatItWasIdle, 0),
    ],
    ids=lambda case: case.__name__ if isinstance(case, type) else "",
)
def test_simulation_finds_a_planted_fault_of_time(fault: type, first: int) -> None:
    assert any("a count is wrong" in broken_by(seed, time=fault) for seed in range(first, first + 80))
