"""Topics as a stream of Arrow batches, without Spark: `pyspark_kafka.read_arrow`.

Plan and readers are the same as in a batch read of Spark. What Spark does with tasks, this module does with threads.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from pyspark_kafka._connector.table.arrow_filters import expression_of
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.connector import SupportsPushDownFilters, SupportsPushDownRequiredColumns
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark_kafka.connector import InputPartition, PartitionReaderFactory, Scan
    from pyspark_kafka.connector.filters import Filter

# A reader that waits for brokers leaves the processor to the others.
_MOST_THREADS = 8
# For each thread: one waiting batch, and one in work.
_BATCHES_A_THREAD = 2
_LOOK_S = 0.1
_FIRST_LINE_S = 2.0


def read_arrow(
    options: Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
    filters: Sequence[Filter] = (),
    threads: int | None = None,
    progress: bool | None = None,
) -> ArrowRead:
    """Return topics as Arrow batches, for pyarrow, Polars, DuckDB and pandas.

    ```python
    import polars as pl
    from pyspark_kafka import read_arrow

    orders = read_arrow({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"})
    print(pl.from_arrow(orders))
    ```

    It is the batch read of `spark.read.format("pyspark_kafka")` with the same options, without Spark: from
    `startingOffsets`, by default the earliest ones, to `endingOffsets`, by default the ends at the start of the read.
    Nothing is read before the result is used, and each use reads again.

    Runs on: any program; needs no PySpark. The use blocks until all is read.

    Args:
        options: of the read, as Spark takes them; see the page of options.
        columns: the columns to return, in this order; None: all.
        filters: of `pyspark_kafka.connector.filters`; a row must pass all of them. Those on `partition`, `offset` and
            `timestamp` narrow what is fetched.
        threads: that read at the same time, one partition each; None: as many as processors, and at most 8.
        progress: whether a line on standard error shows the progress from 2 s on; None: on a terminal or in a notebook.

    Raises:
        OptionError: options are missing, unknown, malformed or in conflict.
        SchemaError: a column does not exist, or a filter names one that is not returned.

    Shape: the columns of a batch read; `timestamp` has the zone UTC. Batches of one partition are in the order of
    offsets, batches of several partitions are mixed.
    """
    plan = _ArrowPlan(dict(options), columns, tuple(filters))
    shows = _is_watched() if progress is None else progress
    return ArrowRead(plan.scan()[0].readSchema(), plan, threads or min(os.cpu_count() or 1, _MOST_THREADS), shows)


@dataclass(frozen=True)
class _ArrowPlan:
    options: Mapping[str, Any]
    columns: Sequence[str] | None
    filters: tuple[Filter, ...]

    def scan(self) -> tuple[Scan, pa.compute.Expression | None]:
        """Return the read, and the condition on its rows that the plan does not express; None for none."""
        table = KafkaTable()
        options = {key: _text(value) for key, value in self.options.items()}
        if self.filters:
            options["pushDownPredicate"] = "true"
        builder = table.newScanBuilder(options)
        if self.columns is not None and isinstance(builder, SupportsPushDownRequiredColumns):
            builder.pruneColumns(_pruned(table.schema(options), self.columns))
        left: Sequence[Filter] = self.filters
        if self.filters and isinstance(builder, SupportsPushDownFilters):
            left = builder.pushFilters(self.filters)
        scan = builder.build()
        return scan, expression_of(left, scan.readSchema())


class ArrowRead:
    """A read of topics that each consumer of the Arrow stream interface takes. `read_arrow` returns it.

    Each use plans and reads again, so a topic that has grown has more rows.
    """

    def __init__(self, schema: pa.Schema, plan: _ArrowPlan, threads: int, shows: bool) -> None:
        self._schema = schema
        self._plan = plan
        self._threads = threads
        self._shows = shows

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch."""
        return self._schema

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a new read as a capsule of the Arrow stream interface."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def reader(self) -> pa.RecordBatchReader:
        """Return a new read as batches. Closing it, or forgetting it, ends the read.

        Raises:
            DataLossError, BadRecordError and others: as a batch read, from `read_next_batch`.
        """
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        scan, condition = self._plan.scan()
        batch = scan.toBatch()
        partitions = batch.planInputPartitions()
        reading = _Reading(batch.createReaderFactory(), deque(partitions), self._threads)
        line = _ProgressLine(scan.description(), len(partitions)) if self._shows else None
        try:
            for found in reading.batches(None if line is None else line.show):
                kept = found if condition is None else found.filter(condition)
                if kept.num_rows:
                    yield kept
        finally:
            reading.end()
            if line is not None:
                line.end()


