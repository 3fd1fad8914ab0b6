"""The contract of every source, as pytest cases over its `MicroBatchStream`."""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

import json
import pickle
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.connector import (
    Batch,
    MicroBatchStream,
    Offset,
    PartitionReaderFactory,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    Scan,
    SupportsAdmissionControl,
    SupportsPushDownFilters,
    SupportsRead,
    TableCapability,
)
from pyspark_kafka.connector.engine.available_now import admission_control_of
from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory
from pyspark_kafka.connector.engine.checks import check_filters, check_instance, check_not_backwards
from pyspark_kafka.testing.conformance.answers import check_offset, check_partitions
from pyspark_kafka.testing.conformance.killed import run_until_killed
from pyspark_kafka.testing.conformance.leaks import check_leaks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pyspark_kafka.connector import InputPartition
    from pyspark_kafka.connector.filters import Filter
    from pyspark_kafka.testing.conformance.killed import Steps

_MAX_BATCHES = 1_000


class SourceContract(ABC):
    """Cases for a source; inherit, and implement `table` and `add_rows`.

    Attributes:
        rows_at_first: `add_rows` is called with this number before each case.
        counts_rows: whether the source keeps to `ReadMaxRows`; a `SimpleSource` does not.
        rows_above_limit: how many rows more than `ReadMaxRows` allows a micro-batch may have; a source that takes at
            least one row of each of its parts has their number less one here.
        ordered: whether rows come in the same order at each read of a range; if not, they are compared sorted.
        keeps_committed_rows: whether rows can be read after the commit of their micro-batch; a spool removes them.
    """

    rows_at_first = 25
    counts_rows = True
    rows_above_limit = 0
    ordered = True
    keeps_committed_rows = True

    @abstractmethod
    def table(self) -> SupportsRead:
        """Return the table: a new one for each case, over data of its own. Fixtures can set them up."""

    @abstractmethod
    def add_rows(self, count: int) -> None:
        """Make more rows readable: `count` of them, distinct from all others."""

    def options(self) -> Mapping[str, str]:
        """Return the options of the read."""
        return {}

    def filters(self) -> Sequence[Filter]:
        """Return filters for a batch read that takes them; none if none does. Each is tried alone, and all together."""
        return ()

    def filter_options(self) -> Mapping[str, str]:
        """Return the options of that batch read."""
        return self.options()

    # What the cases are made of

    @pytest.fixture
    def source(self, tmp_path: Path) -> _Source:
        """The source, with its first rows."""
        table = self.table()
        self.add_rows(self.rows_at_first)
        return _Source(table, self.options(), str(tmp_path / "checkpoint"), ordered=self.ordered)

    # The cases

    def test_capabilities_are_implemented(self, source: _Source) -> None:
        """Each capability that the table names is implemented, and returns what the contract says."""
        scan, named = source.scan(), source.table.capabilities()
        assert TableCapability.MICRO_BATCH_READ in named, "the table does not name MICRO_BATCH_READ"
        assert isinstance(source.stream(), MicroBatchStream), "toMicroBatchStream() returned no MicroBatchStream"
        if TableCapability.BATCH_READ in named:
            batch = scan.toBatch()
            factory = batch.createReaderFactory()
            for partition in batch.planInputPartitions():
                factory.createReader(partition).close()

    def test_answers_have_the_types_of_the_contract(self, source: _Source) -> None:
        """No method forgets its return value, or returns another kind of object."""
        scan = source.scan()
        stream = check_instance(source.stream(), MicroBatchStream, scan, "toMicroBatchStream")
        control = admission_control_of(stream)
        start = check_offset(stream.initialOffset(), stream, "initialOffset")
        check_offset(stream.deserializeOffset(start.json()), stream, "deserializeOffset")
        check_instance(control.getDefaultReadLimit(), ReadLimit, stream, "getDefaultReadLimit")
        end = check_offset(control.latestOffset(start, ReadAllAvailable()), stream, "latestOffset")
        newest = control.reportLatestOffset()
        assert newest is None or check_offset(newest, stream, "reportLatestOffset")
        check_partitions(stream.planInputPartitions(start, end), stream)
        check_instance(stream.createReaderFactory(), PartitionReaderFactory, stream, "createReaderFactory")
        if TableCapability.BATCH_READ in source.table.capabilities():
            batch = check_instance(scan.toBatch(), Batch, scan, "toBatch")
            check_partitions(batch.planInputPartitions(), batch)
            check_instance(batch.createReaderFactory(), PartitionReaderFactory, batch, "createReaderFactory")

    def test_table_pickles(self, source: _Source) -> None:
        """The table reaches the processes in which Spark plans."""
        pickle.loads(pickle.dumps(source.table))  # noqa: S301 - our own bytes

    def test_rows_have_the_schema_that_the_scan_tells(self, source: _Source) -> None:
        """Every Arrow batch has the schema of `readSchema`, nullability included."""
        assert source.read_all() != [], "nothing was read, although add_rows() was called"

    def test_offsets_go_through_json_and_back(self, source: _Source) -> None:
        """An offset that was read back from its JSON is equal to it and has the same text."""
        stream = source.stream()
        for offset in (stream.initialOffset(), source.latest(stream)):
            text = offset.json()
            assert isinstance(json.loads(text), dict), "PySpark takes offsets whose JSON is an object only"
            again = source.stream().deserializeOffset(text)
            assert again.json() == text, "deserializeOffset() returned an offset with another JSON"
            assert again == offset, f"{text}, read back from its JSON, is not equal to itself: inherit from Offset"
            assert hash(again) == hash(offset), f"{text}, read back from its JSON, has another hash"

    def test_replay_returns_the_same_rows(self, source: _Source) -> None:
        """A range that is read again has the same rows, also in another process, and when more rows came meanwhile."""
        stream = source.stream()
        start, end = stream.initialOffset(), source.latest(stream)
        first = source.read(stream, start, end)
        self.add_rows(7)
        again = source.stream()
        replayed = source.read(again, again.deserializeOffset(start.json()), again.deserializeOffset(end.json()))
        assert replayed == first, (
            f"{start.json()} to {end.json()} had {len(first)} rows; read again, it has {len(replayed)}, or others"
        )

    def test_parts_of_a_range_are_the_whole(self, source: _Source) -> None:
        """Micro-batches that follow one another have every row once."""
        stream = source.stream()
        start, middle = stream.initialOffset(), source.latest(stream)
        first = source.read(stream, start, middle)
        self.add_rows(13)
        end = source.latest(stream, middle)
        assert end != middle, "latestOffset did not move, although rows were added"
        second = source.read(stream, middle, end)
        assert len(second) == 13, f"13 rows were added, and the next micro-batch has {len(second)}"
        whole = source.read(stream, start, end)
        assert source.comparable(whole) == source.comparable(first + second), (
            f"two micro-batches have {len(first)} and {len(second)} rows, and their range at once has {len(whole)}, or "
            "others"
        )

    def test_initial_offset_stays(self, source: _Source) -> None:
        """A query that is started again before its first commit begins where it began, whatever came meanwhile."""
        first = source.stream().initialOffset()
        self.add_rows(5)
        assert source.stream().initialOffset() == first, "rows before the new initial offset would be lost"

    def test_nothing_new_is_the_same_offset(self, source: _Source) -> None:
        """Without new rows, `latestOffset` returns its start, and an empty range has no rows."""
        stream = source.stream()
        end = source.latest(stream)
        assert source.latest(stream, end) == end, "latestOffset moved, although nothing was added"
        assert source.read(stream, end, end) == [], f"the empty range from {end.json()} on has rows"

    def test_latest_offset_is_never_behind_its_start(self, source: _Source) -> None:
        """Whatever the limit, and in a new run: the end of a micro-batch is its start, or it has new rows."""
        stream = source.stream()
        first, start = stream.initialOffset(), source.latest(stream)
        limits = (ReadMaxRows(1), ReadMaxRows(self.rows_at_first + 1), ReadAllAvailable())
        for limit in limits:
            assert source.latest(source.stream(), start, limit) == start, f"{limit} moved an offset without new rows"
        before = source.comparable(source.read(stream, first, start))
        self.add_rows(4)
        for limit in limits:
            again = source.stream()
            end = source.latest(again, again.deserializeOffset(start.json()), limit)
            after = source.comparable(source.read(again, first, end))
            assert len(after) >= len(before), f"{limit}: {end.json()} is behind {start.json()}"

    def test_plan_pickles(self, source: _Source) -> None:
        """Input partitions and the reader factory reach the executors."""
        stream = source.stream()
        planned = stream.planInputPartitions(stream.initialOffset(), source.latest(stream))
        factory = pickle.loads(pickle.dumps(stream.createReaderFactory()))  # noqa: S301 - our own bytes
        for partition in pickle.loads(pickle.dumps(list(planned))):  # noqa: S301 - our own bytes
            factory.createReader(partition).close()

    @pytest.mark.parametrize("rows", [1, 3, 10])
    def test_limits_are_respected_and_never_stall(self, source: _Source, rows: int) -> None:
        """With `ReadMaxRows`, every micro-batch has at most these rows, and all rows come in the end."""
        stream = source.stream()
        if not self.counts_rows or not isinstance(stream, SupportsAdmissionControl):
            pytest.skip("the source has no admission control, or does not count rows")
        start, seen = stream.initialOffset(), []
        for _ in range(_MAX_BATCHES):
            end = source.latest(stream, start, ReadMaxRows(rows))
            if end == start:
                break
            batch = source.read(stream, start, end)
            assert len(batch) <= rows + self.rows_above_limit, f"a micro-batch limited to {rows} rows has {len(batch)}"
            seen += batch
            start = end
        else:
            pytest.fail(f"no end after {_MAX_BATCHES} micro-batches")
        assert len(seen) == self.rows_at_first, "latestOffset returned its start although rows were left"

    def test_available_now_ends(self, source: _Source) -> None:
        """After `prepareForTriggerAvailableNow`, rows that come later are left for the next run."""
        stream = source.stream()
        control = admission_control_of(stream)
        control.prepareForTriggerAvailableNow()
        start, seen = stream.initialOffset(), []
        for _ in range(_MAX_BATCHES):
            end = control.latestOffset(start, control.getDefaultReadLimit())
            if end == start:
                break
            seen += source.read(stream, start, end)
            start = end
            self.add_rows(3)
        else:
            pytest.fail(f"the run has no end: {_MAX_BATCHES} micro-batches, and each brought new rows")
        assert len(seen) == self.rows_at_first, (
            f"{self.rows_at_first} rows were there when the run began, and it has read {len(seen)}"
        )

    def test_reader_closed_early_leaks_nothing(self, source: _Source) -> None:
        """A reader closed before its end, or before its beginning, leaves no file, socket or thread behind."""
        stream = source.stream()
        planned = stream.planInputPartitions(stream.initialOffset(), source.latest(stream))
        factory = stream.createReaderFactory()

        def read_a_little() -> None:
            for partition in planned:
                reader = factory.createReader(partition)
                reader.next()
                reader.close()
                factory.createReader(partition).close()

        check_leaks(read_a_little, times=5)

    def test_pushed_filters_leave_out_no_row_that_passes(self, source: _Source) -> None:
        """A batch read with filters has the rows that pass, once the engine has applied the returned filters."""
        wanted, options = list(self.filters()), self.filter_options()
        if not wanted:
            pytest.skip("filters() returns none")
        every, left = source.read_batch(options, [])
        assert left == [], "pushFilters([]) returned filters, and was given none"
        for pushed in ([], *([each] for each in wanted), wanted):
            rows, left = source.read_batch(options, pushed)
            found = [row for row in rows if all(each.evaluate(row) is True for each in left)]
            expected = [row for row in every if all(each.evaluate(row) is True for each in pushed)]
            assert source.comparable(found) == source.comparable(expected), (
                f"filters {pushed}, of which {left} are left"
            )

    def test_stop_may_be_called_again(self, source: _Source) -> None:
        """A stream that never read, and one that did, stop more than once."""
        stream = source.stream()
        stream.stop()
        stream.stop()

    def test_kill_between_any_two_calls_loses_and_doubles_nothing(self, source: _Source, tmp_path: Path) -> None:
        """An engine that is killed before any of its steps, and started again, has every row once."""
        for number in range(_MAX_BATCHES):
            log = tmp_path / f"engine-{number}"
            log.mkdir()

            def work(steps: Steps, log: Path = log) -> None:
                _run_engine(source, log, steps)

            if not self.keeps_committed_rows:
                self.add_rows(self.rows_at_first)
            # A commit may remove them.
            expected = source.read_all()
            ended = run_until_killed(work, number)
            self_ended = run_until_killed(work, None)
            assert self_ended, f"killed before step {number}, and the engine that was started again did not end"
            rows = [row for path in sorted(log.glob("rows-*")) for row in pickle.loads(path.read_bytes())]  # noqa: S301
            assert source.comparable(rows) == source.comparable(expected), f"killed before step {number}"
            if ended:
                return
        pytest.fail("the engine has no end")


