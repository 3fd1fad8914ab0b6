"""The micro-batch source: decides on the driver what each batch reads."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.connector import (
    CompositeReadLimit,
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReaderFactory,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    ReportsSourceMetrics,
    SupportsTriggerAvailableNow,
)
from pyspark_kafka.errors import BrokerError, OptionError
from pyspark_kafka.options import parse_stream_read_options
from pyspark_kafka.planning import (
    byte_limit,
    check_available_now,
    data_loss_error,
    deleted_topic,
    offsets_behind_latest,
    plan_ranges,
    rate_limit,
    split_ranges,
    waiting_offsets,
)
from pyspark_kafka.source.driver.limit_resolution import LimitResolver, resolve_listed
from pyspark_kafka.source.driver.offset import KafkaOffset
from pyspark_kafka.source.driver.offset_reader import KafkaOffsetReader
from pyspark_kafka.source.driver.starting_position import StartingPosition
from pyspark_kafka.source.driver.tasks import advise_sharing, tasks_of
from pyspark_kafka.source.driver.topic_watch import TopicWatch
from pyspark_kafka.source.executor.columns import source_schema
from pyspark_kafka.source.handoff import KafkaPartitionReaderFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.errors import DataLossError
    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import StreamReadOptions
    from pyspark_kafka.source.driver.offset_reader import Assignment

logger = logging.getLogger(__name__)

T = TypeVar("T")

# So many brokers, one after the other, have to name another id than the one of the topic that the query has read.
_OTHER_ID_LOOKS = 3


class KafkaMicroBatchStream(MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics):
    """A Kafka subscription as a sequence of bounded batches.

    The driver plans and the executors obey: offsets, new partitions and data loss are decided here. Spark drives one
    through `format("pyspark_kafka")`; it can as well be held and driven by hand, see `from_options`.

    Runs on: driver, one per query run, in one thread; methods block on look-ups, with a deadline. Does not pickle; its
    reader factory does.

    Args:
        options: the parsed options of the stream.
        schema: the Arrow schema of the batches that readers give.
        clock: seconds from any point in time on; for `maxTriggerDelay`.

    Source: Spark `KafkaMicroBatchStream`.
    """

    def __init__(
        self, options: StreamReadOptions, schema: pa.Schema, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options = options
        self._clock = clock
        # When a batch was last let through; the first one of a run does not wait.
        self._last_fired_s: float | None = None
        self._schema = schema
        self._offset_reader = KafkaOffsetReader.from_options(options)
        files = None if options.checkpoint_location is None else CheckpointFiles(options.checkpoint_location)
        directory = f"sources/{options.source_index}"
        self._starting = StartingPosition(options.starting, files, directory)
        self._topics = TopicWatch(files, directory)
        # What is wrong with the starting option, should the query be new.
        self._start_error: OptionError | None = None
        self._told_recreated: Mapping[str, str] = {}
        # What the last look-up found, and the end that was given after it; a plan of that end need not look again.
        self._assignment: Assignment | None = None
        self._given_end: KafkaOffset | None = None
        self._latest: Mapping[TopicPartition, int] | None = None
        self._stop_at_snapshot = False
        self._snapshot: Mapping[TopicPartition, int] | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> KafkaMicroBatchStream:
        """Build the stream from the options of `spark.readStream.format("pyspark_kafka")`, with all their columns.

        Raises:
            OptionError: options are missing, unknown, malformed or in conflict.

        Example:
            A batch by hand, without Spark::

                stream = KafkaMicroBatchStream.from_options(
                    {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", "startingOffsets": "earliest"}
                )
                start = stream.initialOffset()
                end = stream.latestOffset(start, stream.getDefaultReadLimit())
                factory = stream.createReaderFactory()
                for partition in stream.planInputPartitions(start, end):
                    reader = factory.createReader(partition)
                    while reader.next():
                        print(reader.get().num_rows)
                    reader.close()
                stream.commit(end)
                stream.stop()
        """
        parsed = parse_stream_read_options(options)
        return cls(parsed, source_schema(include_headers=parsed.include_headers))

    def __repr__(self) -> str:
        return f"KafkaV2[{self._options.subscription.describe()}]"

    def initialOffset(self) -> Offset:
        """Give where a new query starts: the starting option, resolved for the partitions there are the first time.

        Asked again, also by a later run with `checkpointLocation`, it gives the same. Without that, what is wrong with
        the option is an error of `latestOffset`, which a new query calls next: a first batch that a former run has
        planned began with the partitions that there were then.

        Raises:
            OptionError: with `checkpointLocation`, the option does not fit; see `latestOffset`.
            CheckpointError: `checkpointLocation` is another query's, or cannot be read or written.
        """
        return KafkaOffset(self._starting.get(self._resolve_start))

    def resolve_start(self) -> Mapping[TopicPartition, int]:
        """Resolve the starting option for the partitions that there are now; nothing is kept.

        Raises:
            OptionError: the option names other partitions than the subscription means, or is a time without a record.
        """
        return resolve_listed(self._offset_reader, self._starts_of)

    def deserializeOffset(self, json: str) -> Offset:
        """Read an offset of a checkpoint, this connector's or Spark's own."""
        return KafkaOffset.from_json(json)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Give `minOffsetsPerTrigger`, `maxOffsetsPerTrigger` and `maxBytesPerTrigger` as limits, or none."""
        options = self._options
        limits: list[ReadLimit] = []
        if options.min_offsets_per_trigger is not None:
            limits.append(ReadMinRows(options.min_offsets_per_trigger, options.max_trigger_delay_ms))
        if options.max_offsets_per_trigger is not None:
            limits.append(ReadMaxRows(options.max_offsets_per_trigger))
        if options.max_bytes_per_trigger is not None:
            limits.append(ReadMaxBytes(options.max_bytes_per_trigger))
        if not limits:
            return ReadAllAvailable()
        return limits[0] if len(limits) == 1 else CompositeReadLimit(tuple(limits))

    def prepareForTriggerAvailableNow(self) -> None:
        """End this run at what is available at the first `latestOffset` call from now on.

        The snapshot is taken there and not here: a batch that a former run left uncommitted is planned again before
        it, and partitions that appeared meanwhile would not fit it (SPARK-53560).
        """
        self._stop_at_snapshot = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Give the end of the batch that begins at `start`; `start` itself while fewer offsets wait than are to.

        New partitions are taken up here, from their earliest offset; partitions that are gone are missing in the
        result and reported when the batch is planned.

        Raises:
            OptionError: the query is new, and its starting option names other partitions than the subscription means,
                or is a time without a record.
            DataLossError: a topic was deleted and created again, and `failOnDataLoss` is true.
        """
        if self._start_error is not None:
            raise self._start_error
        bounds = _Bounds.of(limit)
        started = KafkaOffset.of(start).partitions
        self._latest = latest = self._newest_offsets(started)
        # What a first batch carries goes with every end that is given for it, also where it reads nothing.
        carried = self._starting.carried(started) if KafkaOffset.of(start).starts is None else None
        remaining = self._without_recreated(started)
        ends = self._ends(bounds, remaining, latest)
        if ends is not None and ends != started:
            self._given_end = KafkaOffset(ends, carried)
        else:
            # As it came where nothing is carried: an end in another form would be taken for news.
            self._given_end = KafkaOffset.of(start) if carried is None else KafkaOffset(started, carried)
        return self._given_end

    def reportLatestOffset(self) -> Offset | None:
        """Give the ends of the partitions as the last `latestOffset` saw them."""
        return KafkaOffset(self._latest) if self._latest else None

    def metrics(self, latestConsumedOffset: Offset | None) -> Mapping[str, str]:
        """Give how far `latestConsumedOffset` is behind the ends that the last `latestOffset` saw.

        Without `maxOffsetsPerTrigger` a batch ends there, so all figures are 0 after it.
        """
        consumed = None if latestConsumedOffset is None else KafkaOffset.of(latestConsumedOffset).partitions
        return offsets_behind_latest(consumed, self._latest)

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Give one task for each partition that has something in `[start, end)`; options split it, or let some share.

        Raises:
            DataLossError: partitions were deleted, or went back, and `failOnDataLoss` is true.
            PlanningError: the batch does not fit the snapshot of an available-now run.
        """
        first, last = KafkaOffset.of(start), KafkaOffset.of(end)
        if first == last:
            # Also how Spark tells a restarted query's source where it stands.
            return []
        ended = last.partitions
        # A batch of a former run: the query is not new.
        self._start_error = None
        if self._snapshot:
            check_available_now(ended, self._snapshot, self._look_up_latest(ended))
        started = self._anew(self._start_of(first.partitions, last), last)
        new = [topic_partition for topic_partition in ended if topic_partition not in started]
        earliest = self._without_deleted(started, lambda: self._offset_reader.earliest_offsets_of_new(new))
        plan = plan_ranges(started, ended, earliest, group_id=self._options.group_id)
        if plan.findings:
            self._report(data_loss_error(plan.findings))
        split = split_ranges(
            plan.ranges,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )
        advise_sharing(split, self._options)
        return tasks_of(split, self._options, self._topics.ids)

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Give the factory that executors read with."""
        return KafkaPartitionReaderFactory(
            self._options.connection,
            self._options.fetch,
            self._schema,
            self._options.fail_on_data_loss,
            # Read on in by a task, it would be read twice.
            leaves_recreated=True,
        )

    def commit(self, end: Offset) -> None:
        """Do nothing: positions live in the checkpoint, and nothing is committed to Kafka."""

    def stop(self) -> None:
        """Do nothing: connections belong to the process's pool."""

    def _resolve_start(self) -> Mapping[TopicPartition, int]:
        return resolve_listed(self._offset_reader, self._start_among)

    def _start_among(self, resolver: LimitResolver) -> Mapping[TopicPartition, int]:
        self._topics.meet(resolver.topic_ids)
        try:
            return self._starts_of(resolver)
        except OptionError as error:
            if self._options.checkpoint_location is not None:
                # What is kept there is kept for good.
                raise
            self._start_error = error
            return resolver.fixed_starts(self._options.starting)

    def _starts_of(self, resolver: LimitResolver) -> Mapping[TopicPartition, int]:
        return resolver.starts(self._options.starting, latest_without_match=self._options.start_at_latest_without_match)

    def _start_of(self, start: Mapping[TopicPartition, int], end: KafkaOffset) -> Mapping[TopicPartition, int]:
        """Give where a batch starts.

        A first batch that another run has planned starts where it did, not where the option says now; and it has the
        partitions that there were then.
        """
        if end.starts is not None:
            return end.starts
        if self._given_end is None and self._starting.asked_again(start):
            return {where: offset for where, offset in start.items() if where in end.partitions}
        return start

    def _newest_offsets(self, known: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if self._snapshot is not None:
            return self._snapshot
        latest = self._look_up_latest(known)
        if self._stop_at_snapshot:
            self._snapshot = latest
        return latest

    def _look_up_latest(self, known: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self._assignment, latest = self._without_deleted(
            known, lambda: self._offset_reader.assigned_latest_offsets(known)
        )
        self._topics.meet(self._assignment.topic_ids, _topics(known))
        return latest

    def _without_deleted(self, position: Mapping[TopicPartition, int], look_up: Callable[[], T]) -> T:
        """Make a look-up; topics that the query has read and that are gone are data loss, and left out of it."""
        while True:
            try:
                return look_up()
            except BrokerError as error:
                topic = error.facts.get("topic", "")
                if error.condition != "UNKNOWN_TOPIC" or topic not in _topics(position):
                    raise
                self._report(deleted_topic(topic, position))
                self._offset_reader.leave_out_missing(topic)

    def _ends(
        self, bounds: _Bounds, position: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int] | None:
        """Give where the batch from `position` ends; None where there is to be no batch now."""
        # Never `{}`: an offset log entry without partitions could not be continued.
        if not latest or (bounds.minimum is not None and not self._fires(bounds.minimum, position, latest)):
            return None
        if bounds.maximum is None and bounds.maximum_bytes is None:
            return latest
        new = [topic_partition for topic_partition in latest if topic_partition not in position]
        ends = dict(latest)
        if bounds.maximum is not None:
            earliest = self._offset_reader.earliest_offsets_of_new(new)
            ends = rate_limit(position, earliest, latest, bounds.maximum.max_rows)
        if bounds.maximum_bytes is not None:
            # Of all partitions: what an offset takes is an average of the whole log.
            earliest = self._offset_reader.earliest_offsets_of_new(latest)
            sizes = self._offset_reader.log_bytes(earliest)
            limited = byte_limit(position, earliest, latest, sizes, bounds.maximum_bytes.max_bytes)
            ends = {where: min(end, limited[where]) for where, end in ends.items()}
        return ends

    def _without_recreated(self, position: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Take the topics out of a position that are others now; they are to be read as new ones."""
        if self._assignment is None:
            return position
        recreated, topic_ids = self._recreated(self._assignment.topic_ids, _topics(position))
        if recreated:
            self._report_recreated(recreated, topic_ids)
        return _without(position, recreated)

    def _anew(self, position: Mapping[TopicPartition, int], end: KafkaOffset) -> Mapping[TopicPartition, int]:
        """Take the topics out of a batch's start that begin anew in it."""
        known = self._assignment if end == self._given_end else None
        topics = _topics(position) | _topics(end.partitions)
        found = known or self._without_deleted(end.partitions, lambda: self._offset_reader.assignment(topics))
        # Those of a batch that another run has planned are new to this one, and travel with its ranges from now on.
        self._topics.meet(found.topic_ids, topics)
        recreated, topic_ids = self._recreated(found.topic_ids, _topics(position))
        if recreated:
            self._report_recreated(recreated, topic_ids)
            self._topics.restart(recreated, topic_ids, end.json())
        return _without(position, self._topics.restarting(end.json()))

    def _recreated(
        self, topic_ids: Mapping[str, str], topics: Collection[str]
    ) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """Give the topics that are others now, and the ids of all; a broker that says so may lag, so others are asked.

        Where they contradict each other, it is left to the next trigger.
        """
        recreated = self._topics.recreated(topic_ids, topics)
        for _ in range(_OTHER_ID_LOOKS - 1):
            if not recreated or {topic: topic_ids[topic] for topic in recreated} == self._told_recreated:
                break
            topic_ids = {**topic_ids, **self._offset_reader.topic_ids_elsewhere(recreated)}
            recreated = self._topics.recreated(topic_ids, recreated)
        return recreated, topic_ids

    def _report_recreated(self, recreated: tuple[str, ...], topic_ids: Mapping[str, str]) -> None:
        told = {topic: topic_ids[topic] for topic in recreated}
        # A topic that has nothing to read yet is met again at each trigger: said once.
        if self._options.fail_on_data_loss or told != self._told_recreated:
            self._report(self._topics.error(recreated, topic_ids))
        self._told_recreated = told

    def _report(self, error: DataLossError) -> None:
        if self._options.fail_on_data_loss:
            raise error
        # Without its hint, which is to do what was done.
        logger.warning("[%s] %s The query goes on, because 'failOnDataLoss' is false.", error.condition, error.message)

    def _fires(
        self, minimum: ReadMinRows, position: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> bool:
        """Tell whether there is to be a batch now, and note the time if so."""
        now, last, delay_ms = self._clock(), self._last_fired_s, minimum.max_trigger_delay_ms
        waited_long = last is None or (delay_ms is not None and (now - last) * 1000 >= delay_ms)
        if not waited_long and waiting_offsets(position, latest) < minimum.min_rows:
            return False
        # Also where nothing waits: the delay counts from here again.
        self._last_fired_s = now
        return True


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of a batch that a limit sets."""

    minimum: ReadMinRows | None = None
    maximum: ReadMaxRows | None = None
    maximum_bytes: ReadMaxBytes | None = None

    @classmethod
    def of(cls, limit: ReadLimit) -> _Bounds:
        """Take a limit apart; `ReadAllAvailable` goes before all others."""
        bounds = cls()
        limits = limit.limits if isinstance(limit, CompositeReadLimit) else (limit,)
        if any(isinstance(part, ReadAllAvailable) for part in limits):
            return bounds
        for part in limits:
            if isinstance(part, ReadMinRows):
                bounds = replace(bounds, minimum=part)
            elif isinstance(part, ReadMaxRows):
                bounds = replace(bounds, maximum=part)
            elif isinstance(part, ReadMaxBytes):
                bounds = replace(bounds, maximum_bytes=part)
            else:
                raise NotImplementedError(f"read limit {part!r}")
        return bounds


def _topics(position: Iterable[TopicPartition]) -> set[str]:
    return {topic_partition.topic for topic_partition in position}


def _without(position: Mapping[TopicPartition, int], topics: tuple[str, ...]) -> Mapping[TopicPartition, int]:
    if not topics:
        return position
    return {where: offset for where, offset in position.items() if where.topic not in topics}
