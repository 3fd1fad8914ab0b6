"""The steps of a long run: each fault alone, and brokers' faults never two at once."""

from __future__ import annotations

import itertools
import random

from chaos.continuous.faults import ALONE, FAILING, FAULTS_OF_FLOWS
from chaos.faults import FAULTS, OF_BROKERS
from chaos.run import steps
from kit.fakes.clock import Clock


def test_every_fault_comes_alone_before_any_comes_with_others() -> None:
    first = list(itertools.islice(steps(60, random.Random(1), Clock(0.0, tick=10.0)), len(FAULTS)))
    assert {step[0] for step in first} == set(FAULTS)
    assert all(len(step) == 1 for step in first)


def test_steps_never_have_two_faults_of_brokers_at_once() -> None:
    found = list(steps(60, random.Random(1), Clock(0.0, tick=10.0)))
    overlapping = [step for step in found if len(step) > 1]
    assert overlapping
    assert all(len(set(step) & set(OF_BROKERS)) <= 1 for step in found)
    assert all(len(set(step)) == len(step) for step in found)


def test_steps_end_when_the_time_is_over() -> None:
    assert len(list(steps(2, random.Random(1), Clock(0.0, tick=10.0)))) == 12


def test_steps_are_those_of_their_seed() -> None:
    of = [list(steps(20, random.Random(seed), Clock(0.0, tick=10.0))) for seed in (1, 1, 2)]
    assert of[0] == of[1] != of[2]


def test_steps_of_continuous_queries_have_all_faults_and_never_two_that_fail_a_run() -> None:
    found = list(steps(120, random.Random(1), Clock(0.0, tick=10.0), continuous=True))
    assert {kind for step in found for kind in step} == {*FAULTS, *FAULTS_OF_FLOWS}
    assert all(len(set(step) & set(FAILING)) <= 1 for step in found)
    assert all(len(step) == 1 for step in found if set(step) & set(ALONE))
