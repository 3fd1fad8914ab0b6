"""The life of a continuous query on the driver: recovery, runs, epochs, restarts."""

from __future__ import annotations

import logging
import queue
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka.connector import PhysicalWriteInfo
from pyspark_kafka.connector.engine.checks import check_offset, check_partitions
from pyspark_kafka.continuous.channel.driver_side import TaskConnections
from pyspark_kafka.continuous.channel.frames import new_key
from pyspark_kafka.continuous.epochs.coordinator import (
    CommitEpoch,
    EndEpoch,
    EpochCoordinator,
    EpochOrderError,
    LaneReport,
    RunIsDone,
)
from pyspark_kafka.continuous.epochs.messages import End, Failed, Moved, Started, Stop
from pyspark_kafka.continuous.epochs.recovery import recover
from pyspark_kafka.continuous.query.job import TasksJob
from pyspark_kafka.continuous.task.run_task import TaskPlan
from pyspark_kafka.errors import ConnectorError, ContinuousQueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from pyspark_kafka.checkpoint import CheckpointFiles
    from pyspark_kafka.connector import ContinuousStream, InputPartition, Offset, StreamingWrite
    from pyspark_kafka.continuous.epochs.coordinator import Action
    from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
    from pyspark_kafka.continuous.query.progress import ProgressLog, QueryNames
    from pyspark_kafka.continuous.task.stages import Stages

_LOG = logging.getLogger(__name__)

