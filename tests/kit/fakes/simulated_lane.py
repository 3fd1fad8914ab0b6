"""A lane of a simulated continuous query, with its reader, its functions, its writer and its end of the channel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kit.fakes.simulated_ends import TOPIC, BrokenInvariantError, LaneCounts
from pyspark_kafka.connector import ContinuousPartitionReader, DataWriter, PartitionOffset, WriterCommitMessage
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.messages import End, Message, Moved, encode
from pyspark_kafka.continuous.task.stages import MapInArrow, Stage

INTERVAL_MS = 200
# Rows of a lane that commits by its own clock are visible after this number of epochs, unless its function is busy.
_VISIBLE = 3
_SCHEMA = pa.schema({"partition": pa.string(), "number": pa.int64()})


def as_they_come(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def at_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if held := list(batches):
        yield pa.concat_batches(held)


def one_behind(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held = next(batches, None)
    for batch in batches:
        yield held
        held = batch
    if held is not None:
        yield held


def mapped(function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> Stage:
    """Return a function of rows as a step of a query."""
    return MapInArrow(function, _SCHEMA)


def key_group(name: str) -> str:
    """Return the key group of a partition."""
    return f"{TOPIC}-{name}"


class _PausedError(Exception):
    """A lane has nothing to do until something else happens."""


@dataclass
class SimulatedLane(ContinuousPartitionReader, DataWriter):
    """One lane of a run, with its reader, its writer and its end of the channel, which keeps the order of messages.

    Attributes:
        number: of it.
        epoch: in which it reads.
        rows: that it has read of each of its partitions.
        clock: milliseconds.
        end_epoch: ends the epoch of its writer, and returns the message.
        coming: batches that it has not read, with the times at which they came.
        pending: rows that its writer has.
        busy_until: when its function has made something of the last batch.
        transaction: the one that its writer has open, if there are transactions.
        reports: gathers those of its task, which has one channel.
        epoch_s: the length of an epoch, as the driver has told it; None before.
        cost: of the last commit: to how many partitions it had written.
        is_left_behind: whether its run has ended.
        skewed: whether it reports where it is after the rows that follow.
        lane: its code.
        states: the texts that its writer keeps with its positions.
    """

    number: int
    epoch: int
    rows: dict[str, int]
    clock: Callable[[], int]
    end_epoch: Callable[[SimulatedLane], str]
    skewed: bool = False
    coming: deque[tuple[int, pa.RecordBatch]] = field(default_factory=deque)
    pending: list[Any] = field(default_factory=list)
    busy_until: int = 0
    transaction: Any = None
    reports: Any = None
    epoch_s: float | None = None
    cost: int = 0
    is_left_behind: bool = False
    ended: bool = False
    may_read: bool = False
    to_driver: deque[bytes] = field(default_factory=deque)
    to_lane: deque[bytes] = field(default_factory=deque)
    states: Mapping[str, str] = field(default_factory=dict)
    lane: Any = None
    ended_epoch: int = -1
    stopped: bool = False
    _end: End | None = None
    _has_read: bool = False
    _has_told: bool = False
    _read_since: int = 0
    _batch: Any = None
    _time: int | None = None
    _ahead: int = 0

    def now_s(self) -> float:
        """Return the time: that of the batch that is read, or that of the simulation, or a later one."""
        if self._time is None:
            self._time = self.coming[0][0] if self.coming else self.clock() + self._ahead
        return self._time / 1000

    def read(self, name: str, count: int) -> None:
        """Let rows of a partition come."""
        if not self.coming:
            self.say(Moved(self.number, self.epoch))
            self._has_told = True
        first = self.rows[name] + sum(batch.num_rows for _, batch in self.coming if batch[0][0].as_py() == name)
        numbers = list(range(first, first + count))
        batch = pa.RecordBatch.from_arrays([pa.array([name] * count), pa.array(numbers, pa.int64())], schema=_SCHEMA)
        self.coming.append((self.clock(), batch))

    def is_overdue(self) -> bool:
        """Return whether rows wait for longer than a lane with a clock of its own lets them."""
        return bool(self.coming) and self.clock() - self.coming[0][0] >= _VISIBLE * self.told_ms

    @property
    def told_ms(self) -> float:
        """Return how often a lane with a clock of its own is to commit, by the word of the driver."""
        return INTERVAL_MS if self.epoch_s is None else self.epoch_s * 1000

    def take_turn(self, end: End | None) -> None:
        """Read what has come, and end the epoch if the driver says so."""
        self._end, self._ahead = end, 0
        if end is None:
            try:
                self.lane._run_epoch(self.epoch)
            except _PausedError:
                return
            raise BrokenInvariantError(f"lane {self.number} ended epoch {self.epoch} without being asked to")
        self.lane._run_epoch(self.epoch)
        self.epoch += 1
        self.ended = bool(end.last)

    def say(self, message: Message) -> None:
        """Send a message, which arrives some time."""
        self.to_driver.append(encode(message))

    def send_message(self, message: Message | LaneReport) -> None:
        self._time = None
        if isinstance(message, Moved) and self._has_told:
            # Said when the first batch came.
            self._has_told = False
            return
        if isinstance(message, LaneReport) and self.skewed:
            rows = {name: count + (count % 7 == 3) for name, count in self.rows.items()}
            message = replace(message, offset=LaneCounts(rows).json())
        if isinstance(message, LaneReport):
            self.reports.add_lane_report(message)
        else:
            self.say(message)

    def next(self) -> bool:
        if self.coming:
            self._time, self._batch = self.coming.popleft()
            for name, number in zip(*(column.to_pylist() for column in self._batch.columns), strict=True):
                self.rows[name] = number + 1
            if not self._has_read:
                self._read_since = self._time
            self._has_read = True
            return True
        self._time = None
        if self._end is not None:
            self.ended_epoch = self._end.epoch
        elif not self._has_read:
            raise _PausedError
        elif self._ahead:
            raise BrokenInvariantError(
                f"lane {self.number} keeps rows of epoch {self.epoch} open for more than {_VISIBLE} epochs"
            )
        else:
            # Of the last rows the time is not over yet.
            self._ahead = round(_VISIBLE * self.told_ms)
        return False

    def get(self) -> pa.RecordBatch:
        return self._batch

    def getOffset(self) -> PartitionOffset:
        return LaneCounts(dict(self.rows))

    def keyGroup(self) -> str:
        return key_group(self._batch[0][0].as_py())

    def flushNow(self) -> None:
        """Rows are sent at the commit."""

    def write(self, batch: pa.RecordBatch) -> None:
        self.pending += zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def commit(self) -> WriterCommitMessage:
        if self._end is None and self._has_read and not self.is_left_behind:
            lasted = self.now_s() * 1000 - self._read_since
            if lasted < self.told_ms:
                raise BrokenInvariantError(f"lane {self.number} commits by its own clock after {lasted} ms")
        self.cost = len({row[0] for row in self.pending})
        text = self.end_epoch(self)
        self.pending, self._has_read = [], False
        return _Text(text)

    def abort(self) -> None:
        """The next run reads the rows again."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class _Text(WriterCommitMessage):
    text: str

    def json(self) -> str:
        return self.text
