"""The contract of every sink, as pytest cases over its `StreamingWrite` and `BatchWrite`."""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import (
    BatchWrite,
    DataWriter,
    DataWriterFactory,
    LogicalWriteInfo,
    PhysicalWriteInfo,
    StreamingDataWriterFactory,
    StreamingWrite,
    SupportsWrite,
    TableCapability,
    WriterCommitMessage,
)
from pyspark_kafka.connector.engine.checks import check_instance
from pyspark_kafka.testing.conformance.killed import InnerSteps, run_until_killed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pyspark_kafka.testing.conformance.killed import Steps

_TASKS = 2
_MAX_STEPS = 200
_WRITER, _JOB = "DataWriter.commit", "StreamingWrite.commit"


class SinkContract(ABC):
    """Cases for a sink; inherit, and implement `table`, `schema`, `row` and `visible`.

    Attributes:
        exactly_once: whether each row is visible once after a restart; if not, each is visible at least once.
        outer_modules: the modules in C by which the sink changes what is outside of its process. In a commit, the
            process is killed before calls of their functions. Add the client library of your target.
        max_kills: the number of these kills in one case at most; if there are more places, some are left out, evenly.
    """

    exactly_once = True
    outer_modules: Collection[str] = ("posix", "_io", "_socket", "_ssl", "select", "_sqlite3", "sqlite3", "pyarrow")
    max_kills = 20

    @abstractmethod
    def table(self) -> SupportsWrite:
        """Return the table: a new one for each case, over a target of its own. Fixtures can set it up."""

    @abstractmethod
    def schema(self) -> pa.Schema:
        """Return the columns of the rows that are written."""

    @abstractmethod
    def row(self, number: int) -> Mapping[str, Any]:
        """Return the row of a number; different numbers are different rows."""

    @abstractmethod
    def visible(self) -> Sequence[int]:
        """Return the numbers of the rows that readers of the target see now, in any order."""

    def options(self) -> Mapping[str, str]:
        """Return the options of the write."""
        return {}

    def begin_epoch(self, epoch: int) -> None:  # noqa: B027 - most sinks need none
        """Do what the engine does before the tasks of an epoch start, if the sink looks at it; nothing by default.

        Spark has written the offsets of the sources to the checkpoint then, as `offsets/<epoch>`. Called again for an
        epoch that runs again.
        """

    @pytest.fixture
    def sink(self) -> _Sink:
        """The sink, with an empty target."""
        assert list(self.visible()) == [], "the target of a case must be empty at its start"
        return _Sink(self)

    def test_capabilities_are_implemented(self, sink: _Sink) -> None:
        """Each capability that the table names is implemented."""
        named = sink.table.capabilities()
        assert named & {TableCapability.STREAMING_WRITE, TableCapability.BATCH_WRITE}, (
            "the table names neither STREAMING_WRITE nor BATCH_WRITE"
        )
        if TableCapability.STREAMING_WRITE in named:
            sink.streaming()
        if TableCapability.BATCH_WRITE in named:
            sink.batch()

    def test_answers_have_the_types_of_the_contract(self, sink: _Sink) -> None:
        """No method forgets its return value, or returns another kind of object."""
        self.begin_epoch(0)
        job = sink.streaming()
        check_instance(job.useCommitCoordinator(), bool, job, "useCommitCoordinator")
        factory = job.createStreamingWriterFactory(PhysicalWriteInfo(_TASKS))
        check_instance(factory, StreamingDataWriterFactory, job, "createStreamingWriterFactory")
        writer = check_instance(factory.createWriter(0, 0, 0), DataWriter, factory, "createWriter")
        sink.write(writer, 0, 0)
        if TableCapability.BATCH_WRITE in sink.table.capabilities():
            batch = sink.batch()
            check_instance(batch.useCommitCoordinator(), bool, batch, "useCommitCoordinator")
            factories = batch.createBatchWriterFactory(PhysicalWriteInfo(_TASKS))
            check_instance(factories, DataWriterFactory, batch, "createBatchWriterFactory")

    def test_table_pickles(self, sink: _Sink) -> None:
        """The table reaches the processes in which Spark plans."""
        pickle.loads(pickle.dumps(sink.table))  # noqa: S301 - our own bytes

    def test_committed_rows_are_visible(self, sink: _Sink) -> None:
        """Rows of two tasks and two epochs are visible after their commits."""
        sink.run_epoch(0)
        self._check_exactly(sink.rows_of(0), "after the commit of epoch 0")
        sink.run_epoch(1)
        self._check_exactly(sink.rows_of(0) + sink.rows_of(1), "after the commit of epoch 1")

    def test_batch_write_is_visible(self, sink: _Sink) -> None:
        """A batch write has its rows visible after its commit."""
        if TableCapability.BATCH_WRITE not in sink.table.capabilities():
            pytest.skip("the table does not name BATCH_WRITE")
        job = sink.batch()
        factory = pickle.loads(pickle.dumps(job.createBatchWriterFactory(PhysicalWriteInfo(_TASKS))))  # noqa: S301 - our own bytes
        messages = [sink.write(factory.createWriter(task, task), 0, task) for task in range(_TASKS)]
        job.commit(messages)
        self._check_exactly(sink.rows_of(0), "after the commit of a batch write")

    def test_empty_epoch_is_committed(self, sink: _Sink) -> None:
        """An epoch without rows, and one without tasks, is committed and shows nothing."""
        factory = sink.begin(0)
        writer = factory.createWriter(0, 0, 0)
        message = writer.commit()
        writer.close()
        sink.streaming().commit(0, [message])
        sink.begin(1)
        sink.streaming().commit(1, [])
        self._check_exactly([], "after epochs without rows")
        sink.run_epoch(2)
        self._check_exactly(sink.rows_of(2), "after an epoch with rows that follows epochs without")

    def test_same_commit_again_shows_nothing_more(self, sink: _Sink) -> None:
        """An engine that lost the result of a commit commits again, also with a new object."""
        messages = sink.write_epoch(0)
        job = sink.streaming()
        job.commit(0, messages)
        job.commit(0, messages)
        sink.streaming().commit(0, messages)
        self._check_exactly(sink.rows_of(0), "after the same commit three times")

    def test_epoch_that_runs_again_shows_nothing_more(self, sink: _Sink) -> None:
        """A committed micro-batch that runs again after a restart has other task attempts."""
        sink.run_epoch(0)
        sink.run_epoch(0, attempt=7)
        self._check(self.visible(), sink.rows_of(0))

    def test_abort_leaves_nothing_visible(self, sink: _Sink) -> None:
        """Rows of a task that failed, and of an epoch that is aborted, are not visible."""
        factory, job = sink.begin(0), sink.streaming()
        good = sink.write(factory.createWriter(0, 0, 0), 0, 0)
        bad = factory.createWriter(1, 1, 0)
        bad.write(sink.batch_of(0, 1))
        bad.abort()
        bad.close()
        job.abort(0, [good, None])
        if self.exactly_once:
            self._check_exactly([], "after an epoch that was aborted")
        sink.run_epoch(0, attempt=5)
        self._check(self.visible(), sink.rows_of(0))

    def test_writer_that_is_closed_early_leaks_nothing(self, sink: _Sink) -> None:
        """A killed attempt gets no call at all; an immediately aborted one is closed."""
        factory = sink.begin(0)
        for attempt in range(3):
            writer = factory.createWriter(0, attempt, 0)
            writer.abort()
            writer.close()
        if self.exactly_once:
            self._check_exactly([], "after writers that were aborted at once")

    def test_loser_of_two_attempts_shows_nothing(self, sink: _Sink) -> None:
        """Of two attempts of a task only the one whose message is committed is visible."""
        factory, job = sink.begin(0), sink.streaming()
        winner = [sink.write(factory.createWriter(task, task, 0), 0, task) for task in range(_TASKS)]
        sink.write(factory.createWriter(0, 9, 0), 0, 0)
        job.commit(0, winner)
        self._check(self.visible(), sink.rows_of(0))

    def test_kill_between_any_two_calls_loses_and_doubles_nothing(self, sink: _Sink) -> None:
        """A driver that is killed before any of its steps, and runs its micro-batch again, has each row visible."""
        for epoch in range(_MAX_STEPS):
            # One more step at each epoch, until it ends before it is killed.
            ended = run_until_killed(partial(self._run, sink, epoch, 10 * epoch), epoch)
            restarted = run_until_killed(partial(self._run, sink, epoch, 10_000 + 10 * epoch), None)
            assert restarted, f"killed before step {epoch}, and the run that follows did not end"
            expected = [number for each in range(epoch + 1) for number in sink.rows_of(each)]
            self._check(self.visible(), expected, f"killed before step {epoch}")
            if ended:
                return
        pytest.fail("the write has no end")

    @pytest.mark.parametrize("call", [_WRITER, _JOB])
    def test_kill_inside_of_a_commit_loses_and_doubles_nothing(self, sink: _Sink, call: str, tmp_path: Path) -> None:
        """A process that is killed half way in a commit, also after it took effect, and a new run: each row once.

        The engine has not noted the commit then: its next run writes and commits the same epoch again.
        """
        counted = tmp_path / "counted"
        measured = InnerSteps(self.outer_modules, None, counted)
        ended = run_until_killed(partial(self._run, sink, 0, 0, call=call, inner=measured), None)
        assert ended, f"{call} did not end, although nothing was killed"
        places = range(int(counted.read_text()))
        kills = places if len(places) <= self.max_kills else _spread(places, self.max_kills)
        expected = sink.rows_of(0)
        for epoch, place in enumerate(kills, start=1):
            inner = InnerSteps(self.outer_modules, place)
            run_until_killed(partial(self._run, sink, epoch, 10 * epoch, call=call, inner=inner), None)
            restarted = run_until_killed(partial(self._run, sink, epoch, 10_000 + 10 * epoch), None)
            assert restarted, f"killed inside of {call}, at outer step {place}, and the run that follows did not end"
            expected += sink.rows_of(epoch)
            self._check(self.visible(), expected, f"killed inside of {call}, at outer step {place} of {len(places)}")

    @staticmethod
    def _run(
        sink: _Sink, epoch: int, attempt: int, steps: Steps, call: str = "", inner: InnerSteps | None = None
    ) -> None:
        sink.run_epoch(epoch, attempt, steps, {} if inner is None else {call: inner})

    def _check_exactly(self, expected: Sequence[int], when: str) -> None:
        visible = sorted(self.visible())
        assert visible == expected, f"{when}, rows {visible} are visible, and {list(expected)} should be"

    def _check(self, visible: Sequence[int], expected: Sequence[int], when: str = "") -> None:
        lost = sorted(set(expected) - set(visible))
        assert lost == [], f"rows {lost} are lost {when}"
        unknown = sorted(set(visible) - set(expected))
        assert unknown == [], f"rows {unknown} were never committed {when}"
        if self.exactly_once:
            doubled = sorted(number for number in set(visible) if list(visible).count(number) > 1)
            assert doubled == [], f"rows {doubled} are visible more than once {when}"


