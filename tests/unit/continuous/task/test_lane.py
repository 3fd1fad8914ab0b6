"""A lane, epoch by epoch, with a reader, a writer and a driver in memory."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka.connector import (
    ContinuousPartitionReader,
    DataWriter,
    PartitionOffset,
    SourceOffsetsWriter,
    WriterCommitMessage,
)
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.messages import LaneCommitted, LaneEnded, Moved, Started
from pyspark_kafka.continuous.task.lane import Lane
from pyspark_kafka.continuous.task.stages import TICK
from pyspark_kafka.errors import ContinuousQueryError, ContractError


@dataclass(frozen=True)
class At(PartitionOffset):
    n: int

    def json(self) -> str:
        return str(self.n)


class Script:
    """A driver and a reader in one: steps are numbers to read, "end" and "last" of epochs, "stop", None for no rows.

    A fraction is a time in seconds that passes without rows. From "at end" on the reader has no more rows, and the
    steps after it are what the driver says meanwhile. With `together`, adjacent numbers have arrived together.
    """

    def __init__(self, *steps: Any, together: bool = False) -> None:
        self.steps = list(steps)
        self.together = together
        self.ended_epoch = -1
        self.last_epoch: int | None = None
        self.epoch_s: float | None = None
        self.stopped = False
        self.sent: list[Any] = []
        self.position = 0
        self.now = 1_000_000.0
        self.closed = False

    def send_message(self, message: Any) -> None:
        self.sent.append(message)

    def wait_for_go(self) -> None:
        assert isinstance(self.sent[-1], Started)
        if self.steps[0] == "no go":
            self.stopped = True

    @property
    def is_at_end(self) -> bool:
        return bool(self.steps) and self.steps[0] == "at end"

    def wait_for_end_of(self, epoch: int, seconds: float | None) -> None:
        assert self.is_at_end
        assert self.ended_epoch < epoch
        if self.steps[1] == "nothing":
            del self.steps[1]
            assert seconds is not None, "the lane waits for ever"
            self.now += seconds
            return
        self.last_epoch = self.ended_epoch + 1 if self.steps.pop(1) == "last" else None
        self.ended_epoch += 1

    def stop(self) -> None:
        self.stopped = True

    @property
    def reports(self) -> list[LaneReport]:
        return [each for each in self.sent if isinstance(each, LaneReport)]


class Reader(ContinuousPartitionReader):
    def __init__(self, script: Script) -> None:
        self.script = script
        self.batch: pa.RecordBatch | None = None

    def next(self) -> bool:
        script = self.script
        step = script.steps.pop(0) if script.steps else "stop"
        if step in ("end", "last"):
            if step == "last":
                script.last_epoch = script.ended_epoch + 1
            script.ended_epoch += 1
        elif step == "stop":
            script.stopped = True
        elif isinstance(step, float):
            script.now += step
        elif step == "skip":
            script.position += 1
        elif isinstance(step, Exception):
            raise step
        elif step is not None:
            self.batch = pa.RecordBatch.from_pydict({"n": [step]})
            script.position += 1
            return True
        return False

    def get(self) -> pa.RecordBatch:
        assert self.batch is not None
        return self.batch

    def hasEnded(self) -> bool:
        return self.script.is_at_end

    def hasMore(self) -> bool:
        return self.script.together and bool(self.script.steps) and isinstance(self.script.steps[0], int)

    def getOffset(self) -> PartitionOffset:
        return At(self.script.position)

    def close(self) -> None:
        self.script.closed = True


@dataclass(frozen=True)
class Wrote(WriterCommitMessage):
    numbers: tuple[int, ...]


class Writer(DataWriter):
    def __init__(self, epoch: int, calls: list[str]) -> None:
        self.epoch, self.calls = epoch, calls
        self.numbers: list[int] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self.numbers += batch.column(0).to_pylist()

    def flushNow(self) -> None:
        self.calls.append(f"flush {self.epoch}")

    def commit(self) -> WriterCommitMessage:
        self.calls.append(f"commit {self.epoch}")
        return Wrote(tuple(self.numbers))

    def abort(self) -> None:
        self.calls.append(f"abort {self.epoch}")

    def close(self) -> None:
        self.calls.append(f"close {self.epoch}")


def as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def run(script: Script, stage: Callable[[Iterator[Any]], Iterator[Any]] = as_it_is, state: Any = None) -> list[str]:
    calls: list[str] = []
    lane: Any = Lane(3, Reader(script), stage, lambda epoch: Writer(epoch, calls), script, state)  # type: ignore[arg-type]
    try:
        lane.run(0)
    finally:
        assert script.closed
    return [call for call in calls if not call.startswith("flush")]


def flushes(script: Script, stage: Callable[[Iterator[Any]], Iterator[Any]] = as_it_is) -> list[list[int]]:
    """Return which rows were sent together."""
    sent: list[list[int]] = []

    class Noting(Writer):
        def flushNow(self) -> None:
            if self.numbers[sum(map(len, sent)) :]:
                sent.append(self.numbers[sum(map(len, sent)) :])

    writer = Noting(0, [])
    lane: Any = Lane(3, Reader(script), stage, lambda _: writer, script, clock=lambda: script.now)  # type: ignore[arg-type]
    lane.run(0)
    return [*sent, rest] if (rest := writer.numbers[sum(map(len, sent)) :]) else sent


def test_rows_that_have_arrived_are_sent_together() -> None:
    assert flushes(Script(1, 2, 3, None, 4, "last", together=True)) == [[1, 2, 3], [4]]
    assert flushes(Script(1, 2, 3, None, 4, "last")) == [[1], [2], [3], [4]]


def test_rows_do_not_wait_for_a_slow_function() -> None:
    script = Script(1, 2, 3, 4, "last", together=True)

    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            script.now += 0.006
            yield batch

    assert flushes(script, slow) == [[1, 2], [3, 4]]


def test_rows_of_a_function_that_reads_on_its_own_thread_are_sent_at_once() -> None:
    def ahead(batches: Iterator[Any]) -> Iterator[Any]:
        read: list[Any] = []
        thread = threading.Thread(target=lambda: read.extend(batches))
        thread.start()
        thread.join()
        yield from read

    assert flushes(Script(1, 2, 3, "last", together=True), ahead) == [[1], [2], [3]]


def test_lane_reports_each_epoch_and_continues() -> None:
    script = Script(1, 2, "end", 3, "last")
    calls = run(script)
    assert script.reports == [
        LaneReport(3, 0, "2", '{"numbers":[1,2]}', 2, 2),
        LaneReport(3, 1, "3", '{"numbers":[3]}', 1, 1),
    ]
    assert calls == ["commit 0", "close 0", "commit 1", "close 1"]
    assert script.sent[0] == Started(3)


def test_lane_reads_nothing_before_all_lanes_have_started() -> None:
    script = Script("no go", 1, "last")
    assert run(script) == []
    assert script.sent == [Started(3)]
    assert script.steps == ["no go", 1, "last"]


def test_lane_says_once_in_an_epoch_that_it_moved() -> None:
    script = Script(None, 1, 2, "end", None, None, "end", 3, "last")
    run(script)
    assert [each for each in script.sent if isinstance(each, Moved)] == [Moved(3, 0), Moved(3, 2)]


def test_lane_moves_without_rows_as_well() -> None:
    script = Script(None, "skip", "skip", "last")
    run(script)
    assert [each for each in script.sent if isinstance(each, Moved)] == [Moved(3, 0)]
    assert script.reports[0].offset == "2"


def test_lane_reports_whether_it_has_polled_for_rows_within_the_epoch() -> None:
    script = Script(1, "end", None, "last")

    class Late(Writer):
        def commit(self) -> WriterCommitMessage:
            if self.epoch == 0:
                # The next epoch ends before the lane has begun it.
                script.ended_epoch = 1
            return super().commit()

    Lane(0, Reader(script), as_it_is, lambda epoch: Late(epoch, []), script).run(0)  # type: ignore[arg-type]
    assert [(report.epoch, report.polled) for report in script.reports] == [(0, 1), (1, 0), (2, 1)]


def test_functions_hear_of_polls_without_rows_before_their_timers_are_asked_for() -> None:
    script = Script(1, None, 2, 0.5, "end", "at end", "last")
    heard: list[Any] = []

    def is_due() -> bool:
        heard.append("due?")
        return False

    driver: Any = script
    Lane(
        0, Reader(script), as_it_is, lambda epoch: Writer(epoch, []), driver, has_timer_due=is_due,
        poll=lambda now: heard.append(now - 1_000_000), clock=lambda: script.now,
    ).run(0)  # fmt: skip
    # After rows, after polls without; at the end of what there is nobody waits for rows.
    assert heard == ["due?", 0.0, "due?", "due?", 0.5, "due?", 0.5, "due?", "due?"]


def test_rows_that_a_function_holds_back_belong_to_its_epoch() -> None:
    def one_at_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.concat_batches(list(batches))

    script = Script(1, 2, "end", 3, "last")
    run(script, one_at_the_end)
    assert [report.message for report in script.reports] == ['{"numbers":[1,2]}', '{"numbers":[3]}']


def test_rows_are_flushed_as_they_come() -> None:
    calls: list[str] = []
    script = Script(1, None, "last")
    Lane(0, Reader(script), as_it_is, lambda epoch: Writer(epoch, calls), script).run(0)  # type: ignore[arg-type]
    assert calls[:2] == ["flush 0", "flush 0"]


def test_lane_at_its_end_says_so_once_and_ends_epochs_until_the_last_one() -> None:
    script = Script(1, 2, "at end", "end", "end", "last")
    calls = run(script)
    assert script.sent == [
        Started(3),
        Moved(3, 0),
        LaneEnded(3),
        LaneReport(3, 0, "2", '{"numbers":[1,2]}', 2, 2),
        LaneReport(3, 1, "2", '{"numbers":[]}', 0, 0),
        LaneReport(3, 2, "2", '{"numbers":[]}', 0, 0),
    ]
    assert calls == ["commit 0", "close 0", "commit 1", "close 1", "commit 2", "close 2"]


def test_stop_within_an_epoch_aborts_it() -> None:
    script = Script(1, "end", 2, "stop")
    assert run(script) == ["commit 0", "close 0", "abort 1", "close 1"]
    assert len(script.reports) == 1


def run_with_timers(script: Script, *due: bool) -> list[list[Any]]:
    """Return what the functions of each epoch get; `due` says each time that the lane asks whether a timer is due."""
    epochs: list[list[Any]] = []
    left = list(due)

    def noting(batches: Iterator[Any]) -> Iterator[Any]:
        epochs.append([])
        for batch in batches:
            epochs[-1].append("tick" if batch is TICK else batch.column("n").to_pylist())
            yield pa.RecordBatch.from_pydict({"n": [0]}) if batch is TICK else batch

    lane: Any = Lane(
        3, Reader(script), noting, lambda epoch: Writer(epoch, []), script,  # type: ignore[arg-type]
        has_timer_due=lambda: left.pop(0),
    )  # fmt: skip
    lane.run(0)
    assert not left
    return epochs


def test_functions_look_at_due_timers_after_rows_and_while_there_are_none() -> None:
    script = Script(1, 2, None, None, "last")
    assert run_with_timers(script, False, True, True, False, False) == [[[1], [2], "tick", "tick"]]


def test_timer_that_is_due_moves_the_lane_though_no_row_came() -> None:
    script = Script(None, None, "end", None, "last")
    assert run_with_timers(script, True, True, False, False, False) == [["tick", "tick"], []]
    assert [each for each in script.sent if isinstance(each, Moved)] == [Moved(3, 0)]
    assert [(each.offset, each.message) for each in script.reports] == [
        ("0", '{"numbers":[0,0]}'),
        ("0", '{"numbers":[]}'),
    ]


def run_with_slow_timers(script: Script, turns: int) -> list[list[Any]]:
    """Return what the functions of each epoch get; timers are due after the first row, and need some turns."""
    epochs: list[list[Any]] = []
    left, cut = turns, False

    def noting(batches: Iterator[Any]) -> Iterator[Any]:
        nonlocal left, cut
        epochs.append([])
        for batch in batches:
            epochs[-1].append("tick" if batch is TICK else batch.column("n").to_pylist())
            if batch is not TICK:
                yield batch
                continue
            left -= 1
            cut = left > 0
            if left == 1:
                script.ended_epoch += 1

    lane: Any = Lane(
        3, Reader(script), noting, lambda epoch: Writer(epoch, []), script,  # type: ignore[arg-type]
        has_timer_due=lambda: left > 0, has_timer_left=lambda: cut,
    )  # fmt: skip
    lane.run(0)
    return epochs


def test_epoch_ends_between_two_turns_of_slow_functions_of_timers_and_rows_come_after_them() -> None:
    script = Script(1, 2, "last")
    assert run_with_slow_timers(script, 3) == [[[1], "tick", "tick"], ["tick", [2]]]
    assert [each for each in script.sent if isinstance(each, Moved)] == [Moved(3, 0), Moved(3, 1)]


def test_lane_at_its_end_says_so_after_the_last_turn_of_its_timers() -> None:
    script = Script("at end", "last")
    assert run_with_slow_timers(script, 3) == [["tick", "tick"], ["tick"]]
    sent = [type(each) for each in script.sent]
    assert sent.index(LaneEnded) > sent.index(LaneReport)


@pytest.mark.parametrize("where", ["reader", "function"])
def test_error_aborts_the_epoch_and_reaches_the_task(where: str) -> None:
    def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if where == "function":
                raise ValueError("boom")
            yield batch

    script = Script(1, ValueError("boom"))
    with pytest.raises(ValueError, match="boom"):
        run(script, broken)
    assert script.reports == []


def test_function_that_returns_before_its_input_ends_is_an_error() -> None:
    def first_only(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)

    with pytest.raises(ContinuousQueryError, match="returned before the input of the epoch ended"):
        run(Script(1, 2, "end"), first_only)


def test_position_that_moves_before_the_first_look_counts() -> None:
    script = Script("skip", None, "last")
    run(script)
    assert [each for each in script.sent if isinstance(each, Moved)] == [Moved(3, 0)]


def test_function_that_returns_early_is_an_error_even_if_its_epoch_has_ended() -> None:
    script = Script(1, 2, "last")

    def first_only(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batch = next(batches)
        script.ended_epoch = 0
        yield batch

    with pytest.raises(ContinuousQueryError, match="returned before the input of the epoch ended"):
        run(script, first_only)
    assert script.reports == []


def test_rows_that_a_function_makes_of_half_an_epoch_are_not_written() -> None:
    written: list[int] = []

    class NotingWriter(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            written.extend(batch.column(0).to_pylist())

    def sum_at_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"n": [sum(batch.column(0)[0].as_py() for batch in batches)]})

    script = Script(1, 2, "end", 3, "stop")
    Lane(0, Reader(script), sum_at_the_end, lambda epoch: NotingWriter(epoch, []), script).run(0)  # type: ignore[arg-type]
    assert written == [3]


def test_function_may_read_ahead_on_a_thread_of_its_own() -> None:
    flushed_on: list[str] = []

    class OneThreadWriter(Writer):
        def flushNow(self) -> None:
            flushed_on.append(threading.current_thread().name)

    def read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def fill() -> None:
            for batch in batches:
                found.put(batch)
            found.put(None)

        thread = threading.Thread(target=fill, name="ahead")
        thread.start()
        while (batch := found.get(timeout=PATIENCE_S)) is not None:
            yield batch
        thread.join()

    script = Script(None, 1, None, 2, None, "last")
    calls: list[str] = []
    Lane(0, Reader(script), read_ahead, lambda epoch: OneThreadWriter(epoch, calls), script).run(0)  # type: ignore[arg-type]
    assert script.reports[0].message == '{"numbers":[1,2]}'
    # A writer belongs to one thread.
    assert "ahead" not in flushed_on


def test_error_of_an_abort_does_not_hide_the_one_before_it(caplog: pytest.LogCaptureFixture) -> None:
    class BrokenWriter(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            raise ValueError("the disk is full")

        def abort(self) -> None:
            raise OSError("nothing to remove")

        def close(self) -> None:
            raise OSError("not open")

    class BrokenReader(Reader):
        def close(self) -> None:
            raise OSError("closed already")

    script = Script(1, "last")
    lane: Any = Lane(0, BrokenReader(script), as_it_is, lambda epoch: BrokenWriter(epoch, []), script)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the disk is full"):
        lane.run(0)
    for text in ("nothing to remove", "not open", "closed already"):
        assert text in caplog.text


class KeptState:
    """A state whose files are written when `may_write` is set, or fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.may_write = threading.Event()
        self.groups: list[str | None] = []
        self.epochs: list[int] = []

    def begin_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def point_at(self, key_group: str | None) -> None:
        self.groups.append(key_group)

    def end_epoch(self) -> KeptState.Pending:
        return KeptState.Pending(self, f"version {self.epochs[-1]}")

    @dataclass
    class Pending:
        state: KeptState
        text: str

        def write(self) -> None:
            assert self.state.may_write.wait(PATIENCE_S)
            if self.state.error is not None:
                raise self.state.error


