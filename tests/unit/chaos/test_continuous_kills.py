"""The kills of a long run: as many as were asked for, each kind as often as the others."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from chaos.continuous.kills import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    EXECUTOR,
    FROZEN,
    PROGRAM,
    RANDOM_MOMENT,
    WITH_STATE,
    WORKER,
    Kill,
    plan,
    rows_of,
)
from chaos.continuous.world import Killed


@pytest.mark.parametrize(
    "kinds", [AT_LEAST_ONCE, EXACTLY_ONCE, WITH_STATE], ids=["at least once", "exactly once", "with state"]
)
def test_plan_has_every_kind_about_as_often(kinds: list[Kill]) -> None:
    found = list(plan(kinds, 200, random.Random(1), executors=5, frozen=2))
    assert 200 <= sum(kill.count for kill in found) <= 201
    assert Counter(kill.who for kill in found)[EXECUTOR] == 5
    assert Counter(kill.who for kill in found)[FROZEN] == 2
    times = Counter(kill for kill in found if kill.point)
    assert set(times) == {kill for kill in kinds if kill.point}
    assert max(times.values()) - min(times.values()) <= 1


def test_plan_of_few_kills_has_what_is_dear_as_well() -> None:
    found = list(plan(AT_LEAST_ONCE, 6, random.Random(1), executors=1, frozen=1))
    assert {EXECUTOR, FROZEN} <= {kill.who for kill in found}


def test_plan_is_that_of_its_seed() -> None:
    first, again, other = (list(plan(AT_LEAST_ONCE, 50, random.Random(seed))) for seed in (1, 1, 2))
    assert first == again != other


def test_table_has_a_row_for_each_place() -> None:
    killed = [
        Killed(WORKER, RANDOM_MOMENT, 1.0),
        Killed(PROGRAM, "before the sink's commit", 2.0),
        Killed(PROGRAM, "before the sink's commit", 5.0),
        Killed(PROGRAM, "before the sink's commit", 3.0),
    ]
    assert rows_of(killed) == [
        [PROGRAM, "before the sink's commit", 3, "3.0 s", "5.0 s"],
        [WORKER, RANDOM_MOMENT, 1, "1.0 s", "1.0 s"],
    ]