_TICK_SECONDS = 0.02
_RECONFIGURATION_SECONDS = 1.0
_SLOTS_SECONDS = 10.0
_STOP_SECONDS = 30.0
_TASKS_END_SECONDS = 5.0
# Every lane has looked for rows at least once within this time: readers return after about 100 ms.
_IDLE_SECONDS = 0.3
_BACK_OFF_SECONDS = (0.2, 1.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What a query does.

    Attributes:
        stream: what is read.
        write: what is written.
        stages: the functions between.
        tasks: how many tasks at most.
        interval_ms: the length of an epoch.
        host: the address that tasks connect to.
        most_failures: failures in a row, without an epoch committed in between, that end the query.
    """

    stream: ContinuousStream
    write: StreamingWrite
    stages: Stages
    tasks: int
    interval_ms: int
    host: str
    most_failures: int


@dataclass(slots=True)
class _RunState:
    """What changes within one run."""

    coordinator: EpochCoordinator
    start: str
    events: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    failure: BaseException | None = None
    done: bool = False
    reconfigure: bool = False
    # When lanes began the epochs that are not committed, by the monotonic clock.
    begun: dict[int, tuple[float, float]] = field(default_factory=dict)
    epoch_since: float = 0.0
    # The epoch that is in the checkpoint and perhaps in the sink: the next run commits it again, as it is.
    prepared: int | None = None


class QueryRunner:
    """Runs a continuous query on a thread of its own until it is stopped or fails for good.

    Runs on: driver, or the client of Spark Connect. It alone talks to stream, sink and checkpoint.

    Args:
        spark: the session.
        plan: what the query does.
        files: its checkpoint, as the logs of Spark.
        epochs: its checkpoint, as this engine writes it.
        names: who it is.
        progress: takes an entry for each epoch.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: QueryPlan,
        files: CheckpointFiles,
        epochs: EpochFiles,
        names: QueryNames,
        progress: ProgressLog,
    ) -> None:
        self._spark, self._plan, self._files, self._epochs = spark, plan, files, epochs
        self._names, self._progress = names, progress
        self._stop_asked = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._failures = 0
        self._message = "Starting"
        self._is_reading = False
        # Grows with each commit; whoever waits for rows waits on it.
        self._committed = threading.Condition()
        self._waits: list[_Wait] = []
        self._end_wanted = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"continuous-query-{names.id[:8]}", daemon=True)

    @property
    def is_active(self) -> bool:
        """Return whether the query runs."""
        return not self._ended.is_set()

    @property
    def failure(self) -> BaseException | None:
        """Return why the query ended; None if it runs or was stopped."""
        return self._failure

    @property
    def message(self) -> str:
        """Return what the query does now, in a sentence."""
        return self._message

    @property
    def is_reading(self) -> bool:
        """Return whether every lane reads."""
        return self._is_reading

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end: the epoch that runs is ended and committed."""
        self._stop_asked.set()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end of the query; return whether it has ended."""
        return self._ended.wait(seconds)

    def wait_until_idle(self) -> None:
        """Wait until every row that is readable now is committed; return if the query ends first."""
        wait = _Wait(time.monotonic())
        with self._committed:
            self._waits.append(wait)
            while self.is_active and not wait.is_over:
                self._end_wanted.set()
                self._committed.wait(_TICK_SECONDS * 5)

    def _work(self) -> None:
        try:
            self._run_until_stopped()
        except BaseException as error:  # noqa: BLE001 - the handle raises it
            self._failure = error
            _LOG.error("Continuous query %s ended: %s", self._names.id, error)
        finally:
            self._is_reading = False
            self._message = "Stopped" if self._failure is None else "Terminated with exception"
            try:
                self._plan.stream.stop()
            finally:
                self._ended.set()
                with self._committed:
                    self._committed.notify_all()

    def _run_until_stopped(self) -> None:
        while not self._stop_asked.is_set():
            epoch, start = self._go_on()
            run = self._run_once(epoch, start)
            if run.failure is None:
                continue
            self._failures += 1
            if self._failures > self._plan.most_failures:
                raise run.failure
            pause = _BACK_OFF_SECONDS[min(self._failures, len(_BACK_OFF_SECONDS)) - 1]
            _LOG.warning(
                "Continuous query %s failed (%d of %d in a row) and starts again in %.1f s at epoch %d: %s",
                self._names.id,
                self._failures,
                self._plan.most_failures,
                pause,
                run.coordinator.current_epoch,
                # The traceback is for the handle.
                str(run.failure).partition("\n")[0],
            )
            self._message = f"Waiting {pause} s after a failure"
            self._stop_asked.wait(pause)

    def _go_on(self) -> tuple[int, str]:
        """Return the next epoch and its start; commit first what a driver that died left."""
        found = recover(self._files, self._epochs)
        if found.unfinished is not None:
            unfinished = found.unfinished
            _LOG.info("Continuous query %s commits epoch %d again", self._names.id, unfinished.epoch)
            messages = [self._plan.write.deserializeMessage(each) for each in unfinished.messages]
            self._plan.write.commit(unfinished.epoch, messages)
            self._epochs.commit(unfinished.epoch)
        if found.start is not None:
            return found.next_epoch, found.start
        stream = self._plan.stream
        return found.next_epoch, check_offset(stream.initialOffset(), stream, "initialOffset").json()

    def _run_once(self, epoch: int, start: str) -> _RunState:
        stream = self._plan.stream
        stream.prepareForTasks(self._plan.tasks)
        partitions = check_partitions(stream.planInputPartitions(stream.deserializeOffset(start)), stream)
        run = _RunState(EpochCoordinator(max(1, len(partitions)), epoch, self._plan.interval_ms), start)
        if not partitions:
            self._message = "Waiting for partitions to read"
            while not self._stop_asked.wait(_RECONFIGURATION_SECONDS) and not stream.needsReconfiguration():
                pass
            return run
        key = new_key()
        connections = TaskConnections(
            key,
            self._plan.host,
            lambda _, message: run.events.put(message),
            lambda task, reason: run.events.put(_lost(task, reason)),
        )
        try:
            plan = self._task_plan(partitions, key, connections.port, epoch)
            job = TasksJob(self._spark, plan, lambda error: run.events.put(_JobEnded(error)))
            self._message = "Starting tasks"
            job.start()
            try:
                self._drive(run, connections, len(plan.lanes))
            finally:
                self._is_reading = False
                connections.broadcast(Stop())
                job.end(_TASKS_END_SECONDS)
        finally:
            connections.close()
            if not run.done:
                self._abort(run)
        return run

    def _task_plan(self, partitions: Sequence[InputPartition], key: bytes, port: int, epoch: int) -> TaskPlan:
        tasks = min(len(partitions), self._plan.tasks)
        lanes: list[dict[int, InputPartition]] = [{} for _ in range(tasks)]
        for number, partition in enumerate(partitions):
            lanes[number % tasks][number] = partition
        stream, write = self._plan.stream, self._plan.write
        return TaskPlan(
            address=(self._plan.host, port),
            key=key,
            lanes=tuple(lanes),
            readers=stream.createContinuousReaderFactory(),
            stages=self._plan.stages,
            writers=write.createStreamingWriterFactory(PhysicalWriteInfo(len(partitions))),
            query_id=self._names.id,
            first_epoch=epoch,
        )

    def _drive(self, run: _RunState, connections: TaskConnections, tasks: int) -> None:
        """Take events until the run is done or has failed."""
        begun = time.monotonic()
        next_look = begun + _RECONFIGURATION_SECONDS
        slots_said = False
        stop_since: float | None = None
        while not run.done and run.failure is None:
            try:
                event = run.events.get(timeout=_TICK_SECONDS)
            except queue.Empty:
                event = None
            now = time.monotonic()
            try:
                self._look_for_waits(run)
                actions = self._take(run, event)
                actions += run.coordinator.ticked(int(now * 1000))
                if stop_since is None and (self._stop_asked.is_set() or run.reconfigure):
                    stop_since = now
                    actions += run.coordinator.stop()
                elif self._end_wanted.is_set() and now - run.epoch_since >= _IDLE_SECONDS:
                    self._end_wanted.clear()
                    actions += run.coordinator.end_now()
                self._act(run, connections, actions)
            except ConnectorError as error:
                # Committing again, or planning again, may help; the next run does both.
                if not error.retriable:
                    raise
                run.failure = error
            except EpochOrderError as error:
                run.failure = _failed(f"a task broke the protocol: {error}", "Report it, with the log of the driver.")
            if run.coordinator.is_running and not self._is_reading and stop_since is None:
                self._is_reading = True
                self._message = "Processing new data"
                self._progress.begin(now)
                run.epoch_since = now
            if not run.coordinator.is_running and not slots_said and now - begun > _SLOTS_SECONDS:
                slots_said = True
                self._message = f"Waiting for Spark to run {tasks} tasks at the same time"
                _LOG.warning(
                    "Continuous query %s waits for Spark to start its %d tasks, which must run at the same time. "
                    "Raise the cores of the application, stop other jobs, or set option tasks.",
                    self._names.id,
                    tasks,
                )
            if stop_since is not None and now - stop_since > _STOP_SECONDS:
                run.failure = _failed(
                    f"a lane did not end its epoch within {_STOP_SECONDS:.0f} s after the query was asked to stop",
                    "Look for a function that waits; the rows of this epoch will be read again.",
                )
            if now >= next_look and self._is_reading:
                next_look = now + _RECONFIGURATION_SECONDS
                run.reconfigure = run.reconfigure or self._plan.stream.needsReconfiguration()

    def _take(self, run: _RunState, event: Any) -> list[Action]:
        coordinator = run.coordinator
        if isinstance(event, LaneReport):
            return coordinator.reported(event)
        if isinstance(event, Moved):
            return coordinator.moved(event.lane, event.epoch)
        if isinstance(event, Started):
            return coordinator.started(event.lane)
        if isinstance(event, Failed):
            run.failure = _lane_failed(event, coordinator.current_epoch)
        elif isinstance(event, ContinuousQueryError):
            run.failure = event
        elif isinstance(event, _JobEnded):
            run.failure = _failed(
                f"its Spark job ended: {_said(event.error)}", "Look at the log of the executor that the text names."
            )
            run.failure.__cause__ = event.error
        return []

    def _act(self, run: _RunState, connections: TaskConnections, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, EndEpoch):
                now = time.monotonic()
                run.begun[action.epoch] = run.epoch_since, now
                run.epoch_since = now
                connections.broadcast(End(action.epoch, int(action.last)))
            elif isinstance(action, CommitEpoch):
                self._commit(run, action)
                self._act(run, connections, run.coordinator.committed(action.epoch))
            elif isinstance(action, RunIsDone):
                run.done = True

    def _commit(self, run: _RunState, action: CommitEpoch) -> None:
        stream, write = self._plan.stream, self._plan.write
        steps = _Steps()
        parts = [stream.deserializePartitionOffset(report.offset) for report in action.reports]
        end = check_offset(stream.mergeOffsets(parts), stream, "mergeOffsets")
        messages = [write.deserializeMessage(report.message) for report in action.reports]
        run.prepared = action.epoch
        self._epochs.prepare(
            action.epoch, end.json(), [each.message for each in action.reports], int(time.time() * 1000)
        )
        steps.ended("walCommit")
        write.commit(action.epoch, messages)
        steps.ended("commitSink")
        self._epochs.commit(action.epoch)
        stream.commit(end)
        steps.ended("commitOffsets")
        self._failures = 0
        self._progress.add(
            action.epoch, action.reports, (run.start, end.json()), steps.durations_ms, (time.time(), time.monotonic())
        )
        run.start = end.json()
        begun, ended = run.begun.pop(action.epoch)
        was_idle = ended - begun >= _IDLE_SECONDS and not any(report.rows_read for report in action.reports)
        with self._committed:
            self._end_waits(end, begun if was_idle else None)

    def _look_for_waits(self, run: _RunState) -> None:
        """Find out what those who wait are waiting for; some may have it already."""
        if all(wait.was_looked for wait in self._waits):
            return
        target = self._plan.stream.latestOffset()
        with self._committed:
            for wait in self._waits:
                if not wait.was_looked:
                    wait.was_looked, wait.target = True, target
            # Nothing below the start is to be read, whether it is in the checkpoint or where a new query begins.
            self._end_waits(self._plan.stream.deserializeOffset(run.start), None)

    def _end_waits(self, reached: Offset, idle_since: float | None) -> None:
        """End the waits that are over with a committed offset. The caller holds the lock."""
        for wait in self._waits:
            if wait.target is not None:
                wait.is_over = self._plan.stream.hasReached(reached, wait.target)
            elif wait.was_looked and idle_since is not None:
                wait.is_over = idle_since >= wait.asked
        self._waits = [wait for wait in self._waits if not wait.is_over]
        self._committed.notify_all()

    def _abort(self, run: _RunState) -> None:
        write = self._plan.write
        for epoch, reports in run.coordinator.open_reports.items():
            if epoch == run.prepared:
                # What an abort removes would be missing when it is committed again.
                continue
            try:
                write.abort(epoch, [write.deserializeMessage(report.message) for report in reports])
            except Exception:  # noqa: BLE001 - logged
                # The reason of the failure matters more than that of the abort.
                _LOG.exception("The abort of epoch %d failed; its rows are read again.", epoch)