class _Reading:
    """Threads that read the partitions of one plan into a queue of bounded length.

    Args:
        factory: of the readers.
        left: the partitions that no thread has taken.
        threads: the number of threads.
    """

    def __init__(self, factory: PartitionReaderFactory, left: deque[InputPartition], threads: int) -> None:
        self._factory = factory
        self._left = left
        count = min(threads, len(left))
        self._found: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(count * _BATCHES_A_THREAD or 1)
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run, name=f"read-arrow-{n}", daemon=True) for n in range(count)]

    def batches(self, watch: Callable[[int, int], None] | None) -> Iterator[pa.RecordBatch]:
        """Return the batches as they come.

        Args:
            watch: called with the number of rows, and of partitions that no thread has taken, several times a second.
        """
        for thread in self._threads:
            thread.start()
        running, rows = len(self._threads), 0
        while running:
            if watch is not None:
                watch(rows, len(self._left))
            try:
                found = self._found.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            if found is None:
                running -= 1
                continue
            rows += found.num_rows
            yield found

    def end(self) -> None:
        """End all threads, and wait for them: at the latest when the requests in flight have ended."""
        self._is_over.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                try:
                    partition = self._left.popleft()
                except IndexError:
                    break
                self._read(partition)
        except BaseException as error:  # noqa: BLE001 - raised where the batches are used
            self._put(error)
        self._put(None)

    def _read(self, partition: InputPartition) -> None:
        reader = self._factory.createReader(partition)
        try:
            while not self._is_over.is_set() and reader.next():
                self._put(reader.get())
        finally:
            reader.close()

    def _put(self, found: pa.RecordBatch | BaseException | None) -> None:
        while not self._is_over.is_set():
            try:
                self._found.put(found, timeout=_LOOK_S)
            except queue.Full:
                continue
            return


@dataclass
class _ProgressLine:
    """A line that is written over itself from the third second on."""

    what: str
    partitions: int
    out: TextIO = field(default_factory=lambda: sys.stderr)
    began: float = field(default_factory=lambda: time.monotonic())  # noqa: PLW0108 - looked up, for tests
    shown_at: float | None = None

    def show(self, rows: int, left: int) -> None:
        now = time.monotonic()
        if now - self.began < _FIRST_LINE_S or (self.shown_at is not None and now - self.shown_at < 1):
            return
        self.shown_at = now
        begun = self.partitions - left
        parts = f"{begun} of {self.partitions} parts begun"
        self.out.write(f"\rReading {self.what}: {rows:,} records, {parts}, {now - self.began:.0f} s ")
        self.out.flush()

    def end(self) -> None:
        if self.shown_at is not None:
            self.out.write("\n")
            self.out.flush()


def _text(value: Any) -> str:
    """Return an option as Spark passes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pruned(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise SchemaError(
            f"There is no column {', '.join(map(repr, missing))}; the columns are {', '.join(schema.names)}. "
            "Nothing was read.",
            condition="COLUMN_NOT_FOUND",
            hint="Name columns of the read; keys and values with a format have columns of their own.",
        )
    return pa.schema([schema.field(name) for name in columns])


def _is_watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
