"""Micro-batches whose tasks commit, over random deaths, pauses, late attempts and lost responses of several drivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings

from kit.fakes.simulated_task_commits import SINK, TIMEOUT_MS, BrokenInvariantError, Simulation
from pyspark_kafka._client.client.transactions.open_transaction import Generation
from pyspark_kafka._connector.sink.driver.tasks import commits as task_commits
from pyspark_kafka._connector.sink.driver.tasks.commits import TaskCommits
from pyspark_kafka._connector.sink.tasks.transactions import TaskTransaction

# Of one test; the profile decides, as for the properties of Hypothesis.
SEEDS = settings().max_examples
pytestmark = pytest.mark.property
BATCHES = 6


def broken_by(seed: int, generation: Generation = Generation.V2, **settings: Any) -> str | None:
    """Return which invariant a seed finds broken."""
    try:
        Simulation(seed, generation, **settings).run(BATCHES)
    except BrokenInvariantError as broken:
        return str(broken)
    return None


@pytest.mark.parametrize("first", range(0, 4 * SEEDS, SEEDS))
@pytest.mark.parametrize("generation", Generation)
def test_every_part_of_a_batch_is_visible_once_whoever_dies_or_stands_still(generation: Generation, first: int) -> None:
    assert not [seed for seed in range(first, first + SEEDS) if broken_by(seed, generation)]


@pytest.mark.parametrize("generation", Generation)
def test_parts_are_lost_only_by_the_time_after_a_decision_and_are_reported(generation: Generation) -> None:
    reported = 0
    for seed in range(SEEDS):
        simulation = Simulation(seed, generation, slow=True)
        simulation.run(BATCHES)
        reported += len(simulation.incomplete)
    assert reported


class Careless(TaskCommits):
    """Begins to end transactions before the decision is written."""

    def commit_batch(self, planning: Any, ours: Any, tasks: Sequence[TaskTransaction]) -> Any:
        self._calls.commit_tasks(tasks[:1])
        return super().commit_batch(planning, ours, tasks)


class Forgetful(TaskCommits):
    """Leaves a decision that it finds to others."""

    def _complete(self, transaction: Any, decided: Any, *, next_pool: str) -> Any:
        if not next_pool:
            return decided, transaction
        return super()._complete(transaction, decided, next_pool=next_pool)


class Greedy(TaskCommits):
    """Aborts what is open whoever has opened it."""

    def plan(self, ours: Any) -> Any:
        planning = super().plan(ours)
        self._calls.abort_tasks(sorted(self._calls.open_tasks(f"{SINK}-")))
        return planning


class Rash(TaskCommits):
    """Aborts what is open when a commit has failed, decided or not."""

    def abort(self, planning: Any) -> None:
        self._abort_open(planning.pool)


class Trusting(TaskCommits):
    """Uses the pool again whose driver it has replaced."""

    def _complete(self, transaction: Any, decided: Any, *, next_pool: str) -> Any:
        return super()._complete(transaction, decided, next_pool=next_pool or decided.decision.pool)

    def _renew(self, transaction: Any, marker: Any) -> Any:
        return transaction if marker.decision.is_complete else super()._renew(transaction, marker)


class Unhurried(TaskCommits):
    """Commits a decision however late."""

    def _write(self, transaction: Any, marker: Any, *others: Any) -> Any:
        return super()._write(transaction, replace(marker, decision=replace(marker.decision, until_ms=None)), *others)


@pytest.mark.parametrize("generation", Generation)
def test_simulation_finds_a_decision_on_transactions_that_are_almost_over(generation: Generation) -> None:
    found = (
        broken_by(seed, generation, slow=True, commits=lambda calls: Unhurried(calls, SINK, TIMEOUT_MS))
        for seed in range(4_000)
    )
    assert any("decided too late" in (each or "") for each in found)


@pytest.mark.parametrize("fault", [Careless, Forgetful, Greedy, Rash, Trusting])
def test_simulation_finds_a_driver_that_breaks_the_protocol(fault: type[TaskCommits]) -> None:
    found = (broken_by(seed, slow=False, commits=lambda calls: fault(calls, SINK, TIMEOUT_MS)) for seed in range(4_000))
    assert any(found)


def test_simulation_finds_pools_that_are_continued_though_someone_has_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_commits, "continue_pool", lambda found, _: found and found.is_complete and found.pool)
    assert any(broken_by(seed) for seed in range(4_000))
