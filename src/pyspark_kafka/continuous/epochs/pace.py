"""The epoch length: the trigger's, or longer while something cannot follow. Pure: no clock, no thread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.connector.continuous import CommitLimit
    from pyspark_kafka.continuous.epochs.coordinator import LaneReport

LANES, DRIVER = "commits of lanes", "commits of the driver"

# Commits may take a lane half of its time. The driver commits one epoch after the other, and needs a rest.
_OF_A_LANE, _OF_THE_DRIVER = 2.0, 1.25
# A hiccup changes nothing: epochs in a row that need longer ones, and for how long.
_IN_A_ROW, _IN_A_ROW_MS = 3, 3_000.0
# What is longer than needed, so that small changes change nothing; and how much shorter an epoch must get to change.
_HEADROOM, _SHORTER = 1.1, 0.8
# Epochs in a row that need less before epochs get shorter again, and for how long.
_CALM, _CALM_MS = 5, 10_000.0
# Longer epochs do not help where a commit takes long because its epoch was long.
_MAX_TIMES = 10
# An epoch that ended early is not a measure for whole epochs.
_WHOLE = 0.8


@dataclass(frozen=True, slots=True)
class EpochLoad:
    """The load of an epoch.

    Attributes:
        lasted_ms: the time for reading rows.
        cost: the sum over all lanes for one commit each, in the unit of the sink's `CommitLimit`.
        lane_commit_ms: the duration of a lane's commit: the median of lanes that wrote.
        driver_commit_ms: the driver's time for the checkpoint and the sink's commit.
        lane_state_ms: a lane's time for writing state within its commit: the median of lanes that wrote.
    """

    lasted_ms: float
    cost: int = 0
    lane_commit_ms: float = 0.0
    driver_commit_ms: float = 0.0
    lane_state_ms: float = 0.0

    @classmethod
    def of(cls, reports: Iterable[LaneReport], lasted_ms: float, driver_commit_ms: float) -> EpochLoad:
        """Return the load of an epoch that its lanes have reported."""
        # The middle one: a lane that is slow alone must not make the epochs of the others longer.
        reports = tuple(reports)
        wrote = [(report.commit_ms, report.state_ms) for report in reports if report.rows_written]
        commit_ms, state_ms = (float(median(each)) for each in zip(*wrote, strict=True)) if wrote else (0.0, 0.0)
        return cls(lasted_ms, sum(report.cost for report in reports), commit_ms, driver_commit_ms, state_ms)


@dataclass(slots=True)
class _Window:
    """Epochs that follow one another: how many, how long they lasted, the least and the most that they needed."""

    epochs: int = 0
    lasted_ms: float = 0.0
    least_ms: float = math.inf
    most_ms: float = 0.0

    def add_epoch(self, needed_ms: float, lasted_ms: float) -> None:
        self.epochs += 1
        self.lasted_ms += lasted_ms
        self.least_ms, self.most_ms = min(self.least_ms, needed_ms), max(self.most_ms, needed_ms)

    def covers(self, epochs: int, ms: float) -> bool:
        return self.epochs >= epochs and self.lasted_ms >= ms


class _Need:
    """The length that one thing needs, without flapping.

    Args:
        asked_ms: it is never shorter.
        longest_ms: it is never longer.
        is_exact: whether one epoch that needs a longer one is enough.

    Attributes:
        interval_ms: the length.
        needed_ms: what epochs needed when it was set, also if that is more than can be.
    """

    def __init__(self, asked_ms: int, longest_ms: float, *, is_exact: bool = False) -> None:
        self._asked_ms, self._longest_ms = asked_ms, max(float(asked_ms), longest_ms)
        self._enough = (1, 0.0) if is_exact else (_IN_A_ROW, _IN_A_ROW_MS)
        self._slow, self._calm = _Window(), _Window()
        self.interval_ms, self.needed_ms = asked_ms, 0.0

    def take_epoch(self, needed_ms: float, lasted_ms: float, *, is_whole: bool) -> None:
        if needed_ms > self.interval_ms:
            self._calm = _Window()
            self._slow.add_epoch(needed_ms, lasted_ms)
            if self._slow.covers(*self._enough):
                self._set(self._slow.least_ms)
            return
        self._slow = _Window()
        if not is_whole:
            return
        self._calm.add_epoch(needed_ms, lasted_ms)
        if self._calm.covers(_CALM, _CALM_MS):
            wanted = self._calm.most_ms * _HEADROOM
            if wanted <= self._asked_ms or wanted < self.interval_ms * _SHORTER:
                self._set(self._calm.most_ms)
            self._calm = _Window()

    def _set(self, needed_ms: float) -> None:
        self._slow, self._calm = _Window(), _Window()
        self.needed_ms = needed_ms
        self.interval_ms = math.ceil(round(max(self._asked_ms, min(needed_ms * _HEADROOM, self._longest_ms)), 3))


class EpochPace:
    """The epoch length of a query, for all its runs.

    Longer epochs commit less often. They get longer if one of these needs it: the limit of the sink for what commits of
    lanes cost it, the time that lanes take to commit, the time that the driver takes. They get shorter again when
    several epochs in a row have needed less.

    Lanes that commit by their own clocks wait for no checkpoint, so the driver's time does not make theirs longer.

    Not safe for threads: the thread of the query owns it.

    Attributes:
        asked_ms: the length that the trigger says.
        interval_ms: the length in force.
        lanes_ms: the same for the clocks of lanes.
        reason: what needs it: the unit of the limit, `LANES` or `DRIVER`; empty for the trigger's length.

    Args:
        asked_ms: as the attribute.
        limit: of the sink; None if it has none.
    """

    def __init__(self, asked_ms: int, limit: CommitLimit | None = None) -> None:
        self.asked_ms = self.interval_ms = self.lanes_ms = asked_ms
        self.reason = ""
        self._limit = limit
        longest_ms = math.inf if limit is None else limit.longest_s * 1000
        self._cost, self._state_ms = 0, 0.0
        self._needs = {
            "" if limit is None else limit.unit: _Need(asked_ms, longest_ms, is_exact=True),
            LANES: _Need(asked_ms, min(_MAX_TIMES * asked_ms, longest_ms)),
            DRIVER: _Need(asked_ms, _MAX_TIMES * asked_ms),
        }

    def committed(self, load: EpochLoad) -> bool:
        """Record a committed epoch; return whether the epoch length has changed."""
        before = self.interval_ms, self.lanes_ms, self.reason
        is_whole = load.lasted_ms >= _WHOLE * self.interval_ms
        self._cost, self._state_ms = load.cost, load.lane_state_ms
        per_ms = math.inf if self._limit is None else self._limit.per_second / 1000
        of_limit, of_lanes, of_driver = self._needs.values()
        of_limit.take_epoch(load.cost / per_ms, load.lasted_ms, is_whole=is_whole)
        of_lanes.take_epoch(load.lane_commit_ms * _OF_A_LANE, load.lasted_ms, is_whole=is_whole)
        of_driver.take_epoch(load.driver_commit_ms * _OF_THE_DRIVER, load.lasted_ms, is_whole=is_whole)
        self.lanes_ms = max(of_limit.interval_ms, of_lanes.interval_ms)
        self.interval_ms = max(self.lanes_ms, of_driver.interval_ms)
        longest = max(self._needs, key=lambda reason: self._needs[reason].interval_ms)
        self.reason = longest if self.interval_ms > self.asked_ms else ""
        return before != (self.interval_ms, self.lanes_ms, self.reason)

    def explained(self) -> str:
        """Return the reason for longer epochs than the trigger's, as a sentence's end, and the remedy; else empty."""
        if not self.reason:
            return ""
        needed_ms = self._needs[self.reason].needed_ms
        if self.reason == LANES:
            took_ms = needed_ms / _OF_A_LANE
            where = "the storage of the checkpoint" if 2 * self._state_ms >= took_ms else "the brokers, or the sink"
            return (
                f"their lanes take {took_ms:,.0f} ms to commit, {self._state_ms:,.0f} ms of it for state in the "
                f"checkpoint. Check {where}."
            )
        if self.reason == DRIVER:
            return (
                f"checkpoint and commit of the sink take {needed_ms / _OF_THE_DRIVER:,.0f} ms. See durationMs of "
                "the progress."
            )
        limit = self._limit
        assert limit is not None  # noqa: S101 - it is the reason
        text = (
            f"a commit of every lane makes {self._cost:,} {limit.unit}, and option {limit.option} allows "
            f"{limit.per_second:,} a second."
        )
        if needed_ms > self.interval_ms:
            text += f" They would have to last {needed_ms:,.0f} ms, which is too long for this sink: more are made."
        return f"{text} {limit.hint}"
