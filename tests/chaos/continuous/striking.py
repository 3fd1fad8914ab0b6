"""Processes of a continuous query that kill themselves with SIGKILL at a point that a test has armed.

A test arms a point with a file. Of the processes that come to the point, one claims the file and dies on the spot, as
if someone had sent `kill -9`. The package is patched for this: in the driver program, and in the Python workers when
they unpickle the function of the query. Pickled by value: workers need not find this module.
"""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from pyspark_kafka.continuous.state.by_key import StateByKey

# In the order in which a lane, and then the driver, comes to them.
TASK_POINTS = {
    "task_started": "a lane has begun to read",
    "task_row": "a lane, between two writes",
    "task_epoch_end": "the epoch has ended, its writes not acknowledged",
    "before_report": "writes acknowledged, not reported",
    "after_report": "a lane has reported",
}
DRIVER_POINTS = {
    "before_tasks": "before the tasks start",
    "before_prepare": "every lane has reported",
    "within_prepare": "between commit messages and offset log",
    "after_prepare": "before the sink's commit",
    "before_commit_log": "after the sink's commit",
    "after_commit_log": "after the commit log",
}
# With exactly once; the first three in a task, the others in the driver, each time before tasks start.
TRANSACTION_POINTS = {
    "before_positions": "writes acknowledged, positions not in the transaction",
    "before_end_txn": "positions in the transaction, before EndTxn",
    "after_end_txn": "after EndTxn",
}
# With exactly once and state, in a task.
STATE_POINTS = {
    "before_versions": "rows sent, the state not written",
    "within_versions": "a file of the state is written",
    "after_versions": "the state is written, the positions not in the transaction",
}
TAKEOVER_POINTS = {
    "before_fence": "before the transactions are taken over",
    "after_fence": "after a transaction was taken over",
}
RECOVERY_POINTS = {
    "before_recommit": "in recovery, before the sink's commit",
    "before_recommit_log": "in recovery, after the sink's commit",
}
SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])
# Rows are counted by the rest of their offset.
KEYS = 11
COUNTS = pa.schema([("n", pa.int64())])
# What a query keeps by key; nothing, if it copies records only.
COUNTING, IN_WINDOWS = "counts", "windows"
# The windows of a time that the offset decides, so that a record that is read again has the same one.
WINDOW_MS = DELAY_MS = 1_000
TIMED = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("time", pa.int64()),
        ("offset", pa.int64()),
    ]
)
_FIRST_MS, _STEP_MS = 1_700_000_000_000, 10
# One in 17 records is out of order, but on time; one in 23 is late, unless the rows before it are in its batch.
_EARLIER_MS = {17: 500, 23: 4_000}
_BOUND = pa.timestamp("us", "UTC")
_WINDOW = pa.struct([("start", _BOUND), ("end", _BOUND)])


def key_of(offset: int) -> bytes:
    """Return the key by which a record is counted."""
    return b"k%d" % (offset % KEYS)


def time_of(offset: int) -> int:
    """Return the time of a record, in milliseconds since 1970."""
    return _FIRST_MS + offset * _STEP_MS - sum(ms for each, ms in _EARLIER_MS.items() if offset % each == each - 1)


def started_at(pid: int) -> str:
    """Return when a process was started: numbers of processes are used again.

    Raises:
        OSError: it is not there any more.
    """
    # Behind the name of the program, which may have blanks and brackets.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def at(place: str, point: str) -> None:
    """Die if this point is armed and nobody else has died for it; arm the point that the file names first."""
    armed = Path(place, f"armed.{point}")
    try:
        # Before the claim: the test takes the file away as soon as it sees it.
        os.utime(armed)
        following = armed.read_text()
        armed.rename(Path(place, f"struck.{point}"))
    except FileNotFoundError:
        return
    if following:
        Path(place, f"armed.{following}").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def _wrap(owner: Any, name: str, before: Callable[..., None] | None, after: Callable[..., None] | None = None) -> None:
    real = getattr(owner, name)
    # A worker that is used again is patched already, maybe for another folder.
    real = getattr(real, "real", real)

    def patched(*args: Any, **named: Any) -> Any:
        if before is not None:
            before(*args)
        result = real(*args, **named)
        if after is not None:
            after(*args)
        return result

    patched.real = real  # type: ignore[attr-defined]
    setattr(owner, name, patched)


