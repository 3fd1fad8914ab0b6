"""Rows to record batches, a topic-partition at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, starmap
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.sink.executor.identity_headers import with_identity
from pyspark_kafka._connector.sink.executor.partitioner import Partitioner, extremes
from pyspark_kafka.errors import RecordError
from pyspark_kafka.records import RecordColumns, encode_rows, group_by_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark_kafka._client.options import TraceOptions, WriteOptions
    from pyspark_kafka._connector.sink.columns import SinkColumns
    from pyspark_kafka._connector.sink.executor.identity_headers import TaskOrigin
    from pyspark_kafka._connector.sink.executor.partition_lookup import TopicPartitions
    from pyspark_kafka._connector.sink.executor.traces.trace_headers import TraceHeaders
    from pyspark_kafka._connector.sink.executor.typed_rows import TypedRows

# How many bytes of rows are gathered before they are cut into record batches: with many partitions, the batches would
# otherwise be as small as an Arrow batch divided by their number.
_GATHERED_BYTES_PER_PARTITION = 512 * 1024
_MIN_GATHERED_BYTES = 4 << 20


class EncodedBatch(NamedTuple):
    """One record batch, ready to be sent. A tuple, because one is made for every record batch.

    Attributes:
        topic_partition: where it goes.
        data: its bytes; the sender may write a sequence into its header.
        record_count: how many records it holds.
    """

    topic_partition: TopicPartition
    data: bytearray
    record_count: int


class RecordBatchEncoder:
    """Gathers the rows of one task and cuts them into record batches; rows of one topic-partition keep their order.

    Runs on: executor; blocks only where `topics` does. Memory: the rows being gathered, at most half of
    `kafka.buffer.memory` or 4 MiB, and a copy of them while they are cut.

    Shape: batches with the columns that `columns` points at; see `sink.columns`.

    Args:
        options: topic, compression, sizes.
        columns: the positions of the sink's columns.
        topics: returns the partition counts; called at a topic's first row, and when a row is for a partition that
            is not known.
        origin: the task, for identity headers; None without them.

    Attributes:
        records: how many rows were encoded so far.
        encoded_bytes: how many bytes they take in record batches.
    """

    def __init__(
        self,
        options: WriteOptions,
        columns: SinkColumns,
        topics: TopicPartitions,
        origin: TaskOrigin | None = None,
    ) -> None:
        self._options = options
        # What is gathered has bytes in the place of typed columns.
        self._typed = _typed_rows(columns) if columns.is_typed else None
        self._columns = columns if self._typed is None else self._typed.columns
        self._headers_at = self._columns.headers
        self._topics = topics
        self._origin = origin
        self._trace = _trace_headers(options.trace) if options.trace is not None else None
        # Of the headers that are added to each row.
        self._added_bytes = 0 if origin is None else origin.bytes_per_row
        if self._trace is not None:
            self._added_bytes += self._trace.bytes_per_row
        # Rows without headers of their own get prepared ones, unless each row has others.
        self._adds_headers = origin is not None or (self._trace is not None and self._headers_at >= 0)
        self._rows_before = 0
        self._partitioners: dict[str, Partitioner] = {}
        self._topic_partitions: dict[str, list[TopicPartition]] = {}
        self._gathered: list[pa.RecordBatch] = []
        # How many of these batches are weighed, and their bytes; an upper bound for all gathered batches.
        self._weighed = self._weighed_bytes = self._most_bytes = 0
        self._references = 0
        self._gather_limit = _MIN_GATHERED_BYTES
        # Half: the copy in one piece needs as much.
        self._max_gathered_bytes = max(_MIN_GATHERED_BYTES, options.max_unacknowledged_bytes // 2)
        limit = min(options.producer.batch_size, options.producer.max_request_size)
        self._encode_rows = partial(
            encode_rows,
            max_batch_bytes=limit,
            compression=options.producer.compression,
            compression_level=options.producer.compression_level,
        )
        self.records = 0
        self.encoded_bytes = 0

    def gather_rows(self, batch: pa.RecordBatch) -> Iterable[EncodedBatch]:
        """Add rows; return the complete record batches.

        Raises:
            RecordError: a row cannot be sent: null topic, null header key, too large, a partition that does not exist,
                or a key or value that does not fit its schema; then nothing of the batch is sent.
        """
        if not batch.num_rows:
            return ()
        if self._typed is not None:
            return self._gather_typed(self._typed.encode(batch))
        return self.finish() if self._gather(batch) else ()

    def _gather_typed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[EncodedBatch]:
        for rows in batches:
            if self._gather(rows):
                yield from self.finish()

    def _gather(self, batch: pa.RecordBatch) -> bool:
        """Add rows; return whether enough are gathered. Each batch is weighed once, and only when it may be enough."""
        self._gathered.append(batch)
        if not self._references:
            # How often a buffer may be part of a batch: all batches of a task have the same columns.
            self._references = sum(_count_columns(field.type) for field in batch.schema)
        # Arrow needs longer to weigh few rows than the codec needs to encode them. Buffers may hold more rows.
        self._most_bytes += batch.get_total_buffer_size() * self._references
        if self._added_bytes:
            header_bytes = batch.num_rows * self._added_bytes
            self._most_bytes += header_bytes
            self._weighed_bytes += header_bytes
        if self._most_bytes < self._gather_limit:
            return False
        for unweighed in self._gathered[self._weighed :]:
            self._weighed_bytes += unweighed.nbytes
        self._weighed, self._most_bytes = len(self._gathered), self._weighed_bytes
        return self._weighed_bytes >= self._gather_limit

    def finish(self) -> Iterable[EncodedBatch]:
        """Return the record batches of the rows that are left, each encoded when it is taken; see `gather_rows`."""
        if not self._gathered:
            return ()
        rows = self._gathered[0] if len(self._gathered) == 1 else pa.concat_batches(self._gathered)
        self.drop()
        if self._adds_headers:
            rows = self._with_headers(rows)
        if self._options.topic is not None:
            return self._encode_topic(self._options.topic, rows)
        return chain.from_iterable(starmap(self._encode_topic, self._by_topic(rows)))

    def drop(self) -> None:
        """Forget the gathered rows."""
        self._gathered = []
        self._weighed = self._weighed_bytes = self._most_bytes = 0

    def _with_headers(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with a column of all headers behind the others."""
        headers = rows.column(self._headers_at) if self._headers_at >= 0 else None
        if self._origin is not None:
            headers = with_identity(headers, self._origin, self._rows_before, rows.num_rows)
            self._rows_before += rows.num_rows
        if self._trace is not None:
            headers = self._trace.of_rows(headers, rows.num_rows)
        self._columns = replace(self._columns, headers=rows.num_columns)
        return pa.RecordBatch.from_arrays([*rows.columns, headers], [*rows.schema.names, ""])

    def _by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        topics = rows.column(self._columns.topic)
        if topics.null_count:
            raise RecordError(
                f"{topics.null_count} of {len(topics)} rows have null in column 'topic', and the option 'topic' is not "
                "set. None of these rows was sent; earlier rows of the task may have been.",
                condition="KAFKA_NULL_TOPIC_IN_DATA",
                hint="Set the option 'topic' for all rows, or fill or filter the nulls.",
            )
        named = topics.dictionary_encode()
        if len(named.dictionary) == 1:
            yield named.dictionary[0].as_py(), rows
            return
        for number, topic in enumerate(named.dictionary.to_pylist()):
            yield topic, rows.filter(pc.equal(named.indices, number))

    def _encode_topic(self, topic: str, rows: pa.RecordBatch) -> Iterator[EncodedBatch]:
        places = self._columns
        keys = rows.column(places.key) if places.key >= 0 else None
        chosen = rows.column(places.partition) if places.partition >= 0 else None
        bounds_of_chosen = (-1, -1) if chosen is None else extremes(chosen)
        partitioner = self._partitioner(topic, bounds_of_chosen[1])
        count = partitioner.partition_count
        try:
            headers = rows.column(places.headers) if places.headers >= 0 else None
            prepared = None
            if headers is None and self._trace is not None:
                prepared = self._trace.prepared(rows.num_rows)
            encodable = RecordColumns(keys, rows.column(places.value), headers=headers, prepared=prepared)
            partitions = partitioner.partitions(rows.num_rows, encodable.data_bytes, keys, chosen)
            first, last = bounds_of_chosen if partitions is chosen else extremes(partitions)
            indices: memoryview | None = None
            bounds: Sequence[int] = (0, rows.num_rows)
            if first < last or not 0 <= first < count:
                indices, bounds = group_by_partition(partitions, count)
                first, last = 0, count - 1
            topic_partitions = self._topic_partitions[topic]
            for partition in range(first, last + 1):
                position, stop = bounds[partition - first], bounds[partition - first + 1]
                while position < stop:
                    encoded, taken = self._encode(encodable, indices, position, stop)
                    position += taken
                    self.records += taken
                    self.encoded_bytes += len(encoded)
                    yield EncodedBatch(topic_partitions[partition], encoded, taken)
        except RecordError as error:
            raise error.located(f"Writing to topic '{topic}'") from error

    def _encode(self, rows: RecordColumns, indices: memoryview | None, start: int, stop: int) -> tuple[bytearray, int]:
        try:
            return self._encode_rows(rows, indices, start, stop)
        except RecordError as error:
            largest = self._options.producer.max_request_size
            if error.condition != "RECORD_TOO_LARGE" or self._options.producer.batch_size >= largest:
                raise
        # `batch.size` bounds batches, not records: a larger record has a batch of its own.
        return self._encode_rows(rows, indices, start, start + 1, max_batch_bytes=largest)

    def _partitioner(self, topic: str, highest: int) -> Partitioner:
        """Return a topic's partitioner; the topic may have got partitions since it was built, up to `highest`."""
        known = self._partitioners.get(topic)
        if known is None or known.partition_count <= highest:
            topics = self._topics
            count = topics.partition_count(topic, beyond=highest)
            if known is None or known.partition_count != count:
                options = self._options.producer
                sticky_bytes = min(options.batch_size, options.max_request_size)
                known = Partitioner(count, sticky_bytes, available=lambda: topics.available_partitions(topic))
                self._partitioners[topic] = known
                self._topic_partitions[topic] = [TopicPartition(topic, partition) for partition in range(count)]
                partitions = sum(each.partition_count for each in self._partitioners.values())
                limit = max(partitions * _GATHERED_BYTES_PER_PARTITION, _MIN_GATHERED_BYTES)
                self._gather_limit = min(limit, self._max_gathered_bytes)
        return known


def _count_columns(data_type: pa.DataType) -> int:
    """Return the number of columns in a column, itself included."""
    children = [data_type.field(number).type for number in range(data_type.num_fields)]
    if isinstance(data_type, pa.DictionaryType):
        children.append(data_type.value_type)
    return 1 + sum(map(_count_columns, children))


def _trace_headers(trace: TraceOptions) -> TraceHeaders:
    from pyspark_kafka._connector.sink.executor.traces.trace_headers import TraceHeaders  # noqa: PLC0415 - few writes have spans

    return TraceHeaders(keeps=trace.keeps_headers)


def _typed_rows(columns: SinkColumns) -> TypedRows:
    from pyspark_kafka._connector.sink.executor.typed_rows import TypedRows  # noqa: PLC0415 - most writes need no format

    return TypedRows(columns)
