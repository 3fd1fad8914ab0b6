"""A continuous query that counts by key and writes exactly once, without Kafka: drivers, brokers, lanes, state files.

The states are those of the package, `LaneState` and `QueryStates`, over files in memory. Lanes die before and after
each file that they write; lanes that were left behind write theirs later; what others have written is seen late. At
times the logs of the checkpoint are those of an earlier moment, as after the restore of a copy.

Each row is written with the count of its key, so a state that is older or newer than its position is seen in a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa

from kit.fakes.simulated_ends import BrokenInvariantError, MemoryFiles
from kit.fakes.simulated_lane import INTERVAL_MS, SimulatedLane, key_group
from kit.fakes.simulated_query import RunFailedError
from kit.fakes.simulated_transactions import SimulatedBrokers, TransactionalSimulation, one_by_one
from pyspark_kafka.checkpoint.files import DirectoryNames
from pyspark_kafka.connector import ContinuousStream
from pyspark_kafka.continuous.run import states as driver_states
from pyspark_kafka.continuous.run.commits import EpochCommits
from pyspark_kafka.continuous.state import history, lane_state
from pyspark_kafka.continuous.state.by_key import StateByKey
from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.task.lane import Lane
from pyspark_kafka.continuous.task.stages import MapWithState
from pyspark_kafka.errors import ConnectorError, StateError

KEYS = 3
COUNTED = pa.schema({"partition": pa.string(), "number": pa.int64(), "count": pa.int64()})
_STATE = pa.schema({"count": pa.int64()})
# More epochs than lanes are ahead of the checkpoint.
_EPOCHS_KEPT = 8
_LOGS = ("offsets/", "commits/", "continuous/versions/", "continuous/messages/")


def count_by_key(rows: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
    """Return each row with the number of rows of its key up to it."""
    keys = [f"k{number % KEYS}" for number in rows.column("number").to_pylist()]
    distinct = sorted(set(keys))
    known = state.get(pa.array(distinct)).column("count").to_pylist()
    counts = {key: count or 0 for key, count in zip(distinct, known, strict=True)}
    numbered = []
    for key in keys:
        counts[key] += 1
        numbered.append(counts[key])
    state.update(pa.array(distinct), count=[counts[key] for key in distinct])
    return pa.RecordBatch.from_arrays([*rows.columns, pa.array(numbered, pa.int64())], schema=COUNTED)


class CountingBrokers(SimulatedBrokers):
    """Brokers whose logs show whether each count is right."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def end(self, transaction: Any, *, commit: bool) -> Any:
        self._check(transaction)
        rows: list[Any] = self._rows.get(transaction.name, [])
        if commit:
            for name, number, count in rows:
                if count != number // KEYS + 1:
                    self.wrong.append(f"row {number} of partition {name} is counted as {count}")
        self._rows[transaction.name] = [(name, number) for name, number, _ in rows]
        return super().end(transaction, commit=commit)


class StatefulSimulation(TransactionalSimulation):
    """A query that counts by key and writes exactly once.

    Args:
        seed: of everything.
        state: `LaneState`, or one with a fault.
        new_lane: `Lane`, or one with a fault.
        faults: of `TransactionalSimulation`.
    """

    def __init__(
        self,
        seed: int,
        *,
        state: type[LaneState] = LaneState,
        new_lane: Callable[..., Lane] = Lane,
        **faults: Any,
    ) -> None:
        step = MapWithState(count_by_key, COUNTED, _STATE, 0)
        super().__init__(seed, **{"stages": [step], **faults})
        self.brokers: Any = CountingBrokers()
        # Lanes commit several times within an epoch more often.
        self.slow = self.random.choice((0.0, 0.02, 0.06))
        self._state, self._new_lane = state, new_lane
        self._commits_now: EpochCommits | None = None
        self._open_states: list[Any] = []
        self._copy: dict[str, bytes] | None = None
        # Files that others do not see yet, and for how many looks.
        self.late: dict[str, int] = {}
        self.restores = self.whole_states = self.late_looks = 0
        self.files = _LateFiles(self)

    def run(self, lives: int) -> None:
        stores: dict[str, dict[bytes, bytes]] = {}
        numbers = iter(range(10**9))
        with ExitStack() as patched:
            for where, name, stand_in in (
                (lane_state, "CheckpointFiles", lambda _: _LaneFiles(self)),
                (lane_state, "LocalDirectory", lambda: SimpleNamespace(path=str(next(numbers)), remove=lambda: None)),
                (lane_state, "KeyedState", lambda path, **_: _Store(stores.setdefault(path, {}))),
                (lane_state, "ThreadPoolExecutor", _AtOnce),
                (lane_state, "side_by_side", one_by_one),
                (history, "_MIN_DELTAS", 3),
                (history, "EPOCHS_KEPT", _EPOCHS_KEPT),
                (driver_states, "EPOCHS_KEPT", _EPOCHS_KEPT),
            ):
                patched.enter_context(mock.patch.object(where, name, stand_in))
            super().run(lives)

    def check(self) -> None:
        """Every count in the logs is right, beside what holds without state."""
        super().check()
        if self.brokers.wrong:
            raise BrokenInvariantError(f"a count is wrong: {self.brokers.wrong[0]}")

    def prepare(self, lanes: Sequence[SimulatedLane]) -> None:
        """Plan the states, and open them in the lanes."""
        assert self._commits_now is not None
        assert self._newest is not None
        stream: Any = _Grouped()  # type: ignore[abstract]
        partitions: Any = lanes
        plan = self._commits_now.states.plan(stream, partitions)
        assert plan is not None
        self._newest.prepareStates(plan.committed())
        super().prepare(lanes)
        for lane in lanes:
            try:
                state = self._state(plan, lane.number, self.random.randrange(1, 9))
            except StateError as error:
                if self.calm:
                    raise
                # A lane that fails; the next one may see more.
                raise RunFailedError from error
            lane.states = {}
            stages = self._stages.holding(state)
            lane.lane = self._new_lane(
                lane.number, lane, stages, self._writer_of(lane), lane, state, has_timer_due=stages.has_timer_due,
                poll=stages.poll if stages.can_be_idle else None, epoch_s=lane.epoch_s or INTERVAL_MS / 1000,
                clock=lane.now_s,
            )  # fmt: skip

    def may_lose(self) -> None:
        """End a lane before or after a file is written."""
        self._may_break()

    def _live(self, runs: int) -> None:
        if self.calm:
            self.late.clear()
        # A copy of the logs is made, or put back. Without the files of states: those are never changed.
        if self._copy is not None and not self.calm and self.random.random() < 0.2:
            self.restores += 1
            names = self.files.names
            for name in [each for each in names if each.startswith(_LOGS)]:
                del names[name]
            names.update(self._copy)
            self._copy = None
        elif self.random.random() < 0.3:
            self._copy = {name: data for name, data in self.files.names.items() if name.startswith(_LOGS)}
        super()._live(runs)

    def _run(self, commits: EpochCommits, epoch: int, start: Mapping[str, int]) -> None:
        self._commits_now = commits
        super()._run(commits, epoch, start)

    def hide(self, name: str) -> None:
        """Let others see a file late, perhaps."""
        if not self.calm and self.random.random() < 0.3:
            self.late[name] = self.random.randrange(1, 4)

    def is_hidden(self, name: str) -> bool:
        """Return whether somebody does not see a file yet."""
        if name not in self.late:
            return False
        self.late[name] -= 1
        if not self.late[name]:
            del self.late[name]
        self.late_looks += 1
        return True


