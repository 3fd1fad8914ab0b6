"""Positions and waits of a continuous reader, over scripted responses."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from kit.fakes.clock import Clock
from kit.record_batches import control_batch, plain_batch
from pyspark_kafka._base.model import NO_END, OffsetRange, TopicPartition
from pyspark_kafka._client.client.fetch.cursor import FetchedRecords
from pyspark_kafka._client.client.fetch.errors import OffsetOutOfRangeError, TopicDeletedError, TopicRecreatedError
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka._connector.source.executor import continuous_reader
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.executor.continuous_reader import KafkaContinuousPartitionReader
from pyspark_kafka._connector.source.input_partition import (
    KafkaContinuousInputPartition,
    KafkaContinuousPartitionReaderFactory,
)
from pyspark_kafka.errors import CorruptRecordsError, DataLossError
from pyspark_kafka.records import scan

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def records(topic_partition: TopicPartition, start: int, *batches: bytes) -> tuple[TopicPartition, FetchedRecords]:
    data = b"".join(batches)
    scanned = scan(data, start).next_offset
    return topic_partition, FetchedRecords(memoryview(data), start, scanned, (), 100, 100, 0)


class Script:
    """What each poll brings: records, an error, or None after the time.

    Attributes:
        polls: how long each poll might wait, in ms.
        confirmed: the positions that the reader has confirmed.
        resumed: where ranges were resumed.
        open: how many fetchers and clients are open.
        ends: whether the ranges end with the last response.
        holds: whether records of the response are left.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.responses: deque[Any] = deque()
        self.polls: list[float] = []
        self.confirmed: list[tuple[TopicPartition, int]] = []
        self.resumed: list[tuple[TopicPartition, int]] = []
        self.open = 0
        self.ends = self.holds = False
        self.ranges: list[OffsetRange] = []
        self.heard: dict[TopicPartition, int] = {}

    def poll(self, timeout_ms: float) -> Any:
        self.polls.append(timeout_ms)
        found = self.responses.popleft() if self.responses else None
        if isinstance(found, Exception):
            raise found
        if found is None:
            self.clock.now += timeout_ms / 1000
        return found


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    found = Script()

    class FakeFetcher:
        def __init__(self, _client: object, ranges: Any, _fetch: FetchOptions, *, topic_ids: object) -> None:
            found.ranges = list(ranges)
            assert topic_ids == {"t": "id"}

        def __enter__(self) -> FakeFetcher:  # noqa: PYI034 - typing.Self needs Python 3.11
            found.open += 1
            return self

        def __exit__(self, *_: object) -> None:
            found.open -= 1

        def poll(self, timeout_ms: float) -> Any:
            return found.poll(timeout_ms)

        @property
        def is_done(self) -> bool:
            return found.ends and not found.responses

        @property
        def holds_records(self) -> bool:
            return found.holds

        def known_end(self, topic_partition: TopicPartition) -> int | None:
            return found.heard.get(topic_partition)

        def confirm(self, topic_partition: TopicPartition, position: int) -> None:
            found.confirmed.append((topic_partition, position))

        def resume(self, topic_partition: TopicPartition, offset: int) -> None:
            found.resumed.append((topic_partition, offset))

    @contextmanager
    def borrow(_: ConnectionOptions) -> Iterator[None]:
        found.open += 1
        try:
            yield
        finally:
            found.open -= 1

    monkeypatch.setattr(continuous_reader, "Fetcher", FakeFetcher)
    monkeypatch.setattr(continuous_reader, "borrow_client", borrow)
    monkeypatch.setattr(continuous_reader, "monotonic", found.clock)
    return found


def reader_of(
    *,
    fail_on_data_loss: bool = False,
    ends: tuple[tuple[TopicPartition, int], ...] = (),
    columns: tuple[str, ...] = ("partition", "offset"),
) -> KafkaContinuousPartitionReader:
    factory = KafkaContinuousPartitionReaderFactory(
        ConnectionOptions((("not-asked", 9092),)),
        FetchOptions(),
        pa.schema([SOURCE_SCHEMA.field(name) for name in columns]),
        fail_on_data_loss,
    )
    reader = factory.createReader(KafkaContinuousInputPartition(((T0, 0), (T1, 50)), ends, {"t": "id"}))
    assert isinstance(reader, KafkaContinuousPartitionReader)
    return reader


def rows(reader: KafkaContinuousPartitionReader) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in reader.get().to_pylist()]


