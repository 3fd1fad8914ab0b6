"""A data writer that collects rows and flushes them by rows, bytes or time."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable

import pyarrow as pa

from pyspark_kafka.connector import DataWriter, WriterCommitMessage


class BatchingDataWriter(DataWriter):
    """Collects the rows of a task, and hands them to `flush` in a size that suits the target.

    A subclass implements `flush` and `finish`; `abort` if rows that were flushed must be undone. `commit` flushes what
    is left before it calls `finish`, so no row is left behind; after a failed `flush` nothing more is flushed, and
    `commit` raises.

    Runs on: executor; one for each task attempt; `flush` blocks; never pickled.

    Args:
        max_rows: a flush has at most this many rows; larger Arrow batches are cut.
        max_bytes: rows are flushed when they take this many bytes in memory; one flush may take up to the size of one
            Arrow batch more.
        max_age_ms: rows are flushed when the oldest of them waits for this long. Time is looked at when rows arrive and
            by `flushNow`: the task of a micro-batch without new rows ends, and its `commit` flushes.
        clock: for tests; seconds.
    """

    def __init__(
        self,
        *,
        max_rows: int = 10_000,
        max_bytes: int = 8 * 1024 * 1024,
        max_age_ms: int = 1_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if min(max_rows, max_bytes, max_age_ms) <= 0:
            raise ValueError("max_rows, max_bytes and max_age_ms must be positive")
        self._max_rows, self._max_bytes, self._max_age_s = max_rows, max_bytes, max_age_ms / 1000
        self._clock = clock
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._oldest_at = 0.0
        self._failure: BaseException | None = None

    @abstractmethod
    def flush(self, rows: pa.RecordBatch) -> None:
        """Send rows to the target: between 1 and `max_rows` of them, in the order in which they were written."""

    @abstractmethod
    def finish(self) -> WriterCommitMessage:
        """Return the message of this task; every row is flushed."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one Arrow batch, and flush what is due."""
        self._check()
        if batch.num_rows:
            if not self._waiting:
                self._oldest_at = self._clock()
            self._waiting.append(batch)
            self._rows += batch.num_rows
            # Of a slice, the bytes of its rows; not the bytes of the buffers that it shares.
            self._bytes += batch.nbytes
        while self._rows >= self._max_rows:
            self._flush(self._max_rows)
        if self._rows and (self._bytes >= self._max_bytes or self._clock() - self._oldest_at >= self._max_age_s):
            self._flush(self._rows)

    def flushNow(self) -> None:
        """Flush what waits for its full time. A continuous engine calls this when there are no rows for the moment."""
        self._check()
        if self._rows and self._clock() - self._oldest_at >= self._max_age_s:
            self._flush(self._rows)

    def commit(self) -> WriterCommitMessage:
        """Flush what is left, and finish."""
        self._check()
        while self._rows:
            self._flush(min(self._rows, self._max_rows))
        return self.finish()

    def abort(self) -> None:
        """Drop what is not flushed. A target that must undo what was flushed overrides this, and calls it."""
        self._waiting, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        """Release nothing: a subclass that holds a connection overrides this."""

    def _check(self) -> None:
        if self._failure is not None:
            raise RuntimeError("an earlier flush of this task has failed") from self._failure

    def _flush(self, rows: int) -> None:
        taken: list[pa.RecordBatch] = []
        left = rows
        while left:
            first = self._waiting[0]
            if first.num_rows <= left:
                taken.append(self._waiting.pop(0))
            else:
                taken.append(first.slice(0, left))
                self._waiting[0] = first.slice(left)
            left -= taken[-1].num_rows
        try:
            self.flush(taken[0] if len(taken) == 1 else pa.concat_batches(taken))
        except BaseException as error:
            self._failure = error
            raise
        self._rows -= rows
        self._bytes = sum(batch.nbytes for batch in self._waiting)
        self._oldest_at = self._clock()
