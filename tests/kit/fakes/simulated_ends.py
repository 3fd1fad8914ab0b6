"""The ends of a simulated continuous query, in memory: its source, its sink and the files of its checkpoint."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.checkpoint.files import DirectoryNames
from pyspark_kafka.connector import PartitionOffset, StreamingWrite, WriterCommitMessage
from pyspark_kafka.connector.offsets import Offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kit.fakes.simulated_query import Simulation

TOPIC = "t"


class BrokenInvariantError(BaseException):
    """An invariant does not hold. No code of the package takes it for an error of a source or a sink."""


@contextmanager
def named_seed(seed: int) -> Iterator[None]:
    """Name the seed of a simulation that breaks an invariant in this block."""
    try:
        yield
    except BrokenInvariantError as broken:
        raise AssertionError(f"seed {seed}") from broken


class DriverDied(BaseException):
    """The driver is gone, between two steps."""


class MemoryFiles:
    """The files of a checkpoint, as `CheckpointFiles` has them.

    Args:
        may_die: called before and after each change.
        may_be_away: called before each call, and after each change.
    """

    location = shown = "memory"

    def __init__(self, may_die: Callable[[], None], may_be_away: Callable[[], None] = lambda: None) -> None:
        self.names: dict[str, bytes] = {}
        self._unmounted: dict[str, bytes] | None = None
        self._may_die, self._may_be_away = may_die, may_be_away

    def unmount(self) -> None:
        """Show the empty directory below, in which files can be created."""
        if self._unmounted is None:
            self._unmounted, self.names = self.names, {}

    def mount(self) -> None:
        """Show the files again."""
        if self._unmounted is not None:
            self.names, self._unmounted = self._unmounted, None

    def read(self, name: str) -> bytes | None:
        self._may_be_away()
        return self.names.get(name)

    def create(self, name: str, data: bytes, *, durable: bool = True) -> bool:
        assert durable, "a crash of the machine may lose it"
        self._may_change()
        if name in self.names:
            return False
        self.names[name] = data
        self._may_change()
        return True

    def replace(self, name: str, data: bytes) -> None:
        self._may_change()
        self.names[name] = data
        self._may_change()

    def _may_change(self) -> None:
        self._may_die()
        self._may_be_away()

    def list(self, directory: str = "") -> list[str]:
        self._may_be_away()
        return sorted(name[len(directory) + 1 :] for name in self.names if name.startswith(f"{directory}/"))

    def scan(self, directory: str = "") -> DirectoryNames:
        return DirectoryNames(tuple(self.list(directory)))

    def delete(self, *names: str) -> None:
        for name in names:
            self._may_change()
            self.names.pop(name, None)

    def side_by_side(self, *calls: Callable[[], object], durable: bool = False) -> None:
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