def patch_driver(place: str) -> None:
    """Let the driver of a query, this process, come to its points."""
    from pyspark_kafka._client.client.transactions.owner import TransactionalId  # noqa: PLC0415 - workers patch other methods
    from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles  # noqa: PLC0415 - workers have no use for it
    from pyspark_kafka.continuous.placement.job import TasksJob  # noqa: PLC0415 - likewise

    has_prepared = False

    def prepared(*_: Any) -> None:
        nonlocal has_prepared
        has_prepared = True
        at(place, "before_prepare")

    def created(_: Any, name: str, *__: Any) -> None:
        if name.startswith("offsets/"):
            at(place, "within_prepare")

    def committing(*_: Any) -> None:
        at(place, "before_commit_log" if has_prepared else "before_recommit_log")

    _wrap(TasksJob, "start", lambda *_: at(place, "before_tasks"))
    _wrap(EpochFiles, "prepare", prepared, lambda *_: at(place, "after_prepare"))
    _wrap(EpochFiles, "_create", created)
    _wrap(EpochFiles, "prepared_messages", None, lambda *_: at(place, "before_recommit"))
    _wrap(EpochFiles, "write_commit", committing, lambda *_: at(place, "after_commit_log"))
    _wrap(TransactionalId, "fence", lambda *_: at(place, "before_fence"), lambda *_: at(place, "after_fence"))
    keep_all_epochs()


def keep_all_epochs() -> None:
    """Let the checkpoints of this process keep every epoch: the checker reads them all."""
    from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles  # noqa: PLC0415 - workers have no use for it

    assert EpochFiles.__init__.__kwdefaults__ is not None
    EpochFiles.__init__.__kwdefaults__["kept"] = 1_000_000


def plant(shift: int) -> None:
    """Let runs begin a number of records behind where they are to begin; before it, if it is less than 0."""
    from pyspark_kafka.continuous.run.commits import EpochCommits  # noqa: PLC0415 - workers have no use for it

    def shifted(commits: Any) -> None:
        topics = json.loads(commits.start)
        for ends in topics.values():
            ends.update({partition: max(0, end + shift) if end > 0 else end for partition, end in ends.items()})
        commits.start = json.dumps(topics)

    _wrap(EpochCommits, "resume", None, shifted)


