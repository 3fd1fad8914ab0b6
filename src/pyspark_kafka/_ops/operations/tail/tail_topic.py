"""The records of a topic for a request, approximately in the order of their times."""

from __future__ import annotations

import heapq
import time
from collections import deque
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafka._base.model import NO_END, OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.queries.missing_topics import explain_missing_topic
from pyspark_kafka._client.client.queries.offsets import list_offsets_now
from pyspark_kafka._client.client.wire.missing_rights import name_user
from pyspark_kafka._client.options import StreamReadOptions
from pyspark_kafka._connector.source.read_columns import plan_columns
from pyspark_kafka._ops.operations.tail.last import LastRecords, first_window
from pyspark_kafka._ops.operations.tail.reader import EndedPartition, TailReader, UnreadRecord
from pyspark_kafka._ops.operations.tail.request import check_partitions
from pyspark_kafka._ops.operations.tail.shown import BadPart, ShownRecord, shown_records
from pyspark_kafka.errors import AccessError, ConnectorError, DeadlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from pyspark_kafka._client.client.cluster.metadata import TopicMetadata
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import BatchReadOptions, FetchOptions
    from pyspark_kafka._ops.operations.tail.reader import TailPiece
    from pyspark_kafka._ops.operations.tail.request import TailRequest

# Records that arrive within this time, or up to this size, are shown in the order of their times.
_MERGED_MS = 200.0
_MERGED_BYTES, _MERGED_ROWS = 16 << 20, 20_000
_POLL_MS = 500.0
# The interval of checks for new partitions and for the recreation of a followed topic.
_WATCH_S = 5.0
_WATCH_MS = 2_000.0
# The first window of a partition if a filter leaves out records.
_SEARCHED = 1_000
_POSITIONS = pa.schema([pa.field("offset", pa.int64()), pa.field("timestamp", pa.timestamp("us", tz="UTC"))])


