"""Epochs of a continuous query over random orders of events, failures, deaths of the driver, and numbers of lanes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings

from kit.fakes.simulated_ends import BrokenInvariantError, named_seed
from kit.fakes.simulated_lane import INTERVAL_MS
from kit.fakes.simulated_query import Simulation
from kit.fakes.simulated_transactions import TransactionalSimulation
from pyspark_kafka._connector.sink.driver import transactional
from pyspark_kafka._connector.sink.driver.lane_record_file import LaneRecordFile
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka.checkpoint.continuous_files import OWNER
from pyspark_kafka.continuous.epochs.coordinator import CommitEpoch, EpochCommand, EpochCoordinator
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.recovery import recover
from pyspark_kafka.continuous.run.commits import EpochCommits
from pyspark_kafka.continuous.task.lane import Lane
from pyspark_kafka.continuous.task.stages import MapInArrow

# Of one test; the profile decides, as for the properties of Hypothesis.
SEEDS = settings().max_examples
pytestmark = pytest.mark.property
LIVES = 6
# Of a call to the checkpoint.
_OUTAGE = 0.03


def broken_by(seed: int, kind: type[Simulation] = Simulation, **faults: Any) -> str | None:
    """Return which invariant a seed finds broken."""
    try:
        kind(seed, **faults).run(LIVES)
    except BrokenInvariantError as broken:
        return str(broken)
    return None


def finds(wanted: str, broken: Iterable[str | None]) -> bool:
    """Whether an invariant of a pattern is broken by one of the seeds, which are tried until then."""
    return any(re.search(wanted, each) for each in broken if each is not None)


@pytest.mark.parametrize("first", range(0, 4 * SEEDS, SEEDS))
def test_every_committed_row_is_in_the_sink_once_whoever_dies_when(first: int) -> None:
    deaths = runs = epochs = 0
    for seed in range(first, first + SEEDS):
        simulation = Simulation(seed)
        with named_seed(seed):
            simulation.run(LIVES)
        deaths += simulation.deaths
        runs += simulation.runs
        epochs += len(simulation.sink.epochs)
    assert deaths > SEEDS
    assert runs > SEEDS * 8
    assert epochs > SEEDS * 5


@pytest.mark.parametrize("first", range(0, 2 * SEEDS, SEEDS))
def test_every_row_is_in_the_log_once_whatever_becomes_of_transactions(first: int) -> None:
    deaths = runs = fenced = own_commits = changes_of_pace = 0
    for seed in range(first, first + SEEDS):
        simulation = TransactionalSimulation(seed)
        with named_seed(seed):
            simulation.run(LIVES)
        deaths += simulation.deaths
        runs += simulation.runs
        fenced += simulation.fenced
        own_commits += simulation.own_commits
        changes_of_pace += simulation.changes_of_pace
    assert deaths > SEEDS
    assert runs > SEEDS * 5
    # Lanes of older runs that tried to commit.
    assert fenced > SEEDS
    # Those that did not wait for a slow one.
    assert own_commits > SEEDS
    assert changes_of_pace > SEEDS / 2


@pytest.mark.parametrize("kind", [Simulation, TransactionalSimulation])
def test_every_row_is_there_once_though_the_checkpoint_is_away_at_times(kind: type[Simulation]) -> None:
    outages = epochs = 0
    for seed in range(SEEDS):
        simulation = kind(seed, outage=_OUTAGE)
        with named_seed(seed):
            simulation.run(LIVES)
        outages += simulation.outages
        epochs += len(simulation.files.list("commits"))
    assert outages > SEEDS
    assert epochs > SEEDS * 2


def test_every_row_is_in_the_log_once_though_the_checkpoint_loses_the_partitions_of_the_group() -> None:
    broken = {seed: broken_by(seed, TransactionalSimulation, record_file=LosesPartitions) for seed in range(SEEDS)}
    assert not any(broken.values()), broken


class CommitsBeforeItPrepares(EpochFiles):
    """The sink's commit comes before the files of the epoch."""

    def prepare(self, *arguments: Any) -> None:
        self.kept_back = arguments

    def write_commit(self, epoch: int, state: str = "") -> None:
        if hasattr(self, "kept_back"):
            super().prepare(*self.kept_back)
        super().write_commit(epoch, state)


class MissesALane(EpochCoordinator):
    """An epoch is committed when all lanes but one have reported it."""

    def _commit_next(self) -> list[EpochCommand]:
        epoch = self._epochs.get(self._uncommitted)
        if self._lanes > 1 and epoch is not None and not self._committing and len(epoch.reports) == self._lanes - 1:
            self._committing = True
            return [CommitEpoch(self._uncommitted, tuple(epoch.reports.values()))]
        return super()._commit_next()

    def reported(self, report: Any) -> list[EpochCommand]:
        return super().reported(report) if report.epoch in self._epochs else []


class CommitsTheNewest(EpochCoordinator):
    """The epoch that is committed has the reports of the one after it, if they are there."""

    def _commit_next(self) -> list[EpochCommand]:
        actions: list[EpochCommand] = []
        for action in super()._commit_next():
            after = self._epochs.get(self._uncommitted + 1)
            if isinstance(action, CommitEpoch) and after is not None and len(after.reports) == self._lanes:
                actions.append(CommitEpoch(action.epoch, tuple(after.reports[lane] for lane in range(self._lanes))))
            else:
                actions.append(action)
        return actions


class AbortsWhatIsPrepared(EpochCommits):
    """An abort spares no epoch."""

    def abort(self, open_reports: Any) -> None:
        self._prepared = None
        super().abort(open_reports)