class Stamped:
    """Copies each record, with where it was read and by whom.

    A run of the engine pickles it once, when the start of the run is known; the stamp of that moment names the run.

    Args:
        place: the folder of the points.
        exactly_once: whether there are transactions.
    """

    def __init__(self, place: str, *, exactly_once: bool) -> None:
        self.place, self.exactly_once = place, exactly_once
        self.run: tuple[str, float] = ("", 0.0)

    def __getstate__(self) -> dict[str, Any]:
        """Stamp the run."""
        return {**self.__dict__, "run": (uuid.uuid4().hex[:8], time.time())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Patch the worker, and leave its process id."""
        from pyspark_kafka.continuous.channel.task_side import DriverConnection  # noqa: PLC0415 - in the worker
        from pyspark_kafka.continuous.epochs.coordinator import LaneReport  # noqa: PLC0415 - likewise
        from pyspark_kafka.continuous.epochs.messages import Started  # noqa: PLC0415 - likewise

        self.__dict__.update(state)
        place = self.place

        def reporting(_: Any, message: Any) -> None:
            if isinstance(message, LaneReport):
                at(place, "before_report")

        def sent(_: Any, message: Any) -> None:
            if isinstance(message, LaneReport):
                at(place, "after_report")
            elif isinstance(message, Started):
                at(place, "task_started")

        _wrap(DriverConnection, "send_message", reporting, sent)
        if self.exactly_once:
            from pyspark_kafka._client.client.transactions.owner import TransactionalId  # noqa: PLC0415 - likewise

            _wrap(TransactionalId, "join_group", lambda *_: at(place, "before_positions"))
            _wrap(
                TransactionalId,
                "end",
                lambda *_: at(place, "before_end_txn"),
                lambda *_: at(place, "after_end_txn"),
            )
            from pyspark_kafka.continuous.state.version_files import PendingVersions, VersionFiles  # noqa: PLC0415

            _wrap(
                PendingVersions,
                "write",
                lambda *_: at(place, "before_versions"),
                lambda *_: at(place, "after_versions"),
            )
            _wrap(VersionFiles, "write_delta", None, lambda *_: at(place, "within_versions"))
        beside = Path(place, f"worker.{os.getpid()}")
        beside.write_text(started_at(os.getpid()))
        beside.replace(Path(place, "workers", str(os.getpid())))

    def _writer(self) -> tuple[str, float, int]:
        """Return the run, when its start was known, and the task attempt."""
        context = TaskContext.get()
        return (*self.run, context.taskAttemptId() if context is not None else -1)

    def copy(self, batch: pa.RecordBatch, counts: Sequence[int] | None = None) -> pa.RecordBatch:
        """Return the copies of records, with their counts if they are counted."""
        read = (batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "value"))
        values = []
        for number, (topic, partition, offset, value) in enumerate(zip(*read, strict=True)):
            said = [*self._writer(), topic, partition, offset, value.decode()]
            values.append(json.dumps(said if counts is None else [*said, counts[number]]).encode())
        return pa.RecordBatch.from_arrays([batch.column("key"), pa.array(values, pa.binary())], schema=SCHEMA)


class StampedCopy(Stamped):
    """The function of a query without state."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy one epoch of a lane."""
        for batch in batches:
            yield self.copy(batch)
            at(self.place, "task_row")
        at(self.place, "task_epoch_end")


class StampedWithState(Stamped):
    """What a query with state returns."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Patch the worker."""
        from pyspark_kafka.continuous.state.lane_state import LaneState  # noqa: PLC0415 - in the worker

        super().__setstate__(state)
        _wrap(LaneState, "end_epoch", lambda *_: at(self.place, "task_epoch_end"))


class CountingCopy(StampedWithState):
    """The function of a query that counts by key: the copy of a record has the number of records of its key so far."""

    def __call__(self, rows: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
        """Copy and count."""
        keys = [key_of(offset) for offset in rows.column("offset").to_pylist()]
        distinct = sorted(set(keys))
        known = state.get(pa.array(distinct, pa.binary())).column("n").to_pylist()
        counts = {key: count or 0 for key, count in zip(distinct, known, strict=True)}
        numbered = []
        for key in keys:
            counts[key] += 1
            numbered.append(counts[key])
        state.update(pa.array(distinct, pa.binary()), n=[counts[key] for key in distinct])
        at(self.place, "task_row")
        return self.copy(rows, numbered)


class StampedWindows(StampedWithState):
    """The function behind windows: a record for each window with its count and sum, and one for each late row."""

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records."""
        at(self.place, "task_row")
        starts = rows.column("window").field("start").cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
        read = (rows.column(name).to_pylist() for name in ("topic", "partition", "key", "n", "total"))
        values = [
            json.dumps([*self._writer(), topic, partition, key.decode(), start, n, total]).encode()
            for start, topic, partition, key, n, total in zip(starts, *read, strict=True)
        ]
        return pa.RecordBatch.from_arrays([rows.column("key"), pa.array(values, pa.binary())], schema=SCHEMA)


def timed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return records with their keys and times."""
    offsets = rows.column("offset").to_pylist()
    keys, times = pa.array(map(key_of, offsets), pa.binary()), pa.array(map(time_of, offsets), pa.int64())
    columns = [rows.column("topic"), rows.column("partition"), keys, times, rows.column("offset")]
    return pa.RecordBatch.from_arrays(columns, schema=TIMED)


def late(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return late rows as windows without a row, each with its offset as the sum."""
    starts = [time // WINDOW_MS * WINDOW_MS for time in rows.column("time").to_pylist()]
    windows = [{"start": start * 1_000, "end": (start + WINDOW_MS) * 1_000} for start in starts]
    columns = [pa.array(windows, _WINDOW), *(rows.column(name) for name in ("topic", "partition", "key"))]
    names = ["window", "topic", "partition", "key", "n", "total"]
    return pa.RecordBatch.from_arrays([*columns, pa.array([0] * len(starts), pa.int64()), rows.column("offset")], names)
