"""The micro-batch source: plans each micro-batch on the driver.

The life of a micro-batch, as Spark calls it:

1. `initialOffset`, for a new query only: the start of the first micro-batch (`starting_position`).
2. `latestOffset`: the end of the next micro-batch. Looks up the ends of all logs, refuses lost records
   (`topic_losses`), and applies the read limit (`admission`). Spark writes the end to the checkpoint, before it asks
   for a plan, and plans it again in each later run: a batch that cannot be planned must not have an end.
3. `planInputPartitions`: the ranges of each task (`pyspark_kafka._connector.planning`, `tasks`). Called again with the
   same start and end if the query died before the commit; the records are then the same.
4. The tasks run (`pyspark_kafka._connector.source.executor`), with the factory of `createReaderFactory`.
5. `commit`: the position is in the checkpoint. With `commitOffsetsToGroup`, the end is also committed to a group for
   Kafka's tools (`reporting`). Spark calls it late: when the next micro-batch has its end. The start of the next
   `latestOffset` has the same meaning and comes earlier, also after the last micro-batch of an available-now run.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.planning import lag_metrics, plan_ranges, split_ranges
from pyspark_kafka._connector.source.driver.admission import Admission, AvailableNow, default_read_limit
from pyspark_kafka._connector.source.driver.reporting.headroom_warnings import HeadroomWarnings
from pyspark_kafka._connector.source.driver.stream import KafkaStream, kafka_offset
from pyspark_kafka._connector.source.driver.tasks import advise_sharing, build_tasks
from pyspark_kafka._connector.source.input_partition import KafkaPartitionReaderFactory
from pyspark_kafka.connector import (
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReaderFactory,
    ReadLimit,
    ReportsSourceMetrics,
    SupportsTriggerAvailableNow,
)
from pyspark_kafka.errors import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import StreamReadOptions
    from pyspark_kafka._connector.source.driver.assignment import Assignment
    from pyspark_kafka._connector.source.read_columns import PendingReaderSchemas
    from pyspark_kafka._typed.typed.read_formats import ReadFormats

_LOG = logging.getLogger(__name__)


class KafkaMicroBatchStream(KafkaStream, MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics):
    """A Kafka subscription as a sequence of bounded batches.

    The driver plans and the executors obey: offsets, new partitions and data loss are decided here. Spark drives one
    through `format("pyspark_kafka")`; a program can also drive one by hand, see `from_options`.

    Runs on: driver, one per query run, in one thread; methods block on look-ups, with a deadline. Does not pickle; its
    reader factory does.

    Args:
        options: the parsed options of the stream.
        schema: the Arrow schema of the batches that readers return.
        formats: the formats of keys and values; None: bytes.
        location: as in `KafkaStream`: where the stream keeps its start and the ids of its topics.
        versions: of the schemas it reads with, to be kept once the checkpoint is known to be the query's.
        starts_are_finished: whether a start of `latestOffset` is the end of a batch that the engine has finished, as
            with Spark; otherwise only `commit` marks a finished batch.
        clock: monotonic seconds; for `maxTriggerDelay` and deadlines.

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

    Source: Spark `KafkaMicroBatchStream`.
    """

    def __init__(
        self,
        options: StreamReadOptions,
        schema: pa.Schema,
        formats: ReadFormats | None = None,
        *,
        location: str | None = None,
        versions: PendingReaderSchemas | None = None,
        starts_are_finished: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(options, schema, formats, location=location, versions=versions, clock=clock)
        self._admission = Admission(self._offset_reader, clock)
        self._available_now = AvailableNow()
        # The result of the last look-up, and the end that was returned after it: a plan of that end needs no look-up.
        self._assignment: Assignment | None = None
        self._latest: Mapping[TopicPartition, int] | None = None
        self._end: KafkaSourceOffset | None = None
        # The first offsets of the new partitions of the batch with that end; None: not looked up.
        self._first: Mapping[TopicPartition, int] | None = None
        self._headroom = HeadroomWarnings.from_options(options)
        self._starts_are_finished = starts_are_finished

    def __repr__(self) -> str:
        return f"KafkaV2[{self._options.subscription.describe()}]"

    def resolve_start(self) -> Mapping[TopicPartition, int]:
        """Return the start of a query that has none yet; keep nothing.

        Raises:
            OptionError: the option names other partitions than the subscription, or a time without a record.
        """
        return self._starting.resolve()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return `minOffsetsPerTrigger`, `maxOffsetsPerTrigger` and `maxBytesPerTrigger` as one read limit."""
        return default_read_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        """End this run at the records that are available at the next call of `latestOffset`."""
        self._available_now.prepare()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> KafkaSourceOffset:
        """Return the end of the micro-batch that begins at `start`; `start` itself if no micro-batch begins now.

        New partitions are read from their earliest offset. If data loss is tolerated, deleted partitions are missing
        in the end, and the plan reports them. An end that is only not visible now is the position.

        Raises:
            OptionError: the query is new, and its starting option names other partitions than the subscription, or a
                time without a record.
            DataLossError: a topic was deleted or recreated, a partition left the subscription, a log ends before
                `start`, or a new partition does not begin at offset 0, and `failOnDataLoss` is true.
        """
        self._starting.check()
        first = kafka_offset(start)
        self._keep_versions()
        started = first.partitions
        if self._starts_are_finished:
            self._finished.note_start(started, self._starting.found)
        if self._headroom is not None:
            self._headroom.note(started)
        self._latest = latest = self._available_now.ends(lambda: self._look_up_latest(started))
        # Every end that is found for a first batch carries its start, even if the batch is empty.
        carried = self._starting.carried(started) if first.starts is None else None
        known = started if self._assignment is None else self._losses.without_recreated(started, self._assignment)
        self._losses.refuse_lost_positions(known, latest)
        ends = self._admission.end_of_batch(limit, known, latest)
        if ends is not None and ends != started:
            new = ends.keys() - known.keys()
            self._first = self._losses.find_beginnings(known, new) if new else {}
            if new and started:
                _name_new_topics(started, new)
            self._end = KafkaSourceOffset(ends, carried)
        else:
            # The same text as `start`, with its own start if it has one: Spark takes any other text for new data.
            self._end = first if carried is None else KafkaSourceOffset(started, carried)
            if self._available_now.is_prepared:
                # After this return value Spark ends the run, and this process.
                self._finished.flush()
        return self._end

    def reportLatestOffset(self) -> KafkaSourceOffset | None:
        """Return the ends of the partitions as the last `latestOffset` found them."""
        return KafkaSourceOffset(self._latest) if self._latest else None

    def metrics(self, latestConsumedOffset: Offset | None) -> Mapping[str, str]:
        """Return the lag of `latestConsumedOffset` to the ends of the last `latestOffset`.

        Without a limit a micro-batch reads up to these ends, and all metrics are 0 after it.
        """
        consumed = None if latestConsumedOffset is None else kafka_offset(latestConsumedOffset).partitions
        return lag_metrics(consumed, self._latest)

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return one task for each partition that has offsets in `[start, end)`; options split it, or let some share.

        Raises:
            DataLossError: partitions were deleted, or their logs end before `start`, and `failOnDataLoss` is true.
            PlanningError: the batch does not fit the snapshot of an available-now run.
        """
        first, last = kafka_offset(start), kafka_offset(end)
        self._keep_versions()
        if first == last:
            # Spark also plans an empty batch, to pass its position to the source of a restarted query.
            return []
        started = self._starting.of_batch(first.partitions, last, is_ours=self._end is not None)
        ended = last.partitions
        self._available_now.check(ended, lambda: self._look_up_latest(ended))
        started = self._losses.without_restarting(started, last, self._assignment if last == self._end else None)
        new = [topic_partition for topic_partition in ended if topic_partition not in started]
        earliest = self._first if last == self._end else None
        if earliest is None or not earliest.keys() >= set(new):
            earliest = self._losses.without_deleted(
                started, lambda: self._offset_reader.fetch_earliest_offsets_of_new(new)
            )
        plan = plan_ranges(started, ended, earliest, group_id=self._options.group_id)
        if plan.findings:
            self._losses.report_planned(plan.findings, started, self._starting.checkpoint)
        split = split_ranges(
            plan.ranges,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )
        advise_sharing(split, self._options)
        return build_tasks(split, self._options, self._watch.ids)

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory that executors read with."""
        # A later batch reads a recreated topic from its beginning; a task that continued in it would read it twice.
        return KafkaPartitionReaderFactory.of_read(self._options, self._schema, self._formats, leaves_recreated=True)

    def stop(self) -> None:
        """Stop as `KafkaStream` does, and the watch of the time to deletion."""
        if self._headroom is not None:
            self._headroom.stop()
        super().stop()

    def _look_up_latest(self, known: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self._assignment, latest = self._losses.fetch_latest_offsets(known)
        return latest


def _name_new_topics(position: Iterable[TopicPartition], new: Iterable[TopicPartition]) -> None:
    """Log that a query reads further topics; one that it has read before, and that comes back, is read once more."""
    topics = {topic_partition.topic for topic_partition in new}
    topics -= {topic_partition.topic for topic_partition in position}
    if topics:
        _LOG.warning("Topics that are new to the query are read from their beginning: %s.", listed(sorted(topics)))
