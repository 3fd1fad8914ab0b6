"""A continuous query under kills, short: `make test-chaos CONTINUOUS=at_least_once` is the long version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from chaos.continuous.checker import KillsFindings
from chaos.continuous.kills import PROGRAM, WORKER, Kill, do, rows_of
from chaos.continuous.striking import COUNTING, IN_WINDOWS
from chaos.continuous.world import KillWorld
from chaos.ledger import Ledger
from chaos.writer import SourceWriter
from kit.fixtures.broker import TopicMaker
from kit.log_checker import Kind

RATE = 100.0
# Some of each kind; `make test-chaos` has every point.
AT_LEAST_ONCE = [
    Kill(WORKER, "task_row"),
    Kill(WORKER, "before_report"),
    Kill(PROGRAM, "after_prepare"),
    Kill(PROGRAM, "before_recommit_log"),
]
EXACTLY_ONCE = [
    Kill(WORKER, "before_end_txn"),
    Kill(WORKER, "after_end_txn"),
    Kill(PROGRAM, "after_prepare"),
    Kill(PROGRAM, "after_fence"),
]
# Between the files of the state, the end of the transaction and the checkpoint.
WITH_STATE = [
    Kill(WORKER, "within_versions"),
    Kill(WORKER, "after_versions"),
    Kill(WORKER, "after_end_txn"),
    Kill(PROGRAM, "before_prepare"),
]
# Also while windows that have ended are returned.
IN_WINDOWS_KILLS = [Kill(WORKER, "task_row"), *WITH_STATE]


def after_kills(
    world: KillWorld, writer: SourceWriter, source: str, kills: Sequence[Kill], rate: float
) -> KillsFindings:
    """Kill processes of the query while records are written, let it read all of them, and judge its output."""
    writer.write(source, 3, rate)
    world.start()
    world.until(lambda: world.last_commit() >= 1, "no epoch was committed")
    for kill in kills:
        do(world, kill)
    writer.stop()
    world.finish()
    return world.findings([source], frozenset())


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "exactly_once",
    [pytest.param(False, marks=pytest.mark.full("The weaker guarantee")), True],
    ids=["at least once", "exactly once"],
)
def test_killed_query_loses_nothing_and_repeats_what_it_may(
    connect_url: str, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, exactly_once: bool
) -> None:
    source, target = make_topic(partitions=3), make_topic(partitions=2)
    with (
        SourceWriter([bootstrap_servers], Ledger()) as writer,
        KillWorld(tmp_path / "kills", bootstrap_servers, connect_url, source, target, exactly_once, seed=1) as world,
    ):
        kills = EXACTLY_ONCE if exactly_once else AT_LEAST_ONCE
        found = after_kills(world, writer, source, kills, RATE)
        assert not found.anomalies(exactly_once=exactly_once), found.examples
        assert found.expected > 100
        assert len(world.killed) == sum(kill.count for kill in kills), rows_of(world.killed)
        # Not one for each kill: a run that is killed before any of its rows is visible leaves no trace.
        assert found.runs > 1, rows_of(world.killed)
        assert world.ended() == []


@pytest.mark.full("Kills at every point")
@pytest.mark.timeout(300)
def test_killed_query_that_counts_has_every_count_right(
    connect_url: str, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=3), make_topic(partitions=2)
    place = tmp_path / "kills"
    with (
        SourceWriter([bootstrap_servers], Ledger()) as writer,
        KillWorld(place, bootstrap_servers, connect_url, source, target, True, seed=1, keeps=COUNTING) as world,
    ):
        found = after_kills(world, writer, source, WITH_STATE, RATE)
        assert not found.anomalies(), found.examples
        assert found.counted == found.expected > 100
        assert world.ended() == []


@pytest.mark.full("Kills at every point")
@pytest.mark.timeout(300)
def test_killed_query_writes_every_window_once_with_all_rows_but_late_ones(
    connect_url: str, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=3), make_topic(partitions=2)
    place = tmp_path / "kills"
    with (
        SourceWriter([bootstrap_servers], Ledger()) as writer,
        KillWorld(place, bootstrap_servers, connect_url, source, target, True, seed=1, keeps=IN_WINDOWS) as world,
    ):
        found = after_kills(world, writer, source, IN_WINDOWS_KILLS, 2 * RATE)
        assert not found.anomalies(), found.examples
        assert found.windows > 100
        assert found.late > 10
        assert world.ended() == []


@pytest.mark.full("Kills at every point")
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("shift", "kind"), [(-3, "read twice"), (3, "lost")], ids=["too early", "too late"])
def test_runs_that_begin_in_a_wrong_place_are_noticed(
    connect_url: str, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, shift: int, kind: Kind
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    with (
        SourceWriter([bootstrap_servers], Ledger()) as writer,
        KillWorld(tmp_path / "kills", bootstrap_servers, connect_url, source, target, False, 1, shift=shift) as world,
    ):
        writer.write(source, 2, RATE)
        world.start()
        world.until(lambda: world.last_commit() >= 1, "no epoch was committed")
        do(world, Kill(PROGRAM, "after_commit_log"))
        writer.stop()
        world.finish()
        found = world.findings([source], frozenset())
    assert kind in found.anomalies(exactly_once=False), found
