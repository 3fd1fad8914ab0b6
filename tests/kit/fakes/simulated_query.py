"""A continuous query without Spark, threads or clock: the driver's own code, and lanes, channel and sink in memory.

`RunMachine`, `EpochCommits`, `EpochCoordinator`, `EpochFiles`, `recover`, `Lane` and the stages are those of the
package. A seed decides which message arrives next, which lane reads or ends its epoch, how many lanes there are, how
long a function of a lane takes for a batch, what functions hold back, for how long the machine is up, who fails, and
where the driver dies: before and after every write to the checkpoint and every commit of the sink.

Lanes of a task share a channel, and its reports of an epoch are one message.

A lane's batches wait until its epoch ends, or until it must have committed them by its own clock. `Lane` then reads
them, at the times at which they came.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.fakes.simulated_ends import (
    BrokenInvariantError,
    DriverDied,
    MemoryFiles,
    SimulatedSink,
    SimulatedStream,
    Staged,
    rows_of,
)
from kit.fakes.simulated_lane import INTERVAL_MS, SimulatedLane, as_they_come, at_the_end, mapped, one_behind
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka.connector import (
    SupportsSourceOffsets,
)
from pyspark_kafka.continuous.channel.task_reports import TaskReports
from pyspark_kafka.continuous.epochs.coordinator import (
    BeginReading,
    CommitEpoch,
    EndEpoch,
    EpochCoordinator,
)
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.messages import End, Failed, Go, Started, decode, encode
from pyspark_kafka.continuous.epochs.pace import EpochLoad, EpochPace
from pyspark_kafka.continuous.run.commits import CommitEnded, EpochCommits
from pyspark_kafka.continuous.run.effects import RunCommand, TakeCommit
from pyspark_kafka.continuous.run.events import Asked, PaceChanged
from pyspark_kafka.continuous.run.machine import RunMachine, RunState, Timer
from pyspark_kafka.continuous.run.plan import QueryPlan
from pyspark_kafka.continuous.task.lane import Lane
from pyspark_kafka.continuous.task.stages import Stage, Stages
from pyspark_kafka.errors import CheckpointError, StateError

_MAX_STEPS = 20_000


class RunFailedError(Exception):
    """A lane has failed; the driver starts another run."""


class Simulation:
    """One checkpoint, one sink, and a query that is run, killed and started again.

    Args:
        seed: of everything.
        coordinator: `EpochCoordinator`, or one with a fault.
        epochs: `EpochFiles`, or one with a fault.
        commits: `EpochCommits`, or one with a fault.
        lane: `Lane`, or one with a fault.
        stages: the functions of the query; None for any.
        skewed: whether lanes have a fault: they report where they are after the rows that follow.
        outage: how often a call to the checkpoint fails, and its file system is unmounted, as a probability.
    """

    def __init__(
        self,
        seed: int,
        *,
        coordinator: type[EpochCoordinator] = EpochCoordinator,
        epochs: type[EpochFiles] = EpochFiles,
        commits: type[EpochCommits] = EpochCommits,
        lane: Callable[..., Lane] = Lane,
        stages: Sequence[Stage] | None = None,
        skewed: bool = False,
        outage: float = 0.0,
    ) -> None:
        self.random = random.Random(seed)
        self.partitions = self.random.randrange(1, 4)
        self.files = MemoryFiles(self.may_die, self.may_be_away)
        self.sink = SimulatedSink(self)
        self.lives = self.deaths = self.runs = self.outages = 0
        self._coordinator, self._epochs, self._commits, self._skewed = coordinator, epochs, commits, skewed
        functions = self.random.choices((as_they_come, at_the_end, one_behind), k=self.random.randrange(3))
        self._lane, self._stages = lane, Stages(tuple(map(mapped, functions)) if stages is None else tuple(stages))
        self._outage = outage
        # The monotonic clock is the time since the machine was started.
        self.now = self.random.choice((0, 5_000, 4_000_000, 10**12))
        self.own_commits = self.changes_of_pace = 0
        self._epoch_since = 0
        self.calm = False
        self._next_name = 0
        # Some seeds are rough, others are not.
        self.slow = self.random.choice((0.0, 0.0, 0.004, 0.02))
        self.death, self.failure = self.random.choice(((0.08, 0.002), (0.2, 0.01), (0.02, 0.02), (0.0, 0.01)))

    @property
    def now_s(self) -> float:
        """The time as the driver reads it: between two milliseconds, so that none is lost by rounding."""
        return (self.now + 0.5) / 1000

    def may_die(self) -> None:
        """Kill the driver, perhaps."""
        if not self.calm and self.random.random() < self.death:
            self.deaths += 1
            raise DriverDied

    def may_be_away(self) -> None:
        """Fail as a checkpoint does that is away for a while, perhaps."""
        if self._outage and not self.calm and self.random.random() < self._outage:
            self.outages += 1
            raise CheckpointError("the checkpoint is away", condition="CHECKPOINT_IO", retriable=True)

    def _mount(self) -> None:
        """Mount the file system of the checkpoint, or unmount it."""
        if self._outage and not self.calm and self.random.random() < self._outage:
            self.files.unmount()
        else:
            self.files.mount()

    def may_fail(self) -> None:
        """Fail as a sink does that is away for a while, perhaps."""
        if not self.calm and self.random.random() < self.failure * 3:
            raise CheckpointError("the sink is away", condition="TEST", retriable=True)

    def run(self, lives: int) -> None:
        """Let a number of drivers live and die, and a last one that stops as it is asked to; check at the end."""
        for _ in range(lives):
            try:
                self._live(self.random.randrange(1, 4))
            except DriverDied:
                continue
        self.calm = True
        before = self._newest_commit()
        self._live(1)
        if self._newest_commit() == before:
            raise BrokenInvariantError("a driver that nothing disturbs has committed no epoch")
        self.check()

    def _newest_commit(self) -> int:
        return max(map(int, self.files.list("commits")), default=-1)

    def new_write(self) -> Any:
        """Return the write of a driver."""
        return self.sink

    def prepare(self, lanes: Sequence[SimulatedLane]) -> None:
        """Do what comes before the tasks of a run."""

    def end_epoch_of(self, lane: SimulatedLane) -> str:
        """Let the writer of a lane end its epoch, and return its message."""
        self._next_name += 1
        self.sink.staged[self._next_name] = lane.pending
        return Staged(self._next_name).json()

    def let_lanes_commit(self, lanes: Sequence[SimulatedLane]) -> None:
        """Let the time pass: lanes of which nobody waits for another commit what they have."""

    def _live(self, runs: int) -> None:
        plan = QueryPlan(
            SimulatedStream(),  # type: ignore[arg-type]
            self.new_write(),
            self._stages,
            tasks=1,
            interval_ms=INTERVAL_MS,
            host="",
            max_failures=3,
        )
        # As a query has it, for all its runs.
        limit = plan.write.commitLimit() if isinstance(plan.write, SupportsSourceOffsets) else None
        self._pace = EpochPace(INTERVAL_MS, limit)
        # What a run before these needed.
        self._pace.committed(EpochLoad(INTERVAL_MS, self.random.randrange(4)))
        files: Any = self.files
        nothing: Any = _NoProgress()
        commits = self._commits(plan, "id", files, self._epochs(files, kept=self.random.choice((2, 3, 100))), nothing)
        self.files.mount()
        self.lives += 1
        try:
            commits.take_over(f"start {self.lives}")
        except CheckpointError:
            # As at the start of a query.
            return
        for _ in range(runs):
            self._mount()
            try:
                epoch = commits.resume()
                self._run(commits, epoch, rows_of(commits.start))
            except (
                RunFailedError,
                TransactionLostError,
                TransactionInDoubtError,
                CheckpointError,
                StateError,
            ) as error:
                is_lasting = isinstance(error, CheckpointError) and not error.retriable
                if is_lasting or (isinstance(error, StateError) and (self.calm or not error.retriable)):
                    raise BrokenInvariantError(f"the checkpoint cannot be continued: {error}") from error

    def _run(self, commits: EpochCommits, epoch: int, start: Mapping[str, int]) -> None:
        rng = self.random
        self.runs += 1
        if rng.random() < 0.3:
            self.partitions += 1
        lanes = self._lanes(epoch, start)
        self.prepare(lanes)
        pace = self._pace
        for lane in lanes:
            lane.epoch_s = pace.lanes_ms / 1000
        coordinator = self._coordinator(len(lanes), epoch, pace.interval_ms)
        lanes_of = {lane.number: [lane.number] for lane in lanes}
        machine = RunMachine(coordinator, lanes_of, self.now_s)
        machine.set_timer(Timer.LATE_START, math.inf)
        steps = _MAX_STEPS if self.calm else rng.choice((100, 200, 300))
        stop_at = 100 if self.calm else rng.randrange(steps * 2)
        # Some lanes are slow, and so is one channel or the other.
        menu = [choice for choice in range(5) for _ in range(rng.choice((1, 1, 1, 4)))]
        commit, asked = _Commit(), Asked()
        try:
            for step in range(steps):
                # The last run commits something: before every lane reads, a stop ends it at once.
                if step >= stop_at and (not self.calm or machine.has_read) and not asked.stop:
                    asked = Asked(stop=True)
                    self._act(machine, lanes, commit, machine.tick(self.now_s, asked))
                    # However slow lanes are, the last run waits for them.
                    machine.set_timer(Timer.STOP, math.inf)
                choice = menu[int(rng.random() * len(menu))]
                lane = lanes[int(rng.random() * len(lanes))]
                is_free = lane.busy_until <= self.now or self.calm
                if choice == 0 and is_free and lane.may_read and not lane.ended:
                    self._read(lane)
                elif choice == 1 and is_free and lane.to_lane:
                    self._end_epoch(lane)
                elif choice == 2 and lane.to_driver:
                    self._act(machine, lanes, commit, machine.take_event(decode(lane.to_driver.popleft()), self.now_s))
                elif choice == 3:
                    self.now += 100
                    self.let_lanes_commit(lanes)
                    # A task does it as often as it says that it lives.
                    if rng.random() < 0.2:
                        lane.reports.flush()
                    self._act(machine, lanes, commit, machine.tick(self.now_s, asked))
                elif choice == 4 and commit.action is not None and (self.now >= commit.due or self.calm):
                    self._act(
                        machine, lanes, commit, machine.take_event(self._commit_epoch(commits, commit), self.now_s)
                    )
                if machine.state is RunState.DONE:
                    return
                if not self.calm and rng.random() < self.failure:
                    machine.take_event(Failed(lane.number, "it has failed", ""), self.now_s)
                if machine.failure is not None:
                    raise RunFailedError from machine.failure
            if self.calm:
                raise BrokenInvariantError("the run was asked to stop, and is not done")
        finally:
            if machine.state is not RunState.DONE:
                commits.abort(coordinator.open_reports)

    def _act(
        self, machine: RunMachine, lanes: Sequence[SimulatedLane], commit: _Commit, commands: Sequence[RunCommand]
    ) -> None:
        """Do what the machine of the run has decided, as `QueryRun` does."""
        pace = self._pace
        for command in commands:
            match command:
                case BeginReading():
                    self._epoch_since = self.now
                    for lane in lanes:
                        lane.to_lane.append(encode(Go()))
                case EndEpoch():
                    if not command.last and self.now - self._epoch_since < pace.interval_ms:
                        raise BrokenInvariantError(f"epoch {command.epoch} ended before its time")
                    self._epoch_since = self.now
                    for lane in lanes:
                        lane.to_lane.append(encode(End(command.epoch, int(command.last), pace.lanes_ms)))
                case CommitEpoch():
                    if commit.action is not None:
                        raise BrokenInvariantError(f"epoch {command.epoch} is committed beside another one")
                    # So does the checkpoint.
                    commit.took_ms = self.random.choice((0, 0, 3 * INTERVAL_MS))
                    commit.action, commit.due = command, self.now + commit.took_ms
                case TakeCommit():
                    if pace.committed(command.load):
                        machine.take_event(PaceChanged(pace.interval_ms, bool(pace.reason)), self.now_s)
                        self.changes_of_pace += 1

    def _commit_epoch(self, commits: EpochCommits, commit: _Commit) -> CommitEnded:
        """Commit an epoch as `EpochCommitter` does."""
        action, commit.action = commit.action, None
        assert action is not None
        self._mount()
        try:
            return CommitEnded(action, commits.commit_epoch(action), took_s=commit.took_ms / 1000)
        except Exception as error:  # noqa: BLE001 - the machine raises it
            return CommitEnded(action, None, error)

    def _lanes(self, epoch: int, start: Mapping[str, int]) -> list[SimulatedLane]:
        names = [str(number) for number in range(self.partitions)]
        count = self.random.randrange(1, len(names) + 1)
        lanes = [
            SimulatedLane(
                number, epoch, {name: start.get(name, 0) for name in names[number::count]}, lambda: self.now,
                self.end_epoch_of, self._skewed,
            )
            for number in range(count)
        ]  # fmt: skip
        for lane in lanes:
            lane.lane = self._lane(
                lane.number, lane, self._stages, self._writer_of(lane), lane, epoch_s=INTERVAL_MS / 1000,
                clock=lane.now_s,
            )  # fmt: skip
        tasks = self.random.randrange(1, count + 1)
        for task in range(tasks):
            shared = lanes[task::tasks]
            reports = TaskReports(len(shared), shared[0].say)
            for lane in shared:
                lane.to_driver, lane.reports = shared[0].to_driver, reports
        for lane in lanes:
            lane.say(Started(lane.number))
        return lanes

    def _writer_of(self, lane: SimulatedLane) -> Callable[[int], Any]:
        return lambda _: lane

    def _read(self, lane: SimulatedLane) -> None:
        lane.read(self.random.choice(list(lane.rows)), self.random.randrange(1, 4))
        if self.random.random() < self.slow:
            # A function, or what it calls, takes its time.
            lane.busy_until = self.now + self.random.randrange(4_000)

    def _end_epoch(self, lane: SimulatedLane) -> None:
        end = decode(lane.to_lane.popleft())
        if isinstance(end, Go):
            lane.may_read = True
            return
        assert isinstance(end, End)
        lane.epoch_s = end.lanes_ms / 1000
        if not lane.may_read:
            raise BrokenInvariantError(f"lane {lane.number} is to end epoch {end.epoch}, and has not begun to read")
        if end.epoch != lane.epoch:
            raise BrokenInvariantError(f"lane {lane.number} is to end epoch {end.epoch}, and is in {lane.epoch}")
        lane.take_turn(end)

    def check(self) -> None:
        """Each row that is committed is in the sink once, in order; epochs follow one another, and never go back."""
        commits = sorted(int(name) for name in self.files.list("commits"))
        offsets = sorted(int(name) for name in self.files.list("offsets"))
        # A driver may die while it removes old ones.
        for numbers in (commits, offsets):
            if numbers != list(range(numbers[0], commits[-1] + 1)):
                raise BrokenInvariantError(f"offsets {offsets} and commits {commits} do not fit")
        if sorted(self.sink.epochs) != list(range(commits[-1] + 1)):
            raise BrokenInvariantError(f"the sink has epochs {sorted(self.sink.epochs)}, the checkpoint {commits[-1]}")
        ends: dict[str, int] = {}
        for epoch, rows in sorted(self.sink.epochs.items()):
            for name, number in rows:
                if number != ends.get(name, 0):
                    raise BrokenInvariantError(f"epoch {epoch} has row {number} of {name} after {ends.get(name, 0)}")
                ends[name] = number + 1
            if (text := self.files.read(f"offsets/{epoch}")) is not None:
                kept = {name: count for name, count in rows_of(text.decode().split("\n")[2]).items() if count}
                if kept != ends:
                    raise BrokenInvariantError(
                        f"epoch {epoch} ends at {kept} by the checkpoint, and at {ends} in the sink"
                    )
        if left := self.files.list("continuous/messages"):
            raise BrokenInvariantError(f"the messages of epochs {left} are left, though they are committed")


@dataclass
class _Commit:
    """The epoch that is committed, until when, and for how long."""

    action: CommitEpoch | None = None
    due: int = 0
    took_ms: int = 0


class _NoProgress:
    def read_metrics(self, _: Any) -> None:
        return None

    def waiting(self, _: Any) -> tuple[()]:
        return ()

    def add_progress(self, *_: Any) -> None:
        """Nobody looks."""
