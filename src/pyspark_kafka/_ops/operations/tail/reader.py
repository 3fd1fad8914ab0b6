"""Reads ranges like a task, and continues after records at which a task would fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Union

from pyspark_kafka._base.model import OffsetRange
from pyspark_kafka._client.client.fetch.errors import LOSSES
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._connector.source.executor.assembler import Assemblers
from pyspark_kafka._connector.source.executor.range_decoder import decode_range, resume_or_raise
from pyspark_kafka.errors import CorruptRecordsError, RecordError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import TypeAlias

    import pyarrow as pa

    from pyspark_kafka._base.model import TopicPartition
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
    from pyspark_kafka._client.options import FetchOptions
    from pyspark_kafka._typed.typed.read_formats import ReadFormats
    from pyspark_kafka.errors import ConnectorError


class UnreadRecord(NamedTuple):
    """A record that cannot be represented; the records after it are read.

    Attributes:
        offset: of the record.
        error: why.
    """

    offset: int
    error: ConnectorError


class EndedPartition(NamedTuple):
    """A partition that cannot be read further.

    Attributes:
        offset: the position at that time.
        error: the reason: damaged bytes, or a deleted topic.
    """

    offset: int
    error: ConnectorError


TailPiece: TypeAlias = Union["pa.RecordBatch", UnreadRecord, EndedPartition]


class TailReader:
    """Reads ranges of topic-partitions; they may be added and removed in the meantime.

    Records of a partition come in the order of their offsets. Lost records are skipped, with a warning.

    Runs on: driver, in one thread. Memory: a few fetches.

    Args:
        client: the cluster; only this reader uses it while it is open.
        fetch: sizes, waits and isolation.
        schema: the columns to read.
        formats: the formats of keys and values; None: bytes.
        ranges: the ranges to read.
        topic_ids: the ids of topics by name; the range of a recreated topic ends.
    """

    def __init__(
        self,
        client: KafkaClient,
        fetch: FetchOptions,
        schema: pa.Schema,
        formats: ReadFormats | None,
        ranges: Iterable[OffsetRange],
        topic_ids: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._fetch = fetch
        self._assemblers = Assemblers(schema, formats)
        self._ranges = {each.topic_partition: each for each in ranges if each.size > 0}
        self._topic_ids = dict(topic_ids or {})
        self._fetcher = self._open()

    def __enter__(self) -> TailReader:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_done(self) -> bool:
        """Whether all ranges are read to their ends."""
        return self._fetcher.is_done

    @property
    def unread(self) -> list[TopicPartition]:
        """The topic-partitions that are not read to their ends."""
        return [where for where, each in self._ranges.items() if each.size > 0]

    def close(self) -> None:
        """Return the connections."""
        self._fetcher.close()
        self._assemblers.close()

    def add_range(self, offset_range: OffsetRange) -> None:
        """Read another range from now on; it replaces a former range of the same partition."""
        where = offset_range.topic_partition
        if where in self._ranges:
            self._fetcher.remove(where)
        self._ranges[where] = offset_range
        self._fetcher.add_range(offset_range, self._topic_ids.get(where.topic))

    def know_topic(self, topic: str, topic_id: str) -> None:
        """Record the id of a topic, for later ranges."""
        self._topic_ids[topic] = topic_id

    def poll(self, timeout_ms: float) -> Iterator[tuple[TopicPartition, TailPiece]]:
        """Return the records of some time, in pieces of about 1 MiB; the caller takes all of them before the next call.

        Raises:
            DeadlineError: no progress for the time of the options.
            ConnectorError: a topic may not be read, a schema cannot be looked up, or a response is not valid.
        """
        try:
            found = self._fetcher.poll(timeout_ms)
        except LOSSES as error:
            lost = error.offset_range
            where = lost.topic_partition
            position = resume_or_raise(error, lost, fail_on_data_loss=False, leaves_recreated=True)
            self._fetcher.resume(where, position)
            self._move(where, position)
            return
        if found is not None:
            yield from self._decode(*found)

    def _decode(self, where: TopicPartition, fetched: FetchedRecords) -> Iterator[tuple[TopicPartition, TailPiece]]:
        assembler = self._assemblers.assembler(where)
        offset_range, position = self._ranges[where], fetched.start_offset
        try:
            for decoded in decode_range(fetched, offset_range, assembler.decoded_columns, self._fetch):
                if decoded.batch.num_rows and (batch := assembler.assemble(decoded)).num_rows:
                    yield where, batch
                position = decoded.next_offset
                self._move(where, position)
            self._fetcher.confirm(where, position)
        except CorruptRecordsError as error:
            yield where, EndedPartition(position, error)
            self._reopen_without(where)
        except RecordError as error:
            if "offset" not in error.parameters:
                yield where, EndedPartition(position, error)
                self._reopen_without(where)
                return
            offset = int(error.parameters["offset"])
            yield from self._decode_before(where, fetched, position, offset)
            yield where, UnreadRecord(offset, error)
            self.add_range(OffsetRange(where, offset + 1, offset_range.end_offset))

    def _decode_before(
        self, where: TopicPartition, fetched: FetchedRecords, position: int, offset: int
    ) -> Iterator[tuple[TopicPartition, TailPiece]]:
        """Return the records of an incomplete piece before a record that could not be represented."""
        assembler = self._assemblers.assembler(where)
        before = OffsetRange(where, fetched.start_offset, offset)
        try:
            for decoded in decode_range(fetched, before, assembler.decoded_columns, self._fetch):
                # The pieces before it were full, and were returned.
                if decoded.next_offset > position and decoded.batch.num_rows:
                    yield where, assembler.assemble(decoded)
        except RecordError as error:
            yield where, UnreadRecord(position, error)

    def _move(self, where: TopicPartition, position: int) -> None:
        end = self._ranges[where].end_offset
        self._ranges[where] = OffsetRange(where, min(position, end), end)

    def _reopen_without(self, where: TopicPartition) -> None:
        """Continue with the other ranges: an error of `confirm` closes the fetcher."""
        self._fetcher.close()
        del self._ranges[where]
        self._fetcher = self._open()

    def _open(self) -> Fetcher:
        ranges = [each for each in self._ranges.values() if each.size > 0]
        return Fetcher(self._client, ranges, self._fetch, topic_ids=self._topic_ids)
