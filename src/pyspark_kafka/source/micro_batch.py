"""The micro-batch source: decides on the driver what each batch reads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_kafka.offsets import Earliest, Latest
from pyspark_kafka.planning import data_loss_error, plan_ranges, rate_limit, resolve_offsets
from pyspark_kafka.source.offset import KafkaOffset
from pyspark_kafka.source.offset_reader import KafkaOffsetReader
from pyspark_kafka.source.partition_reader import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.streaming import (
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionReaderFactory,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import StreamReadOptions

logger = logging.getLogger(__name__)


class KafkaMicroBatchStream(MicroBatchStream, SupportsTriggerAvailableNow):
    """A Kafka subscription as a sequence of bounded batches.

    The driver plans and the executors obey: offsets, new partitions and data loss are decided here.

    Runs on: driver, one per query run, in one thread; methods block on look-ups, with a deadline.

    Args:
        options: the parsed options of the stream.
        schema: the Arrow schema of the batches that readers give.

    Source: Spark `KafkaMicroBatchStream`.
    """

    def __init__(self, options: StreamReadOptions, schema: pa.Schema) -> None:
        self._options = options
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
        """Resolve `startingOffsets` for the partitions there are now.

        Raises:
            OptionError: `startingOffsets` names other partitions than the subscription means.
        """
        limit = self._options.starting
        assigned = self._offset_reader.assigned_partitions()
        earliest = latest = None
        if not isinstance(limit, Latest):
            earliest = self._offset_reader.earliest_offsets(assigned)
        if not isinstance(limit, Earliest):
            latest = self._offset_reader.latest_offsets(assigned)
        return KafkaOffset(resolve_offsets(limit, assigned, earliest or {}, latest or {}))

    def deserializeOffset(self, json: str) -> Offset:
        """Read an offset of a checkpoint, this connector's or Spark's own."""
        return KafkaOffset.from_json(json)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Give `maxOffsetsPerTrigger` as a limit, or none."""
        if self._options.max_offsets_per_trigger is None:
            return ReadAllAvailable()
        return ReadMaxRows(self._options.max_offsets_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """End this run at what is available at the first `latestOffset` call from now on.

        The snapshot is taken there and not here: a batch that a former run left uncommitted is planned again before
        it, and partitions that appeared meanwhile would not fit it (SPARK-53560).
        """
        self._stop_at_snapshot = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Give the end of the batch that begins at `start`.

        New partitions are taken up here, from their earliest offset; partitions that are gone are missing in the
        result and reported when the batch is planned.
        """
        self._latest = latest = self._newest_offsets()
        if not latest:
            # Never `{}`: an offset log entry without partitions could not be continued.
            return start
        if isinstance(limit, ReadAllAvailable):
            return KafkaOffset(latest)
        if not isinstance(limit, ReadMaxRows):
            raise NotImplementedError(f"read limit {limit!r}")
        started = KafkaOffset.of(start).partitions
        new = [topic_partition for topic_partition in latest if topic_partition not in started]
        earliest = self._offset_reader.earliest_offsets_of_new(new)
        return KafkaOffset(rate_limit(started, earliest, latest, limit.max_rows))

    def reportLatestOffset(self) -> Offset | None:
        """Give the ends of the partitions as the last `latestOffset` saw them."""
        return KafkaOffset(self._latest) if self._latest else None

    def planInputPartitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Give one task for each partition that has something in `[start, end)`.

        Raises:
            DataLossError: partitions were deleted, or went back, and `failOnDataLoss` is true.
        """
        started, ended = KafkaOffset.of(start).partitions, KafkaOffset.of(end).partitions
        new = [topic_partition for topic_partition in ended if topic_partition not in started]
        plan = plan_ranges(started, ended, self._offset_reader.earliest_offsets_of_new(new))
        if plan.findings:
            error = data_loss_error(plan.findings)
            if self._options.fail_on_data_loss:
                raise error
            logger.warning("%s The query goes on, because 'failOnDataLoss' is false.", error)
        return [KafkaInputPartition(offset_range) for offset_range in plan.ranges]

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Give the factory that executors read with."""
        return KafkaPartitionReaderFactory(
            self._options.connection, self._options.fetch, self._schema, self._options.fail_on_data_loss
        )

    def commit(self, end: Offset) -> None:
        """Do nothing: positions live in the checkpoint, and nothing is committed to Kafka."""

    def stop(self) -> None:
        """Do nothing: connections belong to the process's pool."""

    def _newest_offsets(self) -> Mapping[TopicPartition, int]:
        if not self._stop_at_snapshot:
            return self._offset_reader.assigned_latest_offsets()
        if self._snapshot is None:
            self._snapshot = self._offset_reader.assigned_latest_offsets()
        return self._snapshot
