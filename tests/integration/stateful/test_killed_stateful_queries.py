"""Stateful queries on Kafka, killed in the middle of a micro-batch and continued from their checkpoints.

All queries are in one driver, which is killed when each of them stands at a point of its own.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from faults.harness import Stop
from faults.stateful.events import RECORDS, watermark_ms
from faults.stateful.expected import expected
from faults.stateful.world import StatefulWorld
from pyspark_kafka.testing import EmbeddedKafka

pytestmark = pytest.mark.full("Kills at every point")

# Of all queries together.
MAX_S = 500.0


def make_name() -> str:
    return f"s{uuid.uuid4().hex[:8]}"


def check(world: StatefulWorld, query: str) -> None:
    """Compare what a query wrote, and how it was planned, with what it should be."""
    wanted, found = expected(query, world.batches), world.written(query)
    assert found == wanted, f"{query}: missing {wanted - found}, too many {found - wanted}"
    for batch, (ends, watermark) in world.planned(query).items():
        if batch < world.batches:
            assert (query, batch, watermark) == (query, batch, watermark_ms(batch))
            assert all(end == RECORDS * (batch + 1) for partitions in ends for end in partitions)


def kill_at(world: StatefulWorld, stops: list[Stop]) -> None:
    """Run all queries until each has come to its stop, and kill their driver."""
    with world.driver(*stops) as driver:
        for stop in stops:
            driver.await_stop(stop)
        driver.kill()


def run_to_end(world: StatefulWorld) -> None:
    with world.driver() as driver:
        assert driver.await_end(seconds=MAX_S) == 0, driver.log


@pytest.mark.timeout(600)
def test_stateful_queries_killed_in_a_batch_continue_with_their_state(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    stops = [
        Stop(2, "after_end", query="append"),
        Stop(1, "before_end", query="complete"),
        Stop(3, "source_read", query="dedup"),
        Stop(2, "task_prepared", query="outer"),
        Stop(2, "task_row", query="state"),
    ]
    queries = [stop.query for stop in stops]
    world = StatefulWorld(kafka, tmp_path, make_name(), queries, 4, rocksdb={"state", "dedup"})
    kill_at(world, stops)
    run_to_end(world)
    for query in queries:
        check(world, query)