class Tail:
    """Shows the records of one topic. Use as a context manager; `records` once.

    Runs on: driver; blocks. Nothing is committed, and no group is joined.

    Args:
        options: of the read, as `resolve_read` resolves them.
        request: the request.
        clock: monotonic seconds.

    Attributes:
        missing: sentences about unreadable partitions; it grows while records are read.

    Raises:
        BrokerError: the topic does not exist, or the user may not read it.
        OptionError: a requested partition does not exist.
        SchemaError, RegistryError, MissingDependencyError: keys or values cannot be read in their format.
        ConnectorError: no broker responds, or the login is refused.
    """

    def __init__(
        self,
        options: BatchReadOptions | StreamReadOptions,
        request: TailRequest,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.missing: list[str] = []
        self._request = request
        self._clock = clock
        self._isolation_level = options.fetch.isolation_level
        if isinstance(options, StreamReadOptions):
            options = replace(options, checkpoint_location=None)
        self._fetch = _fetch_options(options, follow=request.follow)
        self._columns = plan_columns(options)
        formats = self._columns.formats
        self._corrupt = None if formats is None or formats.mode != "PERMISSIVE" else formats.corrupt_column
        self._client = KafkaClient(options.connection)
        self._topic_id: str | None = None
        self._known: set[TopicPartition] = set()
        self._leaders: dict[TopicPartition, int] = {}
        # The partitions whose offsets were unknown at the start.
        self._waiting: set[TopicPartition] = set()
        # The partitions that ended at an offset during the search for the last records.
        self._ended: set[TopicPartition] = set()
        self._watched_at = clock()

    def __enter__(self) -> Tail:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def records(self) -> Iterator[ShownRecord]:
        """Return the records; with `follow` without an end.

        Records that arrive at about the same time are in the order of their times; records of a partition are always in
        the order of their offsets.
        """
        request = self._request
        topic = self._look()
        check_partitions(request.partitions, len(topic.partitions), request.topic)
        ranges = self._find_ranges()
        limit = request.count if request.start is not None else None
        with self._reader(ranges) as reader:
            yield from islice(chain.from_iterable(map(merge_by_time, self._rounds(reader))), limit)

    def _look(self, deadline: Deadline | None = None) -> TopicMetadata:
        name = self._request.topic
        topic = self._client.fetch_metadata([name], deadline).topics.get(name)
        error = None if topic is None else topic.error_for("Read")
        if topic is None or (error is not None and error.condition == "UNKNOWN_TOPIC"):
            raise explain_missing_topic(self._client, name)
        if error is not None:
            if isinstance(error, AccessError):
                name_user(error, self._client.options)
            raise error
        self._topic_id = None if topic.topic_id is None else str(topic.topic_id)
        asked = [each for each in topic.partitions if self._is_asked(each.topic_partition)]
        self._known = {each.topic_partition for each in asked}
        self._leaders = {each.topic_partition: each.leader_id for each in asked}
        return topic

    def _is_asked(self, where: TopicPartition) -> bool:
        return not self._request.partitions or where.partition in self._request.partitions

    def _find_ranges(self) -> list[OffsetRange]:
        """Return the range of each partition whose offsets are known."""
        request, partitions = self._request, sorted(self._known)
        begins, failures = list_offsets_now(
            self._client, dict.fromkeys(partitions, Earliest()), self._client.deadline()
        )
        ends, later = list_offsets_now(
            self._client, dict.fromkeys(begins, Latest()), self._client.deadline(), self._isolation_level
        )
        failures.update(later)
        at_time: dict[TopicPartition, int] = {}
        if isinstance(request.start, AtTimestamp):
            at_time, later = list_offsets_now(
                self._client, dict.fromkeys(ends, request.start), self._client.deadline(), self._isolation_level
            )
            failures.update(later)
        self._note_failures(failures)
        self._waiting = set(failures)
        logs = {where: (begins[where], end) for where, end in ends.items() if where not in failures}
        if request.start is None:
            starts = self._find_last(logs)
        else:
            starts = {where: self._start(log, at_time.get(where)) for where, log in logs.items()}
        return [
            OffsetRange(where, starts[where], NO_END if request.follow else end) for where, (_, end) in logs.items()
        ]

    def _start(self, log: tuple[int, int], at_time: int | None) -> int:
        begin, end = log
        start = self._request.start
        if isinstance(start, Earliest):
            return begin
        if isinstance(start, int):
            return min(max(start, begin), end)
        # For a time without a record at or after it, the end as well.
        return end if at_time is None else min(at_time, end)

    def _find_last(self, logs: dict[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
        count, match = self._request.count or 0, self._request.match
        first = first_window(count, len(logs))
        last = LastRecords(count, logs, first if match.takes_all else max(first, _SEARCHED))
        for windows in last.groups() if count else ():
            found: dict[TopicPartition, deque[tuple[int, int]]] = {
                window.topic_partition: deque(maxlen=count) for window in windows
            }
            unread: set[TopicPartition] = set()
            ended: dict[TopicPartition, EndedPartition] = {}
            silent: DeadlineError | None = None
            with self._reader(windows, only_positions=match.takes_all) as reader:
                try:
                    for where, piece in _pieces(reader):
                        if isinstance(piece, EndedPartition):
                            ended[where] = piece
                        else:
                            found[where].extend(self._positions(piece))
                except DeadlineError as error:
                    unread, silent = set(reader.unread), error
                    if not unread:
                        raise
            for window in windows:
                where = window.topic_partition
                if where in ended:
                    start, later = self._past_hole(window, ended[where])
                    self._note_ended(where, ended[where], start)
                    if later is not None or window.end_offset < logs[where][1]:
                        # A read from before the hole would end there, and later records are found.
                        last.note_window(window, later or ())
                        last.drop([where])
                        continue
                # The records before a hole are not the end of a partition.
                if where not in unread:
                    last.note_window(window, found[where])
            if silent is not None:
                # The wait for a silent broker happens once, for all of its partitions.
                self._note_silent(last.drop(self._with_leaders_of(unread)), silent)
        return last.starts()

    def _past_hole(self, window: OffsetRange, hole: EndedPartition) -> tuple[int, deque[tuple[int, int]] | None]:
        """Find records after an unreadable offset, in a few reads of ever less of the window.

        Returns:
            The first offset after the hole that was read, and the positions from there; or the end, and None.
        """
        where, match = window.topic_partition, self._request.match
        start, step = hole.offset + 1, 1
        while start < window.end_offset:
            rest = OffsetRange(where, start, window.end_offset)
            found: deque[tuple[int, int]] = deque(maxlen=self._request.count)
            with self._reader([rest], only_positions=match.takes_all) as reader:
                is_read = True
                for _, piece in _pieces(reader):
                    is_read = is_read and not isinstance(piece, EndedPartition)
                    found.extend(self._positions(piece))
            if is_read:
                return start, found
            start, step = start + step, 2 * step
        return window.end_offset, None

    def _positions(self, piece: TailPiece) -> Iterable[tuple[int, int]]:
        """Return offsets and times (ms) of a piece's shown records."""
        if isinstance(piece, UnreadRecord):
            return ((piece.offset, -1),)
        if not isinstance(piece, pa.RecordBatch):
            return ()
        rows = self._request.match.rows(piece, self._corrupt)
        kept = piece if rows is None else piece.take(pa.array(rows))
        times = kept.column("timestamp").cast(pa.int64()).to_pylist()
        offsets = kept.column("offset").to_pylist()
        return ((offset, micros // 1000) for offset, micros in zip(offsets, times, strict=True))

    def _with_leaders_of(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return partitions, and all others that the same brokers lead."""
        leaders = {self._leaders[each] for each in partitions if each in self._leaders}
        return {*partitions, *(each for each, leader in self._leaders.items() if leader in leaders)}

    def _rounds(self, reader: TailReader) -> Iterator[dict[TopicPartition, Iterable[ShownRecord]]]:
        """Return the records that arrive at about the same time, by partition."""
        follow = self._request.follow
        any_read = False
        while follow or not reader.is_done:
            parts: dict[TopicPartition, list[Iterable[ShownRecord]]] = {}
            rows = size = 0
            until: float | None = None
            while rows < _MERGED_ROWS and size < _MERGED_BYTES and (follow or not reader.is_done):
                wait_ms = _POLL_MS if until is None else max(0.0, (until - self._clock()) * 1000)
                before = rows
                try:
                    for where, piece in reader.poll(wait_ms):
                        found = self._show(where, piece)
                        if found:
                            parts.setdefault(where, []).append(found[0])
                            rows, size = rows + found[1], size + found[2]
                except ConnectorError as error:
                    yield {where: chain.from_iterable(records) for where, records in parts.items()}
                    if not any_read and not parts:
                        raise
                    self._note_silent(reader.unread, error)
                    return
                if until is None and rows:
                    until = self._clock() + _MERGED_MS / 1000
                if until is None or (rows == before and self._clock() >= until):
                    break
            any_read = any_read or bool(parts)
            yield {where: chain.from_iterable(records) for where, records in parts.items()}
            if follow and self._clock() >= self._watched_at + _WATCH_S:
                self._watch(reader)

    def _show(self, where: TopicPartition, piece: TailPiece) -> tuple[Iterable[ShownRecord], int, int] | None:
        """Return the shown records of a piece, their maximum number, and their bytes."""
        request = self._request
        if isinstance(piece, EndedPartition):
            # The search for the last records may have found it before.
            if where not in self._ended:
                self._note_ended(where, piece, NO_END)
            return None
        if isinstance(piece, UnreadRecord):
            bad = BadPart("record", piece.error.condition, piece.error.message)
            return [ShownRecord(where, piece.offset, None, bad=bad)], 1, 0
        rows = request.match.rows(piece, self._corrupt)
        if rows is not None and not len(rows):
            return None
        records = shown_records(piece, rows, where, request.max_bytes, self._corrupt)
        return records, piece.num_rows, piece.nbytes

    def _watch(self, reader: TailReader) -> None:
        """Read new partitions of the topic, and all partitions of a recreated topic, from their beginnings."""
        self._watched_at = self._clock()
        known, former_id = self._known, self._topic_id
        try:
            self._look(self._client.deadline().within(_WATCH_MS))
            recreated = former_id is not None and self._topic_id != former_id
            if self._topic_id is not None:
                reader.know_topic(self._request.topic, self._topic_id)
            for where in sorted(self._known if recreated else self._known - known):
                reader.add_range(OffsetRange(where, 0, NO_END))
            told, _ = list_offsets_now(
                self._client,
                dict.fromkeys(self._waiting & self._known, Latest()),
                self._client.deadline().within(_WATCH_MS),
            )
        except ConnectorError:
            # No broker responds, or the topic was deleted: the read reports it itself, and the next check is soon.
            self._known, self._topic_id = known, former_id
            return
        for where, end in told.items():
            self._waiting.discard(where)
            reader.add_range(OffsetRange(where, end, NO_END))

    def _reader(self, ranges: Sequence[OffsetRange], *, only_positions: bool = False) -> TailReader:
        topic_ids = {} if self._topic_id is None else {self._request.topic: self._topic_id}
        if only_positions:
            return TailReader(self._client, self._fetch, _POSITIONS, None, ranges, topic_ids)
        return TailReader(self._client, self._fetch, self._columns.schema, self._columns.formats, ranges, topic_ids)

    def _note_failures(self, failures: dict[TopicPartition, ConnectorError]) -> None:
        if failures and len(failures) == len(self._known):
            raise next(iter(failures.values()))
        for error in dict.fromkeys(failures.values()):
            places = [where for where, each in failures.items() if each is error]
            self.missing.append(f"{_places_text(places)} not read: {error}")

    def _note_ended(self, where: TopicPartition, piece: EndedPartition, end: int) -> None:
        self._ended.add(where)
        until = "on" if end == NO_END else f"to {end}"
        self.missing.append(f"{where} is not read from offset {piece.offset} {until}: {piece.error}")

    def _note_silent(self, places: Sequence[TopicPartition], error: ConnectorError) -> None:
        self.missing.append(f"{_places_text(places)} not read to the end: {error}")


def _pieces(reader: TailReader) -> Iterator[tuple[TopicPartition, TailPiece]]:
    """Return all of the ranges; DeadlineError where brokers are silent."""
    while not reader.is_done:
        yield from reader.poll(_POLL_MS)


def _places_text(places: Sequence[TopicPartition]) -> str:
    return f"{places[0]} is" if len(places) == 1 else f"{places[0]} and {len(places) - 1} other partitions are"


def _fetch_options(options: BatchReadOptions | StreamReadOptions, *, follow: bool) -> FetchOptions:
    """Return the fetch options: only a read with `follow` waits for the end of an outage."""
    if follow:
        return options.fetch
    patience_ms = min(options.fetch.poll_timeout_ms, options.connection.api_timeout_ms)
    return replace(options.fetch, poll_timeout_ms=patience_ms, outage_timeout_ms=0)


def merge_by_time(by_partition: Mapping[TopicPartition, Iterable[ShownRecord]]) -> Iterator[ShownRecord]:
    """Return records of several partitions by their time; records of one partition keep the order of their offsets.

    A record without a time comes directly after its predecessor in the partition. Pure.
    """
    streams = (records for _, records in sorted(by_partition.items()))
    return heapq.merge(*streams, key=lambda record: -1 if record.timestamp_ms is None else record.timestamp_ms)
