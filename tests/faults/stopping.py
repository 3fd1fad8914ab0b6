"""The package's source and sink, which stop at the points that a driver names; for `driver.py`.

Nothing of the package knows of this: its classes are patched in the processes that Spark starts. A module of its own,
so that a process which is used again finds the state that its patches look at.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, InputPartition
from pyspark.sql.types import StructType

from pyspark_kafka import DefaultSource
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.errors import TransactionInDoubtError
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._connector.sink.commit_marker import MarkerFinding
from pyspark_kafka._connector.sink.driver import publisher
from pyspark_kafka._connector.sink.driver.tasks.commit_calls import BrokerTaskCommitCalls
from pyspark_kafka._connector.sink.driver.tasks.commits import TaskCommits

# A test that fails to kill it does not leave it behind for ever. Longer than any wait of the harness: what a test waits
# for must not come because the one that stands has continued unasked.
_MAX_S = 600.0


class Stops:
    """Where to stop, and how. Plain data, pickled with readers and writers."""

    def __init__(self, place: str, checkpoint: str, stops: str) -> None:
        self.place, self.checkpoint = place, checkpoint
        self.stops: list[dict[str, Any]] = json.loads(stops)

    def planned(self) -> int:
        """Return the newest batch of the offset log; -1 if there is none."""
        found = Path(self.checkpoint, "offsets")
        numbers = (each.name for each in found.iterdir()) if found.is_dir() else ()
        return max((int(name) for name in numbers if name.isdecimal()), default=-1)

    def at(self, batch: int, point: str) -> None:
        """Stop if this is where to."""
        for stop in self.stops:
            name = f"{batch}.{point}"
            here = (stop["batch"], stop["point"]) == (batch, point)
            if here and Path(self.place, stop["after"]).exists() and self._claim(name):
                self._stand(name, stop)

    def _claim(self, name: str) -> bool:
        try:
            os.close(os.open(Path(self.place, f"{name}.claim"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _stand(self, name: str, stop: dict[str, Any]) -> None:
        if stop["action"] == "outlive":
            # How the daemon of a dead driver ends its workers.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.say(name, str(os.getpid()))
        if stop["action"] == "doubt":
            raise TransactionInDoubtError("as if the answer was lost", condition="TRANSACTION_IN_DOUBT")
        end = time.monotonic() + _MAX_S
        while time.monotonic() < end and not Path(self.place, f"{name}.go").exists():
            time.sleep(0.01)

    def say(self, name: str, text: str) -> None:
        """Leave a file, whole."""
        beside = Path(self.place, f"{name}.{os.getpid()}")
        beside.write_text(text)
        beside.replace(Path(self.place, name))


class _Committing:
    """What this process commits: one query after another, which stop at different points.

    Attributes:
        stops: of the query; None while nothing is committed.
        batch: the micro-batch.
        sends: how often it has sent.
        ends: how many transactions of tasks it was about to end.
    """

    def __init__(self) -> None:
        self.stops: Stops | None = None
        self.batch, self.sends, self.ends = -1, 0, 0

    def begin(self, stops: Stops, batch: int) -> None:
        """Stop in what this process does for a micro-batch from here on."""
        self.stops, self.batch, self.sends, self.ends = stops, batch, 0, 0

    def at(self, point: str) -> None:
        """Stop if this is where to."""
        if self.stops is not None:
            self.stops.at(self.batch, point)


_COMMITTING = _Committing()


def patch_publishing(plant: str) -> None:
    """Stop within a commit, and plant a bug; a process that is used again is patched already.

    Bugs: `marker_ignored`: no marker says that a batch is committed. `fence_skipped`: each process has a transactional
    id of its own, so none fences another.
    """

    def wrap(owner: type, name: str, before: Callable[[], None], after: Callable[[], None]) -> None:
        real = getattr(owner, name)
        if hasattr(real, "stopped"):
            return

        def stopped(*args: Any, **named: Any) -> Any:
            before()
            result = real(*args, **named)
            after()
            return result

        stopped.stopped = True  # type: ignore[attr-defined]
        setattr(owner, name, stopped)

    def at(point: str) -> Callable[[], None]:
        return lambda: _COMMITTING.at(point)

    def sending() -> None:
        _COMMITTING.sends += 1
        _COMMITTING.at("before_produce" if _COMMITTING.sends == 1 else "within_produce")

    def ending() -> None:
        _COMMITTING.ends += 1
        if _COMMITTING.ends == 1:
            # The others are ended side by side meanwhile.
            _COMMITTING.at("within_ends")

    wrap(TaskCommits, "plan", at("before_plan"), at("after_plan"))
    wrap(TransactionalId, "commit_decided", ending, lambda: None)
    real_write = BrokerTaskCommitCalls.write
    if not hasattr(real_write, "stopped"):

        def write(self: Any, transaction: Any, marker: Any) -> Any:
            done = marker.decision.is_complete
            _COMMITTING.at("before_complete" if done else "before_decision")
            result = real_write(self, transaction, marker)
            _COMMITTING.at("after_complete" if done else "after_decision")
            return result

        write.stopped = True  # type: ignore[attr-defined]
        setattr(BrokerTaskCommitCalls, "write", write)  # noqa: B010 - mypy
    wrap(TransactionalId, "fence", at("before_fence"), at("after_fence"))
    wrap(TransactionalId, "end", at("before_end"), at("after_end"))
    wrap(Producer, "send_batch", sending, lambda: None)
    if "marker_ignored" in plant:
        setattr(publisher, "judge_marker", lambda *_: MarkerFinding.NOT_COMMITTED)  # noqa: B010 - not a public name
    if "fence_skipped" in plant and not hasattr(TransactionalId, "unfenced"):
        real_init = TransactionalId.__init__

        def unfenced(self: TransactionalId, client: Any, name: str, timeout_ms: int, **named: Any) -> None:
            real_init(self, client, f"{name}-{os.getpid()}", timeout_ms, **named)

        TransactionalId.__init__ = unfenced  # type: ignore[method-assign]
        TransactionalId.unfenced = True  # type: ignore[attr-defined]


def _batch_of_task() -> int:
    context = TaskContext.get()
    return int((context and context.getLocalProperty("streaming.sql.batchId")) or -1)


class StoppingSource(DefaultSource):
    """The package's source and sink, which stop at the points that a driver names."""

    def __init__(self, options: dict[str, str]) -> None:
        """Take what is not for the package out of the options."""
        own = dict(options)
        self.plant = own.pop("plant")
        self.stops = Stops(own.pop("place"), own.pop("watched"), own.pop("stops"))
        super().__init__(own)

    @classmethod
    def name(cls) -> str:
        """Another name than the package's own."""
        return "stopping_kafka"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's contract
        """Return the package's reader, wrapped."""
        stops = self.stops
        plain = super().streamReader(schema)

        class Stopping(type(plain)):  # type: ignore[misc]
            def latestOffset(self, start: dict[str, Any], limit: Any) -> Any:  # noqa: N802 - Spark's contract
                stops.at(stops.planned() + 1, "latest_offset")
                return super().latestOffset(start, limit)

            def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
                planned = super().partitions(start, end)
                stops.at(stops.planned(), "partitions")
                return planned  # type: ignore[no-any-return]

            def read(self, partition: InputPartition) -> Iterator[Any]:
                batch = _batch_of_task()
                for piece in super().read(partition):
                    stops.at(batch, "source_read")
                    yield piece

        plain.__class__ = Stopping
        return plain

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's contract
        """Return the package's writer, wrapped."""
        stops = self.stops
        patch_publishing(self.plant)
        plain = super().streamWriter(schema, overwrite)
        stops.at(stops.planned(), "stream_writer")

        class Stopping(type(plain)):  # type: ignore[misc]
            def __getstate__(self) -> Any:
                _COMMITTING.begin(stops, stops.planned())
                try:
                    return super().__getstate__()
                finally:
                    _COMMITTING.stops = None

            def write(self, iterator: Iterator[Any]) -> Any:
                batch = _batch_of_task()

                def rows() -> Iterator[Any]:
                    for row in iterator:
                        stops.at(batch, "task_row")
                        yield row

                message = super().write(rows())
                stops.at(batch, "task_prepared")
                return message

            def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803 - Spark's contract
                _COMMITTING.begin(stops, batchId)
                try:
                    super().commit(messages, batchId)
                except BaseException as error:
                    stops.say(f"{batchId}.commit", f"{type(error).__name__}: {error}")
                    raise
                finally:
                    _COMMITTING.stops = None
                stops.say(f"{batchId}.commit", "done")
                stops.at(batchId, "after_commit")

        plain.__class__ = Stopping
        return plain