def lost(error_class: Any, at: int, log: tuple[int, int] = (0, 0)) -> Any:
    error = error_class("lost", condition="LOST", **({"code": 1} if error_class is OffsetOutOfRangeError else {}))
    error.offset_range = OffsetRange(T0, 0, NO_END)
    error.requested_offset = at
    error.log_start_offset, error.log_end_offset = log
    return error


def test_reader_waits_100_ms_for_rows_and_reads_without_an_end(script: Script) -> None:
    reader = reader_of()
    assert script.open == 0
    assert not reader.next()
    assert script.polls == [pytest.approx(100)]
    assert script.ranges == [OffsetRange(T0, 0, NO_END), OffsetRange(T1, 50, NO_END)]
    assert script.open == 2
    reader.close()
    reader.close()
    assert script.open == 0
    with pytest.raises(RuntimeError, match="the reader is closed"):
        reader.next()


def test_positions_are_those_of_the_rows_that_were_returned(script: Script) -> None:
    script.responses += [records(T0, 0, plain_batch(0, 5)), records(T1, 50, plain_batch(50, 2))]
    reader = reader_of()
    assert reader.describeRows() == ""
    assert reader.getOffset().partitions == {T0: 0, T1: 50}
    assert reader.next()
    before = reader.getOffset()
    assert before.partitions == {T0: 0, T1: 50}
    assert rows(reader) == [(0, offset) for offset in range(5)]
    assert reader.getOffset().partitions == {T0: 5, T1: 50}
    reader.get()
    assert reader.describeRows() == "t-0 [0, 5)"
    assert reader.next()
    # Not before they are returned.
    assert reader.describeRows() == "t-0 [0, 5)"
    assert script.confirmed == [(T0, 5), (T1, 52)]
    assert rows(reader) == [(1, 50), (1, 51)]
    assert reader.describeRows() == "t-1 [50, 52)"
    assert reader.getOffset().partitions == {T0: 5, T1: 52}
    # What was reported is a value.
    assert before.partitions == {T0: 0, T1: 50}


def test_reader_has_more_while_records_of_the_response_are_left(script: Script) -> None:
    script.responses += [records(T0, 0, plain_batch(0, 5)), records(T1, 50, plain_batch(50, 2))]
    script.holds = True
    reader = reader_of()
    assert reader.next()
    assert reader.hasMore()
    reader.get()
    script.holds = False
    assert reader.next()
    assert not reader.hasMore()
    reader.close()


def test_reader_has_more_while_pieces_of_a_response_are_left(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuous_reader, "_BATCH_ROWS", 3)
    script.responses.append(records(T0, 0, plain_batch(0, 7)))
    reader = reader_of()
    found = []
    while reader.next():
        found.append((reader.get().num_rows, reader.hasMore()))
    assert found == [(3, True), (3, True), (1, False)]
    reader.close()


def test_position_passes_control_records_without_rows(script: Script) -> None:
    script.responses += [
        records(T0, 0, plain_batch(0, 5), control_batch(5, 7, 1)),
        records(T1, 50, control_batch(50, 7, 1)),
    ]
    reader = reader_of()
    assert reader.next()
    assert len(rows(reader)) == 5
    assert not reader.next()
    assert reader.getOffset().partitions == {T0: 6, T1: 51}
    assert script.confirmed == [(T0, 6), (T1, 51)]
    with pytest.raises(RuntimeError, match="get"):
        reader.get()


