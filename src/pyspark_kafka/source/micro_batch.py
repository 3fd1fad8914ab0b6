"""The micro-batch source: decides on the driver what each batch reads."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from pyspark_kafka.planning import (
    check_available_now,
    data_loss_error,
    offsets_behind_latest,
    plan_ranges,
    rate_limit,
    split_ranges,
    waiting_offsets,
)
from pyspark_kafka.source.limit_resolution import LimitResolver
from pyspark_kafka.source.offset import KafkaOffset
from pyspark_kafka.source.offset_reader import KafkaOffsetReader
from pyspark_kafka.source.partition_reader import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.streaming import (
    CompositeReadLimit,
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReaderFactory,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    ReportsSourceMetrics,
    SupportsTriggerAvailableNow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import StreamReadOptions

logger = logging.getLogger(__name__)


class KafkaMicroBatchStream(MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics):
    """A Kafka subscription as a sequence of bounded batches.

    The driver plans and the executors obey: offsets, new partitions and data loss are decided here.

    Runs on: driver, one per query run, in one thread; methods block on look-ups, with a deadline.

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
        self._offset_reader = KafkaOffsetReader(
            options.connection,
            options.subscription,
            options.fetch.isolation_level,
            attempts=options.fetch_offset_attempts,
            retry_interval_ms=options.fetch_offset_retry_interval_ms,
        )
        self._latest: Mapping[TopicPartition, int] | None = None
        self._stop_at_snapshot = False
        self._snapshot: Mapping[TopicPartition, int] | None = None

    def __repr__(self) -> str:
        return f"KafkaV2[{self._options.subscription.describe()}]"

    def initialOffset(self) -> Offset:
        """Resolve the starting option for the partitions there are now.

        Raises:
            OptionError: it names other partitions than the subscription means, or a time without a record.
        """
        options = self._options
        return KafkaOffset(
            LimitResolver(self._offset_reader).starts(
                options.starting, latest_without_match=options.start_at_latest_without_match
            )
        )

    def deserializeOffset(self, json: str) -> Offset:
        """Read an offset of a checkpoint, this connector's or Spark's own."""
        return KafkaOffset.from_json(json)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Give `minOffsetsPerTrigger` and `maxOffsetsPerTrigger` as limits, or none."""
        options = self._options
        limits: list[ReadLimit] = []
        if options.min_offsets_per_trigger is not None:
            limits.append(ReadMinRows(options.min_offsets_per_trigger, options.max_trigger_delay_ms))
        if options.max_offsets_per_trigger is not None:
            limits.append(ReadMaxRows(options.max_offsets_per_trigger))
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
        """
        minimum, maximum = _bounds(limit)
        started = KafkaOffset.of(start).partitions
        self._latest = latest = self._newest_offsets(started)
        if not latest:
            # Never `{}`: an offset log entry without partitions could not be continued.
            return start
        if minimum is not None and not self._fires(minimum, started, latest):
            return start
        if maximum is None:
            return KafkaOffset(latest)
        new = [topic_partition for topic_partition in latest if topic_partition not in started]
        earliest = self._offset_reader.earliest_offsets_of_new(new)
        return KafkaOffset(rate_limit(started, earliest, latest, maximum.max_rows))

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
        """Give one task for each partition that has something in `[start, end)`, or several where options split it.

        Raises:
            DataLossError: partitions were deleted, or went back, and `failOnDataLoss` is true.
            PlanningError: the batch does not fit the snapshot of an available-now run.
        """
        started, ended = KafkaOffset.of(start).partitions, KafkaOffset.of(end).partitions
        if self._snapshot:
            check_available_now(ended, self._snapshot, self._offset_reader.assigned_latest_offsets(ended))
        new = [topic_partition for topic_partition in ended if topic_partition not in started]
        plan = plan_ranges(started, ended, self._offset_reader.earliest_offsets_of_new(new))
        if plan.findings:
            error = data_loss_error(plan.findings)
            if self._options.fail_on_data_loss:
                raise error
            logger.warning("%s The query goes on, because 'failOnDataLoss' is false.", error)
        split = split_ranges(
            plan.ranges,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )
        return [KafkaInputPartition(offset_range) for offset_range in split]

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Give the factory that executors read with."""
        return KafkaPartitionReaderFactory(
            self._options.connection, self._options.fetch, self._schema, self._options.fail_on_data_loss
        )

    def commit(self, end: Offset) -> None:
        """Do nothing: positions live in the checkpoint, and nothing is committed to Kafka."""

    def stop(self) -> None:
        """Do nothing: connections belong to the process's pool."""

    def _newest_offsets(self, known: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if not self._stop_at_snapshot:
            return self._offset_reader.assigned_latest_offsets(known)
        if self._snapshot is None:
            self._snapshot = self._offset_reader.assigned_latest_offsets(known)
        return self._snapshot

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


def _bounds(limit: ReadLimit) -> tuple[ReadMinRows | None, ReadMaxRows | None]:
    """Give the lower and the upper bound of a batch; `ReadAllAvailable` goes before both."""
    limits = limit.limits if isinstance(limit, CompositeReadLimit) else (limit,)
    if any(isinstance(part, ReadAllAvailable) for part in limits):
        return None, None
    minimum = maximum = None
    for part in limits:
        if isinstance(part, ReadMinRows):
            minimum = part
        elif isinstance(part, ReadMaxRows):
            maximum = part
        else:
            raise NotImplementedError(f"read limit {part!r}")
    return minimum, maximum