@dataclass(slots=True, eq=False)
class _Wait:
    """Someone who waits for the rows that were readable at the call.

    Attributes:
        asked: when, by the monotonic clock.
        was_looked: whether the source was asked where they end.
        target: where; None if the source does not know.
        is_over: whether they are committed.
    """

    asked: float
    was_looked: bool = False
    target: Offset | None = None
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class _JobEnded:
    error: BaseException | None


class _Steps:
    """The durations of steps that follow one another."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, int] = {}
        self._begun = self._since = time.monotonic()

    def ended(self, name: str) -> None:
        now = time.monotonic()
        self.durations_ms[name] = round((now - self._since) * 1000)
        self.durations_ms["triggerExecution"] = round((now - self._begun) * 1000)
        self._since = now


def _said(error: BaseException | None) -> str:
    # The frames of the JVM tell a user nothing; the error itself is the cause.
    return "without an error" if error is None else str(error).partition("\n\tat ")[0].strip()


def _lost(task: int, reason: str) -> ContinuousQueryError:
    return _failed(f"task {task} is lost: {reason}", "Look at the log of its executor.")


def _lane_failed(failed: Failed, epoch: int) -> ContinuousQueryError:
    where = f" at {failed.offset}" if failed.offset else ""
    return ContinuousQueryError(
        f"Lane {failed.lane} failed in epoch {epoch} or the one before it{where}: {failed.summary}\n\n"
        f"{failed.traceback}\nNothing of this epoch was committed.",
        condition="CONTINUOUS_TASK_FAILED",
        hint="Mend what the traceback names; the query continues at the last committed epoch when it is started again.",
        facts={"lane": failed.lane, "epoch": epoch, "offset": failed.offset},
    )


def _failed(reason: str, hint: str) -> ContinuousQueryError:
    return ContinuousQueryError(
        f"The run of a continuous query ended: {reason}. What was not committed will be read again.",
        condition="CONTINUOUS_RUN_FAILED",
        hint=hint,
    )
