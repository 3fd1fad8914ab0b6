"""What a continuous query costs its driver: the engine's own run, without Spark and Kafka; a process plays the tasks.

The thread of the query, the channel, the commits and the progress are those of the package, the checkpoint is on the
local disk, and epochs last a second. The tasks are one connection each in a process of their own: each lane says in
each epoch that it has moved, and reports its positions with figures of latencies. What is measured is the CPU time of
the driver's process, which depends little on what else the machine does.
"""

from __future__ import annotations

import cProfile
import io
import multiprocessing
import pstats
import selectors
import socket
import tempfile
import threading
import time
import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from goals import Figure

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.sink.driver.at_least_once import KafkaStreamingWrite
from pyspark_kafka._connector.source.driver.continuous import KafkaContinuousStream
from pyspark_kafka._connector.source.input_partition import KafkaContinuousInputPartition
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.channel.frames import (
    NONCE_BYTES,
    Direction,
    FrameReader,
    FrameWriter,
    connection_key,
    new_nonce,
)
from pyspark_kafka.continuous.channel.task_reports import TaskReports
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
from pyspark_kafka.continuous.epochs.latencies import LaneMetrics
from pyspark_kafka.continuous.epochs.messages import End, Go, Hello, Moved, Reports, Started, Stop, decode, encode
from pyspark_kafka.continuous.epochs.pace import EpochPace
from pyspark_kafka.continuous.reports.events import QueryEvents, QueryNames
from pyspark_kafka.continuous.reports.progress import ProgressLog
from pyspark_kafka.continuous.run import run as run_module
from pyspark_kafka.continuous.run.commits import EpochCommits
from pyspark_kafka.continuous.run.context import QueryControl, RunContext
from pyspark_kafka.continuous.run.plan import QueryPlan
from pyspark_kafka.continuous.run.run import QueryRun
from pyspark_kafka.continuous.run.waits import RowWaits
from pyspark_kafka.continuous.task.stages import Stages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka.connector import Offset

_TOPIC = "orders.payments.v1"
_EPOCH_MS = 1_000
_WARM_UP_S, _MEASURED_S = 3.0, 20.0
_GOAL = 1 / 3
_LATENCIES = 200
_PROFILED = 30
# Tasks, lanes of each, partitions of each lane.
_SHAPES = ((50, 1, 5), (200, 1, 5), (200, 5, 1), (1_000, 1, 1))
_GOAL_TASKS = 200


def measure() -> list[Figure]:
    """Return the lines of this part, and print where the driver's time goes with 1,000 partitions in 200 tasks."""
    figures = []
    for tasks, lanes, partitions in _SHAPES:
        found = drive(tasks, lanes, partitions)
        has_goal = tasks == _GOAL_TASKS
        shared = f", {lanes} lanes each" if lanes > 1 else ""
        figures.append(
            Figure(
                f"driver of {tasks * lanes * partitions:,} partitions in {tasks:,} tasks{shared}, epochs of 1 s",
                f"{found.cores:.3f} of a core, {found.us_a_report:,.0f} us a lane and epoch; "
                f"{found.epochs:.2f} epochs/s",
                f"< {_GOAL:.2f} of a core" if has_goal else "",
                found.cores < _GOAL and found.epochs > 0.9 if has_goal else None,
                {"cores": found.cores, "us_a_report": found.us_a_report, "epochs_s": found.epochs},
            )
        )
    print(drive(_GOAL_TASKS, 1, 5, profiled=True).profile)
    return figures


def drive(tasks: int, lanes: int, partitions: int, *, profiled: bool = False) -> Any:
    """Run a query with numbers of tasks, lanes a task and partitions a lane, and return what its driver took."""
    names = QueryNames(str(uuid.uuid4()), str(uuid.uuid4()), None, "source", "sink")
    stream = _Planned(tasks * lanes, partitions)
    write = KafkaStreamingWrite(None, None)  # type: ignore[arg-type]
    plan = QueryPlan(stream, write, Stages(()), tasks, _EPOCH_MS, "127.0.0.1", 0)
    control, slots = QueryControl(), _Slots(tasks)
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-") as directory:
        files = CheckpointFiles(directory)
        epochs = EpochFiles(files)
        progress = ProgressLog(names, stream, QueryEvents(names))
        commits = EpochCommits(plan, names.id, files, epochs, progress)
        commits.take_over(names.run_id)
        waits, nothing = RowWaits(stream.hasReached), None
        pace = EpochPace(_EPOCH_MS)
        names_of_run = (names.id, names.run_id)
        context = RunContext(nothing, slots, plan, *names_of_run, control, waits, commits, progress, pace)  # type: ignore[arg-type]
        with mock.patch.object(run_module, "TasksJob", _PlayedTasks):
            run = QueryRun(context, commits.resume())
            found = SimpleNamespace(cores=0.0, us_a_report=0.0, epochs=0.0, profile="")
            measuring = threading.Thread(target=_measure, args=(control, run, tasks * lanes, found), daemon=True)
            measuring.start()
            profiler = cProfile.Profile() if profiled else None
            if profiler is not None:
                profiler.runcall(run.run)
                text = io.StringIO()
                pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(_PROFILED)
                found.profile = text.getvalue()
            else:
                run.run()
            measuring.join()
    if run.failure is not None:
        raise run.failure
    return found


