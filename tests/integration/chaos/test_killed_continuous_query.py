"""A continuous query under kills, short: `make test-chaos CONTINUOUS=at_least_once` is the long version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chaos.continuous.kills import PROGRAM, WORKER, Kill, do, table
from chaos.continuous.world import KillWorld
from chaos.ledger import Ledger
from chaos.writer import SourceWriter

if TYPE_CHECKING:
    from pathlib import Path

    from kit.fixtures.broker import TopicMaker

RATE = 100.0
# One of each kind; `make test-chaos` has every point.
KILLS = [
    Kill(WORKER, "task_row"),
    Kill(WORKER, "before_report"),
    Kill(PROGRAM, "after_prepare"),
    Kill(PROGRAM, "before_recommit_log"),
]


@pytest.mark.timeout(300)
def test_killed_query_repeats_nothing_that_was_committed(
    connect_url: str, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=3), make_topic(partitions=2)
    place = tmp_path / "kills"
    place.mkdir()
    with (
        SourceWriter([bootstrap_servers], Ledger()) as writer,
        KillWorld(place, bootstrap_servers, connect_url, source, target, exactly_once=False, seed=1) as world,
    ):
        writer.write(source, 3, RATE)
        world.start()
        world.until(lambda: world.last_commit() >= 1, "no epoch was committed")
        for kill in KILLS:
            do(world, kill)
        writer.stop()
        world.finish()
        report = world.report([source], frozenset())
        assert not report.anomalies(exactly_once=False), dict(report.examples)
        assert report.sent > 100
        # The engine has run once, and once more after each kill.
        assert report.runs > len(KILLS), table(world.killed)
        assert world.ended() == []
