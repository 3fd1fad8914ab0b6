"""A task on real connections: what the driver hears of lanes that do not end as they should."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.connector import (
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    DataWriter,
    InputPartition,
    PartitionOffset,
    StreamingDataWriterFactory,
    WriterCommitMessage,
)
from pyspark_kafka.continuous.channel.driver_side import TaskConnections
from pyspark_kafka.continuous.channel.frames import new_key
from pyspark_kafka.continuous.epochs.messages import Failed, Go, Message, Started, Stop
from pyspark_kafka.continuous.task.run_task import TaskPlan, run_task
from pyspark_kafka.continuous.task.stages import MapBatches, Stages
from pyspark_kafka.errors import CheckpointError, ConnectorError, ContinuousQueryError
from pyspark_kafka.version import entry_address

_SECONDS = 20
_SCHEMA = pa.schema([pa.field("n", pa.int64())])


@dataclass(frozen=True)
class Start(PartitionOffset):
    text: str

    def json(self) -> str:
        return self.text


class OneRow(ContinuousPartitionReader):
    def __init__(self, position: str) -> None:
        self._position = position

    def next(self) -> bool:
        return True

    def get(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"n": [1]}, schema=_SCHEMA)

    def getOffset(self) -> PartitionOffset:
        return Start(self._position)

    def close(self) -> None:
        """Nothing is open."""


class Readers(ContinuousPartitionReaderFactory):
    position = "{}"

    def createReader(self, partition: InputPartition) -> ContinuousPartitionReader:
        return OneRow(self.position)


class LongPositions(Readers):
    position = '"' + "p" * 17_000_000 + '"'


class Writers(StreamingDataWriterFactory, DataWriter):
    def createWriter(self, partition_id: int, task_id: int, epoch_id: int) -> DataWriter:
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """It goes nowhere."""

    def commit(self) -> WriterCommitMessage:
        raise AssertionError("no epoch ends here")

    def abort(self) -> None:
        """It went nowhere."""

    def close(self) -> None:
        """Nothing is open."""


def exits(_: pa.RecordBatch) -> pa.RecordBatch:
    sys.exit("enough")


def fails(_: pa.RecordBatch) -> pa.RecordBatch:
    raise ValueError("boom")


def finds_no_room(_: pa.RecordBatch) -> pa.RecordBatch:
    raise CheckpointError("no room", condition="CHECKPOINT_IO", hint="Free space.", retriable=True)


def driver_and_plan(
    said: queue.Queue[Any], function: Callable[[pa.RecordBatch], pa.RecordBatch], readers: Readers
) -> tuple[TaskConnections, TaskPlan]:
    key = new_key()

    def take(_: int, message: Message) -> None:
        said.put(message)
        if isinstance(message, Started):
            connections.broadcast(Go())

    connections = TaskConnections(key, "127.0.0.1", take, lambda *_: None)
    plan = TaskPlan(
        address=("127.0.0.1", connections.port),
        key=key,
        lanes=({0: InputPartition()},),
        readers=readers,
        stages=Stages((MapBatches(function, _SCHEMA),)),
        writers=Writers(),
        query_id="q",
        run_id="r",
        first_epoch=0,
        epoch_s=1.0,
        lost_s=20.0,
    )
    return connections, plan


_ENTRY = entry_address("errors", "CHECKPOINT_IO")


@pytest.mark.parametrize(
    ("function", "readers", "summary"),
    [
        (exits, Readers(), ("SystemExit: enough", None)),
        (fails, LongPositions(), ("ValueError: boom", None)),
        (
            finds_no_room,
            Readers(),
            (
                f"{CheckpointError.__module__}.CheckpointError: [CHECKPOINT_IO] no room Hint: Free space. See {_ENTRY}",
                (CheckpointError, "CHECKPOINT_IO", True),
            ),
        ),
    ],
    ids=["sys.exit", "a position that fits in no message", "an error with a condition"],
)
def test_driver_hears_of_a_lane_that_ends(
    function: Callable[[pa.RecordBatch], pa.RecordBatch], readers: Readers, summary: tuple[str, Any]
) -> None:
    said: queue.Queue[Any] = queue.Queue()
    connections, plan = driver_and_plan(said, function, readers)
    task = threading.Thread(target=run_task, args=(plan, 0, 0), daemon=True)
    task.start()
    try:
        while not isinstance(heard := said.get(timeout=_SECONDS), Failed):
            pass
        error = ConnectorError.from_json(heard.error)
        facts = None if error is None else (type(error), error.condition, error.retriable)
        assert (heard.summary, facts) == summary
    finally:
        connections.broadcast(Stop())
        connections.close()
    task.join(_SECONDS)
    assert not task.is_alive()


def test_task_ends_though_the_failure_of_its_lane_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def no_memory(*_: Any) -> Failed:
        raise MemoryError

    monkeypatch.setattr("pyspark_kafka.continuous.task.run_task._failure", no_memory)
    connections, plan = driver_and_plan(queue.Queue(), fails, Readers())
    task = threading.Thread(target=run_task, args=(plan, 0, 0), daemon=True)
    task.start()
    try:
        task.join(_SECONDS)
        assert not task.is_alive()
    finally:
        connections.close()


def test_lane_that_hangs_when_the_driver_is_gone_ends_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_kafka.continuous.task.run_task._LANES_END_SECONDS", 0.2)
    entered, release = threading.Event(), threading.Event()

    def hangs(batch: pa.RecordBatch) -> pa.RecordBatch:
        entered.set()
        release.wait()
        return batch

    connections, plan = driver_and_plan(queue.Queue(), hangs, Readers())
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(run_task, plan, 0, 0)
        try:
            assert entered.wait(_SECONDS)
            connections.close()
            with pytest.raises(ContinuousQueryError, match="Lane 0 of a continuous query did not end within"):
                task.result(_SECONDS)
        finally:
            connections.close()
            release.set()
