"""Seeds at which a simulation has found a defect are run again: no defect comes back.

`seeds.txt` has one line for each. The properties search new seeds (`tests/property`), and move on when a simulation
draws otherwise; these seeds stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kit.fakes import simulated_task_commits
from kit.fakes.simulated_query import Simulation
from kit.fakes.simulated_state import StatefulSimulation
from kit.fakes.simulated_timers import TimedSimulation
from kit.fakes.simulated_transactions import TransactionalSimulation
from pyspark_kafka._client.client.transactions.open_transaction import Generation

LINES = [
    line.split(maxsplit=2)
    for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
# As in the properties: the lives of a query, the batches of a sink.
LIVES, BATCHES = 6, 6


def run_tasks(seed: int, *, slow: bool) -> None:
    for generation in Generation:
        simulated_task_commits.Simulation(seed, generation, slow=slow).run(BATCHES)


SIMULATIONS: Mapping[str, Callable[[int], None]] = {
    "continuous": lambda seed: Simulation(seed).run(LIVES),
    "continuous-once": lambda seed: TransactionalSimulation(seed).run(LIVES),
    "state": lambda seed: StatefulSimulation(seed).run(LIVES),
    "timers": lambda seed: TimedSimulation(seed).run(LIVES),
    "tasks": lambda seed: run_tasks(seed, slow=False),
    "tasks-slow": lambda seed: run_tasks(seed, slow=True),
}


@pytest.mark.parametrize(("simulation", "seed", "defect"), LINES, ids=[f"{line[0]}-{line[1]}" for line in LINES])
def test_seed_breaks_no_invariant_again(simulation: str, seed: str, defect: str) -> None:
    assert defect
    SIMULATIONS[simulation](int(seed))
