"""What processes have counted, as families of series."""

from __future__ import annotations

from pyspark_kafka._base import counters
from pyspark_kafka._base.counters import Counters
from pyspark_kafka._connector.spark.processes.counter_files import ProcessTotals
from pyspark_kafka._ops.metrics.export.families import Histogram
from pyspark_kafka._ops.metrics.export.process_families import PROCESS_FAMILIES, process_families


def shown(totals: dict[str, ProcessTotals]) -> dict[str, dict[tuple[str, ...], float | Histogram]]:
    return {each.name: each.samples for each in process_families(totals) if each.samples}


def test_nothing_is_shown_of_processes_that_nobody_has_heard_of() -> None:
    assert shown({}) == {}


def test_a_role_has_zeros_of_what_it_could_have_met_and_nothing_else() -> None:
    zero = {("driver",): 0.0}
    assert shown({"driver": ProcessTotals(1, {counters.CLIENTS_IDLE: 1})}) == {
        "pyspark_kafka_processes": {("driver",): 1},
        "pyspark_kafka_retries": zero,
        "pyspark_kafka_throttle_seconds": zero,
        "pyspark_kafka_outages": zero,
        "pyspark_kafka_outage_seconds": zero,
        "pyspark_kafka_outages_active": zero,
        "pyspark_kafka_lost_offsets": zero,
        "pyspark_kafka_pool_clients": {("driver", "idle"): 1},
    }
    task = shown({"task": ProcessTotals(1, {})})
    assert task["pyspark_kafka_bad_records"] == {("task",): 0}
    assert "pyspark_kafka_transaction_duration_seconds" not in task


def test_transactions_are_a_histogram() -> None:
    made = Counters()
    for seconds in (0.004, 0.2, 0.2, 100.0):
        made.transaction(seconds)
    found = shown({"driver": ProcessTotals(1, made.values())})["pyspark_kafka_transaction_duration_seconds"]
    histogram = found["driver",]
    assert isinstance(histogram, Histogram)
    assert histogram.total == 100.404
    assert (histogram.counts[0], sum(histogram.counts), histogram.counts[-1]) == (1, 4, 1)
    assert histogram.counts[counters.TRANSACTION_BUCKETS.index(0.25)] == 2


def test_a_client_that_a_fork_took_along_makes_no_negative_number() -> None:
    found = shown({"task": ProcessTotals(1, {counters.CLIENTS_LENT: -1})})
    assert found["pyspark_kafka_pool_clients"] == {("task", "lent"): 0}


def test_families_are_those_that_are_announced() -> None:
    found = process_families({"task": ProcessTotals()})
    assert [each.name for each in found] == [each.name for each in PROCESS_FAMILIES]
