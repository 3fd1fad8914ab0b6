"""What the processes of this package have met at the brokers and in records, as families of series. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._base import counters
from pyspark_kafka._ops.metrics.export.families import Family, Histogram, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._connector.spark.processes.counter_files import ProcessTotals

_PROCESS = ("process",)
_STATE = (*_PROCESS, "state")

PROCESSES = Family(
    "pyspark_kafka_processes",
    Kind.GAUGE,
    "",
    "Live Python processes that reported metrics: processes of tasks, and of the driver for planning and commits.",
    _PROCESS,
)
_COUNTED = {
    counters.RETRIES: Family(
        "pyspark_kafka_retries", Kind.COUNTER, "", "Pauses before a request to a broker was repeated.", _PROCESS
    ),
    counters.THROTTLE_SECONDS: Family(
        "pyspark_kafka_throttle_seconds",
        Kind.COUNTER,
        "seconds",
        "Time for which brokers throttled this client because of quotas.",
        _PROCESS,
    ),
    counters.OUTAGES: Family(
        "pyspark_kafka_outages",
        Kind.COUNTER,
        "",
        "Outages of brokers of 5 s and longer, as logged, counted in each process that waits.",
        _PROCESS,
    ),
    counters.OUTAGE_SECONDS: Family(
        "pyspark_kafka_outage_seconds",
        Kind.COUNTER,
        "seconds",
        "Total time of outages of brokers of 5 s and longer, until now.",
        _PROCESS,
    ),
    counters.OUTAGES_ACTIVE: Family(
        "pyspark_kafka_outages_active",
        Kind.GAUGE,
        "",
        "Outages of brokers of 5 s and longer that continue now.",
        _PROCESS,
    ),
    counters.LOST_OFFSETS: Family(
        "pyspark_kafka_lost_offsets",
        Kind.COUNTER,
        "",
        "Deleted offsets that tasks or planning skipped, with failOnDataLoss=false; 1 for a loss of unknown size.",
        _PROCESS,
    ),
}
_COUNTED_BY_TASKS = {
    counters.BAD_RECORDS: Family(
        "pyspark_kafka_bad_records",
        Kind.COUNTER,
        "",
        "Records with a typed key or value that could not be decoded; a repeated task counts again.",
        _PROCESS,
    ),
    counters.DROPPED_RECORDS: Family(
        "pyspark_kafka_dropped_records",
        Kind.COUNTER,
        "",
        "Records with a typed key or value that could not be decoded, dropped by mode DROPMALFORMED.",
        _PROCESS,
    ),
}
TRANSACTION_DURATION = Family(
    "pyspark_kafka_transaction_duration_seconds",
    Kind.HISTOGRAM,
    "seconds",
    "Duration of committed transactions of exactly-once sinks, from the first record to the end.",
    _PROCESS,
    bounds=counters.TRANSACTION_BUCKETS,
)
POOL_CLIENTS = Family(
    "pyspark_kafka_pool_clients",
    Kind.GAUGE,
    "",
    "Pooled clients in use, and pooled clients that were idle at the last change of the pool.",
    _STATE,
)
POOL_PRODUCERS = Family(
    "pyspark_kafka_pool_producers",
    Kind.GAUGE,
    "",
    "Pooled producers in use, and pooled producers that were idle at the last change of the pool.",
    _STATE,
)

PROCESS_FAMILIES = (
    PROCESSES,
    *_COUNTED.values(),
    *_COUNTED_BY_TASKS.values(),
    TRANSACTION_DURATION,
    POOL_CLIENTS,
    POOL_PRODUCERS,
)
"""What is shown about processes."""

_POOLS = (
    (POOL_CLIENTS, counters.CLIENTS_IDLE, counters.CLIENTS_LENT),
    (POOL_PRODUCERS, counters.PRODUCERS_IDLE, counters.PRODUCERS_LENT),
)


def process_families(totals: Mapping[str, ProcessTotals]) -> list[Family]:
    """Return the figures of processes by role; nothing for a role of which no process was heard of.

    Args:
        totals: by role, `task` or `driver`.
    """
    values = {role: each.values for role, each in totals.items()}
    found = [PROCESSES.of(((role,), each.processes) for role, each in totals.items())]
    found += [
        family.of(((role,), max(0.0, each.get(name, 0.0))) for role, each in values.items())
        for name, family in _COUNTED.items()
    ]
    found += [
        family.of(((role,), each.get(name, 0.0)) for role, each in values.items() if role == "task")
        for name, family in _COUNTED_BY_TASKS.items()
    ]
    found.append(
        TRANSACTION_DURATION.of(
            ((role,), _histogram(each)) for role, each in values.items() if counters.TRANSACTION_SECONDS in each
        )
    )
    found += [
        family.of(
            ((role, state), max(0.0, each[name]))
            for role, each in values.items()
            for state, name in (("idle", idle), ("lent", lent))
            if name in each
        )
        for family, idle, lent in _POOLS
    ]
    return found


def _histogram(values: Mapping[str, float]) -> Histogram:
    names = map(counters.transaction_bucket, range(len(counters.TRANSACTION_BUCKETS) + 1))
    return Histogram(tuple(int(values.get(name, 0)) for name in names), values[counters.TRANSACTION_SECONDS])
