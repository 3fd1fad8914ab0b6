"""The contract of every continuous source, as pytest cases over its `ContinuousStream`."""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

import json
import pickle
import queue
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.connector import (
    ContinuousPartitionReaderFactory,
    ContinuousStream,
    Offset,
    PartitionOffset,
    SupportsRead,
    TableCapability,
)
from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory
from pyspark_kafka.connector.engine.checks import check_instance, check_not_backwards
from pyspark_kafka.testing.conformance.answers import check_offset, check_partitions, check_position
from pyspark_kafka.testing.conformance.killed import run_until_killed
from pyspark_kafka.testing.conformance.leaks import check_leaks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark_kafka.connector import ContinuousPartitionReader
    from pyspark_kafka.testing.conformance.killed import Steps

_MAX_STEPS = 200


class ContinuousSourceContract(ABC):
    """Cases for a continuous source; inherit, and implement `table` and `add_rows`.

    The cases drive a stream as an engine does: one thread for each reader, epochs in between, and a new plan if
    `needsReconfiguration` requires it. No case hangs: a call that does not return in its time fails.

    Attributes:
        rows_at_first: `add_rows` is called with this number before each case.
        max_call_seconds: each call of a reader returns within this time, `next` without rows included.
        max_wait_seconds: rows that were added are read within this time.
    """

    rows_at_first = 25
    max_call_seconds = 10.0
    max_wait_seconds = 30.0

    @abstractmethod
    def table(self) -> SupportsRead:
        """Return the table: a new one for each case, over data of its own. Fixtures can set them up."""

    @abstractmethod
    def add_rows(self, count: int) -> None:
        """Make more rows readable: `count` of them, distinct from all others."""

    def options(self) -> Mapping[str, str]:
        """Return the options of the read."""
        return {}

    @pytest.fixture
    def source(self, tmp_path: Path) -> _Continuous:
        """The source, with its first rows."""
        table = self.table()
        self.add_rows(self.rows_at_first)
        return _Continuous(self, table, str(tmp_path / "checkpoint"))

    # The cases

    def test_capability_is_implemented(self, source: _Continuous) -> None:
        """The table names CONTINUOUS_READ, and its scan returns a `ContinuousStream`."""
        named = source.table.capabilities()
        assert TableCapability.CONTINUOUS_READ in named, "the table does not name CONTINUOUS_READ"
        stream = source.stream()
        assert isinstance(stream, ContinuousStream), "toContinuousStream() returned no ContinuousStream"

    def test_answers_have_the_types_of_the_contract(self, source: _Continuous) -> None:
        """No method forgets its return value, or returns another kind of object."""
        stream = source.stream()
        start = check_offset(stream.initialOffset(), stream, "initialOffset")
        check_offset(stream.deserializeOffset(start.json()), stream, "deserializeOffset")
        planned = check_partitions(stream.planInputPartitions(start), stream)
        factory = stream.createContinuousReaderFactory()
        check_instance(factory, ContinuousPartitionReaderFactory, stream, "createContinuousReaderFactory")
        positions = []
        for reader in map(factory.createReader, planned):
            positions.append(check_position(reader.getOffset(), reader, "getOffset"))
            heard = reader.getLatestOffset()
            assert heard is None or check_position(heard, reader, "getLatestOffset")
            check_instance(reader.describeRows(), str, reader, "describeRows")
            check_instance(reader.hasEnded(), bool, reader, "hasEnded")
            reader.close()
        for position in positions:
            arrived = stream.deserializePartitionOffset(position.json())
            check_position(arrived, stream, "deserializePartitionOffset")
        merged = check_offset(stream.mergeOffsets(positions), stream, "mergeOffsets")
        check_offset(stream.mergeLatestOffsets(positions), stream, "mergeLatestOffsets")
        planned_at, latest = stream.plannedOffset(), stream.latestOffset()
        assert planned_at is None or check_offset(planned_at, stream, "plannedOffset")
        if latest is not None:
            check_offset(latest, stream, "latestOffset")
            check_instance(stream.hasReached(merged, latest), bool, stream, "hasReached")
        check_instance(stream.needsReconfiguration(), bool, stream, "needsReconfiguration")
        stream.stop()

    def test_rows_have_the_schema_that_the_scan_tells(self, source: _Continuous) -> None:
        """Every row arrives, and every Arrow batch has the schema of `readSchema`, nullability included."""
        with source.run() as run:
            found = len(run.read(self.rows_at_first))
        assert found == self.rows_at_first, f"add_rows({self.rows_at_first}) was called, and {found} rows were read"

    def test_plan_pickles(self, source: _Continuous) -> None:
        """Input partitions and the factory reach the executors."""
        stream = source.stream()
        planned = stream.planInputPartitions(stream.initialOffset())
        factory = pickle.loads(pickle.dumps(stream.createContinuousReaderFactory()))  # noqa: S301 - our own bytes
        positions = []
        for partition in pickle.loads(pickle.dumps(list(planned))):  # noqa: S301 - our own bytes
            reader = factory.createReader(partition)
            positions.append(reader.getOffset())
            reader.close()
        merged = stream.mergeOffsets(positions)
        assert merged == stream.initialOffset(), f"readers that read nothing are at {merged.json()}, not at the start"

    def test_initial_offset_stays(self, source: _Continuous) -> None:
        """A query that is started again before its first commit begins where it began, whatever came meanwhile."""
        first = source.stream().initialOffset()
        self.add_rows(5)
        assert source.stream().initialOffset() == first, "rows before the new initial offset would be lost"

    def test_offset_before_the_first_rows_is_the_start(self, source: _Continuous) -> None:
        """A reader has a position before its first rows: its start."""
        with source.run() as run:
            assert run.offset() == run.start, "the position before the first rows is not the start"
            run.read(self.rows_at_first)
            reached = run.offset()
        with source.run(reached) as run:
            assert run.offset() == reached, f"a plan from {reached.json()} begins elsewhere"

    def test_positions_advance_with_the_rows(self, source: _Continuous) -> None:
        """The offset is another one after each Arrow batch; it goes through JSON and back; its parts have no order."""
        with source.run() as run:
            before = run.offset()
            while len(run.rows) < self.rows_at_first:
                run.more()
                after = run.offset()
                assert after != before, f"rows were returned, and the offset stayed {before.json()}"
                before = after
            positions = run.positions()
        text = before.json()
        assert isinstance(json.loads(text), dict), "PySpark takes offsets whose JSON is an object only"
        again = source.stream().deserializeOffset(text)
        assert (again.json(), again, hash(again)) == (text, before, hash(before)), (
            f"{text}, read back from its JSON, is another offset: inherit from Offset"
        )
        # Engines collect the positions of an epoch in the order in which they arrive.
        merged = source.stream().mergeOffsets(positions[::-1])
        assert merged == before, "mergeOffsets() returned another offset for the same positions in another order"

    def test_each_epoch_continues_with_no_row_lost_or_doubled(self, source: _Continuous) -> None:
        """From the offset of any epoch, a new plan reads exactly the rows that came after it."""
        epochs: list[tuple[Offset, int]] = []
        with source.run() as run:
            expected = self.rows_at_first
            for _ in range(3):
                while len(run.rows) < expected:
                    run.more()
                    epochs.append((run.offset(), len(run.rows)))
                self.add_rows(4)
                expected += 4
            run.read(expected)
            rows = list(run.rows)
        assert _doubled(rows) == [], "rows were read twice in one run"
        # The first ones, the last ones, and some between.
        chosen = epochs if len(epochs) <= 8 else epochs[:3] + epochs[3:-3:4] + epochs[-3:]
        for offset, seen in chosen:
            with source.run(source.stream().deserializeOffset(offset.json())) as again:
                rest = again.read(expected - seen)
            both = rows[:seen] + rest
            assert _comparable(both) == _comparable(rows), f"{_difference(both, rows)} after {offset.json()}"

    def test_next_returns_when_nothing_comes_and_continues(self, source: _Continuous) -> None:
        """Without rows `next` returns False in its time, at each call; that is not the end."""
        with source.run() as run:
            run.read(self.rows_at_first)
            for _ in range(3):
                assert run.round() == 0, "rows were returned twice"
            self.add_rows(6)
            found = len(run.read(self.rows_at_first + 6))
            assert found == self.rows_at_first + 6, f"6 rows were added, and {found - self.rows_at_first} were read"

    def test_reader_that_waits_is_closed_and_leaks_nothing(self, source: _Continuous) -> None:
        """Readers that wait for rows, and readers that never began, leave no file, socket or thread behind."""

        def wait_and_close() -> None:
            with source.run() as run:
                run.read(self.rows_at_first)
                run.round()
            with source.run():
                pass

        check_leaks(wait_and_close, times=3)

    def test_stop_may_be_called_again(self, source: _Continuous) -> None:
        """A stream that never read stops more than once."""
        stream = source.stream()
        stream.stop()
        stream.stop()

    def test_kill_between_any_two_calls_loses_and_doubles_nothing(self, source: _Continuous, tmp_path: Path) -> None:
        """An engine that is killed before any of its steps continues with the last epoch that it wrote down."""
        for number in range(_MAX_STEPS):
            log = tmp_path / f"engine-{number}"
            log.mkdir()

            def work(steps: Steps, log: Path = log) -> None:
                _run_engine(source, log, self.rows_at_first, steps)

            ended = run_until_killed(work, number)
            assert run_until_killed(work, None), f"killed before step {number}, and the engine did not end afterwards"
            rows = [row for path in sorted(log.glob("epoch-*")) for row in _read_epoch(path)[0]]
            assert _doubled(rows) == [], f"rows are there twice, killed before step {number}"
            assert len(rows) == self.rows_at_first, (
                f"{self.rows_at_first - len(rows)} rows are lost, killed before step {number}"
            )
            if ended:
                return
        pytest.fail("the engine has no end")


