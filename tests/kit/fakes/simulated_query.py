"""A continuous query without Spark, threads or clock: the driver's own code, and lanes, channel and sink in memory.

`EpochCommits`, `EpochCoordinator`, `EpochFiles` and `recover` are those of the package. A seed decides which message
arrives next, which lane reads or ends its epoch, how many lanes there are, who fails, and where the driver dies: before
and after every write to the checkpoint and every commit of the sink.
"""

from __future__ import annotations

import json
import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka.connector import PartitionOffset, StreamingWrite, WriterCommitMessage
from pyspark_kafka.connector.offsets import Offset
from pyspark_kafka.continuous.epochs.coordinator import (
    CommitEpoch,
    EndEpoch,
    EpochCoordinator,
    LaneReport,
    RunIsDone,
)
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.messages import End, Moved, Started, decode, encode
from pyspark_kafka.continuous.query.commits import EpochCommits
from pyspark_kafka.continuous.query.plan import QueryPlan
from pyspark_kafka.continuous.task.stages import Stages
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark_kafka.continuous.epochs.coordinator import Action
    from pyspark_kafka.continuous.epochs.messages import Message

TOPIC = "t"
_MOST_STEPS = 20_000


class BrokenInvariantError(AssertionError):
    """An invariant does not hold."""


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

    def delete(self, name: str) -> None:
        self._may_die()
        self.names.pop(name, None)


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


@dataclass
class SimulatedLane:
    """One lane of a run; the channel keeps the order of its messages.

    Attributes:
        number: of it.
        epoch: in which it reads.
        rows: that it has read of each of its partitions.
        pending: rows of the epoch.
        transaction: the one that its writer has open, if there are transactions.
    """

    number: int
    epoch: int
    rows: dict[str, int]
    pending: list[tuple[str, int]] = field(default_factory=list)
    transaction: Any = None
    moved: bool = False
    ended: bool = False
    to_driver: deque[bytes] = field(default_factory=deque)
    to_lane: deque[bytes] = field(default_factory=deque)

    def say(self, message: Message) -> None:
        """Send a message, which arrives some time."""
        self.to_driver.append(encode(message))


class Simulation:
    """One checkpoint, one sink, and a query that is run, killed and started again.

    Args:
        seed: of everything.
        coordinator: `EpochCoordinator`, or one with a fault.
        epochs: `EpochFiles`, or one with a fault.
        commits: `EpochCommits`, or one with a fault.
        skewed: whether lanes have a fault: they report where they are after the rows that follow.
    """

    def __init__(
        self,
        seed: int,
        *,
        coordinator: type[EpochCoordinator] = EpochCoordinator,
        epochs: type[EpochFiles] = EpochFiles,
        commits: type[EpochCommits] = EpochCommits,
        skewed: bool = False,
    ) -> None:
        self.random = random.Random(seed)
        self.partitions = self.random.randrange(1, 4)
        self.files = MemoryFiles(self.may_die)
        self.sink = SimulatedSink(self)
        self.deaths = self.runs = 0
        self._coordinator, self._epochs, self._commits, self._skewed = coordinator, epochs, commits, skewed
        self.calm = False
        self._next_name = 0
        # Some seeds are rough, others are not.
        self.death, self.failure = self.random.choice(((0.05, 0.002), (0.2, 0.01), (0.02, 0.02), (0.0, 0.01)))

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

    def _live(self, runs: int) -> None:
        plan = QueryPlan(
            SimulatedStream(), self.new_write(), Stages(()), tasks=1, interval_ms=10, host="", most_failures=3  # type: ignore[arg-type]
        )  # fmt: skip
        files: Any = self.files
        nothing: Any = _NoProgress()
        commits = self._commits(plan, "id", files, self._epochs(files, kept=self.random.choice((2, 3, 100))), nothing)
        for _ in range(runs):
            try:
                epoch = commits.go_on()
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
        coordinator = self._coordinator(len(lanes), epoch, 10)
        steps = _MOST_STEPS if self.calm else rng.choice((30, 100, 200))
        stop_at = 100 if self.calm else rng.randrange(steps * 2)
        # Some lanes are slow, and so is one channel or the other.
        menu = [choice for choice in range(5) for _ in range(rng.choice((1, 1, 1, 4)))]
        now, is_done = 0, False
        committing: list[CommitEpoch] = []

        def act(actions: Sequence[Action]) -> None:
            nonlocal is_done
            for action in actions:
                if isinstance(action, EndEpoch):
                    for lane in lanes:
                        lane.to_lane.append(encode(End(action.epoch, int(action.last))))
                elif isinstance(action, CommitEpoch):
                    committing.append(action)
                elif isinstance(action, RunIsDone):
                    is_done = True

        try:
            for step in range(steps):
                # The last run commits something: before every lane reads, a stop ends it at once.
                if step >= stop_at and (not self.calm or coordinator.is_running):
                    act(coordinator.stop())
                choice = menu[int(rng.random() * len(menu))]
                lane = lanes[int(rng.random() * len(lanes))]
                if choice == 0 and not lane.ended:
                    self._read(lane)
                elif choice == 1 and lane.to_lane:
                    self._end_epoch(lane)
                elif choice == 2 and lane.to_driver:
                    act(_heard(coordinator, decode(lane.to_driver.popleft())))
                elif choice == 3:
                    now += 5
                    act(coordinator.ticked(now))
                elif choice == 4 and committing:
                    action = committing.pop(0)
                    commits.commit(action)
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
            SimulatedLane(number, epoch, {name: start.get(name, 0) for name in names[number::count]})
            for number in range(count)
        ]
        for lane in lanes:
            lane.say(Started(lane.number))
        return lanes

    def _read(self, lane: SimulatedLane) -> None:
        if not lane.moved:
            lane.say(Moved(lane.number, lane.epoch))
            lane.moved = True
        name = self.random.choice(list(lane.rows))
        for _ in range(self.random.randrange(1, 4)):
            lane.pending.append((name, lane.rows[name]))
            lane.rows[name] += 1

    def _end_epoch(self, lane: SimulatedLane) -> None:
        end = decode(lane.to_lane.popleft())
        assert isinstance(end, End)
        if end.epoch != lane.epoch:
            raise BrokenInvariantError(f"lane {lane.number} is to end epoch {end.epoch}, and is in {lane.epoch}")
        message = self.end_epoch_of(lane)
        rows = dict(lane.rows)
        if self._skewed:
            rows = {name: count + (count % 7 == 3) for name, count in rows.items()}
        count = len(lane.pending)
        lane.say(LaneReport(lane.number, lane.epoch, LaneCounts(rows).json(), message, count, count))
        lane.pending, lane.moved = [], False
        lane.epoch += 1
        lane.ended = bool(end.last)

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


def _heard(coordinator: EpochCoordinator, message: Message) -> list[Action]:
    if isinstance(message, Started):
        return coordinator.started(message.lane)
    if isinstance(message, Moved):
        return coordinator.moved(message.lane, message.epoch)
    assert isinstance(message, LaneReport)
    return coordinator.reported(message)
