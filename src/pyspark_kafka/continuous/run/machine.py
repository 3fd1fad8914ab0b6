"""The state machine of a continuous query's run, with timers. It decides, `run.py` acts.

Pure: no sockets, no clock, no Spark. It takes events, times in seconds of the monotonic clock, and requests to the
query; it returns commands, which are data (`effects.py`), and changes nothing but itself.

The story of one epoch, in a run with two lanes:

1. `take_event` gets `Started` of both lanes. `BeginReading` is returned: all lanes read.
2. `take_event` gets `Moved`: a lane has read rows. The end of the epoch becomes due by time.
3. `tick` returns `EndEpoch`. The lanes continue in the next epoch.
4. `take_event` gets `Reports` of both lanes. `CommitEpoch` is returned with the second one.
5. `take_event` gets `CommitEnded`, and may return the next `CommitEpoch`.

A stop, and a source or Spark that has changed, make the epoch that runs the last one. A lane or task that fails, a lost
connection and an error of a commit fail the run. `run.py` then aborts the
coordinator's uncommitted epochs.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import TYPE_CHECKING

from pyspark_kafka.continuous.epochs.coordinator import BeginReading, EndEpoch, RunIsDone
from pyspark_kafka.continuous.epochs.messages import Failed, Hello, LaneCommitted, LaneEnded, Moved, Reports, Started
from pyspark_kafka.continuous.epochs.pace import EpochLoad
from pyspark_kafka.continuous.run import effects, events
from pyspark_kafka.continuous.run.commits import CommitEnded
from pyspark_kafka.continuous.run.errors import job_ended, lane_failed, run_failed, task_lost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark_kafka.continuous.epochs.coordinator import EpochCommand, EpochCoordinator
    from pyspark_kafka.continuous.run.effects import RunCommand
    from pyspark_kafka.continuous.run.events import RunEvent

READING_STATUS = "Processing new data"
# How often calls that wait for rows, which cannot wake the thread of the query, are checked.
_WAITS_SECONDS = 0.02
# The maximum time until the run checks requests to it.
_CHECK_SECONDS = 1.0
_LATE_START_SECONDS = 10.0
_STOP_SECONDS = _SLOW_LANES_SECONDS = 30.0
# A query without rows that has run for this time was not stopped by the failure before.
_STEADY_SECONDS = 60.0
# Within this time a lane polls its reader at least once, as readers return after about 100 ms; unless it is delayed.
_IDLE_SECONDS = 0.3


class RunState(Enum):
    """The states of a run.

    STARTING: Spark starts the tasks; not every lane is ready to read.
    READING: every lane reads.
    STOPPING: the last epoch of this run has ended, and is not committed.
    DONE: every epoch is committed.
    FAILED: `RunMachine.failure` says why; open epochs are to be aborted.
    """

    STARTING = auto()
    READING = auto()
    STOPPING = auto()
    DONE = auto()
    FAILED = auto()


_S = RunState
TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    # Before every lane has started none has read, so a stop leaves nothing to commit.
    _S.STARTING: frozenset({_S.READING, _S.DONE, _S.FAILED}),
    # To DONE if every lane has read its input partition to its end.
    _S.READING: frozenset({_S.STOPPING, _S.DONE, _S.FAILED}),
    _S.STOPPING: frozenset({_S.DONE, _S.FAILED}),
    _S.DONE: frozenset(),
    _S.FAILED: frozenset(),
}
_NOTHING_ASKED = events.Asked()
_OVER = tuple(state for state, ends in TRANSITIONS.items() if not ends)


class Timer(Enum):
    """The timers of a run.

    CHECK: to check flags, and lanes that do not end an epoch.
    SLOTS: to count Spark's slots.
    LATE_START: to report late tasks.
    IDLE_EPOCH: to end an epoch in which nothing has moved, as the sink needs.
    STOP: to give up the last epoch.
    """

    CHECK = auto()
    SLOTS = auto()
    LATE_START = auto()
    IDLE_EPOCH = auto()
    STOP = auto()


# The timers that count in each state. The end of an epoch with rows is due by the coordinator.
TIMERS: dict[RunState, frozenset[Timer]] = {
    _S.STARTING: frozenset({Timer.CHECK, Timer.SLOTS, Timer.LATE_START}),
    _S.READING: frozenset({Timer.CHECK, Timer.SLOTS, Timer.IDLE_EPOCH}),
    _S.STOPPING: frozenset({Timer.CHECK, Timer.STOP}),
    _S.DONE: frozenset(),
    _S.FAILED: frozenset(),
}


class RunMachine:
    """The state of one run.

    Runs on: driver, on the thread of the query. No method blocks.

    Args:
        coordinator: the epochs; no lane has started.
        lanes_of: the lanes of each task, by task.
        now: when the run begins.
        idle_epoch_s: after how many seconds an epoch ends though nothing has moved; None for never.

    Attributes:
        state: where the run is.
        failure: why it has failed, if it has.
        has_read: whether every lane has begun to read.
    """

    def __init__(
        self,
        coordinator: EpochCoordinator,
        lanes_of: Mapping[int, Iterable[int]],
        now: float,
        idle_epoch_s: float | None = None,
    ) -> None:
        self._lanes_of = {task: set(lanes) for task, lanes in lanes_of.items()}
        self.coordinator = coordinator
        self.state = RunState.STARTING
        self.failure: BaseException | None = None
        self.has_read = False
        self._began = self._epoch_since = now
        self._due = {Timer.CHECK: now + _CHECK_SECONDS, Timer.LATE_START: now + _LATE_START_SECONDS}
        self._idle_epoch_s = math.inf if idle_epoch_s is None else idle_epoch_s
        # After which time an epoch may end before its time.
        self._min_epoch_s = _IDLE_SECONDS
        # The times at which lanes began and ended uncommitted epochs.
        self._spans: dict[int, tuple[float, float]] = {}
        # Whether the query is to be planned again.
        self._is_stale = False
        # Lanes one of which has ended the run, as far as is known.
        self._failed_lanes: set[int] = set()
        self._has_task = False
        # Whether the end of readable rows is requested, for calls that wait for them.
        self._end_asked = False
        # The last epoch whose slow lanes were named; None if its commit was not delayed.
        self._slow_epoch: int | None = None

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing more to decide."""
        return self.state in _OVER

    @property
    def is_at_end(self) -> bool:
        """Return whether everything that the query is to read is read and committed."""
        return self.state is RunState.DONE and self.coordinator.is_at_end

    @property
    def is_idle(self) -> bool:
        """Return whether every lane reads, and every row that was read is committed."""
        return self.has_read and self.coordinator.is_idle

    def has_advanced(self, now: float) -> bool:
        """Return whether the run got past where it began; see `EpochCoordinator.has_advanced`."""
        steady = self.has_read and now - self._began >= _STEADY_SECONDS
        return self.coordinator.has_advanced(self._failed_lanes, was_steady=steady)

    def set_timer(self, timer: Timer, at: float) -> None:
        """Set when something is due, in place of the time before."""
        self._due[timer] = at

    def wait_seconds(self, now: float, *, calls_wait: bool = False) -> float:
        """Return for how long to wait for an event at most, before `tick` is called; less if calls wait for rows."""
        if self._is_stale and self.state is not RunState.STOPPING:
            return 0.0
        if calls_wait:
            return _WAITS_SECONDS
        due = min(self._due.get(timer, math.inf) for timer in TIMERS[self.state])
        end_ms = self.coordinator.due_ms()
        if end_ms is not None:
            # A thousandth more: `tick` passes whole milliseconds on.
            due = min(due, (end_ms + 1) / 1000)
        return max(0.0, due - now)

    def take_event(self, event: RunEvent, now: float) -> list[RunCommand]:
        """Return the effects of an event, in order: none if the run is over.

        Raises:
            BaseException: the error of a commit, or of a request to the source.
        """
        coordinator = self.coordinator
        if self.is_over:
            return []
        match event:
            case Reports():
                return self._noted([each for report in event.reports for each in coordinator.reported(report)], now)
            case Moved():
                return self._noted(coordinator.moved(event.lane, event.epoch), now)
            case LaneCommitted():
                return self._noted(coordinator.lane_committed(event.lane, event.epoch), now)
            case Started():
                return self._noted(coordinator.started(event.lane), now)
            case LaneEnded():
                return self._noted(coordinator.ended(event.lane), now)
            case CommitEnded():
                return self._take_commit(event, now)
            case Hello():
                self._has_task = True
            case Failed():
                coordinator.failed(event.lane)
                self._failed_lanes = {event.lane}
                self.fail(lane_failed(event, coordinator.current_epoch))
            case events.TaskLost():
                self._failed_lanes = self._lanes_of.get(event.task, set())
                self.fail(task_lost(event.task, event.reason, self._failed_lanes))
            case events.JobEnded():
                # Any task may have ended it.
                self._failed_lanes = set().union(*self._lanes_of.values())
                self.fail(job_ended(event.error))
            case events.PartitionsChanged():
                self._is_stale = True
            case events.PaceChanged():
                coordinator.set_interval(event.interval_ms)
                self._min_epoch_s = max(_IDLE_SECONDS, event.interval_ms / 1000) if event.is_longer else _IDLE_SECONDS
            case events.SourceFailed():
                raise event.error
            case events.EndFound():
                self._end_asked = False
                return [effects.TakeEnd(event)]
        return []

    def fail(self, error: BaseException) -> None:
        """End the run with an error, unless it is over."""
        if not self.is_over:
            self.failure = error
            self._move(RunState.FAILED)

    def tick(self, now: float, asked: events.Asked = _NOTHING_ASKED) -> list[RunCommand]:
        """Return the effects that are due by time, or requested."""
        if self.is_over:
            return []
        commands: list[RunCommand] = []
        if asked.find_end and not self._end_asked:
            self._end_asked = True
            commands.append(effects.FindEnd())
        commands += self._noted(self._end_epochs(now, asked), now)
        if asked.give_up:
            self.fail(run_failed("it was asked to stop again before the epoch had ended", "Start it again."))
        elif self._is_due(Timer.STOP, now):
            commands += self._give_up_last_epoch(asked)
        if self._is_due(Timer.LATE_START, now):
            self.set_timer(Timer.LATE_START, now + _LATE_START_SECONDS)
            commands.append(self._late_start())
        if self._is_due(Timer.SLOTS, now):
            commands.append(effects.CheckSlots())
        if self._is_due(Timer.CHECK, now):
            self.set_timer(Timer.CHECK, now + _CHECK_SECONDS)
            commands += self._slow_lanes(now)
        return commands

    def _is_due(self, timer: Timer, now: float) -> bool:
        return timer in TIMERS[self.state] and now >= self._due.get(timer, math.inf)

    def _move(self, state: RunState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"a run that is {self.state.name} cannot be {state.name} next")
        self.state = state

    def _end_epochs(self, now: float, asked: events.Asked) -> Sequence[EpochCommand]:
        """Return the commands for an epoch whose time is over, or which ends before its time."""
        coordinator = self.coordinator
        commands = coordinator.ticked(int(now * 1000))
        if self.state is RunState.STOPPING:
            return commands
        if asked.stop or self._is_stale:
            if self.state is RunState.READING:
                self._move(RunState.STOPPING)
                self.set_timer(Timer.STOP, now + _STOP_SECONDS)
            return commands + coordinator.stop()
        if asked.end_epoch and now - self._epoch_since >= self._min_epoch_s:
            return commands + coordinator.end_now()
        if self._is_due(Timer.IDLE_EPOCH, now):
            # If commits do not keep up, nothing ends now.
            self.set_timer(Timer.IDLE_EPOCH, now + _CHECK_SECONDS)
            return commands + coordinator.end_now()
        return commands

    def _noted(self, commands: Sequence[EpochCommand], now: float) -> list[RunCommand]:
        """Return commands of the coordinator, and move to the state that follows."""
        for command in commands:
            match command:
                case BeginReading():
                    self._move(RunState.READING)
                    self.has_read = True
                    self._begin_epoch(now)
                case EndEpoch():
                    self._spans[command.epoch] = self._epoch_since, now
                    self._begin_epoch(now)
                case RunIsDone():
                    self._move(RunState.DONE)
        return list(commands)

    def _begin_epoch(self, now: float) -> None:
        self._epoch_since = now
        self.set_timer(Timer.IDLE_EPOCH, now + self._idle_epoch_s)

    def _take_commit(self, commit: CommitEnded, now: float) -> list[RunCommand]:
        if commit.end is None:
            raise commit.error or RuntimeError("a commit without an end has an error")
        epoch, reports = commit.action.epoch, commit.action.reports
        begun, ended = self._spans.pop(epoch)
        # A lane delayed by the end of the previous epoch or a slow start may have left rows unread.
        polled = all(report.polled and not report.rows_read for report in reports)
        idle_since = begun if polled and ended - begun >= _IDLE_SECONDS else None
        load = EpochLoad.of(reports, (ended - begun) * 1000, commit.took_s * 1000)
        was_slow, self._slow_epoch = self._slow_epoch is not None, None
        taken = effects.TakeCommit(commit.end, idle_since, load, was_slow)
        return [taken, *self._noted(self.coordinator.committed(epoch), now)]

    def _slow_lanes(self, now: float) -> list[RunCommand]:
        """Name lanes that have not reported an epoch long after it has ended, once: they delay the commit."""
        awaited = self.coordinator.awaited
        if awaited is None or awaited[0] == self._slow_epoch:
            return []
        epoch, lanes = awaited
        waited = now - self._spans[epoch][1]
        if not lanes or waited <= _SLOW_LANES_SECONDS:
            return []
        self._slow_epoch = epoch
        return [effects.WarnOfLanes(epoch, lanes, waited)]

    def _late_start(self) -> RunCommand:
        if not self._has_task:
            return effects.WarnOfSlots()
        # Spark starts all tasks or none.
        starting = self.coordinator.starting
        return effects.WarnOfTasks([task for task, lanes in self._lanes_of.items() if not lanes.isdisjoint(starting)])

    def _give_up_last_epoch(self, asked: events.Asked) -> list[RunCommand]:
        self.fail(
            run_failed(
                f"a lane did not end its epoch within {_STOP_SECONDS:.0f} s after "
                f"{'the query was asked to stop' if asked.stop else 'its input partitions or slots had changed'}",
                "Find the function that waits; the rows of this epoch will be read again.",
            )
        )
        # For a change, the next run would have the event as well.
        return [effects.GiveUp()] if asked.stop else []