def test_lane_reads_on_while_the_state_of_an_epoch_is_written() -> None:
    script, state = Script(1, "end", 2, None, 3, "last"), KeptState()

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column(0).to_pylist() == [3]:
                assert not script.reports
                state.may_write.set()
            yield batch

    run(script, look, state)
    assert [(each.epoch, each.offset, each.state) for each in script.reports] == [
        (0, "1", "version 0"),
        (1, "3", "version 1"),
    ]
    assert state.epochs == [0, 1]
    assert state.groups == [None] * 3


def test_state_that_cannot_be_written_ends_the_lane_with_its_error() -> None:
    script, state = Script(1, "end", *[None] * 100_000), KeptState(OSError("the disk is full"))
    state.may_write.set()
    with pytest.raises(OSError, match="the disk is full"):
        run(script, state=state)
    assert script.stopped
    assert not script.reports


class PositionsWriter(Writer, SourceOffsetsWriter):
    """Keeps positions: the lane's own for the whole run."""

    def commitEpoch(self, epoch_id: int, position: PartitionOffset) -> WriterCommitMessage:
        self.calls.append(f"commit {epoch_id} at {position.json()}")
        rows, self.numbers = self.numbers, []
        self.cost = len(rows)
        return Wrote(tuple(rows))

    def commitCost(self) -> int:
        return self.cost

    def commit(self) -> WriterCommitMessage:
        return SourceOffsetsWriter.commit(self)


