"""The continuous source: plans the reads of long-running tasks on the driver, and decides when to plan again.

The life of a run, as an engine calls it:

1. `initialOffset`, for a new query only; otherwise `deserializeOffset` of the last committed epoch.
2. `planInputPartitions`: the partitions of each task, with their starts. New partitions start at their first offset.
3. The tasks run (`pyspark_kafka._connector.source.executor.continuous_reader`). At the end of each epoch `mergeOffsets`
   merges the positions of their readers into one offset.
4. `needsReconfiguration`, about once a second: if the partitions have changed, the engine stops the tasks and
   continues at 2 with the last committed offset.

After `prepareForTriggerAvailableNow` every plan ends at the log ends of the first plan, and the run ends there.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._base.traces.roles import Traced
from pyspark_kafka._client.client.cluster.pool import learned_servers
from pyspark_kafka._client.client.waiting.retry import Backoff, attempts
from pyspark_kafka._connector.planning import (
    data_loss_error,
    end_plan,
    lag_metrics,
    most_behind,
    offsets_behind,
    plan_continuous,
    share_partitions,
)
from pyspark_kafka._connector.source.driver.stream import KafkaStream, kafka_offset
from pyspark_kafka._connector.source.executor.partition_offset import KafkaSourcePartitionOffset
from pyspark_kafka._connector.source.input_partition import (
    KafkaContinuousInputPartition,
    KafkaContinuousPartitionReaderFactory,
)
from pyspark_kafka.connector import ContinuousStream, InputPartition, Offset, PartitionOffset
from pyspark_kafka.errors import ConnectorError, ContractError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._base.traces.roles import Tracer
    from pyspark_kafka._client.options import ConnectionOptions, StreamReadOptions
    from pyspark_kafka._connector.planning import EndedPlan
    from pyspark_kafka._connector.source.driver.assignment import Assignment
    from pyspark_kafka._connector.source.read_columns import PendingReaderSchemas
    from pyspark_kafka._typed.typed.read_formats import ReadFormats

_LOG = logging.getLogger(__name__)

# The maximum number of partitions with lag in a progress report.
_MAX_BEHIND = 10
# The time limit of one check whether partitions have changed.
_LOOK_MS = 2_000
# Missing partitions and other topic ids count after this number of consecutive checks: a lagging broker does not have
# new partitions.
_LOOKS = 3
# After a failed check the next ones wait, for at most the second time; a warning is logged again after the third.
_PAUSE_MS, _MAX_PAUSE_MS = 1_000, 10_000
_WARN_EVERY_S = 60.0


class KafkaContinuousStream(KafkaStream, ContinuousStream, Traced):
    """A Kafka subscription that tasks read without an end.

    The options are the options of a streaming read; options that make or split micro-batches have no effect, and a log
    line names them. Each topic-partition has a task of its own, unless `maxPartitionsPerTask` lets several share one,
    or `tasks` sets the number of tasks.

    Runs on: driver, one per query run, in one thread; methods block on look-ups, with a deadline. Does not pickle; its
    reader factory does.

    Args:
        options, schema, formats, location, versions, clock: as in `KafkaStream`.
        tasks: the maximum number of tasks; takes precedence over `maxPartitionsPerTask`.

    Attributes:
        knownPartitions: the partitions of the last plan; empty before the first.

    Source: Spark `KafkaContinuousStream`.
    """

    is_continuous = True

    def __init__(
        self,
        options: StreamReadOptions,
        schema: pa.Schema,
        formats: ReadFormats | None = None,
        *,
        tasks: int | None = None,
        location: str | None = None,
        versions: PendingReaderSchemas | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(options, schema, formats, location=location, versions=versions, clock=clock)
        self._tasks = tasks
        self._prepared_tasks: int | None = None
        self.knownPartitions: frozenset[TopicPartition] = frozenset()
        self._planned = False
        self._plan_starts: KafkaSourceOffset | None = None
        # Of a run with an end: its ends, and the topic ids at that time.
        self._ends_now = False
        self._ends: Mapping[TopicPartition, int] | None = None
        self._ids_at_end: Mapping[str, str] = {}
        # Of checks whether partitions have changed: how many in a row have found fewer, or other topics; when the next
        # one is due after failures, and when a failure was logged.
        self._suspicions = 0
        self._backoff = Backoff(_PAUSE_MS, _MAX_PAUSE_MS)
        # The time of the next check after failed ones; and of the next list of all topics, for a pattern.
        self._look_at = self._list_at = 0.0
        self._warned_at: float | None = None
        for name, value in (
            ("maxOffsetsPerTrigger", options.max_offsets_per_trigger),
            ("minOffsetsPerTrigger", options.min_offsets_per_trigger),
            ("maxBytesPerTrigger", options.max_bytes_per_trigger),
            ("minPartitions", options.min_partitions),
            ("maxRecordsPerPartition", options.max_records_per_partition),
        ):
            if value is not None:
                _LOG.warning("Option '%s' has no effect in a continuous read, which has no micro-batches.", name)

    @property
    def connection(self) -> ConnectionOptions:
        """The connection to the source cluster."""
        return self._options.connection

    @property
    def committedGroup(self) -> str | None:
        """The consumer group to which positions are committed for Kafka's own tools; None: no group."""
        return self._options.committed_group

    def __repr__(self) -> str:
        return f"KafkaSource[{self._options.subscription.describe()}]"

    def deserializePartitionOffset(self, text: str) -> KafkaSourcePartitionOffset:
        """Read the positions that a reader reported.

        Raises:
            CheckpointError: the text is not an offset of a Kafka source.
        """
        return KafkaSourcePartitionOffset(KafkaSourceOffset.from_json(text).partitions)

    def prepareForTasks(self, tasks: int) -> None:
        """Plan this many tasks at most, unless the stream was built for another number."""
        self._prepared_tasks = tasks

    def prepareForTriggerAvailableNow(self) -> None:
        """Let every plan end at the log ends of the first plan; partitions that are new by then are left out."""
        self._ends_now = True

    def planInputPartitions(self, start: Offset) -> Sequence[InputPartition]:
        """Return the tasks that read from `start` on, and new partitions from their first offset on.

        Partitions of recreated topics are new. There are no tasks if the subscription has no partitions, or if a run
        with an end has read everything.

        Raises:
            DataLossError: partitions were deleted or topics recreated, or the logs of a run with an end now end before
                the read position, and `failOnDataLoss` is true.
        """
        position = kafka_offset(start).partitions
        self._keep_versions()
        if self._ends_now and self._ends is None:
            pinned, self._ends = self._losses.fetch_latest_offsets(position)
            self._ids_at_end = pinned.topic_ids
        assignment = self._fetch_assignment(position)
        started = self._losses.without_restarting_from(self._not_deleted(position, assignment), assignment)
        new = [topic_partition for topic_partition in assignment.partitions if topic_partition not in started]
        plan = plan_continuous(
            started,
            assignment.partitions,
            self._offset_reader.fetch_earliest_offsets_of_new(new),
            group_id=self._options.group_id,
        )
        if plan.findings:
            self._losses.raise_or_warn(data_loss_error(plan.findings))
        starts, ends = plan.starts, self._ends_of(plan.starts, started, assignment)
        if ends is not None:
            starts = ends.starts
        self.knownPartitions = frozenset(starts)
        self._planned, self._suspicions = True, 0
        self._plan_next_list()
        self._plan_starts = KafkaSourceOffset(starts)
        if ends is not None and ends.is_read:
            return []
        tasks = self._tasks if self._tasks is not None else self._prepared_tasks
        groups = share_partitions(starts, tasks=tasks, max_partitions=self._options.max_partitions_per_task)
        servers, ids = learned_servers(self._options.connection), self._watch.ids
        return [
            KafkaContinuousInputPartition(
                tuple((tp, starts[tp]) for tp in group),
                () if ends is None else tuple((tp, ends.ends[tp]) for tp in group),
                topic_ids={tp.topic: ids[tp.topic] for tp in group if tp.topic in ids},
                servers=servers,
            )
            for group in groups
        ]

    def plannedOffset(self) -> KafkaSourceOffset | None:
        """Return the start of the last plan; None before the first plan."""
        return self._plan_starts

    def keyGroups(self, partition: InputPartition) -> Sequence[str]:
        """Return the topic-partitions of a task: producers send all records of a key to one topic-partition."""
        if not isinstance(partition, KafkaContinuousInputPartition):
            raise TypeError(f"expected a KafkaContinuousInputPartition, got {type(partition).__name__}")
        return [str(topic_partition) for topic_partition, _ in partition.starts]

    def createContinuousReaderFactory(self) -> KafkaContinuousPartitionReaderFactory:
        """Return the factory that executors read with."""
        return KafkaContinuousPartitionReaderFactory.of_read(self._options, self._schema, self._formats)

    def open_tracer(self) -> Tracer | None:
        """Return the tracer of this process; see `Traced`."""
        from pyspark_kafka._client.options import option_tracer  # noqa: PLC0415 - few queries have spans

        return None if self._options.trace is None else option_tracer()

    @property
    def trace_parent(self) -> str:
        """The span that runs the query, if an option or a variable names it."""
        return "" if self._options.trace is None else self._options.trace.parent

    def mergeOffsets(self, offsets: Sequence[PartitionOffset]) -> KafkaSourceOffset:
        """Return the positions of all readers as one offset.

        Raises:
            ContractError: two readers report one partition, or a position is not one of these readers.
        """
        merged: dict[TopicPartition, int] = {}
        for offset in offsets:
            if not isinstance(offset, KafkaSourcePartitionOffset):
                text = f"takes offsets of continuous readers of Kafka, and got a {type(offset).__name__}."
                raise ContractError.violated(self, "mergeOffsets", text)
            twice = merged.keys() & offset.partitions.keys()
            if twice:
                text = f"takes each partition from one reader, and got {min(twice)} from two."
                raise ContractError.violated(self, "mergeOffsets", text)
            merged.update(offset.partitions)
        return KafkaSourceOffset(merged)

    def lagMetrics(self, position: Offset, latest: Offset) -> Mapping[str, str]:
        """Return the metrics of `KafkaMicroBatchStream.metrics`, and the partitions with the largest lag, as JSON.

        `offsetsBehindLatest` has at most ten partitions, all with lag.
        """
        reached, ends = kafka_offset(position).partitions, kafka_offset(latest).partitions
        furthest = most_behind(offsets_behind(reached, ends), _MAX_BEHIND)
        return {**lag_metrics(reached, ends), "offsetsBehindLatest": KafkaSourceOffset(furthest).json()}

    def latestOffset(self) -> KafkaSourceOffset:
        """Return the ends of the subscription's partitions: high watermarks, or last stable offsets."""
        _, ends = self._offset_reader.fetch_assigned_latest_offsets()
        return KafkaSourceOffset(ends)

    def hasReached(self, position: Offset, target: Offset) -> bool:
        """Return whether every partition is read up to its target.

        A partition that the position lacks was not planned yet: it counts only if it had records.
        """
        reached = kafka_offset(position).partitions
        return all(reached.get(tp, 0) >= end for tp, end in kafka_offset(target).partitions.items())

    def needsReconfiguration(self) -> bool:
        """Return whether the partitions differ from the last plan, or topics were recreated.

        New partitions count immediately; missing ones and other topic ids after several checks, because a broker may
        lag. A failed check has no result: it is logged, and the next ones wait for up to 10 s. Blocks for at most about
        2 s.

        A check requests the source topics. Further matches of a pattern need a list of all topics of the
        cluster, which is requested as often as by Java's consumers: `metadata.max.age.ms`.
        """
        if not self._planned or self._clock() < self._look_at:
            return False
        topics = _topics(self.knownPartitions)
        if self._options.subscription.kind != "subscribePattern" or self._clock() >= self._list_at:
            topics = set()
        try:
            found = self._offset_reader.find_assignment_once(_LOOK_MS, topics)
        except ConnectorError as error:
            if error.condition != "UNKNOWN_TOPIC" or error.parameters.get("topic") not in _topics(self.knownPartitions):
                self._note_failed_look(error)
                return False
            self._suspicions += 1
        else:
            if not topics:
                self._plan_next_list()
            self._look_at, self._warned_at = 0.0, None
            self._backoff.reset()
            partitions = frozenset(found.partitions)
            if partitions - self.knownPartitions:
                return True
            changed = self.knownPartitions - partitions or self._watch.recreated(
                found.topic_ids, _topics(self.knownPartitions)
            )
            self._suspicions = self._suspicions + 1 if changed else 0
        return self._suspicions >= _LOOKS

    def _plan_next_list(self) -> None:
        self._list_at = self._clock() + self._options.connection.metadata_max_age_ms / 1000

    def _ends_of(
        self, starts: Mapping[TopicPartition, int], known: Mapping[TopicPartition, int], assignment: Assignment
    ) -> EndedPlan | None:
        """Return the end of a plan; None without an end."""
        if self._ends is None:
            return None
        # The end of a topic that was recreated since is unknown: the next query reads it.
        same = {
            topic_partition: end
            for topic_partition, end in self._ends.items()
            if self._ids_at_end.get(topic_partition.topic) == assignment.topic_ids.get(topic_partition.topic)
        }
        plan = end_plan(starts, known, same)
        if plan.findings:
            self._losses.raise_or_warn(data_loss_error(plan.findings))
        return plan

    def _fetch_assignment(self, position: Mapping[TopicPartition, int]) -> Assignment:
        """Return the subscribed partitions; if some are missing, other brokers are queried as well."""
        topics = _topics(position)
        pauses = Backoff.constant(self._options.connection.retry_backoff_ms)
        found = self._losses.without_deleted(position, lambda: self._offset_reader.fetch_assignment(topics))
        for _ in attempts(pauses, max_attempts=_LOOKS):
            if position.keys() <= set(found.partitions):
                break
            found = self._losses.without_deleted(
                position, lambda: self._offset_reader.fetch_assignment(topics, elsewhere=True)
            )
        return found

    def _not_deleted(
        self, position: Mapping[TopicPartition, int], assignment: Assignment
    ) -> Mapping[TopicPartition, int]:
        """Return a position without the topics whose loss a look-up by name has reported.

        A topic that the subscription no longer names was not looked up: the plan reports its loss.
        """
        subscription = self._options.subscription
        reported = {*subscription.topics, *_topics(subscription.topic_partitions)} - _topics(assignment.partitions)
        return {tp: offset for tp, offset in position.items() if tp.topic not in reported}

    def _note_failed_look(self, error: ConnectorError) -> None:
        now = self._clock()
        pause_s = self._backoff.next_s()
        self._look_at = now + pause_s
        if self._warned_at is None or now - self._warned_at >= _WARN_EVERY_S:
            self._warned_at = now
            _LOG.warning(
                "A look whether the partitions of %r have changed failed, and is repeated in %.0f s; the read "
                "continues with the known partitions. %s",
                self,
                pause_s,
                error,
            )


def _topics(partitions: Iterable[TopicPartition]) -> set[str]:
    return {topic_partition.topic for topic_partition in partitions}