class _Source:
    """A table, and how the cases read it."""

    def __init__(self, table: SupportsRead, options: Mapping[str, str], location: str, *, ordered: bool) -> None:
        self.table = table
        self._options = options
        self._location = location
        self._ordered = ordered

    def scan(self) -> Scan:
        return self.table.newScanBuilder(self._options).build()

    def stream(self) -> MicroBatchStream:
        return self.scan().toMicroBatchStream(self._location)

    @staticmethod
    def latest(stream: MicroBatchStream, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:
        begin = stream.initialOffset() if start is None else start
        end = admission_control_of(stream).latestOffset(begin, limit or ReadAllAvailable())
        check_not_backwards(end, begin, stream, "latestOffset", "")
        return end

    def read(self, stream: MicroBatchStream, start: Offset, end: Offset) -> list[dict[str, Any]]:
        schema = self.scan().readSchema()
        rows = self._rows(stream.createReaderFactory(), stream.planInputPartitions(start, end), schema)
        return rows if self._ordered else self.comparable(rows)

    @staticmethod
    def _rows(
        factory: PartitionReaderFactory, planned: Sequence[InputPartition], schema: pa.Schema
    ) -> list[dict[str, Any]]:
        rows = []
        for partition in planned:
            reader = CheckedReaderFactory(factory, schema).createReader(partition)
            try:
                while reader.next():
                    rows += reader.get().to_pylist()
            finally:
                reader.close()
        return rows

    def read_batch(
        self, options: Mapping[str, str], pushed: Sequence[Filter]
    ) -> tuple[list[dict[str, Any]], Sequence[Filter]]:
        """Return the rows of a batch read with filters, and the filters left to the engine."""
        builder = self.table.newScanBuilder(options)
        assert isinstance(builder, SupportsPushDownFilters), "newScanBuilder() returns no SupportsPushDownFilters"
        left = check_filters(builder.pushFilters(pushed), pushed, builder)
        scan = builder.build()
        batch = scan.toBatch()
        return self._rows(batch.createReaderFactory(), batch.planInputPartitions(), scan.readSchema()), left

    def read_all(self) -> list[dict[str, Any]]:
        stream = self.stream()
        return self.read(stream, stream.initialOffset(), self.latest(stream))

    @staticmethod
    def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(rows, key=repr)


def _run_engine(source: _Source, log: Path, steps: Steps) -> None:
    """Run micro-batches as Spark does: the end is logged before the batch, the commit after it."""
    stream = source.stream()
    control = admission_control_of(stream)
    control.prepareForTriggerAvailableNow()
    number, start = 0, None
    while (log / f"commit-{number}").exists():
        start = stream.deserializeOffset((log / f"end-{number}").read_text())
        number += 1
    while number < _MAX_BATCHES:
        steps.next()
        if start is None:
            start = stream.initialOffset()
        logged = log / f"end-{number}"
        if logged.exists():
            end = stream.deserializeOffset(logged.read_text())
            start_kept = (log / f"start-{number}").read_text()
            start = stream.deserializeOffset(start_kept)
        else:
            steps.next()
            end = control.latestOffset(start, control.getDefaultReadLimit())
            if end == start:
                break
            (log / f"start-{number}").write_text(start.json())
            _put(logged, end.json().encode())
        steps.next()
        rows = source.read(stream, start, end)
        steps.next()
        _put(log / f"rows-{number:06}", pickle.dumps(rows))
        # In the order of Spark: what was passed to commit() is not requested again.
        steps.next()
        _put(log / f"commit-{number}", b"")
        steps.next()
        stream.commit(end)
        number, start = number + 1, end
    else:
        pytest.fail(f"the run has no end: {_MAX_BATCHES} micro-batches, and no new rows")
    stream.stop()


def _put(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}")
    beside.write_bytes(data)
    beside.replace(path)
