"""The figures of the program's own process."""

from __future__ import annotations

from pyspark_kafka._base.counters import CLIENTS_IDLE, OUTAGES_ACTIVE, RETRIES, Counters
from pyspark_kafka._ops.metrics.export.exporter import Exporter
from pyspark_kafka._ops.metrics.store import MetricsStore


def test_program_shows_what_it_has_counted_and_zeros() -> None:
    counted = Counters()
    exporter = Exporter(store=MetricsStore(), counted=counted)
    counted.add_count(RETRIES, 3)
    counted.set(OUTAGES_ACTIVE, 1)
    counted.set(CLIENTS_IDLE, 2)
    found = {each.name: each.samples for each in exporter.now()}
    assert found["pyspark_kafka_retries"] == {(): 3}
    assert found["pyspark_kafka_throttle_seconds"] == {(): 0}
    assert found["pyspark_kafka_outages_active"] == {(): 1}
    assert found["pyspark_kafka_pool_clients"] == {("idle",): 2, ("lent",): 0}


def test_families_are_those_that_are_announced() -> None:
    exporter = Exporter(store=MetricsStore(), counted=Counters())
    assert [each.name for each in exporter.now()] == [each.name for each in exporter.known()]
