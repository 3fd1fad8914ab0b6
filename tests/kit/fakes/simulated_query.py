"""A continuous query without Spark, threads or clock: the driver's own code, and lanes, channel and sink in memory.

`EpochCommits`, `EpochCoordinator`, `EpochFiles`, `recover`, `Lane` and the stages are those of the package. A seed
decides which message arrives next, which lane reads or ends its epoch, how many lanes there are, how long a function of
a lane takes for a batch, what functions hold back, for how long the machine is up, who fails, and where the driver
dies: before and after every write to the checkpoint and every commit of the sink.

Lanes of a task share a channel, and its reports of an epoch are one message.

A lane's batches wait until its epoch ends, or until it must have committed them by its own clock. `Lane` then reads
them, at the times at which they came.
"""

from __future__ import annotations

import json
import random
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_kafka.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka.connector import (
    ContinuousPartitionReader,
    DataWriter,
    PartitionOffset,
    StreamingWrite,
    SupportsSourceOffsets,
    WriterCommitMessage,
)
from pyspark_kafka.connector.offsets import Offset
from pyspark_kafka.continuous.channel.task_reports import TaskReports
from pyspark_kafka.continuous.epochs.coordinator import (
    BeginReading,
    CommitEpoch,
    EndEpoch,
    EpochCoordinator,
    LaneReport,
    RunIsDone,
)
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.messages import End, Go, LaneCommitted, Moved, Reports, Started, decode, encode
from pyspark_kafka.continuous.epochs.pace import EpochLoad, EpochPace
from pyspark_kafka.continuous.run.commits import EpochCommits
from pyspark_kafka.continuous.run.plan import QueryPlan
from pyspark_kafka.continuous.task.lane import Lane
from pyspark_kafka.continuous.task.stages import MapInArrow, Stages
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark_kafka.continuous.epochs.coordinator import EpochCommand
    from pyspark_kafka.continuous.epochs.messages import Message
    from pyspark_kafka.continuous.task.stages import Stage

TOPIC = "t"
_MAX_STEPS = 20_000
INTERVAL_MS = 200
# Rows of a lane that commits by its own clock are visible after this number of epochs, unless its function is busy.
_VISIBLE = 3
_SCHEMA = pa.schema({"partition": pa.string(), "number": pa.int64()})


class BrokenInvariantError(BaseException):
    """An invariant does not hold. No code of the package takes it for an error of a source or a sink."""


class DriverDied(BaseException):
    """The driver is gone, between two steps."""


class RunFailedError(Exception):
    """A lane has failed; the driver starts another run."""


class MemoryFiles:
    """The files of a checkpoint, as `CheckpointFiles` has them.

    Args:
        may_die: called before and after each change.
    """

    location = shown = "memory"

    def __init__(self, may_die: Callable[[], None]) -> None:
        self.names: dict[str, bytes] = {}
        self._may_die = may_die

    def read(self, name: str) -> bytes | None:
        return self.names.get(name)

    def create(self, name: str, data: bytes, *, durable: bool = True) -> bool:
        assert durable, "a crash of the machine may lose it"
        self._may_die()
        if name in self.names:
            return False
        self.names[name] = data
        self._may_die()
        return True

    def replace(self, name: str, data: bytes) -> None:
        self._may_die()
        self.names[name] = data
        self._may_die()

    def list(self, directory: str = "") -> list[str]:
        return sorted(name[len(directory) + 1 :] for name in self.names if name.startswith(f"{directory}/"))

    def delete(self, *names: str) -> None:
        for name in names:
            self._may_die()
            self.names.pop(name, None)

    def side_by_side(self, *calls: Callable[[], object]) -> None:
        for call in calls:
            call()


def to_json(rows: Mapping[str, int]) -> str:
    """Return how many rows were read, by partition, in the form of a source offset of Kafka."""
    return json.dumps({TOPIC: rows}, sort_keys=True)


def rows_of(text: str) -> dict[str, int]:
    """Return what `to_json` has written."""
    return dict(json.loads(text).get(TOPIC, {}))


@dataclass(frozen=True, eq=False)
class Counts(Offset):
    """How many rows were read, by partition."""

    rows: Mapping[str, int]

    def json(self) -> str:
        return to_json(self.rows)


@dataclass(frozen=True)
class LaneCounts(PartitionOffset):
    """The same, of one lane."""

    rows: Mapping[str, int]

    def json(self) -> str:
        return to_json(self.rows)


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """Under which name a lane has staged its rows."""

    name: int