class _LateFiles(MemoryFiles):
    """The files as the driver sees them."""

    def __init__(self, simulation: StatefulSimulation) -> None:
        super().__init__(simulation.may_die)
        self._simulation = simulation

    def read(self, name: str) -> bytes | None:
        return None if self._simulation.is_hidden(name) else super().read(name)


class _LaneFiles:
    """The files as a lane sees them, which may die before and after each one that it writes."""

    location = shown = "memory"

    def __init__(self, simulation: StatefulSimulation) -> None:
        self._simulation, self._names = simulation, simulation.files.names

    def read(self, name: str) -> bytes | None:
        return None if self._simulation.is_hidden(name) else self._names.get(name)

    def scan(self, directory: str) -> DirectoryNames:
        late, begin = self._simulation.late, f"{directory}/"
        names = (name for name in self._names if name.startswith(begin) and name not in late)
        return DirectoryNames(tuple(name.removeprefix(begin) for name in names))

    def replace(self, name: str, data: bytes) -> None:
        simulation = self._simulation
        simulation.may_lose()
        if name.endswith(".whole"):
            simulation.whole_states += 1
        if self._names.get(name, data) != data:
            raise BrokenInvariantError(f"file {name} of a state is written again, with other content")
        self._names[name] = data
        simulation.hide(name)
        simulation.may_lose()

    def delete(self, *names: str) -> None:
        for name in names:
            self._names.pop(name, None)

    def side_by_side(self, *calls: Callable[[], object], durable: bool = False) -> None:
        for call in calls:
            call()


class _Grouped(ContinuousStream):
    """A stream whose input partitions are lanes."""

    keyGroups = staticmethod(lambda partition: [key_group(name) for name in partition.rows])


_Grouped.__abstractmethods__ = frozenset()


class _Store:
    """`KeyedState` in memory; those of one directory share their values."""

    def __init__(self, values: dict[bytes, bytes]) -> None:
        self._values = values

    def __enter__(self) -> _Store:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def get_all(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        return {key: self._values[key] for key in keys if key in self._values}

    def items(self, prefix: bytes = b"", first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        found = (key for key in self._values if key.startswith(prefix) and key >= prefix + first)
        return iter([(key, self._values[key]) for key in sorted(found)])

    def merge(self, _: int, updates: Mapping[bytes, bytes], *, remove: Iterable[bytes] = ()) -> None:
        self._values.update(updates)
        for key in remove:
            self._values.pop(key, None)


class _AtOnce:
    """`ThreadPoolExecutor` that does everything when it is asked."""

    def __init__(self, *_: Any) -> None:
        """Nothing is started."""

    def __enter__(self) -> _AtOnce:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left."""

    def submit(self, function: Callable[..., Any], *given: Any) -> Any:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*given))
        except ConnectorError as error:
            # Another one ends a life, now.
            future.set_exception(error)
        return future

    def shutdown(self, **_: Any) -> None:
        """Nothing is left."""
