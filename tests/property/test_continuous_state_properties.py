"""State and exactly once over random orders of events: every count is right, and planted faults are found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings

from kit.fakes.simulated_ends import BrokenInvariantError, named_seed
from kit.fakes.simulated_state import StatefulSimulation
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka.checkpoint.state_names import StateVersion
from pyspark_kafka.continuous.run.states import QueryStates
from pyspark_kafka.continuous.state.history import StateHistory
from pyspark_kafka.continuous.state.lane_state import LaneState
from pyspark_kafka.continuous.state.version_files import PendingVersions
from pyspark_kafka.continuous.task.lane import Lane

# Of one test; the profile decides, as for the properties of Hypothesis.
SEEDS = settings().max_examples
pytestmark = pytest.mark.property
LIVES = 6
_FOUND = "a count is wrong|written again, with other content|is missing|does not have|by a query without this state"


def broken_by(seed: int, **faults: Any) -> str:
    """Return which invariant a seed finds broken; empty for none."""
    try:
        StatefulSimulation(seed, **faults).run(LIVES)
    except BrokenInvariantError as broken:
        return f"{broken} {broken.__cause__}"
    return ""


@pytest.mark.parametrize("first", range(0, 2 * SEEDS, SEEDS // 4 + 1))
def test_every_count_is_right_whoever_dies_when(first: int) -> None:
    deaths = runs = fenced = own_commits = restores = whole_states = late_looks = 0
    seeds = SEEDS // 4 + 1
    for seed in range(first, first + seeds):
        simulation = StatefulSimulation(seed)
        with named_seed(seed):
            simulation.run(LIVES)
        deaths += simulation.deaths
        runs += simulation.runs
        fenced += simulation.fenced
        own_commits += simulation.own_commits
        restores += simulation.restores
        whole_states += simulation.whole_states
        late_looks += simulation.late_looks
    assert deaths > seeds
    assert runs > seeds * 4
    assert fenced > seeds
    assert own_commits > seeds / 2
    assert restores > seeds / 8
    assert whole_states > seeds / 2
    assert late_looks > seeds / 2


class CommitsBeforeItWrites(Lane):
    """A transaction is ended before the versions that it names are written."""

    def _commit_with_position(self, epoch: int, writer: Any) -> Any:
        versions = self._versions
        assert versions is not None
        self._versions = replace(versions, deltas=())
        message = super()._commit_with_position(epoch, writer)
        self._versions = versions
        versions.write()
        return message


class NamesNoVersions(Lane):
    """The position is committed with the versions of the commit before it."""

    def _commit_with_position(self, epoch: int, writer: Any) -> Any:
        assert self._state is not None
        before = getattr(self, "before", dict(self._state.committed))
        self.before = dict(self._state.committed)
        real, self._state._committed = self._state._committed, before
        try:
            return super()._commit_with_position(epoch, writer)
        finally:
            self._state._committed = real


class NamesOfEpochs(LaneState):
    """All commits of an epoch have files of the same names."""

    def _version(self, parts: int) -> StateVersion:
        self._commits = 0
        return super()._version(parts)


class NamesOfNobody(LaneState):
    """Files do not name the run that writes them."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._writer = "w"


class ReportsTheLastCommit(LaneState):
    """A report has the versions of the last commit of its epoch only."""

    def end_epoch(self) -> PendingVersions:
        self._heads_of_epoch = {}
        return super().end_epoch()


class TakesTheCheckpointsState(KafkaTransactionalWrite):
    """The group is asked for positions, and not for their states."""

    def committedStates(self, epoch: int) -> Mapping[str, str | None]:
        return {}


class PreparesNoStates(KafkaTransactionalWrite):
    """The positions at the start of a run are set without their states."""

    def prepareStates(self, states: Mapping[str, str]) -> None:
        self._states = {}


class TakesWhatIsThere(QueryStates):
    """A version that is named and not there is replaced by that of the checkpoint."""

    def take_committed(self, found: Mapping[str, str | None]) -> None:
        before = self._versions
        try:
            super().take_committed(found)
        except Exception:  # noqa: BLE001 - the fault
            self._versions = before


@pytest.mark.parametrize(
    ("name", "fault", "first"),
    [
        ("new_lane", CommitsBeforeItWrites, 0),
        ("new_lane", NamesNoVersions, 0),
        ("state", NamesOfEpochs, 0),
        ("state", NamesOfNobody, 0),
        # A key group that changes in a commit within an epoch, and not in the last one; then a death at that place.
        ("state", ReportsTheLastCommit, 50),
        ("write", TakesTheCheckpointsState, 0),
        ("write", PreparesNoStates, 0),
    ],
    ids=lambda case: case.__name__ if isinstance(case, type) else "",
)
def test_simulation_finds_a_planted_fault_of_states(name: str, fault: type, first: int) -> None:
    assert any(re.search(_FOUND, broken_by(seed, **{name: fault})) for seed in range(first, first + 60))


def test_simulation_finds_versions_that_are_removed_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StateHistory, "whole_written", lambda _, epoch, __: epoch)
    assert any(re.search(_FOUND, broken_by(seed)) for seed in range(60))


def test_simulation_finds_a_driver_that_takes_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_kafka.continuous.run.commits.QueryStates", TakesWhatIsThere)
    assert any("a count is wrong" in broken_by(seed) for seed in range(60))