def run_with_positions(script: Script, stage: Callable[[Iterator[Any]], Iterator[Any]] = as_it_is) -> list[str]:
    calls: list[str] = []
    driver: Any = script
    lane = Lane(
        0,
        Reader(script),
        stage,
        lambda epoch: PositionsWriter(epoch, calls),
        driver,
        epoch_s=10,
        clock=lambda: script.now,
    )
    try:
        lane.run(7)
    finally:
        assert script.closed
    return [call for call in calls if not call.startswith("flush")]


def test_writer_that_keeps_positions_is_one_for_all_epochs() -> None:
    script = Script(1, 2, "end", "end", 3, "last")
    script.ended_epoch = 6
    assert run_with_positions(script) == ["commit 7 at 2", "commit 8 at 2", "commit 9 at 3", "close 7"]
    assert [report.message for report in script.reports] == ['{"numbers":[1,2]}', '{"numbers":[]}', '{"numbers":[3]}']


@pytest.mark.parametrize("end", ["stop", ValueError("planted")])
def test_writer_that_keeps_positions_aborts_an_epoch_that_does_not_end(end: Any) -> None:
    script = Script(1, "end", 2, end)
    script.ended_epoch = 6
    calls: list[str] = []
    lane: Any = Lane(0, Reader(script), as_it_is, lambda epoch: PositionsWriter(epoch, calls), script)  # type: ignore[arg-type]
    if isinstance(end, Exception):
        with pytest.raises(ValueError, match="planted"):
            lane.run(7)
    else:
        lane.run(7)
    ends = [call for call in calls if not call.startswith("flush")]
    assert ends[:3] == ["commit 7 at 1", "abort 7", "close 7"]