class _Sink:
    """A table, and how the cases write it."""

    def __init__(self, contract: SinkContract) -> None:
        self.table = contract.table()
        self._contract = contract

    def _write(self) -> Any:
        info = LogicalWriteInfo(self._contract.options(), self._contract.schema())
        return self.table.newWriteBuilder(info).build()

    def streaming(self) -> StreamingWrite:
        write = self._write()
        job: StreamingWrite = check_instance(write.toStreaming(), StreamingWrite, write, "toStreaming")
        return job

    def batch(self) -> BatchWrite:
        write = self._write()
        job: BatchWrite = check_instance(write.toBatch(), BatchWrite, write, "toBatch")
        return job

    def begin(self, epoch: int) -> StreamingDataWriterFactory:
        """Return the factory of an epoch that begins, or begins again."""
        self._contract.begin_epoch(epoch)
        return self.streaming().createStreamingWriterFactory(PhysicalWriteInfo(_TASKS))

    @staticmethod
    def rows_of(epoch: int) -> list[int]:
        return [epoch * 100 + task * 10 + number for task in range(_TASKS) for number in range(3)]

    def batch_of(self, epoch: int, task: int) -> pa.RecordBatch:
        rows = [dict(self._contract.row(epoch * 100 + task * 10 + number)) for number in range(3)]
        return pa.RecordBatch.from_pylist(rows, schema=self._contract.schema())

    def write(self, writer: DataWriter, epoch: int, task: int) -> WriterCommitMessage:
        try:
            writer.write(self.batch_of(epoch, task))
            message = check_instance(writer.commit(), WriterCommitMessage, writer, "commit")
        finally:
            writer.close()
        return pickle.loads(pickle.dumps(message))  # type: ignore[no-any-return]  # noqa: S301 - our own bytes

    def write_epoch(self, epoch: int, attempt: int = 0) -> list[WriterCommitMessage]:
        factory: StreamingDataWriterFactory = pickle.loads(pickle.dumps(self.begin(epoch)))  # noqa: S301 - our own bytes
        return [self.write(factory.createWriter(task, attempt + task, epoch), epoch, task) for task in range(_TASKS)]

    def run_epoch(
        self, epoch: int, attempt: int = 0, steps: Steps | None = None, inner: Mapping[str, InnerSteps] | None = None
    ) -> None:
        """Run one micro-batch as Spark does: writers in their tasks, then the commit in a fresh object."""
        inside: Mapping[str, Any] = inner or {}

        def step() -> None:
            if steps is not None:
                steps.next()

        step()
        factory = self.begin(epoch)
        messages = []
        for task in range(_TASKS):
            step()
            writer = factory.createWriter(task, attempt + task, epoch)
            step()
            writer.write(self.batch_of(epoch, task))
            step()
            with inside.get(_WRITER, nullcontext()):
                messages.append(writer.commit())
            step()
            writer.close()
        step()
        job = self.streaming()
        step()
        with inside.get(_JOB, nullcontext()):
            job.commit(epoch, messages)
        step()


def _spread(places: range, count: int) -> list[int]:
    """Return some of the places, evenly, the first and the last among them."""
    return [places[index * (len(places) - 1) // (count - 1)] for index in range(count)]