class _Continuous:
    """A table, and how the cases read it."""

    def __init__(self, contract: ContinuousSourceContract, table: SupportsRead, location: str) -> None:
        self.table = table
        self.max_call = contract.max_call_seconds
        self.max_wait = contract.max_wait_seconds
        self._options = contract.options()
        self._location = location

    def scan(self) -> Any:
        return self.table.newScanBuilder(self._options).build()

    def stream(self) -> ContinuousStream:
        stream: ContinuousStream = self.scan().toContinuousStream(self._location)
        return stream

    @contextmanager
    def run(self, start: Offset | None = None) -> Iterator[_ContinuousRun]:
        """Read from `start`, or from the initial offset, until the block ends."""
        stream = self.stream()
        run = _ContinuousRun(self, stream, stream.initialOffset() if start is None else start)
        try:
            yield run
        finally:
            run.close()
            stream.stop()


class _ContinuousRun:
    """A stream with its readers: what an engine keeps while a continuous query runs."""

    def __init__(self, source: _Continuous, stream: ContinuousStream, start: Offset) -> None:
        self._source, self._stream = source, stream
        self.start = self._reached = start
        self.rows: list[dict[str, Any]] = []
        self._readers: list[_ReaderThread] = []
        self._plan(start)

    def read(self, count: int) -> list[dict[str, Any]]:
        """Read until there are `count` rows, and once more, so that rows too many are seen; return all."""
        while len(self.rows) < count:
            self.more()
        self.round()
        assert len(self.rows) <= count, f"{len(self.rows)} rows were read, and there are {count}"
        return self.rows

    def more(self) -> None:
        """Read until there are new rows."""
        ends = time.monotonic() + self._source.max_wait
        while not self.round():
            assert time.monotonic() < ends, (
                f"after {len(self.rows)} rows nothing came in {self._source.max_wait} s, and rows are left"
            )

    def round(self) -> int:
        """Poll each reader once, and plan again if the stream requires it; return the number of new rows."""
        had = len(self.rows)
        for reader in self._readers:
            if reader.call("next", lambda each: each.next()):
                self.rows += reader.call("get", lambda each: each.get().to_pylist())
        if self._stream.needsReconfiguration():
            reached = self.offset()
            self._close_readers()
            self._plan(reached)
        return len(self.rows) - had

    def positions(self) -> list[PartitionOffset]:
        """Return the position of each reader, as the driver gets it."""
        found = [reader.call("getOffset", lambda each: each.getOffset()) for reader in self._readers]
        arrived = [self._stream.deserializePartitionOffset(each.json()) for each in found]
        assert arrived == found, (
            "deserializePartitionOffset() returned a position that does not equal the position of the JSON: inherit "
            "from PartitionOffset, or compare by the text"
        )
        return arrived

    def offset(self) -> Offset:
        """End an epoch; return its offset."""
        end = self._stream.mergeOffsets(self.positions())
        check_not_backwards(end, self._reached, self._stream, "mergeOffsets", "")
        self._reached = end
        return end

    def commit_end(self, end: Offset) -> None:
        """Notify the stream of a processed epoch."""
        self._stream.commit(end)

    def close(self) -> None:
        """Close the readers, also if one does not."""
        self._close_readers()

    def _plan(self, start: Offset) -> None:
        schema = self._source.scan().readSchema()
        factory = CheckedReaderFactory(self._stream.createContinuousReaderFactory(), schema)
        for partition in self._stream.planInputPartitions(start):
            limit = self._source.max_call
            self._readers.append(_ReaderThread(lambda each=partition: factory.createReader(each), limit))  # type: ignore[misc]

    def _close_readers(self) -> None:
        readers, self._readers = self._readers, []
        stuck = []
        for reader in readers:
            try:
                reader.call("close", lambda each: each.close())
            except AssertionError as error:
                stuck.append(error)
            reader.end()
        if stuck:
            raise stuck[0]