class MessagesAreLast(EpochFiles):
    """The offsets of an epoch are in the checkpoint before its messages."""

    def prepare(self, epoch: int, offset: str, messages: Sequence[str], now_ms: int, state: str = "") -> None:
        super().prepare(epoch, offset, messages, now_ms, state)
        name = f"continuous/messages/{self._files.list('continuous/messages')[-1]}"
        text = self._files.read(name)
        assert text is not None
        self._files.delete(name)
        self._files.replace(name, text)


class WritesToAnEmptyDirectory(EpochFiles):
    """Nobody looks whether the checkpoint is still there."""

    def check_owner(self) -> None:
        if self._files.read(OWNER) is not None:
            super().check_owner()


class ForgetsTheUnfinished(EpochCommits):
    """An epoch that was to be committed counts as committed."""

    def resume(self) -> int:
        unfinished = recover(self._files, self._epochs).unfinished
        if unfinished is not None:
            self._epochs.write_commit(unfinished.epoch)
        return super().resume()


class CountsFromTheStartOfTheMachine(EpochCoordinator):
    """The first epoch of a run is as old as the machine is up."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._current_since_ms = 0


class TrustsFunctions(MapInArrow):
    """Nobody looks whether a function has read its input to the end."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.function(batches)


def first_only(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return early, so that what the function before holds back is lost."""
    yield from itertools.islice(batches, 1)


def all_at_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hold everything back."""
    yield from list(batches)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (CountsFromTheStartOfTheMachine, "ended before its time"),
        (TrustsFunctions, "has row .* after"),
        (WritesToAnEmptyDirectory, "was aborted after its commit"),
        (CommitsBeforeItPrepares, "by the checkpoint"),
        (MissesALane, "the sink"),
        (CommitsTheNewest, "has row .* after"),
        (AbortsWhatIsPrepared, "with rows that were aborted"),
        (MessagesAreLast, "cannot be continued"),
        (ForgetsTheUnfinished, "the sink"),
        (None, "has row .* after"),
    ],
    ids=lambda case: case.__name__ if isinstance(case, type) else "",
)
def test_simulation_finds_a_planted_fault(fault: type | None, found: str) -> None:
    if fault is None:
        faults: dict[str, Any] = {"skewed": True}
    elif fault is TrustsFunctions:
        schema = pa.schema({})
        faults = {"stages": [fault(all_at_once, schema), fault(first_only, schema)]}
    else:
        base = fault.__mro__[1]
        names = {EpochFiles: "epochs", EpochCoordinator: "coordinator", EpochCommits: "commits"}
        faults = {names[base]: fault}
    if fault is WritesToAnEmptyDirectory:
        faults["outage"] = _OUTAGE
    assert finds(found, (broken_by(seed, **faults) for seed in range(120)))


class WaitsForTheDriver(Lane):
    """A lane ends no transaction before the driver ends its epoch."""

    epoch_s = float("inf")


def test_simulation_finds_lanes_that_wait_for_a_slow_one() -> None:
    broken = (broken_by(seed, TransactionalSimulation, lane=WaitsForTheDriver) for seed in range(60))
    assert finds("keeps rows of epoch .* open", broken)


class IsNotTold(Lane):
    """A lane commits by its own clock as often as the trigger says, though epochs are longer."""

    epoch_s = INTERVAL_MS / 1000


def test_simulation_finds_lanes_that_know_nothing_of_longer_epochs() -> None:
    broken = (broken_by(seed, TransactionalSimulation, lane=IsNotTold) for seed in range(100))
    assert finds("commits by its own clock after", broken)


class TakesTheCheckpointsWord(KafkaTransactionalWrite):
    """The group is not asked where the query continues."""

    def committedOffset(self, start: Any) -> str:
        return str(start.json())


class ReadsTheGroupFirst(KafkaTransactionalWrite):
    """The group is read before the lanes of the last run are fenced."""

    def takeOver(self) -> None:
        # Of the simulation.
        brokers: Any = transactional
        before = brokers.GroupPositions(None, "").fetch() if self._group else None
        super().takeOver()
        if before:
            self._group = before


class FencesTheFirstOnly(KafkaTransactionalWrite):
    """Other lanes than the first are not taken over again; they continue where the last run was."""

    def _fence(self, lanes: Any) -> Any:
        known = self._transactions
        return [
            known[lane] if 0 < lane < len(known) else super(FencesTheFirstOnly, self)._fence([lane])[0]
            for lane in lanes
        ]


class ForgetsLanes(LaneRecordFile):
    """How many lanes may have written is not in the checkpoint."""

    def write(self, record: Any) -> None:
        super().write(replace(record, lanes=0))


class ForgetsPartitions(LaneRecordFile):
    """Of which partitions the group has a position is in the checkpoint for one of them only."""

    def write(self, record: Any) -> None:
        super().write(replace(record, partitions=dict(list(record.partitions.items())[:1])))


class LosesPartitions(LaneRecordFile):
    """No partition of the group is in the checkpoint."""

    def write(self, record: Any) -> None:
        super().write(replace(record, partitions={}))


@pytest.mark.parametrize(
    "fault",
    [TakesTheCheckpointsWord, ReadsTheGroupFirst, FencesTheFirstOnly, ForgetsLanes, ForgetsPartitions],
    ids=lambda fault: fault.__name__,
)
def test_simulation_finds_a_planted_fault_of_transactions(fault: type) -> None:
    name = "record_file" if issubclass(fault, LaneRecordFile) else "write"
    broken = (broken_by(seed, TransactionalSimulation, **{name: fault}) for seed in range(100))
    assert finds("its log has|undecided|the group is at", broken)
