"""Rows that are flushed by number, bytes and time."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.connector import WriterCommitMessage
from pyspark_kafka.toolkit import BatchingDataWriter


class Collecting(BatchingDataWriter):
    """Keeps what is flushed; fails at one flush if a test asks for it."""

    def __init__(self, *, fail_at: int | None = None, **sizes: int) -> None:
        self.now = 0.0
        super().__init__(clock=lambda: self.now, **sizes)
        self.flushed: list[list[int]] = []
        self._fail_at = fail_at

    def flush(self, rows: pa.RecordBatch) -> None:
        if len(self.flushed) == self._fail_at:
            raise OSError("the target is full")
        self.flushed.append(rows.column(0).to_pylist())

    def finish(self) -> WriterCommitMessage:
        return WriterCommitMessage()


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})


def test_rows_wait_until_there_are_enough() -> None:
    writer = Collecting(max_rows=4)
    writer.write(rows(1, 2, 3))
    assert writer.flushed == []
    writer.write(rows(4, 5))
    assert writer.flushed == [[1, 2, 3, 4]]
    writer.commit()
    assert writer.flushed == [[1, 2, 3, 4], [5]]


def test_large_arrow_batches_are_cut() -> None:
    writer = Collecting(max_rows=2)
    writer.write(rows(1, 2, 3, 4, 5))
    assert writer.flushed == [[1, 2], [3, 4]]


def test_bytes_are_those_of_the_rows_and_not_of_shared_buffers() -> None:
    writer = Collecting(max_rows=1_000, max_bytes=800)
    whole = rows(*range(1_000))
    for number in range(99):
        writer.write(whole.slice(number, 1))
    assert writer.flushed == []
    writer.write(whole.slice(99, 1))
    assert writer.flushed == [list(range(100))]


def test_old_rows_are_flushed_when_the_next_ones_arrive() -> None:
    writer = Collecting(max_age_ms=500)
    writer.write(rows(1))
    writer.now = 0.499
    writer.write(rows(2))
    assert writer.flushed == []
    writer.now = 0.5
    writer.write(rows(3))
    assert writer.flushed == [[1, 2, 3]]


def test_old_rows_are_flushed_when_no_rows_arrive() -> None:
    writer = Collecting(max_age_ms=500)
    writer.write(rows(1))
    writer.flushNow()
    assert writer.flushed == []
    writer.now = 0.5
    writer.flushNow()
    assert writer.flushed == [[1]]


def test_empty_arrow_batches_flush_nothing() -> None:
    writer = Collecting()
    writer.write(rows())
    writer.commit()
    assert writer.flushed == []


def test_failed_flush_fails_the_commit_as_well() -> None:
    writer = Collecting(max_rows=2, fail_at=1)
    with pytest.raises(OSError, match="full"):
        writer.write(rows(1, 2, 3, 4))
    for call in (writer.commit, lambda: writer.write(rows(5))):
        with pytest.raises(RuntimeError) as raised:
            call()
        assert isinstance(raised.value.__cause__, OSError)
    assert writer.flushed == [[1, 2]]


def test_abort_drops_what_is_not_flushed() -> None:
    writer = Collecting(max_rows=2)
    writer.write(rows(1, 2, 3))
    writer.abort()
    writer.close()
    assert writer.flushed == [[1, 2]]


@given(
    sizes=st.lists(st.integers(0, 30), max_size=20),
    max_rows=st.integers(1, 12),
    max_bytes=st.integers(1, 400),
)
def test_every_row_is_flushed_once_and_in_order(sizes: list[int], max_rows: int, max_bytes: int) -> None:
    writer = Collecting(max_rows=max_rows, max_bytes=max_bytes)
    written: list[int] = []
    for size in sizes:
        batch = list(range(len(written), len(written) + size))
        written += batch
        writer.write(rows(*batch))
    writer.commit()
    assert [number for flushed in writer.flushed for number in flushed] == written
    assert all(1 <= len(flushed) <= max_rows for flushed in writer.flushed)
