"""The figures of all queries as families of series, for any system that collects them. Pure.

Names are Prometheus's, without the suffix `_total` of counters; OpenTelemetry's names follow from them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark_kafka._ops.metrics import values
from pyspark_kafka._ops.metrics.totals import DURATION_BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._ops.metrics.totals import QueryTotals
    from pyspark_kafka._ops.metrics.values import QueryMetrics, SourceMetrics

ENDED_SECONDS = 900.0
"""The time for which the end of a query is shown, in seconds: longer than scrapes and alert rules need."""

MAX_PARTITIONS = 1_000
"""The maximum number of partitions with a series each."""

_QUERY = ("query", "query_id")
_SOURCE = (*_QUERY, "source")
_STEP = (*_QUERY, "step", "operator")
PARTITION_LABELS = (*_SOURCE, "topic", "partition")
"""The labels of the metrics of a partition."""


class Kind(Enum):
    """The kind of a family's values."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Histogram:
    """A distribution.

    Attributes:
        counts: by bucket, the last one above all bounds; not cumulative.
        total: the sum of the counted values.
    """

    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Family:
    """The series of one name.

    Attributes:
        name: as Prometheus has it, without the suffix of counters.
        kind: of the values.
        unit: the base unit, at the end of its name; empty if it has no unit.
        help: the description of a value.
        labels: the names of the labels.
        samples: values by the values of the labels, in that order; of a histogram a `Histogram`.
        bounds: of a histogram's buckets, inclusive.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...]
    samples: dict[tuple[str, ...], float | Histogram] = field(default_factory=dict)
    bounds: tuple[float, ...] = ()

    def of(self, samples: Iterable[tuple[tuple[str, ...], float | Histogram]]) -> Family:
        """Return the family with these values."""
        return Family(self.name, self.kind, self.unit, self.help, self.labels, dict(samples), self.bounds)


BEHIND = Family(
    "pyspark_kafka_records_behind",
    Kind.GAUGE,
    "",
    "Offsets between the query's position and the end of the partition's log. With a connection: measured at the "
    "brokers within the last minute. Without: at the end of the latest micro-batch. Absent if unknown. Only the "
    "partitions with the largest values: see pyspark_kafka_partitions_left_out.",
    PARTITION_LABELS,
)
SOURCE_BEHIND = Family(
    "pyspark_kafka_source_records_behind",
    Kind.GAUGE,
    "",
    "Sum of the offsets behind over all partitions. Absent if unknown.",
    _SOURCE,
)
SOURCE_BEHIND_MAX = Family(
    "pyspark_kafka_source_records_behind_max",
    Kind.GAUGE,
    "",
    "Max of the offsets behind over all partitions.",
    _SOURCE,
)
SOURCE_PARTITIONS = Family(
    "pyspark_kafka_source_partitions", Kind.GAUGE, "", "Number of partitions that the source reads.", _SOURCE
)
LEFT_OUT = Family(
    "pyspark_kafka_partitions_left_out",
    Kind.GAUGE,
    "",
    "Number of partitions without a pyspark_kafka_records_behind series, because other partitions are further behind.",
    (),
)
ROWS_READ = Family("pyspark_kafka_rows_read", Kind.COUNTER, "", "Records read by micro-batches.", _SOURCE)
ROWS_WRITTEN = Family("pyspark_kafka_rows_written", Kind.COUNTER, "", "Rows received by the sink.", _QUERY)
BATCHES = Family("pyspark_kafka_batches", Kind.COUNTER, "", "Finished micro-batches, or epochs.", _QUERY)
BATCH_DURATION = Family(
    "pyspark_kafka_batch_duration_seconds",
    Kind.HISTOGRAM,
    "seconds",
    "Duration of micro-batches; for continuous queries, the time between commits.",
    _QUERY,
    bounds=DURATION_BUCKETS,
)
BATCH_PHASE = Family(
    "pyspark_kafka_batch_phase_seconds",
    Kind.COUNTER,
    "seconds",
    "Time in each phase of micro-batches, named as in durationMs of Spark's progress.",
    (*_QUERY, "phase"),
)
SINCE_PROGRESS = Family(
    "pyspark_kafka_time_since_progress_seconds",
    Kind.GAUGE,
    "seconds",
    "Time since the start of the query, the end of its latest micro-batch, or its latest idle report.",
    _QUERY,
)
LATENCY = Family(
    "pyspark_kafka_latency_seconds",
    Kind.GAUGE,
    "seconds",
    "Time from the timestamp of a record until its output reached the sink, in the latest epoch of a continuous query.",
    # Prometheus keeps `quantile` for summaries.
    (*_QUERY, "percentile"),
)
WATERMARK = Family(
    "pyspark_kafka_watermark_timestamp_seconds",
    Kind.GAUGE,
    "seconds",
    "Watermark of the query, in seconds since 1970-01-01 UTC; of a continuous query the lowest one. Absent without "
    "event time, and before the first rows.",
    _QUERY,
)
STEP_WATERMARK = Family(
    "pyspark_kafka_step_watermark_timestamp_seconds",
    Kind.GAUGE,
    "seconds",
    "Lowest and highest watermark of a step of a continuous query, in seconds since 1970-01-01 UTC, with their "
    "topic-partitions. The lowest one holds windows open.",
    (*_STEP, "edge", "topic", "partition"),
)
STATE_ROWS = Family("pyspark_kafka_state_rows", Kind.GAUGE, "", "Number of values in the state of a step.", _STEP)
STATE_SIZE = Family(
    "pyspark_kafka_state_size_bytes", Kind.GAUGE, "bytes", "Size of the state of a step. Absent if unknown.", _STEP
)
STATE_TIMERS = Family(
    "pyspark_kafka_state_timers",
    Kind.GAUGE,
    "",
    "Number of timers that wait in a step of a continuous query; each open window has one.",
    _STEP,
)
STATE_UPDATED = Family(
    "pyspark_kafka_state_rows_updated", Kind.COUNTER, "", "Values that a step has set in its state.", _STEP
)
STATE_REMOVED = Family(
    "pyspark_kafka_state_rows_removed", Kind.COUNTER, "", "Values that a step has removed from its state.", _STEP
)
LATE_ROWS = Family("pyspark_kafka_late_rows", Kind.COUNTER, "", "Rows of a step below its watermark.", _STEP)
STATE_COMMIT = Family(
    "pyspark_kafka_state_commit_seconds",
    Kind.GAUGE,
    "seconds",
    "Time for writing the state of a step in the latest micro-batch, or of the slowest lane in the latest epoch.",
    _STEP,
)
UP = Family("pyspark_kafka_query_up", Kind.GAUGE, "", "1 while the query runs, 0 after it has ended.", _QUERY)
FAILED = Family("pyspark_kafka_query_failed", Kind.GAUGE, "", "1 if the query ended with an error, else 0.", _QUERY)

FAILURES = Family(
    "pyspark_kafka_query_failures", Kind.COUNTER, "", "Runs of the query that ended with an error.", _QUERY
)

QUERY_FAMILIES = (
    UP,
    FAILED,
    FAILURES,
    SINCE_PROGRESS,
    BATCHES,
    BATCH_DURATION,
    BATCH_PHASE,
    ROWS_READ,
    ROWS_WRITTEN,
    LATENCY,
    WATERMARK,
    STEP_WATERMARK,
    STATE_ROWS,
    STATE_SIZE,
    STATE_TIMERS,
    STATE_UPDATED,
    STATE_REMOVED,
    LATE_ROWS,
    STATE_COMMIT,
    SOURCE_BEHIND,
    SOURCE_BEHIND_MAX,
    SOURCE_PARTITIONS,
    BEHIND,
    LEFT_OUT,
)
"""The families of queries."""


def query_families(
    queries: Sequence[tuple[QueryMetrics, QueryTotals]],
    max_partitions: int = MAX_PARTITIONS,
    asked: Mapping[tuple[str, int], Mapping[TopicPartition, int]] = MappingProxyType({}),
) -> list[Family]:
    """Return the metrics of queries; of ended queries only their end, for 15 minutes.

    Stale queries are omitted, because their state is unknown.

    The work grows with all partitions, the result with at most `max_partitions` of them: the partitions with the
    largest lag.

    Args:
        queries: the newest metrics of each query, and its sums.
        max_partitions: the maximum number of partitions, of all queries together, with a series each.
        asked: the lag of partitions that brokers reported last, by the id of the query and the index of the source; it
            takes precedence over the lag of the newest micro-batch.
    """
    now = values.now()
    known = [
        (each, totals)
        for each, totals in queries
        if each.is_running or (each.ended_at is not None and now - each.ended_at < ENDED_SECONDS)
    ]
    running = [(metrics, totals) for metrics, totals in queries if metrics.is_running]
    sources = [(_labels(metrics, source), source) for metrics, _ in running for source in metrics.sources]
    behind = [
        (_labels(metrics, source), found)
        for metrics, _ in running
        for source in metrics.sources
        if (found := asked.get((metrics.query_id, source.index), source.known_behind))
    ]
    told, left_out = _behind_most(behind, max_partitions)
    return [
        UP.of((_names(each), float(not each.terminated)) for each, _ in known),
        FAILED.of((_names(each), float(each.failed)) for each, _ in known),
        FAILURES.of((_names(each), totals.failures) for each, totals in known),
        SINCE_PROGRESS.of((_names(each), max(0.0, now - each.heard_at)) for each, _ in running),
        BATCHES.of((_names(each), totals.batches) for each, totals in running),
        BATCH_DURATION.of((_names(each), Histogram(totals.buckets, totals.duration_s)) for each, totals in running),
        BATCH_PHASE.of(
            ((*_names(each), phase), seconds)
            for each, totals in running
            for phase, seconds in sorted(totals.phases_s.items())
        ),
        ROWS_READ.of(
            ((*_names(each), str(index)), rows)
            for each, totals in running
            for index, rows in sorted(totals.rows_read.items())
        ),
        ROWS_WRITTEN.of(
            (_names(each), totals.rows_written) for each, totals in running if totals.rows_written is not None
        ),
        LATENCY.of(
            ((*_names(each), percentile), ms / 1000)
            for each, _ in running
            for percentile, ms in (("50", each.latency_p50_ms), ("99", each.latency_p99_ms))
            if ms is not None
        ),
        *_state_families(running),
        SOURCE_BEHIND.of((labels, sum(found.values())) for labels, found in behind),
        SOURCE_BEHIND_MAX.of((labels, max(found.values())) for labels, found in behind),
        SOURCE_PARTITIONS.of((labels, len(source.positions or source.behind)) for labels, source in sources),
        BEHIND.of(told),
        LEFT_OUT.of([((), left_out)]),
    ]


def _state_families(running: Sequence[tuple[QueryMetrics, QueryTotals]]) -> Iterator[Family]:
    steps = [
        ((*_names(metrics), str(step.index), step.operator), step) for metrics, _ in running for step in metrics.states
    ]
    sums = [
        ((*_names(metrics), str(index), operator), found)
        for metrics, totals in running
        for (index, operator), found in sorted(totals.states.items())
    ]
    yield WATERMARK.of((_names(each), each.watermark_s) for each, _ in running if each.watermark_s is not None)
    yield STEP_WATERMARK.of(
        ((*labels, edge, found.topic, found.partition), found.seconds)
        for labels, step in steps
        for edge, found in (("lowest", step.lowest), ("highest", step.highest))
        if found is not None
    )
    yield STATE_ROWS.of((labels, step.rows) for labels, step in steps)
    yield STATE_SIZE.of((labels, step.size_bytes) for labels, step in steps if step.size_bytes is not None)
    yield STATE_TIMERS.of((labels, step.timers) for labels, step in steps if step.timers is not None)
    for family, number in ((STATE_UPDATED, 0), (STATE_REMOVED, 1), (LATE_ROWS, 2)):
        yield family.of((labels, found[number]) for labels, found in sums)
    yield STATE_COMMIT.of((labels, step.commit_ms / 1000) for labels, step in steps)


def _names(metrics: QueryMetrics) -> tuple[str, str]:
    # Two queries of two sessions may have one name, and labels must tell them apart.
    return metrics.name or "", metrics.query_id


def _labels(metrics: QueryMetrics, source: SourceMetrics) -> tuple[str, ...]:
    return *_names(metrics), str(source.index)


def _behind_most(
    sources: Sequence[tuple[tuple[str, ...], Mapping[TopicPartition, int]]], max_partitions: int
) -> tuple[list[tuple[tuple[str, ...], float]], int]:
    """Return the values of the partitions with the largest lag, and the number of the others.

    Equal values are sorted by name, so that the same partitions have a series in each scrape.
    """

    def each() -> Iterator[tuple[int, tuple[str, ...], TopicPartition]]:
        for labels, found in sources:
            for topic_partition, behind in found.items():
                yield -behind, labels, topic_partition

    total = sum(len(found) for _, found in sources)
    chosen = heapq.nsmallest(max_partitions, each()) if total > max_partitions else list(each())
    return [
        ((*labels, topic_partition.topic, str(topic_partition.partition)), -minus)
        for minus, labels, topic_partition in chosen
    ], total - len(chosen)
