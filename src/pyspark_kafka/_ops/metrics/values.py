"""The figures of a streaming query after a micro-batch or an epoch, and how they follow from a progress event of Spark.

PySpark collects no metrics of Python sources, so they are computed from the offsets that every progress event holds.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.planning import OffsetsBehind, offsets_behind
from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming.listener import SourceProgress, StateOperatorProgress, StreamingQueryProgress

    from pyspark_kafka._base.model import TopicPartition

# How Spark describes the stream of any Python source: with this class of its JVM side, or a name that begins with it.
_PYTHON_STREAM = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream"
# From 4.2 on: of streams with read limits, which return their latest offset.
_WITH_LIMITS = f"{_PYTHON_STREAM}With"
# How a continuous query describes Kafka.
_CONTINUOUS = "pyspark_kafka"
_SHOWN_ID = 8
# A pattern may match thousands of topics; a log line names at most this number.
_LISTED_TOPICS = 5


def now() -> float:
    """Return the seconds of the clock that `QueryMetrics.heard_at` is of."""
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """The lag of one Kafka source of a query, after a micro-batch.

    Attributes:
        index: the place of the source among all sources of the query, from 0, as in Spark's progress.
        topics: the names of its topics.
        num_input_rows: records that the micro-batch read from it.
        min_offsets_behind_latest: offsets between the end of the micro-batch and the end of the log that the trigger
            saw at its start, of the partition with the fewest; None if that is not known, as with PySpark 4.0 and 4.1.
        max_offsets_behind_latest: the same, of the partition with the most.
        avg_offsets_behind_latest: the mean over all partitions.
        behind: the same of each partition; empty if that is not known, and once the run has ended.
        positions: the next offset to read of each partition; empty once the run has ended.
        is_continuous: whether the query is a continuous one.
    """

    index: int
    topics: tuple[str, ...]
    num_input_rows: int
    min_offsets_behind_latest: int | None
    max_offsets_behind_latest: int | None
    avg_offsets_behind_latest: float | None
    behind: Mapping[TopicPartition, int] = field(default_factory=dict, compare=False, repr=False)
    positions: Mapping[TopicPartition, int] = field(default_factory=dict, compare=False, repr=False)
    is_continuous: bool = field(default=False, compare=False, repr=False)

    @property
    def known_behind(self) -> Mapping[TopicPartition, int]:
        """The part of `behind` with a known lag.

        A micro-batch up to the ends that its trigger saw has no figure for later records, so its 0 is not the lag. The
        readers of a continuous query get the log ends all the time.
        """
        if self.is_continuous:
            return {each: max(0, behind) for each, behind in self.behind.items()}
        return {each: behind for each, behind in self.behind.items() if behind > 0}

    @property
    def metrics(self) -> dict[str, str]:
        """The three figures with the names and in the text form of Spark's own connector; none if they are unknown."""
        least, most = self.min_offsets_behind_latest, self.max_offsets_behind_latest
        mean = self.avg_offsets_behind_latest
        if least is None or most is None or mean is None:
            return {}
        return OffsetsBehind(least, most, mean).to_metrics()


@dataclass(frozen=True, slots=True)
class GroupTime:
    """The watermark of one topic-partition.

    Attributes:
        topic: of the partition.
        partition: its number.
        seconds: the watermark, in seconds since 1970-01-01 UTC.
    """

    topic: str
    partition: str
    seconds: float


@dataclass(frozen=True, slots=True)
class StateMetrics:
    """The state of one stateful step, after a micro-batch or an epoch.

    Attributes:
        index: the place of the step in `stateOperators` of Spark's progress, from 0.
        operator: its name there.
        rows: the number of values.
        updated: values that the micro-batch has set.
        removed: values that it has removed.
        late: rows below the watermark.
        commit_ms: the time for writing the state.
        size_bytes: the size of the newest version; None if that is not known.
        timers: timers that wait; None without timers, and for micro-batches.
        lowest: of a continuous query with event time: the topic-partition that is furthest behind.
        highest: likewise, the topic-partition that is ahead of the others.
    """

    index: int
    operator: str
    rows: int
    updated: int
    removed: int
    late: int
    commit_ms: float
    size_bytes: int | None = None
    timers: int | None = None
    lowest: GroupTime | None = None
    highest: GroupTime | None = None