def _measure(control: QueryControl, run: QueryRun, lanes: int, found: Any) -> None:
    try:
        until = time.monotonic() + 120
        while not control.is_reading and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(_WARM_UP_S)
        began, cpu, epoch = time.monotonic(), time.process_time(), run.epoch
        time.sleep(_MEASURED_S)
        took, used, ended = time.monotonic() - began, time.process_time() - cpu, run.epoch - epoch
        found.cores, found.epochs = used / took, ended / took
        found.us_a_report = used / max(1, ended) / lanes * 1e6
    finally:
        control.stop_asked.set()
        control.wake()


class _Planned(KafkaContinuousStream):
    """A stream of Kafka whose partitions are known."""

    def __init__(self, lanes: int, partitions: int) -> None:
        parsed = KafkaContinuousStream.from_options({"kafka.bootstrap.servers": "localhost:1", "subscribe": _TOPIC})
        self.__dict__.update(parsed.__dict__)
        self._lanes, self._each = lanes, partitions

    def initialOffset(self) -> KafkaSourceOffset:  # noqa: N802 - of the contract
        return KafkaSourceOffset({})

    def planInputPartitions(self, start: Offset) -> Sequence[KafkaContinuousInputPartition]:  # noqa: ARG002, N802
        return [
            KafkaContinuousInputPartition(tuple((tp, 0) for tp in _partitions(lane, self._each)))
            for lane in range(self._lanes)
        ]

    def needsReconfiguration(self) -> bool:  # noqa: N802 - of the contract
        return False


class _Slots:
    """Slots that are never free for more tasks."""

    are_exact = False

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks

    def count(self) -> int:
        return self._tasks + 1


class _PlayedTasks:
    """Stands for the Spark job: a process that has one connection for each task."""

    def __init__(self, _: Any, plan: Any, __: Any) -> None:
        lanes = [tuple(numbers) for numbers in plan.lanes]
        each = len(plan.lanes[0][0].starts)
        self._process = multiprocessing.get_context("spawn").Process(
            target=_play, args=(plan.key, plan.address[1], lanes, each)
        )

    def start(self) -> None:
        self._process.start()

    def end(self, seconds: float) -> bool:
        self._process.join(seconds)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return True


def _play(key: bytes, port: int, lanes_of: Sequence[Sequence[int]], each: int) -> None:
    chosen = selectors.DefaultSelector()
    for task, lanes in enumerate(lanes_of):
        connection = socket.create_connection(("127.0.0.1", port))
        nonce = b""
        while len(nonce) < NONCE_BYTES:
            nonce += connection.recv(NONCE_BYTES - len(nonce))
        mine = new_nonce()
        made = connection_key(key, nonce, mine)
        writer, reader = FrameWriter(made, Direction.TO_DRIVER), FrameReader(made, Direction.TO_TASK)
        connection.sendall(mine + writer.frame(encode(Hello(task))))
        for lane in lanes:
            connection.sendall(writer.frame(encode(Started(lane))))
        chosen.register(connection, selectors.EVENT_READ, (lanes, writer, reader))
    shown = {lane: _figures(lane, each) for lanes in lanes_of for lane in lanes}
    left = len(lanes_of)
    while left:
        for found, _ in chosen.select():
            there: Any = found.fileobj
            lanes, writer, reader = found.data
            data = there.recv(65_536)
            messages = [decode(payload) for payload in reader.feed(data)]
            if not data or any(isinstance(message, Stop) for message in messages):
                chosen.unregister(there)
                there.close()
                left -= 1
                continue
            for message in messages:
                for text in _answers(message, lanes, shown, each):
                    there.sendall(writer.frame(text))


def _answers(message: Any, lanes: Sequence[int], shown: Mapping[int, str], each: int) -> list[bytes]:
    if isinstance(message, Go):
        return [encode(Moved(lane, 0)) for lane in lanes]
    if not isinstance(message, End):
        return []
    epoch, gathered = message.epoch, list[Reports]()
    reports = TaskReports(len(lanes), gathered.append)
    for lane in lanes:
        reports.add_lane_report(_report(lane, epoch, shown, each))
    moved = [] if message.last else [encode(Moved(lane, epoch + 1)) for lane in lanes]
    return [*map(encode, gathered), *moved]


def _report(lane: int, epoch: int, shown: Mapping[int, str], each: int) -> LaneReport:
    message = '{"records":1000,"encoded_bytes":100000}'
    return LaneReport(lane, epoch, _position(lane, each, epoch + 1), message, 1_000, 1_000, shown[lane])


def _partitions(lane: int, each: int) -> list[TopicPartition]:
    return [TopicPartition(_TOPIC, lane * each + number) for number in range(each)]


def _position(lane: int, each: int, offset: int) -> str:
    return KafkaSourceOffset(dict.fromkeys(_partitions(lane, each), offset)).json()


def _figures(lane: int, each: int) -> str:
    made = LaneMetrics(at_ms=time.time() * 1000)
    made.latest = (_position(lane, each, 1_000_000),)
    for number in range(_LATENCIES):
        made.sent.add_latency(1.0 + number * 0.37, 5)
        made.ages.add_latency(100.0 + number * 3.1, 5)
    return made.to_text()