def test_writer_that_keeps_positions_commits_no_epoch_without_one() -> None:
    with pytest.raises(ContractError, match=r"instead of commitEpoch\(\)"):
        PositionsWriter(0, []).commit()


def test_lane_commits_what_it_has_by_its_own_clock_while_others_hold_up_the_epoch() -> None:
    script = Script(1, 19.0, 2, 1.0, 3, 9.0, 1.0, 4, "last")
    script.ended_epoch = 6
    calls = run_with_positions(script)
    # Twice the time of an epoch after its first row, then once.
    assert calls == ["commit 7 at 2", "commit 7 at 3", "commit 7 at 4", "close 7"]
    committed = LaneCommitted(0, 7)
    assert script.sent[1:-1] == [Moved(0, 7), committed, Moved(0, 7), committed, Moved(0, 7)]
    report = script.reports[0]
    assert (report.epoch, report.offset, report.rows_read, report.rows_written) == (7, "4", 4, 4)


def test_lane_commits_by_its_own_clock_as_often_as_the_driver_says() -> None:
    script = Script(1, 39.0, 2, 1.0, 3, 19.0, 4, 1.0, 5, "last")
    script.ended_epoch, script.epoch_s = 6, 20.0
    assert run_with_positions(script) == ["commit 7 at 2", "commit 7 at 4", "commit 7 at 5", "close 7"]