class _ReaderThread:
    """One reader on a thread of its own, whose calls are given up after their time."""

    def __init__(self, make: Callable[[], ContinuousPartitionReader], max_s: float) -> None:
        self._max_s = max_s
        self._asked: queue.SimpleQueue[Callable[[Any], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._reader: ContinuousPartitionReader | None = None
        # A call that never returns must not keep the test run alive.
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        self._stuck = ""

        def begin(_: Any) -> None:
            self._reader = make()

        self.call("createReader", begin)

    def call(self, name: str, work: Callable[[Any], Any]) -> Any:
        """Return what `work` returns for the reader; it runs on the reader's thread."""
        assert not self._stuck, f"{name}() cannot be called: {self._stuck}() has not returned"
        self._asked.put(work)
        try:
            succeeded, value = self._answers.get(timeout=self._max_s)
        except queue.Empty:
            self._stuck = name
            raise AssertionError(f"{name}() did not return within {self._max_s} s") from None
        if not succeeded:
            raise value
        return value

    def end(self) -> None:
        """End the thread, if it can be ended."""
        self._asked.put(None)
        self._thread.join(0 if self._stuck else self._max_s)

    def _work(self) -> None:
        while (work := self._asked.get()) is not None:
            try:
                self._answers.put((True, work(self._reader)))
            except BaseException as error:  # noqa: BLE001 - raised where it was asked for
                self._answers.put((False, error))


def _run_engine(source: _Continuous, log: Path, expected: int, steps: Steps) -> None:
    """Run epochs: rows and offset are written down together, then committed."""
    done = sorted(log.glob("epoch-*"))
    count = sum(len(_read_epoch(path)[0]) for path in done)
    stream = source.stream()
    start = stream.deserializeOffset(_read_epoch(done[-1])[1]) if done else stream.initialOffset()
    steps.next()
    with source.run(start) as run:
        number = len(done)
        ends = time.monotonic() + source.max_wait
        while count < expected and time.monotonic() < ends:
            had = len(run.rows)
            steps.next()
            # A few epochs are enough: each of their steps costs two runs.
            while len(run.rows) - had < min(expected // 3, expected - count) and time.monotonic() < ends:
                run.round()
            steps.next()
            end = run.offset()
            steps.next()
            _put(log / f"epoch-{number:06}", pickle.dumps((run.rows[had:], end.json())))
            steps.next()
            run.commit_end(end)
            count, number = count + len(run.rows) - had, number + 1
        steps.next()


def _put(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}")
    beside.write_bytes(data)
    beside.replace(path)


def _read_epoch(path: Path) -> tuple[list[dict[str, Any]], str]:
    rows, offset = pickle.loads(path.read_bytes())  # noqa: S301 - our own bytes
    return rows, offset


def _comparable(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def _doubled(rows: list[dict[str, Any]]) -> list[str]:
    texts = _comparable(rows)
    return [one for one, other in pairwise(texts) if one == other]


def _difference(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> str:
    lost = sorted(set(_comparable(expected)) - set(_comparable(found)))
    return f"rows {lost[:5]} are lost" if lost else f"rows {_doubled(found)[:5]} are read twice"
