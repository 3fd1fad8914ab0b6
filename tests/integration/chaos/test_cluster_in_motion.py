"""Queries on a cluster in motion, short: `make test-chaos` is the long version."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.continuous.checker import KillsFindings
from chaos.continuous.planted import BEGINS_AGAIN, GIVES_UP, KEEPS_POISON, SWAPS, WAITS
from chaos.run import run
from chaos.world import continuous_queries, usual_queries

# Real brokers, though not the shared one that the fixtures' marker is derived from.
pytestmark = [pytest.mark.full("Cluster in motion"), pytest.mark.timeout(600)]

SHORT = 0.1
WATERMARK_S = 10
SEED = 4


def test_queries_outlive_brokers_and_wires_that_fail(tmp_path: Path) -> None:
    steps = [
        ("kill -9", "wire: byte by byte"),
        ("leaders moved", "wire: response cut"),
        ("topic recreated at once", "wire: reset"),
        ("partitions added", "read records deleted"),
    ]
    queries = usual_queries(tmp_path, WATERMARK_S)
    outcome = run(tmp_path, queries, lambda _: steps, SEED, longest=SHORT, calm_s=(0.5, 1.0))
    assert not outcome.anomalies, f"{outcome.text()}\n{outcome.details()}"
    assert not outcome.vanished
    assert all(found.records for found in outcome.findings.values()), outcome.text()
    assert {strike.kind for strike in outcome.strikes} == {kind for step in steps for kind in step}


def test_continuous_queries_outlive_what_fails_around_them(tmp_path: Path) -> None:
    steps = [
        ("checkpoint fails", "wire: response cut"),
        ("worker frozen", "poison records"),
        ("leaders moved", "function raises"),
    ]
    queries = continuous_queries(tmp_path)
    outcome = run(tmp_path, queries, lambda _: steps, SEED, batch_jobs=False, longest=SHORT, calm_s=(0.5, 1.0))
    assert not outcome.anomalies, f"{outcome.text()}\n{outcome.details()}"
    assert not outcome.vanished
    assert all(found.records for found in outcome.findings.values()), outcome.text()
    assert all(found.letters for found in outcome.findings.values() if isinstance(found, KillsFindings))


@pytest.mark.long
def test_planted_bugs_are_noticed(tmp_path: Path) -> None:
    plants = {"plain": "reads_again", "once": "publishes_again", "pattern": "skips"}
    queries = usual_queries(tmp_path, WATERMARK_S, plants)
    outcome = run(tmp_path, queries, lambda _: [("leaders moved",)], SEED, longest=SHORT, calm_s=(8.0, 10.0))
    found = outcome.findings
    assert found["plain"]["read twice"], outcome.details()
    assert found["once"]["duplicated"], outcome.details()
    assert found["pattern"]["lost"], outcome.details()
    # The query without a bug is not suspected.
    assert not found["totals"].examples, outcome.details()
    assert {"read twice", "duplicated", "lost"} <= set(outcome.anomalies)


@pytest.mark.long
def test_planted_bugs_of_continuous_queries_are_noticed(tmp_path: Path) -> None:
    plants = {"flow": (SWAPS, GIVES_UP), "flow-once": (WAITS, BEGINS_AGAIN), "flow-pattern": (KEEPS_POISON,)}
    queries = continuous_queries(tmp_path, plants)
    steps = [("lane slow",), ("function raises", "poison records"), ("function raises",), ("worker killed",)]
    outcome = run(tmp_path, queries, lambda _: steps, SEED, batch_jobs=False, longest=SHORT, calm_s=(4.0, 5.0))
    found = outcome.findings
    assert found["flow"]["out of order"], outcome.details()
    assert found["flow-once"]["held"], outcome.details()
    assert found["flow-once"]["duplicated"], outcome.details()
    assert found["flow-pattern"]["misdirected"], outcome.details()
    assert {query for _, query, _ in outcome.ended} == {"flow"}, outcome.details()
    assert not outcome.lost, outcome.details()