def test_lane_reports_the_greatest_of_the_commits_of_an_epoch() -> None:
    script = Script(1, 2, 20.0, 3, "end", 4, "last")
    script.ended_epoch = 6

    class Slow(PositionsWriter):
        def commitEpoch(self, epoch_id: int, position: PartitionOffset) -> WriterCommitMessage:
            script.now += len(self.numbers)
            return super().commitEpoch(epoch_id, position)

    driver: Any = script
    Lane(0, Reader(script), as_it_is, lambda epoch: Slow(epoch, []), driver, epoch_s=10, clock=lambda: script.now).run(
        7
    )
    assert [(report.commit_ms, report.cost) for report in script.reports] == [(2_000, 2), (1_000, 1)]


def test_lane_without_rows_commits_nothing_by_its_own_clock() -> None:
    script = Script(1000.0, 1000.0, 1, 5.0, "last")
    script.ended_epoch = 6
    assert run_with_positions(script) == ["commit 7 at 1", "close 7"]


def test_lane_at_its_end_commits_what_it_has_by_its_own_clock() -> None:
    script = Script(1, "at end", "nothing", "last")
    script.ended_epoch = 6
    assert run_with_positions(script) == ["commit 7 at 1", "commit 7 at 1", "close 7"]


def test_rows_that_a_function_holds_back_are_part_of_what_a_lane_commits_by_its_own_clock() -> None:
    def one_at_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if held := list(batches):
            yield pa.concat_batches(held)

    script = Script(1, 2, 20.0, 3, "last")
    script.ended_epoch = 6
    run_with_positions(script, one_at_the_end)
    assert script.reports[0].rows_written == 3


