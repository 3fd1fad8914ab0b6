"""A continuous query that writes exactly once, without Kafka: its driver's code, and brokers and lanes in memory.

`KafkaTransactionalWrite` is that of the package, and the rest is `simulated_query`. Lanes of runs that have ended live
on for a while, and try to commit at any moment, also while the next driver takes over. Responses get lost. A lane that
is not slow commits its rows in time, whatever the others do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock
from uuid import UUID

from kit.fakes.simulated_ends import TOPIC, BrokenInvariantError, Counts, rows_of
from kit.fakes.simulated_lane import INTERVAL_MS, SimulatedLane
from kit.fakes.simulated_query import RunFailedError, Simulation
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.metadata import TopicMetadata
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError, TransactionLostError
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver import transactional
from pyspark_kafka._connector.sink.driver.lane_record_file import LaneRecordFile
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka._connector.sink.source_positions import PositionNote
from pyspark_kafka.connector import PartitionOffset, SourceOffsetsWriter, WriterCommitMessage

QUERY = "id"
_TOPIC_ID = UUID(int=7)
_SOME_ADDRESS = ConnectionOptions((("localhost", 9092),))


class SimulatedBrokers:
    """Transactional ids, a log for each partition, and one consumer group."""

    def __init__(self) -> None:
        self.log: dict[str, list[int]] = {}
        self.group: dict[TopicPartition, GroupPosition] = {}
        self._epochs: dict[str, int] = {}
        self._rows: dict[str, list[tuple[str, int]]] = {}
        self._positions: dict[str, dict[TopicPartition, GroupPosition]] = {}

    def fence(self, name: str) -> OpenTransaction:
        """Abort what is open, and let nobody else continue."""
        self._rows.pop(name, None)
        self._positions.pop(name, None)
        return self._next(name)

    def write(self, transaction: OpenTransaction, rows: list[tuple[str, int]]) -> None:
        """Take rows."""
        self._check(transaction)
        self._rows.setdefault(transaction.name, []).extend(rows)

    def set_positions(self, transaction: OpenTransaction, positions: Mapping[TopicPartition, GroupPosition]) -> None:
        """Take positions."""
        self._check(transaction)
        self._positions.setdefault(transaction.name, {}).update(positions)

    def end(self, transaction: OpenTransaction, *, commit: bool) -> OpenTransaction:
        """Commit or abort; the next transaction has another epoch."""
        self._check(transaction)
        rows, positions = self._rows.pop(transaction.name, []), self._positions.pop(transaction.name, {})
        if commit:
            for name, number in rows:
                self.log.setdefault(name, []).append(number)
            self.group.update(positions)
        return self._next(transaction.name)

    def fetch(self) -> dict[TopicPartition, GroupPosition]:
        """Return the positions; brokers would wait until none is undecided."""
        if self._positions:
            raise BrokenInvariantError(f"positions of {sorted(self._positions)} are undecided when they are read")
        return dict(self.group)

    def _check(self, transaction: OpenTransaction) -> None:
        if self._epochs.get(transaction.name) != transaction.identity.producer_epoch:
            raise TransactionLostError("fenced", condition="TEST")

    def _next(self, name: str) -> OpenTransaction:
        self._epochs[name] = self._epochs.get(name, 0) + 1
        return OpenTransaction(name, TransactionIdentity(1, self._epochs[name], Generation.V2))


class TransactionalSimulation(Simulation):
    """A query that writes exactly once.

    Args:
        seed: of everything.
        write: `KafkaTransactionalWrite`, or one with a fault.
        record_file: `LaneRecordFile`, or one with a fault.
        faults: of `Simulation`.
    """

    def __init__(
        self,
        seed: int,
        *,
        write: type[KafkaTransactionalWrite] = KafkaTransactionalWrite,
        record_file: type[LaneRecordFile] = LaneRecordFile,
        **faults: Any,
    ) -> None:
        super().__init__(seed, **faults)
        self.brokers = SimulatedBrokers()
        self._write, self._record_file = write, record_file
        self._newest: KafkaTransactionalWrite | None = None
        self._lanes_of_run: list[SimulatedLane] = []
        self._left_behind: list[SimulatedLane] = []
        self.fenced = 0
        # Some seeds need longer epochs.
        self._markers = self.random.choice((1, 5, 5_000))

    def run(self, lives: int) -> None:
        with ExitStack() as patched:
            for name, stand_in in {
                "TransactionalId": lambda _, name, __: _Id(self, name),
                "GroupPositions": lambda *_: _Group(self),
                "borrow_client": _borrowed,
                "side_by_side": one_by_one,
            }.items():
                patched.enter_context(mock.patch.object(transactional, name, stand_in))
            super().run(lives)

    def new_write(self) -> KafkaTransactionalWrite:
        settings = ExactlyOnceOptions(checkpoint_location="/nowhere", max_markers_per_second=self._markers)
        write = self._write(
            WriteOptions(_SOME_ADDRESS, TOPIC), settings, SinkColumns(value=0), query_id=QUERY, source=_SOME_ADDRESS,
            epoch_ms=INTERVAL_MS,
        )  # fmt: skip
        files: Any = self.files
        write._file = self._record_file(files)
        self._newest = write
        return write

    def prepare(self, lanes: Sequence[SimulatedLane]) -> None:
        write = self._newest
        assert write is not None
        self._left_behind = [*self._left_behind, *self._lanes_of_run][-6:]
        for lane in self._left_behind:
            lane.is_left_behind = True
        self._lanes_of_run = []
        write.prepareLanes(Counts({name: count for lane in lanes for name, count in lane.rows.items()}), len(lanes))
        for lane in lanes:
            lane.transaction = write._factory.transactions[lane.number]
        self._lanes_of_run = list(lanes)

    def let_lanes_commit(self, lanes: Sequence[SimulatedLane]) -> None:
        for lane in lanes:
            if lane.is_overdue() and lane.busy_until <= self.now:
                self.own_commits += 1
                lane.take_turn(None)

    def _writer_of(self, lane: SimulatedLane) -> Callable[[int], Any]:
        return lambda _: _LastingWriter(lane)

    def end_epoch_of(self, lane: SimulatedLane) -> str:
        self._commit(lane)
        return '{"records":0,"encoded_bytes":0}'

    def note(self, lane: SimulatedLane, key_group: str) -> str:
        """Return what is kept with a position of a lane."""
        return PositionNote(QUERY, str(_TOPIC_ID), str(lane.epoch), lane.states.get(key_group, "")).text()

    def haunt(self) -> None:
        """Let a lane that was left behind do something: it may be the last moment before it is fenced."""
        if self._left_behind and self.random.random() < 0.3:
            lane = self.random.choice(self._left_behind)
            if not lane.may_read:
                return
            try:
                self._read(lane)
                lane.lane._commit_rows(lane.epoch, 0.0)
            except (TransactionLostError, RunFailedError):
                self.fenced += 1
                self._left_behind.remove(lane)

    def step(self, do: Callable[[], Any]) -> Any:
        """Do what the brokers do at the request of the driver, who may die before or after it."""
        self.haunt()
        self.may_die()
        result = do()
        self.may_die()
        self.haunt()
        return result

    def _commit(self, lane: SimulatedLane) -> None:
        """Write rows, then positions, then end the transaction; any of it may be the last that the lane does."""
        positions = {
            _partition(name): GroupPosition(count, self.note(lane, str(_partition(name))))
            for name, count in lane.rows.items()
        }
        steps: list[Callable[[], Any]] = [
            lambda: self.brokers.write(lane.transaction, lane.pending),
            lambda: self.brokers.set_positions(lane.transaction, positions),
            lambda: self.brokers.end(lane.transaction, commit=True),
        ]
        for each in steps:
            self._may_break()
            following = each()
        lane.transaction, lane.pending = following, []
        self._may_break()

    def _may_break(self) -> None:
        if not self.calm and self.random.random() < self.failure * 2:
            raise RunFailedError

    def check(self) -> None:
        """Every row up to the last position is in the log once and in order, and group and checkpoint agree."""
        last = max(int(name) for name in self.files.list("commits"))
        text = self.files.read(f"offsets/{last}")
        assert text is not None
        committed = rows_of(text.decode().split("\n")[2])
        for name, count in committed.items():
            found = self.brokers.log.get(name, [])
            if found != list(range(count)):
                raise BrokenInvariantError(f"partition {name} was read up to {count}, and its log has {found}")
            position = self.brokers.group[_partition(name)].offset
            if position != count:
                raise BrokenInvariantError(f"the group is at {position} in partition {name}, the checkpoint at {count}")


class _LastingWriter(SourceOffsetsWriter):
    """The writer of one lane for its whole run."""

    def __init__(self, lane: SimulatedLane) -> None:
        self._lane = lane

    def write(self, batch: Any) -> None:
        self._lane.write(batch)

    def commitEpoch(self, epoch_id: int, position: PartitionOffset) -> WriterCommitMessage:
        return self._lane.commit()

    def setStates(self, states: Mapping[str, str]) -> None:
        self._lane.states = dict(states)

    def commitCost(self) -> int:
        return self._lane.cost

    def abort(self) -> None:
        """The next driver ends what is open."""

    def close(self) -> None:
        """Nothing is open."""


def _partition(name: str) -> TopicPartition:
    return TopicPartition(TOPIC, int(name))


class _Id:
    """`TransactionalId` of the driver."""

    def __init__(self, simulation: TransactionalSimulation, name: str) -> None:
        self._simulation, self._name = simulation, name

    def fence(self) -> OpenTransaction:
        found: OpenTransaction = self._simulation.step(lambda: self._simulation.brokers.fence(self._name))
        return found

    def join_group(self, transaction: OpenTransaction, group_id: str) -> None:
        """In V2 a group joins by its positions."""

    def end(self, transaction: OpenTransaction, *, commit: bool) -> OpenTransaction:
        simulation = self._simulation
        is_lost = not simulation.calm and simulation.random.random() < simulation.failure * 3
        if is_lost and simulation.random.random() < 0.5:
            raise TransactionInDoubtError("it did not arrive", condition="TEST")
        following: OpenTransaction = simulation.step(lambda: simulation.brokers.end(transaction, commit=commit))
        if is_lost:
            raise TransactionInDoubtError("the response was lost", condition="TEST")
        return following


class _Group:
    """`GroupPositions` of the driver."""

    def __init__(self, simulation: TransactionalSimulation) -> None:
        self._simulation = simulation

    def fetch(self) -> dict[TopicPartition, GroupPosition]:
        found: dict[TopicPartition, GroupPosition] = self._simulation.step(self._simulation.brokers.fetch)
        return found

    def commit_within(self, transaction: OpenTransaction, positions: Mapping[TopicPartition, GroupPosition]) -> None:
        self._simulation.step(lambda: self._simulation.brokers.set_positions(transaction, positions))


@contextmanager
def _borrowed(_: ConnectionOptions) -> Iterator[Any]:
    topic = TopicMetadata(TOPIC, _TOPIC_ID)
    yield SimpleNamespace(fetch_metadata=lambda _: SimpleNamespace(cluster_id="one", topics={TOPIC: topic}))


def one_by_one(work: Callable[[Any], Any], values: Iterable[Any], *_: Any) -> list[Any]:
    """`side_by_side` in a fixed order."""
    return [work(value) for value in values]