@dataclass(frozen=True, slots=True)
class QueryMetrics:
    """The newest figures of one streaming query, or of one continuous query, whose epochs count as micro-batches.

    Attributes:
        query_id: the id of the query, the same after a restart from its checkpoint.
        run_id: the id of the run, another after a restart.
        name: set with `queryName`; None without.
        batch_id: the number of the micro-batch; -1 before the first one of the run has ended.
        timestamp: when its trigger began, ISO 8601 in UTC; before the first micro-batch when the query was started.
        num_input_rows: records that it read from all sources, also from sources of other packages.
        sources: the Kafka sources of this package, in the order of the query; none before the first micro-batch.
        latency_p50_ms: of a continuous query: in an epoch, the time from a record's timestamp until the sink had what
            became of it, of the record in the middle; None for micro-batches, and without records.
        latency_p99_ms: the same, of the record that one of a hundred exceeds.
        terminated: whether the run has ended.
        failed: whether it has ended with an error.
        unheard: whether nobody listens to the run any more, so that it may have ended since.
        num_output_rows: rows that the sink received; None if Spark does not count them.
        states: the steps with state, in the order of Spark's progress.
        watermark_s: the watermark in seconds since 1970-01-01 UTC; of a continuous query the lowest one. None without
            event time, and before the first rows.
        duration_ms: how long the micro-batch took.
        phases_ms: the parts of it that Spark measures, such as `addBatch`, by Spark's names.
        ended_at: when the run ended, in seconds of `time.monotonic`; None while it runs.
        heard_at: when Spark last reported the start of the query, a micro-batch, or that it had nothing to do, in
            seconds of `time.monotonic`; see `seconds_since_progress`.
    """

    query_id: str
    run_id: str
    name: str | None
    batch_id: int
    timestamp: str
    num_input_rows: int
    sources: tuple[SourceMetrics, ...]
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    terminated: bool = False
    failed: bool = False
    unheard: bool = False
    num_output_rows: int | None = field(default=None, compare=False, repr=False)
    states: tuple[StateMetrics, ...] = field(default=(), compare=False, repr=False)
    watermark_s: float | None = field(default=None, compare=False, repr=False)
    duration_ms: float = field(default=0.0, compare=False, repr=False)
    phases_ms: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    ended_at: float | None = field(default=None, compare=False, repr=False)
    heard_at: float = field(default=0.0, compare=False, repr=False)

    @property
    def is_running(self) -> bool:
        """Whether the run is known to go on."""
        return not (self.terminated or self.unheard)

    @property
    def seconds_since_progress(self) -> float | None:
        """Seconds since the query was started, ended a micro-batch or had nothing to do; None if ended or unheard.

        It grows while any process of the query waits for brokers, and during a long micro-batch.
        """
        return now() - self.heard_at if self.is_running else None

    def __str__(self) -> str:
        # The first digits of the id tell queries of one name apart; the whole ids are attributes.
        known_as = f"{self.name!r} {self.query_id[:_SHOWN_ID]}" if self.name else self.query_id[:_SHOWN_ID]
        text = f"query {known_as} batch {self.batch_id}: {'; '.join(map(_source_text, self.sources))}"
        if self.latency_p50_ms is None or self.latency_p99_ms is None:
            return text
        return f"{text}; latency p50={self.latency_p50_ms:.1f} ms p99={self.latency_p99_ms:.1f} ms"


def _source_text(source: SourceMetrics) -> str:
    more = f" and {len(source.topics) - _LISTED_TOPICS} more" if len(source.topics) > _LISTED_TOPICS else ""
    known = f"source {source.index} ({', '.join(source.topics[:_LISTED_TOPICS])}{more}) rows={source.num_input_rows} "
    most = source.max_offsets_behind_latest
    if most is None or (most <= 0 and not source.is_continuous):
        return f"{known}behind unknown"
    return f"{known}behind min={source.min_offsets_behind_latest} max={most} avg={source.avg_offsets_behind_latest:.1f}"