def test_writer_without_positions_has_no_clock_of_its_own() -> None:
    script = Script(1, 1e9, 2, "last")
    calls: list[str] = []
    driver: Any = script
    lane = Lane(
        0, Reader(script), as_it_is, lambda epoch: Writer(epoch, calls), driver, epoch_s=1, clock=lambda: script.now
    )
    lane.run(0)
    assert [call for call in calls if not call.startswith("flush")] == ["commit 0", "close 0"]


class NotingState:
    """The state of a lane, as far as the lane calls it."""

    def __init__(self, calls: list[str], *, is_there: bool = True) -> None:
        self.calls, self.is_there = calls, is_there
        self.committed: dict[str, str] = {}

    def begin_epoch(self, epoch: int) -> None:
        self.calls.append(f"begin {epoch}")

    def point_at(self, key_group: str | None) -> None:
        """One key group."""

    def end_epoch(self) -> Any:
        self.committed["t-0"] = "version 1"

        def write() -> None:
            if not self.is_there:
                raise OSError("the disk is full")
            self.calls.append("versions written")

        return SimpleNamespace(text=json.dumps(self.committed), write=write)


class StatesWriter(PositionsWriter):
    """Keeps the texts of states with its positions."""

    def setStates(self, states: Mapping[str, str]) -> None:
        self.calls.append(f"states {states['t-0']}")


