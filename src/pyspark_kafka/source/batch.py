"""The batch source: one bounded read of a subscription."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_kafka.errors import DataLossError, OptionError
from pyspark_kafka.model import OffsetRange
from pyspark_kafka.planning import split_ranges
from pyspark_kafka.source.limit_resolution import LimitResolver
from pyspark_kafka.source.offset_reader import KafkaOffsetReader
from pyspark_kafka.source.partition_reader import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.streaming import Batch, InputPartition, PartitionReaderFactory

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyspark_kafka.options import BatchReadOptions

logger = logging.getLogger(__name__)


class KafkaBatch(Batch):
    """One read from a starting to an ending limit, both resolved when the query is planned.

    Runs on: driver, one per planned query; blocks on look-ups, with a deadline.

    Args:
        options: the parsed options of the read.
        schema: the Arrow schema of the batches that readers give.

    Source: Spark `KafkaBatch`, `KafkaRelation`.
    """

    def __init__(self, options: BatchReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def planInputPartitions(self) -> Sequence[InputPartition]:
        """Give one task for each partition that has something to read, or several where the options split it.

        Raises:
            OptionError: an option names other partitions than there are, a start that lies behind its end, or a
                starting time without a record.
        """
        options = self._options
        resolver = LimitResolver(KafkaOffsetReader.from_options(options))
        # Ends first: what is produced between the look-ups must not end before its own start.
        latest = resolver.latest()
        ends = resolver.ends(options.ending)
        starts = resolver.starts(options.starting, latest_without_match=options.start_at_latest_without_match)
        ranges = [OffsetRange(partition, starts[partition], ends[partition]) for partition in resolver.assigned]
        behind = [offset_range for offset_range in ranges if offset_range.size < 0]
        if behind:
            raise OptionError(
                f"The start lies behind the end of {', '.join(map(str, behind))}. Nothing was read.",
                condition="RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
                hint="check the starting and ending options; was the topic deleted and made again?",
            )
        within = [self._within_log(offset_range, latest[offset_range.topic_partition]) for offset_range in ranges]
        split = split_ranges(
            within, min_partitions=options.min_partitions, max_records=options.max_records_per_partition
        )
        return [KafkaInputPartition(offset_range) for offset_range in split]

    def _within_log(self, offset_range: OffsetRange, log_end_offset: int) -> OffsetRange:
        """Cut off what lies behind the log's end: a task would wait for it in vain."""
        if offset_range.end_offset <= log_end_offset:
            return offset_range
        lost_from = max(offset_range.start_offset, log_end_offset)
        message = (
            f"Offsets [{lost_from}, {offset_range.end_offset}) of {offset_range} cannot be read: the log of "
            f"{offset_range.topic_partition} ends at {log_end_offset}."
        )
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{message} Nothing was read.",
                condition="KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE",
                hint="check 'endingOffsets', or set failOnDataLoss=false to read what is there.",
                facts={"range": offset_range, "log_end_offset": log_end_offset},
            )
        logger.warning("%s What is there is read, because 'failOnDataLoss' is false.", message)
        return OffsetRange(offset_range.topic_partition, offset_range.start_offset, lost_from)

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Give the factory that executors read with."""
        options = self._options
        return KafkaPartitionReaderFactory(options.connection, options.fetch, self._schema, options.fail_on_data_loss)