def query_metrics(progress: StreamingQueryProgress) -> QueryMetrics | None:
    """Compute the figures of a progress event; None where the query has no source of this package.

    A Python source with the offsets of a Kafka source is taken for one of this package: the event has neither the
    format nor the options.

    Source: Spark `KafkaMicroBatchStream.metrics`.
    """
    sources = tuple(
        found for index, source in enumerate(progress.sources) if (found := _source_metrics(index, source)) is not None
    )
    if not sources:
        return None
    # Not in Spark's own reports.
    latency = progress.get("latencyMs", {})
    return QueryMetrics(
        query_id=str(progress.id),
        run_id=str(progress.runId),
        name=progress.name,
        batch_id=progress.batchId,
        timestamp=progress.timestamp,
        num_input_rows=progress.numInputRows,
        sources=sources,
        latency_p50_ms=latency.get("p50"),
        latency_p99_ms=latency.get("p99"),
        num_output_rows=rows if (rows := progress.sink.numOutputRows) >= 0 else None,
        states=tuple(_state_metrics(*each) for each in enumerate(progress.stateOperators)),
        # Spark has the year 1970 before the first rows.
        watermark_s=_seconds(progress.eventTime.get("watermark")) or None,
        duration_ms=progress.batchDuration,
        phases_ms={str(name): float(ms) for name, ms in progress.durationMs.items()},
        heard_at=now(),
    )


def _state_metrics(index: int, step: StateOperatorProgress) -> StateMetrics:
    custom = step.customMetrics
    watermarks = step.get("watermarks", {})
    return StateMetrics(
        index=index,
        operator=step.operatorName,
        rows=step.numRowsTotal,
        updated=step.numRowsUpdated,
        removed=step.numRowsRemoved,
        late=step.numRowsDroppedByWatermark,
        commit_ms=float(step.commitTimeMs),
        # Spark's store in memory has it too.
        size_bytes=custom.get("stateOnCurrentVersionSizeBytes"),
        timers=custom.get("numTimers"),
        lowest=_group_time(watermarks.get("lowest")),
        highest=_group_time(watermarks.get("highest")),
    )


def _group_time(found: Mapping[str, str] | None) -> GroupTime | None:
    if found is None:
        return None
    topic, _, partition = found["topicPartition"].rpartition("-")
    seconds = _seconds(found["watermark"])
    return None if seconds is None else GroupTime(topic, partition, seconds)


def _seconds(time: str | None) -> float | None:
    """Return a time of a progress event in seconds since 1970; far times are milliseconds there."""
    if time is None:
        return None
    try:
        return int(time) / 1000
    except ValueError:
        return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def reads_other_data(progress: StreamingQueryProgress) -> bool:
    """Return whether a progress event shows that its query has no source of this package.

    It shows nothing as long as the offsets of a Python source are not known.
    """
    return not any(
        is_python_stream(source.description) and (_is_unknown(source.endOffset) or _is_kafka(source.endOffset))
        for source in progress.sources
    )


def is_python_stream(description: str) -> bool:
    """Return whether a source of a progress event is a Python source, or Kafka in a continuous query."""
    return description.startswith((_PYTHON_STREAM, _CONTINUOUS))


def _is_unknown(offset: str | None) -> bool:
    # "None" is from classic Spark.
    return offset in (None, "null", "None")


def offset_text(offset: Any) -> str:
    """Return an offset of a progress event as JSON.

    PySpark 4.0 and 4.1 show one as Python shows a dictionary, Spark's classic API as the dictionary.
    """
    # No name of a topic has a quote.
    return json.dumps(offset) if isinstance(offset, dict) else str(offset).replace("'", '"')


def _is_kafka(offset: str) -> bool:
    try:
        return bool(KafkaSourceOffset.from_json(offset_text(offset)).partitions)
    except CheckpointError:
        return False


def _source_metrics(index: int, source: SourceProgress) -> SourceMetrics | None:
    if not is_python_stream(source.description):
        return None
    try:
        end = KafkaSourceOffset.from_json(offset_text(source.endOffset))
        latest = KafkaSourceOffset.from_json(offset_text(source.latestOffset))
    except CheckpointError:
        # Of another Python source, or nothing is known yet: "null", or "None" from classic Spark.
        return None
    consumed = end.partitions
    is_continuous = source.description.startswith(_CONTINUOUS)
    behind = offsets_behind(consumed, latest.partitions)
    if not consumed or not behind:
        return None
    if not is_continuous and not source.description.startswith(_WITH_LIMITS):
        # Spark 4.0 and 4.1 show the end of the batch as latest offset, also if a limit has cut the batch.
        behind = {}
    lag = OffsetsBehind.of(behind) if behind else None
    return SourceMetrics(
        index=index,
        topics=tuple(latest.to_dict()),
        num_input_rows=source.numInputRows,
        min_offsets_behind_latest=lag and lag.min,
        max_offsets_behind_latest=lag and lag.max,
        avg_offsets_behind_latest=lag and lag.avg,
        behind=behind,
        positions=consumed,
        is_continuous=is_continuous,
    )
