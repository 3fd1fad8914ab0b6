"""The batch source: one bounded read of a subscription."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka.client.cluster.pool import learned_servers
from pyspark_kafka.connector import Batch, InputPartition, PartitionReaderFactory
from pyspark_kafka.errors import DataLossError
from pyspark_kafka.model import OffsetRange
from pyspark_kafka.planning.filtering import RecordFilter
from pyspark_kafka.planning.late_binding import PlannedRange, late_binding, split_planned, start_behind_end
from pyspark_kafka.source.driver.limit_resolution import LimitResolver, resolve_listed
from pyspark_kafka.source.driver.offset_reader import KafkaOffsetReader
from pyspark_kafka.source.driver.tasks import advise_sharing, ids_of, tasks_of
from pyspark_kafka.source.handoff import KafkaInputPartition, KafkaPartitionReaderFactory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.model import TopicPartition
    from pyspark_kafka.options import BatchReadOptions
    from pyspark_kafka.planning.late_binding import LateBinding

logger = logging.getLogger(__name__)


class KafkaBatch(Batch):
    """One read from a starting to an ending limit.

    Numbers and times are resolved when the query is planned. `earliest` and `latest` stay open: they are looked up
    again when a task starts, so a plan that is run again reads what there is then.

    Runs on: driver, one per planned query; blocks on look-ups, with a deadline.

    Args:
        options: the parsed options of the read.
        schema: the Arrow schema of the batches that readers give.

    Source: Spark `KafkaBatch`, `KafkaRelation`.
    """

    def __init__(self, options: BatchReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._filter = RecordFilter()

    def narrow(self, record_filter: RecordFilter) -> None:
        """Leave out what a filter does not let through, as far as it can be left unread; before planning.

        Of places (topic, partition, offset) nothing else is read; of times, records before the first one that is late
        enough are not.
        """
        self._filter &= record_filter

    def planInputPartitions(self) -> Sequence[InputPartition]:
        """Give one task for each partition that may have something to read; options split it, or let some share.

        A partition that is empty now has a task where its end is open.

        Raises:
            OptionError: an option names other partitions than there are, a start that lies behind its end, or a
                starting time without a record.
            DataLossError: an end lies behind the log's.
        """
        offset_reader = KafkaOffsetReader.from_options(self._options)
        return resolve_listed(offset_reader, lambda resolver: self._plan(offset_reader, resolver))

    def _plan(self, offset_reader: KafkaOffsetReader, resolver: LimitResolver) -> list[KafkaInputPartition]:
        options = self._options
        # Ends first: what is produced between the look-ups must not end before its own start.
        latest = resolver.latest()
        ends = resolver.ends(options.ending)
        starts = resolver.starts(options.starting, latest_without_match=options.start_at_latest_without_match)
        planned = [
            PlannedRange(OffsetRange(where, starts[where], ends[where]), self._late_binding(where))
            for where in resolver.assigned
        ]
        behind = [part.offset_range for part in planned if part.crossed]
        if behind:
            raise start_behind_end(behind)
        within = [replace(part, offset_range=self._within_log(part.offset_range, latest)) for part in planned]
        split = split_planned(
            self._narrowed(within, offset_reader, latest),
            min_partitions=options.min_partitions,
            max_records=options.max_records_per_partition,
        )
        advise_sharing([part.offset_range for part in split], options)
        if self._shares_tasks:
            return tasks_of((part.offset_range for part in split), options, resolver.topic_ids)
        servers = learned_servers(options.connection)
        return [self._task(part, resolver.topic_ids, servers) for part in split]

    def _task(
        self, part: PlannedRange, topic_ids: Mapping[str, str], servers: tuple[tuple[str, int], ...]
    ) -> KafkaInputPartition:
        # What is looked up again at both ends is as good in a topic that was made anew: it has nothing to be compared.
        ids = {} if part.late is not None and part.late.both_open else ids_of([part.offset_range], topic_ids)
        return KafkaInputPartition(part.offset_range, late=part.late, topic_ids=ids, servers=servers)

    @property
    def _shares_tasks(self) -> bool:
        return self._options.max_partitions_per_task > 1

    def _late_binding(self, where: TopicPartition) -> LateBinding | None:
        # A task of several partitions reads what was planned: it has nothing to look up.
        return None if self._shares_tasks else late_binding(self._options.starting, self._options.ending, where)

    def _narrowed(
        self, planned: Sequence[PlannedRange], offset_reader: KafkaOffsetReader, latest: Mapping[TopicPartition, int]
    ) -> list[PlannedRange]:
        where = self._filter
        taken = [part for part in planned if where.takes(part.offset_range.topic_partition)]
        first = dict.fromkeys((part.offset_range.topic_partition for part in taken), where.offset_from)
        if where.seek_ms is not None:
            by_time = offset_reader.offsets_at(dict.fromkeys(first, where.seek_ms))
            # The ends were looked up before: below them, no record was late enough.
            first = {place: max(offset, by_time.get(place, latest[place])) for place, offset in first.items()}
        narrowed = (part.narrow(first[part.offset_range.topic_partition], where.offset_by) for part in taken)
        return [part for part in narrowed if part is not None]

    def _within_log(self, offset_range: OffsetRange, latest: Mapping[TopicPartition, int]) -> OffsetRange:
        """Cut off what lies behind the log's end: a task would wait for it in vain."""
        log_end_offset = latest[offset_range.topic_partition]
        if offset_range.end_offset <= log_end_offset:
            return offset_range
        lost_from = max(offset_range.start_offset, log_end_offset)
        message = (
            f"Offsets [{lost_from}, {offset_range.end_offset}) of {offset_range} cannot be read: the log of "
            f"{offset_range.topic_partition} ends at {log_end_offset}; {offset_range.end_offset - lost_from} offsets "
            "are missing."
        )
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{message} Nothing was read.",
                condition="KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE",
                hint="Check 'endingOffsets', or set failOnDataLoss=false to read what is there.",
                facts={"range": offset_range, "log_end_offset": log_end_offset},
            )
        logger.warning("%s What is there is read, because 'failOnDataLoss' is false.", message)
        return OffsetRange(offset_range.topic_partition, offset_range.start_offset, lost_from)

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Give the factory that executors read with."""
        options = self._options
        return KafkaPartitionReaderFactory(options.connection, options.fetch, self._schema, options.fail_on_data_loss)
