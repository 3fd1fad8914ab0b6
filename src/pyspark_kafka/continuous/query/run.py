"""One run of a continuous query: tasks are started, their epochs ended and committed, until it is done or fails."""

from __future__ import annotations

import logging
import queue
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.connector import PhysicalWriteInfo
from pyspark_kafka.connector.engine.checks import check_partitions
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
from pyspark_kafka.continuous.query.job import TasksJob
from pyspark_kafka.continuous.query.run_errors import job_ended, lane_failed, run_failed, task_lost
from pyspark_kafka.continuous.task.run_task import TaskPlan
from pyspark_kafka.errors import ConnectorError, ContinuousQueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from pyspark_kafka.connector import InputPartition
    from pyspark_kafka.continuous.epochs.coordinator import Action
    from pyspark_kafka.continuous.query.commits import EpochCommits
    from pyspark_kafka.continuous.query.control import QueryControl
    from pyspark_kafka.continuous.query.plan import QueryPlan
    from pyspark_kafka.continuous.query.progress import ProgressLog
    from pyspark_kafka.continuous.query.waits import RowWaits

_LOG = logging.getLogger(__name__)

_TICK_SECONDS = 0.02
_RECONFIGURATION_SECONDS = 1.0
_SLOTS_SECONDS = 10.0
_STOP_SECONDS = 30.0
_TASKS_END_SECONDS = 5.0
# Every lane has looked for rows at least once within this time: readers return after about 100 ms.
_IDLE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every run of a query shares.

    Attributes:
        spark: the session.
        plan: what the query does.
        query_id: of the query.
        control: what is asked of the query.
        waits: who waits for rows.
        commits: commits epochs.
        progress: of the query.
    """

    spark: SparkSession
    plan: QueryPlan
    query_id: str
    control: QueryControl
    waits: RowWaits
    commits: EpochCommits
    progress: ProgressLog


class QueryRun:
    """One run: planned once, on one set of tasks, from one offset on.

    Runs on: driver, on the thread of the query; `run` blocks until the run is over. Used once.

    Attributes:
        failure: why the run ended; None if the query was asked to stop, or is to be planned again.
        epoch: the one in which rows are read.

    Args:
        context: of the query.
        epoch: the first one of this run; it begins at `commits.start`.
    """

    def __init__(self, context: RunContext, epoch: int) -> None:
        self.failure: BaseException | None = None
        self._context, self._first_epoch = context, epoch
        self._plan, self._control, self._waits = context.plan, context.control, context.waits
        self._coordinator: EpochCoordinator | None = None
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done = False
        self._reconfigure = False
        # When lanes began and ended the epochs that are not committed, by the monotonic clock.
        self._spans: dict[int, tuple[float, float]] = {}
        self._epoch_since = 0.0

    @property
    def epoch(self) -> int:
        """Return the epoch in which rows are read now."""
        return self._first_epoch if self._coordinator is None else self._coordinator.current_epoch

    def run(self) -> None:
        """Run until the query is asked to stop or must be planned again, or until `failure` is set.

        Raises:
            ConnectorError: what another run would not mend.
        """
        stream, commits = self._plan.stream, self._context.commits
        stream.prepareForTasks(self._plan.tasks)
        partitions = check_partitions(stream.planInputPartitions(stream.deserializeOffset(commits.start)), stream)
        if not partitions:
            self._control.message = "Waiting for partitions to read"
            while (
                not self._control.stop_asked.wait(_RECONFIGURATION_SECONDS)
                and not self._plan.stream.needsReconfiguration()
            ):
                pass
            return
        coordinator = EpochCoordinator(len(partitions), self._first_epoch, self._plan.interval_ms)
        self._coordinator = coordinator
        key = new_key()
        connections = TaskConnections(
            key,
            self._plan.host,
            lambda _, message: self._events.put(message),
            lambda task, reason: self._events.put(task_lost(task, reason)),
        )
        try:
            plan = self._task_plan(partitions, key, connections.port)
            job = TasksJob(self._context.spark, plan, lambda error: self._events.put(job_ended(error)))
            self._control.message = "Starting tasks"
            job.start()
            try:
                self._drive(coordinator, connections, len(plan.lanes))
            finally:
                self._control.is_reading = False
                connections.broadcast(Stop())
                job.end(_TASKS_END_SECONDS)
        finally:
            connections.close()
            if not self._done:
                commits.abort(coordinator.open_reports)

    def _task_plan(self, partitions: Sequence[InputPartition], key: bytes, port: int) -> TaskPlan:
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
            query_id=self._context.query_id,
            first_epoch=self._first_epoch,
        )

    def _drive(self, coordinator: EpochCoordinator, connections: TaskConnections, tasks: int) -> None:
        """Take events until the run is done or has failed."""
        control = self._control
        begun = time.monotonic()
        next_look = begun + _RECONFIGURATION_SECONDS
        slots_said = False
        stop_since: float | None = None
        while not self._done and self.failure is None:
            try:
                event = self._events.get(timeout=_TICK_SECONDS)
            except queue.Empty:
                event = None
            now = time.monotonic()
            try:
                self._look_for_waits()
                actions = self._take(coordinator, event)
                actions += coordinator.ticked(int(now * 1000))
                if stop_since is None and (control.stop_asked.is_set() or self._reconfigure):
                    stop_since = now
                    actions += coordinator.stop()
                elif self._waits.end_wanted.is_set() and now - self._epoch_since >= _IDLE_SECONDS:
                    self._waits.end_wanted.clear()
                    actions += coordinator.end_now()
                self._act(coordinator, connections, actions)
            except ConnectorError as error:
                # Committing again, or planning again, may help; the next run does both.
                if not error.retriable:
                    raise
                self.failure = error
            except EpochOrderError as error:
                self.failure = run_failed(
                    f"a task broke the protocol: {error}", "Report it, with the log of the driver."
                )
            if coordinator.is_running and not control.is_reading and stop_since is None:
                control.is_reading = True
                control.message = "Processing new data"
                self._context.progress.begin(now)
                self._epoch_since = now
            if not coordinator.is_running and not slots_said and now - begun > _SLOTS_SECONDS:
                slots_said = True
                self._say_slots(tasks)
            if stop_since is not None and now - stop_since > _STOP_SECONDS:
                self.failure = run_failed(
                    f"a lane did not end its epoch within {_STOP_SECONDS:.0f} s after the query was asked to stop",
                    "Look for a function that waits; the rows of this epoch will be read again.",
                )
            if now >= next_look and control.is_reading:
                next_look = now + _RECONFIGURATION_SECONDS
                self._reconfigure = self._reconfigure or self._plan.stream.needsReconfiguration()

    def _take(self, coordinator: EpochCoordinator, event: Any) -> list[Action]:
        if isinstance(event, LaneReport):
            return coordinator.reported(event)
        if isinstance(event, Moved):
            return coordinator.moved(event.lane, event.epoch)
        if isinstance(event, Started):
            return coordinator.started(event.lane)
        if isinstance(event, Failed):
            self.failure = lane_failed(event, coordinator.current_epoch)
        elif isinstance(event, ContinuousQueryError):
            self.failure = event
        return []

    def _act(self, coordinator: EpochCoordinator, connections: TaskConnections, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, EndEpoch):
                now = time.monotonic()
                self._spans[action.epoch] = self._epoch_since, now
                self._epoch_since = now
                connections.broadcast(End(action.epoch, int(action.last)))
            elif isinstance(action, CommitEpoch):
                self._commit(action)
                self._act(coordinator, connections, coordinator.committed(action.epoch))
            elif isinstance(action, RunIsDone):
                self._done = True

    def _commit(self, action: CommitEpoch) -> None:
        end = self._context.commits.commit(action)
        begun, ended = self._spans.pop(action.epoch)
        was_idle = ended - begun >= _IDLE_SECONDS and not any(report.rows_read for report in action.reports)
        self._waits.committed(end, begun if was_idle else None)

    def _look_for_waits(self) -> None:
        if self._waits.need_target:
            stream = self._plan.stream
            target = stream.latestOffset()
            # Nothing below the start is to be read, whether it is in the checkpoint or where a new query begins.
            self._waits.set_target(target, stream.deserializeOffset(self._context.commits.start))

    def _say_slots(self, tasks: int) -> None:
        self._control.message = f"Waiting for Spark to run {tasks} tasks at the same time"
        _LOG.warning(
            "Continuous query %s waits for Spark to start its %d tasks, which must run at the same time. "
            "Raise the cores of the application, stop other jobs, or set option tasks.",
            self._context.query_id,
            tasks,
        )