def test_reader_returns_after_its_time_although_records_without_rows_come_without_pause(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def invisible(offset: int) -> tuple[TopicPartition, FetchedRecords]:
        script.clock.now += 0.03
        return records(T0, offset, control_batch(offset, 7, 1))

    reader = reader_of()
    offset = 0

    def poll(_: float) -> Any:
        nonlocal offset
        offset += 1
        return invisible(offset - 1)

    monkeypatch.setattr(script, "poll", poll)
    assert not reader.next()
    assert offset == 4
    assert reader.getOffset().partitions[T0] in (3, 4)
    assert not reader.next()
    assert offset == 8


def test_damaged_record_batch_is_an_error_after_the_rows_before_it(script: Script) -> None:
    damaged = bytearray(plain_batch(5, 5))
    damaged[-1] ^= 1
    script.responses.append(records(T0, 0, plain_batch(0, 5), bytes(damaged)))
    reader = reader_of()
    assert reader.next()
    assert len(rows(reader)) == 5
    with pytest.raises(CorruptRecordsError, match=r"Reading t-0 \[0, no end\)"):
        reader.next()
    assert reader.getOffset().partitions == {T0: 5, T1: 50}
    reader.close()
    assert script.open == 0


@pytest.mark.parametrize(
    ("error", "resumed", "position"),
    [
        (lost(OffsetOutOfRangeError, 0, (40, 90)), 40, 40),
        (lost(OffsetOutOfRangeError, 60, (0, 55)), 55, 55),
        # The next plan decides: nothing is read of another log, and the last position stays.
        (lost(TopicRecreatedError, 5), NO_END, 0),
        (lost(TopicDeletedError, 5), NO_END, 0),
    ],
)
def test_loss_is_an_error_or_moves_the_position(
    script: Script, caplog: pytest.LogCaptureFixture, error: Any, resumed: int, position: int
) -> None:
    script.responses += [error, error, records(T1, 50, plain_batch(50, 1))]
    with pytest.raises(DataLossError):
        reader_of(fail_on_data_loss=True).next()
    reader = reader_of()
    with caplog.at_level(logging.WARNING):
        assert reader.next()
    assert "because 'failOnDataLoss' is false" in caplog.text
    assert script.resumed == [(T0, resumed)]
    # The others are read on.
    assert rows(reader) == [(1, 50)]
    assert reader.getOffset().partitions == {T0: position, T1: 51}


def test_reader_with_ends_has_ended_once_everything_was_returned_and_does_not_wait_there(script: Script) -> None:
    reader = reader_of(ends=((T0, 4), (T1, 51)))
    assert not reader.hasEnded()
    script.ends = True
    script.responses += [records(T0, 0, plain_batch(0, 5)), records(T1, 50, control_batch(50, 7, 1))]
    assert reader.next()
    # A batch of the log that passes the end is cut.
    assert rows(reader) == [(0, offset) for offset in range(4)]
    assert not reader.hasEnded()
    assert not reader.next()
    assert reader.hasEnded()
    assert script.ranges == [OffsetRange(T0, 0, 4), OffsetRange(T1, 50, 51)]
    assert reader.getOffset().partitions == {T0: 4, T1: 51}
    assert script.polls == [pytest.approx(100), pytest.approx(100)]


def test_reader_that_has_nothing_to_read_connects_nowhere(script: Script) -> None:
    reader = reader_of(ends=((T0, 0), (T1, 50)))
    assert reader.hasEnded()
    assert reader.getOffset().partitions == {T0: 0, T1: 50}
    assert script.open == 0
    reader.close()


def test_reader_without_ends_never_ends(script: Script) -> None:
    script.ends = True
    reader = reader_of()
    assert not reader.next()
    assert not reader.hasEnded()


@pytest.mark.parametrize("error", [TopicRecreatedError, TopicDeletedError])
def test_topic_that_is_gone_ends_a_range_and_keeps_its_position(script: Script, error: Any) -> None:
    gone = lost(error, 5)
    gone.offset_range = OffsetRange(T0, 0, 9)
    script.responses.append(gone)
    reader = reader_of(ends=((T0, 9), (T1, 50)))
    assert not reader.next()
    assert script.resumed == [(T0, 9)]
    assert reader.getOffset().partitions == {T0: 0, T1: 50}


def test_reader_knows_the_ends_that_responses_have_named(script: Script) -> None:
    reader = reader_of()
    assert reader.getLatestOffset() is None
    assert not reader.next()
    assert reader.getLatestOffset() is None
    script.heard = {T1: 90}
    latest = reader.getLatestOffset()
    assert latest is not None
    # What was not heard of is left out; an end that is behind the position is old.
    assert latest.partitions == {T1: 90}
    script.heard = {T0: 7, T1: 40}
    latest = reader.getLatestOffset()
    assert latest is not None
    assert latest.partitions == {T0: 7, T1: 50}


def test_reader_names_the_times_of_a_few_records(script: Script) -> None:
    script.responses.append(records(T0, 0, plain_batch(0, 3, base_time=1_700_000_000_000)))
    reader = reader_of(columns=("offset", "timestamp"))
    assert reader.getRowTimes() == ()
    assert reader.next()
    times = [value.timestamp() * 1000 for value in reader.get().column("timestamp").to_pylist()]
    assert len(times) == 3
    assert list(reader.getRowTimes()) == times


def test_reader_of_other_columns_names_no_times(script: Script) -> None:
    script.responses.append(records(T0, 0, plain_batch(0, 3)))
    reader = reader_of()
    assert reader.next()
    reader.get()
    assert reader.getRowTimes() == ()