def run_with_states(script: Script, *, is_there: bool = True) -> list[str]:
    calls: list[str] = []
    driver: Any = script
    state: Any = NotingState(calls, is_there=is_there)
    lane = Lane(
        0, Reader(script), as_it_is, lambda epoch: StatesWriter(epoch, calls), driver, state, epoch_s=10,
        clock=lambda: script.now,
    )  # fmt: skip
    lane.run(7)
    return [call for call in calls if not call.startswith("flush")]


def test_lane_commits_a_state_with_its_position_after_the_files_of_the_state_are_written() -> None:
    script = Script(1, 2, "last")
    script.ended_epoch = 6
    assert run_with_states(script) == [
        "begin 7", "versions written", "states version 1", "commit 7 at 2", "close 7",
    ]  # fmt: skip
    assert [report.state for report in script.reports] == ['{"t-0": "version 1"}']


def test_lane_reports_how_long_its_state_took_within_its_commit() -> None:
    script = Script(1, 2, "last")
    script.ended_epoch = 6

    class Slow(NotingState):
        def end_epoch(self) -> Any:
            ended = super().end_epoch()
            write = ended.write

            def slowly() -> None:
                script.now += 3
                write()

            return SimpleNamespace(text=ended.text, write=slowly)

    class SlowWriter(StatesWriter):
        def commitEpoch(self, epoch_id: int, position: PartitionOffset) -> WriterCommitMessage:
            script.now += 2
            return super().commitEpoch(epoch_id, position)

    driver: Any = script
    state: Any = Slow([])
    Lane(
        0, Reader(script), as_it_is, lambda epoch: SlowWriter(epoch, []), driver, state, epoch_s=10,
        clock=lambda: script.now,
    ).run(7)  # fmt: skip
    assert [(report.commit_ms, report.state_ms) for report in script.reports] == [(5_000, 3_000)]


def test_lane_whose_state_cannot_be_written_commits_nothing() -> None:
    script = Script(1, 2, "last")
    script.ended_epoch = 6
    with pytest.raises(OSError, match="the disk is full"):
        run_with_states(script, is_there=False)
    assert not script.reports
