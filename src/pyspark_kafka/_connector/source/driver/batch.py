"""The batch source: one bounded read of a subscription."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka._base.model import OffsetRange
from pyspark_kafka._client.client.cluster.pool import learned_servers
from pyspark_kafka._connector.planning.open_ends import PlannedRange, plan_open_ends, split_planned, start_behind_end
from pyspark_kafka._connector.planning.record_filter import RecordFilter
from pyspark_kafka._connector.source.driver.edge_resolver import EdgeResolver, resolve_listed
from pyspark_kafka._connector.source.driver.offset_reader import KafkaOffsetReader
from pyspark_kafka._connector.source.driver.tasks import advise_sharing, build_tasks, ids_of
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.connector import Batch, InputPartition, PartitionReaderFactory
from pyspark_kafka.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.options import BatchReadOptions
    from pyspark_kafka._connector.planning.open_ends import OpenEnds
    from pyspark_kafka._typed.typed.read_formats import ReadFormats

_LOG = logging.getLogger(__name__)


class KafkaBatch(Batch):
    """One read from a start to an end.

    Numbers and times are resolved when the query is planned. `earliest` and `latest` are open ends: a task looks them
    up again when it starts, so a repeated plan reads the records of that moment.

    Runs on: driver, one per planned query; blocks on look-ups, with a deadline.

    Args:
        options: the parsed options of the read.
        schema: the Arrow schema of the batches that readers return.
        formats: the formats of keys and values; None: bytes.

    Source: Spark `KafkaBatch`, `KafkaRelation`.
    """

    def __init__(self, options: BatchReadOptions, schema: pa.Schema, formats: ReadFormats | None = None) -> None:
        self._options = options
        self._schema = schema
        self._formats = formats
        self._filter = RecordFilter()

    def narrow(self, record_filter: RecordFilter) -> None:
        """Leave out records that a filter refuses, if they can be left unread; called before planning.

        By topic, partition and offset, no other records are read. By time, a read starts at the first record that is
        late enough; later records may still be refused.
        """
        self._filter &= record_filter

    def planInputPartitions(self) -> Sequence[InputPartition]:
        """Return one task for each partition that may have records to read; options split it, or let some share.

        A partition that is empty now has a task if its end is open.

        Raises:
            OptionError: an option names partitions that are not read, a start after its end, or a time
                without a record at or after it.
            DataLossError: an end lies after the end of the log, and `failOnDataLoss` is true.
        """
        offset_reader = KafkaOffsetReader.from_options(self._options)
        return resolve_listed(offset_reader, lambda resolver: self._plan(offset_reader, resolver))

    def _plan(self, offset_reader: KafkaOffsetReader, resolver: EdgeResolver) -> list[KafkaInputPartition]:
        options = self._options
        # Ends first: records that are written between the look-ups must not put a start after its end.
        latest = resolver.find_latest()
        ends = resolver.find_ends(options.ending)
        starts = resolver.find_starts(options.starting, latest_without_match=options.start_at_latest_without_match)
        planned = [PlannedRange(OffsetRange(tp, starts[tp], ends[tp]), self._open_ends(tp)) for tp in resolver.assigned]
        behind = [part.offset_range for part in planned if part.starts_behind_end]
        if behind:
            raise start_behind_end(behind)
        # An end that is only not visible yet is waited for: the task reads up to it, or names the open transaction.
        hidden = offset_reader.find_reached({tp: end for tp, end in ends.items() if end > latest[tp]})
        within = [
            part
            if part.offset_range.topic_partition in hidden
            else replace(part, offset_range=self._within_log(part.offset_range, latest))
            for part in planned
        ]
        split = split_planned(
            self._narrowed(within, offset_reader, latest),
            min_partitions=options.min_partitions,
            max_records=options.max_records_per_partition,
        )
        advise_sharing([part.offset_range for part in split], options)
        if self._shares_tasks:
            return build_tasks((part.offset_range for part in split), options, resolver.topic_ids)
        servers = learned_servers(options.connection)
        return [self._task(part, resolver.topic_ids, servers) for part in split]

    def _task(
        self, part: PlannedRange, topic_ids: Mapping[str, str], servers: tuple[tuple[str, int], ...]
    ) -> KafkaInputPartition:
        # With two open ends a recreated topic is read like the former topic: no id is compared.
        ids = {} if part.open_ends is not None and part.open_ends.both_open else ids_of([part.offset_range], topic_ids)
        return KafkaInputPartition(part.offset_range, open_ends=part.open_ends, topic_ids=ids, servers=servers)

    @property
    def _shares_tasks(self) -> bool:
        return self._options.max_partitions_per_task > 1

    def _open_ends(self, topic_partition: TopicPartition) -> OpenEnds | None:
        # A task of several partitions reads the planned ranges; it looks up no ends.
        if self._shares_tasks:
            return None
        return plan_open_ends(self._options.starting, self._options.ending, topic_partition)

    def _narrowed(
        self, planned: Sequence[PlannedRange], offset_reader: KafkaOffsetReader, latest: Mapping[TopicPartition, int]
    ) -> list[PlannedRange]:
        wanted = self._filter
        taken = [part for part in planned if wanted.takes(part.offset_range.topic_partition)]
        first = dict.fromkeys((part.offset_range.topic_partition for part in taken), wanted.offset_from)
        if wanted.seek_ms is not None:
            by_time = offset_reader.fetch_offsets_at(dict.fromkeys(first, wanted.seek_ms))
            # Without a match: no record below the ends, which were looked up before, has that time or a later one.
            first = {tp: max(offset, by_time.get(tp, latest[tp])) for tp, offset in first.items()}
        narrowed = (part.narrow(first[part.offset_range.topic_partition], wanted.offset_by) for part in taken)
        return [part for part in narrowed if part is not None]

    def _within_log(self, offset_range: OffsetRange, latest: Mapping[TopicPartition, int]) -> OffsetRange:
        """Return a range without the offsets after the log's end: a task would wait for them in vain."""
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
                hint="Check 'endingOffsets', or set failOnDataLoss to false to read the rest.",
                parameters={"range": offset_range, "log_end_offset": log_end_offset},
            )
        _LOG.warning("%s The rest is read, because 'failOnDataLoss' is false.", message)
        return OffsetRange(offset_range.topic_partition, offset_range.start_offset, lost_from)

    def createReaderFactory(self) -> PartitionReaderFactory:
        """Return the factory that executors read with."""
        return KafkaPartitionReaderFactory.of_read(self._options, self._schema, self._formats)