class SimulatedStream:
    """Partitions without an end; row n of a partition is the number n."""

    def initialOffset(self) -> Offset:
        return Counts({})

    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        return LaneCounts(rows_of(text))

    def deserializeOffset(self, text: str) -> Offset:
        return Counts(rows_of(text))

    def mergeOffsets(self, offsets: Sequence[LaneCounts]) -> Offset:
        return Counts({name: count for each in offsets for name, count in each.rows.items()})

    def commit(self, end: Offset) -> None:
        """Nothing is held."""


class SimulatedSink(StreamingWrite):
    """Rows are staged by lanes, and visible at the commit, which is idempotent by epoch.

    Args:
        simulation: that may die here, or fail.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.staged: dict[int, list[tuple[str, int]]] = {}
        self.epochs: dict[int, list[tuple[str, int]]] = {}

    def createStreamingWriterFactory(self, info: Any) -> Any:
        raise NotImplementedError

    def deserializeMessage(self, text: str) -> WriterCommitMessage:
        return Staged(json.loads(text)["name"])

    def commit(self, epoch_id: int, messages: Sequence[Any]) -> None:
        simulation = self._simulation
        simulation.may_die()
        simulation.may_fail()
        missing = [each.name for each in messages if each.name not in self.staged]
        if epoch_id not in self.epochs:
            if epoch_id != len(self.epochs):
                raise BrokenInvariantError(
                    f"the sink was asked to commit epoch {epoch_id} after {len(self.epochs) - 1}"
                )
            if missing:
                raise BrokenInvariantError(f"epoch {epoch_id} is committed with rows that were aborted")
            self.epochs[epoch_id] = [row for each in messages for row in self.staged[each.name]]
        simulation.may_die()
        simulation.may_fail()

    def abort(self, epoch_id: int, messages: Sequence[Any]) -> None:
        if epoch_id in self.epochs:
            raise BrokenInvariantError(f"epoch {epoch_id} was aborted after its commit")
        for each in messages:
            self.staged.pop(each.name, None)


def _as_they_come(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _at_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if held := list(batches):
        yield pa.concat_batches(held)


def _one_behind(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held = next(batches, None)
    for batch in batches:
        yield held
        held = batch
    if held is not None:
        yield held


def mapped(function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> Stage:
    """Return a function of rows as a step of a query."""
    return MapInArrow(function, _SCHEMA)


class _PausedError(Exception):
    """A lane has nothing to do until something else happens."""


@dataclass
class SimulatedLane(ContinuousPartitionReader, DataWriter):
    """One lane of a run, with its reader, its writer and its end of the channel, which keeps the order of messages.

    Attributes:
        number: of it.
        epoch: in which it reads.
        rows: that it has read of each of its partitions.
        clock: milliseconds.
        end_epoch: ends the epoch of its writer, and returns the message.
        coming: batches that it has not read, with the times at which they came.
        pending: rows that its writer has.
        busy_until: when its function has made something of the last batch.
        transaction: the one that its writer has open, if there are transactions.
        reports: gathers those of its task, which has one channel.
        epoch_s: the length of an epoch, as the driver has told it; None before.
        cost: of the last commit: to how many partitions it had written.
        is_left_behind: whether its run has ended.
        skewed: whether it reports where it is after the rows that follow.
        lane: its code.
    """

    number: int
    epoch: int
    rows: dict[str, int]
    clock: Callable[[], int]
    end_epoch: Callable[[SimulatedLane], str]
    skewed: bool = False
    coming: deque[tuple[int, pa.RecordBatch]] = field(default_factory=deque)
    pending: list[tuple[str, int]] = field(default_factory=list)
    busy_until: int = 0
    transaction: Any = None
    reports: Any = None
    epoch_s: float | None = None
    cost: int = 0
    is_left_behind: bool = False
    ended: bool = False
    may_read: bool = False
    to_driver: deque[bytes] = field(default_factory=deque)
    to_lane: deque[bytes] = field(default_factory=deque)
    lane: Any = None
    ended_epoch: int = -1
    stopped: bool = False
    _end: End | None = None
    _has_read: bool = False
    _has_told: bool = False
    _read_since: int = 0
    _batch: Any = None
    _time: int | None = None
    _ahead: int = 0

    def now_s(self) -> float:
        """Return the time: that of the batch that is read, or that of the simulation, or a later one."""
        if self._time is None:
            self._time = self.coming[0][0] if self.coming else self.clock() + self._ahead
        return self._time / 1000

    def read(self, name: str, count: int) -> None:
        """Let rows of a partition come."""
        if not self.coming:
            self.say(Moved(self.number, self.epoch))
            self._has_told = True
        first = self.rows[name] + sum(batch.num_rows for _, batch in self.coming if batch[0][0].as_py() == name)
        numbers = list(range(first, first + count))
        batch = pa.RecordBatch.from_arrays([pa.array([name] * count), pa.array(numbers, pa.int64())], schema=_SCHEMA)
        self.coming.append((self.clock(), batch))

    def is_overdue(self) -> bool:
        """Return whether rows wait for longer than a lane with a clock of its own lets them."""
        return bool(self.coming) and self.clock() - self.coming[0][0] >= _VISIBLE * self.told_ms

    @property
    def told_ms(self) -> float:
        """Return how often a lane with a clock of its own is to commit, by the word of the driver."""
        return INTERVAL_MS if self.epoch_s is None else self.epoch_s * 1000

    def take_turn(self, end: End | None) -> None:
        """Read what has come, and end the epoch if the driver says so."""
        self._end, self._ahead = end, 0
        if end is None:
            try:
                self.lane._run_epoch(self.epoch)
            except _PausedError:
                return
            raise BrokenInvariantError(f"lane {self.number} ended epoch {self.epoch} without being asked to")
        self.lane._run_epoch(self.epoch)
        self.epoch += 1
        self.ended = bool(end.last)

    def say(self, message: Message) -> None:
        """Send a message, which arrives some time."""
        self.to_driver.append(encode(message))

    def send(self, message: Message | LaneReport) -> None:
        self._time = None
        if isinstance(message, Moved) and self._has_told:
            # Said when the first batch came.
            self._has_told = False
            return
        if isinstance(message, LaneReport) and self.skewed:
            rows = {name: count + (count % 7 == 3) for name, count in self.rows.items()}
            message = replace(message, offset=LaneCounts(rows).json())
        if isinstance(message, LaneReport):
            self.reports.add(message)
        else:
            self.say(message)

    def next(self) -> bool:
        if self.coming:
            self._time, self._batch = self.coming.popleft()
            for name, number in zip(*(column.to_pylist() for column in self._batch.columns), strict=True):
                self.rows[name] = number + 1
            if not self._has_read:
                self._read_since = self._time
            self._has_read = True
            return True
        self._time = None
        if self._end is not None:
            self.ended_epoch = self._end.epoch
        elif not self._has_read:
            raise _PausedError
        elif self._ahead:
            raise BrokenInvariantError(
                f"lane {self.number} keeps rows of epoch {self.epoch} open for more than {_VISIBLE} epochs"
            )
        else:
            # Of the last rows the time is not over yet.
            self._ahead = round(_VISIBLE * self.told_ms)
        return False

    def get(self) -> pa.RecordBatch:
        return self._batch

    def getOffset(self) -> PartitionOffset:
        return LaneCounts(dict(self.rows))

    def write(self, batch: pa.RecordBatch) -> None:
        self.pending += zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def commit(self) -> WriterCommitMessage:
        if self._end is None and self._has_read and not self.is_left_behind:
            lasted = self.now_s() * 1000 - self._read_since
            if lasted < self.told_ms:
                raise BrokenInvariantError(f"lane {self.number} commits by its own clock after {lasted} ms")
        self.cost = len({name for name, _ in self.pending})
        text = self.end_epoch(self)
        self.pending, self._has_read = [], False
        return _Text(text)

    def abort(self) -> None:
        """The next run reads the rows again."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class _Text(WriterCommitMessage):
    text: str

    def json(self) -> str:
        return self.text


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
    ) -> None:
        self.random = random.Random(seed)
        self.partitions = self.random.randrange(1, 4)
        self.files = MemoryFiles(self.may_die)
        self.sink = SimulatedSink(self)
        self.deaths = self.runs = 0
        self._coordinator, self._epochs, self._commits, self._skewed = coordinator, epochs, commits, skewed
        functions = self.random.choices((_as_they_come, _at_the_end, _one_behind), k=self.random.randrange(3))
        self._lane, self._stages = lane, Stages(tuple(map(mapped, functions)) if stages is None else tuple(stages))
        # The monotonic clock is the time since the machine was started.
        self.now = self.random.choice((0, 5_000, 4_000_000, 10**12))
        self.own_commits = self.changes_of_pace = 0
        self.calm = False
        self._next_name = 0
        # Some seeds are rough, others are not.
        self.slow = self.random.choice((0.0, 0.0, 0.004, 0.02))
        self.death, self.failure = self.random.choice(((0.08, 0.002), (0.2, 0.01), (0.02, 0.02), (0.0, 0.01)))

    def may_die(self) -> None:
        """Kill the driver, perhaps."""
        if not self.calm and self.random.random() < self.death:
            self.deaths += 1
            raise DriverDied

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
        self._live(1)
        self.check()

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
        for _ in range(runs):
            try:
                epoch = commits.resume()
                self._run(commits, epoch, rows_of(commits.start))
            except (RunFailedError, TransactionLostError, TransactionInDoubtError, CheckpointError) as error:
                if isinstance(error, CheckpointError) and not error.retriable:
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
        steps = _MAX_STEPS if self.calm else rng.choice((100, 200, 300))
        stop_at = 100 if self.calm else rng.randrange(steps * 2)
        # Some lanes are slow, and so is one channel or the other.
        menu = [choice for choice in range(5) for _ in range(rng.choice((1, 1, 1, 4)))]
        is_done, commit_at = False, 0
        epoch_since: int | None = None
        lasted: dict[int, int] = {}
        took_ms = 0
        committing: list[CommitEpoch] = []

        def act(actions: Sequence[EpochCommand]) -> None:
            nonlocal is_done, epoch_since, commit_at, took_ms
            if coordinator.is_running and epoch_since is None:
                epoch_since = self.now
            for action in actions:
                if isinstance(action, BeginReading):
                    for lane in lanes:
                        lane.to_lane.append(encode(Go()))
                elif isinstance(action, EndEpoch):
                    if not action.last and (epoch_since is None or self.now - epoch_since < pace.interval_ms):
                        raise BrokenInvariantError(f"epoch {action.epoch} ended before its time")
                    lasted[action.epoch] = 0 if epoch_since is None else self.now - epoch_since
                    epoch_since = self.now
                    for lane in lanes:
                        lane.to_lane.append(encode(End(action.epoch, int(action.last), pace.lanes_ms)))
                elif isinstance(action, CommitEpoch):
                    committing.append(action)
                    # So does the checkpoint.
                    took_ms = rng.choice((0, 0, 3 * INTERVAL_MS))
                    commit_at = self.now + took_ms
                elif isinstance(action, RunIsDone):
                    is_done = True

        try:
            for step in range(steps):
                # The last run commits something: before every lane reads, a stop ends it at once.
                if step >= stop_at and (not self.calm or coordinator.is_running):
                    act(coordinator.stop())
                choice = menu[int(rng.random() * len(menu))]
                lane = lanes[int(rng.random() * len(lanes))]
                is_free = lane.busy_until <= self.now or self.calm
                if choice == 0 and is_free and lane.may_read and not lane.ended:
                    self._read(lane)
                elif choice == 1 and is_free and lane.to_lane:
                    self._end_epoch(lane)
                elif choice == 2 and lane.to_driver:
                    act(_heard(coordinator, decode(lane.to_driver.popleft())))
                elif choice == 3:
                    self.now += 100
                    self.let_lanes_commit(lanes)
                    # A task does it as often as it says that it lives.
                    if rng.random() < 0.2:
                        lane.reports.flush()
                    act(coordinator.ticked(self.now))
                elif choice == 4 and committing and (self.now >= commit_at or self.calm):
                    action = committing.pop(0)
                    commits.commit_epoch(action)
                    if pace.committed(EpochLoad.of(action.reports, lasted[action.epoch], took_ms)):
                        coordinator.set_interval(pace.interval_ms)
                        self.changes_of_pace += 1
                    act(coordinator.committed(action.epoch))
                if is_done:
                    return
                if not self.calm and rng.random() < self.failure:
                    raise RunFailedError
            if self.calm:
                raise BrokenInvariantError("the run was asked to stop, and is not done")
        finally:
            if not is_done:
                commits.abort(coordinator.open_reports)

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


class _NoProgress:
    def add(self, *_: Any) -> None:
        """Nobody looks."""


def _heard(coordinator: EpochCoordinator, message: Message) -> list[EpochCommand]:
    if isinstance(message, Started):
        return coordinator.started(message.lane)
    if isinstance(message, Moved):
        return coordinator.moved(message.lane, message.epoch)
    if isinstance(message, LaneCommitted):
        return coordinator.lane_committed(message.lane, message.epoch)
    assert isinstance(message, Reports)
    return [action for report in message.reports for action in coordinator.reported(report)]
