"""One run of a continuous query: tasks are started, their epochs ended and committed, until it is done or fails."""

from __future__ import annotations

import logging
import queue
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.connector import PhysicalWriteInfo, SupportsSourceOffsets
from pyspark_kafka.connector.engine.checks import check_partitions
from pyspark_kafka.continuous.channel.driver_side import TaskConnections
from pyspark_kafka.continuous.channel.file_limit import file_limit, room_for_tasks
from pyspark_kafka.continuous.channel.frames import new_key
from pyspark_kafka.continuous.epochs.coordinator import (
    BeginReading,
    CommitEpoch,
    EndEpoch,
    EpochCoordinator,
    EpochOrderError,
    RunIsDone,
)
from pyspark_kafka.continuous.epochs.messages import (
    End,
    Failed,
    Go,
    Hello,
    LaneCommitted,
    LaneEnded,
    Moved,
    Reports,
    Started,
)
from pyspark_kafka.continuous.epochs.pace import EpochLoad
from pyspark_kafka.continuous.placement.job import TasksJob
from pyspark_kafka.continuous.placement.slots import SlotWatch
from pyspark_kafka.continuous.query.commits import CommitEnded, EpochCommitter
from pyspark_kafka.continuous.query.partition_watch import PartitionWatch
from pyspark_kafka.continuous.query.run_errors import job_ended, lane_failed, run_failed, task_lost
from pyspark_kafka.continuous.reports.late_lanes import LateLanes
from pyspark_kafka.continuous.task.run_task import TaskPlan
from pyspark_kafka.errors import CapabilityError, ConnectorError, ContinuousQueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from pyspark_kafka.connector import InputPartition, Offset
    from pyspark_kafka.continuous.epochs.coordinator import Action
    from pyspark_kafka.continuous.epochs.pace import EpochPace
    from pyspark_kafka.continuous.placement.slots import TaskSlots
    from pyspark_kafka.continuous.query.commits import EpochCommits
    from pyspark_kafka.continuous.query.control import QueryControl
    from pyspark_kafka.continuous.query.plan import QueryPlan
    from pyspark_kafka.continuous.query.waits import RowWaits
    from pyspark_kafka.continuous.reports.progress import ProgressLog

_LOG = logging.getLogger(__name__)

_TICK_SECONDS = 0.02
# At the latest after this time the thread of a query looks at its clock.
_LOOK_SECONDS = 1.0
_MOST_NAMED = 10
_MOST_EVENTS = 100
_READING = "Processing new data"
_SLOTS_SECONDS = 10.0
_STOP_SECONDS = 30.0
_SLOTS_LOOK_SECONDS = 0.2
_TASKS_END_SECONDS = 5.0
# Those of a run that failed: Spark ends them itself if it has lost one of them.
_FAILED_TASKS_END_SECONDS = 1.0
# A query without rows that has run for this time was not stopped by the failure before.
_STEADY_SECONDS = 60.0
# Within this time a lane looks for rows at least once, as readers return after about 100 ms; unless it is held up.
_IDLE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every run of a query shares.

    Attributes:
        spark: the session.
        slots: of the session.
        plan: what the query does.
        query_id: of the query.
        control: what is asked of the query.
        waits: who waits for rows.
        commits: commits epochs.
        progress: of the query.
        pace: how long its epochs are.
    """

    spark: SparkSession
    slots: TaskSlots
    plan: QueryPlan
    query_id: str
    control: QueryControl
    waits: RowWaits
    commits: EpochCommits
    progress: ProgressLog
    pace: EpochPace


class QueryRun:
    """One run: planned once, on one set of tasks, from one offset on.

    Runs on: driver, on the thread of the query; `run` blocks until the run is over. Used once.

    Attributes:
        failure: why the run ended; None if the query was asked to stop, is at its end, or is to be planned again.
        has_read: whether every lane has begun to read.
        is_at_end: whether everything that the query is to read is read and committed.
        has_advanced: whether the run got past where it began, so that its failure is the first one in a row.
        epoch: the one in which rows are read.

    Args:
        context: of the query.
        epoch: the first one of this run; it begins at `commits.start`.
    """

    def __init__(self, context: RunContext, epoch: int) -> None:
        self.failure: BaseException | None = None
        self.has_read = self.is_at_end = False
        self._context, self._first_epoch = context, epoch
        self._plan, self._control, self._waits = context.plan, context.control, context.waits
        self._coordinator: EpochCoordinator | None = None
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done = False
        self._reconfigure = False
        # When lanes began and ended the epochs that are not committed, by the monotonic clock.
        self._spans: dict[int, tuple[float, float]] = {}
        self._epoch_since = self._began = time.monotonic()
        # Lanes of which one has ended the run, as far as is known.
        self._failed_lanes: set[int] = set()
        self._lanes_of: dict[int, set[int]] = {}
        self._tasks_here = 0
        # What is logged once.
        self._logged: set[str] = set()
        # Whether the source is asked where readable rows end, for those who wait.
        self._end_asked = False
        self._late_lanes = LateLanes(context.query_id, self._say)
        # After which time an epoch ends although nothing has moved.
        self._idle_epoch_s: float | None = None
        self._committer = EpochCommitter(context.commits, self._events.put, context.control.give_up)

    @property
    def epoch(self) -> int:
        """Return the epoch in which rows are read now."""
        return self._first_epoch if self._coordinator is None else self._coordinator.current_epoch

    @property
    def has_advanced(self) -> bool:
        """Return whether this run has got past where it began; see `EpochCoordinator.has_advanced`."""
        steady = self.has_read and time.monotonic() - self._began >= _STEADY_SECONDS
        return self._coordinator is not None and self._coordinator.has_advanced(self._failed_lanes, was_steady=steady)

    def run(self) -> None:
        """Run until the query is asked to stop or must be planned again, or until `failure` is set.

        Raises:
            ConnectorError: an error that another run would repeat.
        """
        context, stream, commits = self._context, self._plan.stream, self._context.commits
        if not self._wait_for_the_source():
            return
        tasks = self._wait_for_slots()
        if not tasks:
            return
        room = room_for_tasks()
        if room is not None and tasks > room:
            _LOG.warning(
                "Continuous query %s has %d tasks, not %d, as its driver may have %s files open at the same time, and "
                "each task is a connection. Raise the limit (ulimit -n).",
                self._context.query_id,
                room,
                tasks,
                file_limit(),
            )
            tasks = room
        stream.prepareForTasks(tasks)
        partitions = check_partitions(stream.planInputPartitions(stream.deserializeOffset(commits.start)), stream)
        self._waits.look_again()
        if not partitions and self._plan.available_now:
            self.is_at_end = True
            return
        if not partitions:
            self._control.message = "Waiting for partitions to read"
            while not self._control.stop_asked.wait(_LOOK_SECONDS) and not stream.needsReconfiguration():
                if self._waits.need_target:
                    self._waits.begin_look()
                    self._take_end(self._found_end())
            return
        self._prepare_lanes(len(partitions))
        coordinator = EpochCoordinator(len(partitions), self._first_epoch, context.pace.interval_ms)
        self._coordinator = coordinator
        key = new_key()
        self._control.wake = lambda: self._events.put(None)
        connections = TaskConnections(
            key,
            self._plan.host,
            lambda _, message: self._events.put(message),
            lambda task, reason: self._events.put(_TaskLost(task, reason)),
            self._plan.port,
            self._plan.lost_s,
        )
        try:
            plan = self._task_plan(partitions, tasks, key, connections.port)
            self._warn_of_all_slots(len(plan.lanes))
            self._lanes_of = {task: set(lanes) for task, lanes in enumerate(plan.lanes)}
            watch = SlotWatch(
                self._context.slots,
                len(plan.lanes),
                time.monotonic(),
                limit=self._plan.tasks,
                # Fewer lanes than tasks: there is nothing for another one.
                wants_more=len(partitions) >= tasks,
            )
            job = TasksJob(self._context.spark, plan, lambda error: self._events.put(job_ended(error)))
            self._control.message = "Starting tasks"
            job.start()
            partition_watch = PartitionWatch(
                None if self._plan.available_now else stream.needsReconfiguration,
                commits.check_owner,
                lambda: self._events.put(_PartitionsChanged()),
                lambda error: self._events.put(_LookFailed(error)),
                lambda: self._events.put(self._found_end()),
            )
            try:
                self._drive(coordinator, connections, watch, partition_watch)
            finally:
                self._control.is_reading = False
                try:
                    connections.stop_tasks()
                    job.end(_TASKS_END_SECONDS if coordinator.is_running and self._done else _FAILED_TASKS_END_SECONDS)
                finally:
                    # After the tasks: a question that takes its time must not hold up their end.
                    self._control.open_question = partition_watch.close()
        finally:
            connections.close()
            # What follows, an abort or the next run, must find the epoch in the checkpoint or not.
            self._committer.close()
            if not self._done:
                self._take_late_reports(coordinator)
                commits.abort(coordinator.open_reports)

    def _take_late_reports(self, coordinator: EpochCoordinator) -> None:
        """Take what lanes have reported since the run failed: what their writers hold must be aborted as well."""
        while not self._events.empty():
            event = self._events.get()
            if isinstance(event, Reports):
                for report in event.reports:
                    with suppress(EpochOrderError):
                        coordinator.reported(report)

    def _prepare_lanes(self, lanes: int) -> None:
        stream, write = self._plan.stream, self._plan.write
        if not isinstance(write, SupportsSourceOffsets):
            return
        planned = stream.plannedOffset()
        if planned is None:
            raise CapabilityError.missing_method(stream, "plannedOffset", "CONTINUOUS_READ")
        write.prepareLanes(planned, lanes)
        self._idle_epoch_s = write.idleEpochSeconds()

    def _wait_for_the_source(self) -> bool:
        """Return when nothing is asked of the source since a run before; False if the query is asked to stop first."""
        asking = self._control.open_question
        if asking is not None and asking.is_alive():
            self._control.message = "Waiting for the source to answer whether its input partitions have changed"
            _LOG.warning(
                "Continuous query %s cannot plan again: its source does not answer whether its input partitions have "
                "changed (needsReconfiguration), or where rows end (latestOffset).",
                self._context.query_id,
            )
            while asking.is_alive():
                if self._control.stop_asked.wait(_SLOTS_LOOK_SECONDS):
                    return False
        self._control.open_question = None
        return True

    def _wait_for_slots(self) -> int:
        """Return how many tasks to plan at most, when there are slots; 0 if the query is asked to stop before."""
        slots, limit = self._context.slots, self._plan.tasks
        said_at = time.monotonic() + _SLOTS_SECONDS
        while not (count := slots.count()):
            self._control.message = "Waiting for Spark to have an executor"
            if time.monotonic() > said_at:
                said_at = float("inf")
                _LOG.warning(
                    "Continuous query %s waits: its Spark application has no executor. It starts when there is one.",
                    self._context.query_id,
                )
            if self._control.stop_asked.wait(_SLOTS_LOOK_SECONDS):
                return 0
        if limit is None:
            return count
        if limit <= count or not slots.are_exact:
            return limit
        _LOG.warning(
            "Continuous query %s has option tasks=%d, and Spark has slots for %d tasks: it starts with those. "
            "Raise the cores of the application for more.",
            self._context.query_id,
            limit,
            count,
        )
        return count

    def _warn_of_all_slots(self, tasks: int) -> None:
        """Say once that other jobs of the application wait for as long as the query runs."""
        slots = self._context.slots
        if self._plan.available_now or self._control.has_said_all_slots or tasks < slots.count():
            return
        self._control.has_said_all_slots = True
        _LOG.warning(
            "Continuous query %s takes all %d slots of its Spark application: other jobs, such as a batch read of what "
            "it writes, wait until it ends. %s",
            self._context.query_id,
            tasks,
            f".option('tasks', {tasks - 1}) leaves them some."
            if tasks > 1
            else "Start the application with more cores, such as master local[2].",
        )

    def _task_plan(self, partitions: Sequence[InputPartition], most: int, key: bytes, port: int) -> TaskPlan:
        tasks = min(len(partitions), most)
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
            epoch_s=self._context.pace.lanes_ms / 1000,
            lost_s=self._plan.lost_s,
            state=self._context.commits.states.plan(stream, partitions),
        )

    def _drive(
        self,
        coordinator: EpochCoordinator,
        connections: TaskConnections,
        watch: SlotWatch,
        partition_watch: PartitionWatch,
    ) -> None:
        """Take events until the run is done or has failed."""
        control = self._control
        now = time.monotonic()
        next_look = now + _LOOK_SECONDS
        self._epoch_since = self._began = now
        self._slots_due = now + _SLOTS_SECONDS
        stop_since: float | None = None
        while not self._done and self.failure is None:
            # Nobody looks for slots while the run stops.
            due = next_look if stop_since is not None else min(next_look, watch.due_at)
            try:
                actions = self._take_events(coordinator, self._wait_seconds(coordinator, due))
                now = time.monotonic()
                self._look_for_waits(partition_watch)
                actions += coordinator.ticked(int(now * 1000))
                if stop_since is None and (control.stop_asked.is_set() or self._reconfigure):
                    stop_since = now
                    actions += coordinator.stop()
                elif self._waits.end_wanted.is_set() and now - self._epoch_since >= self._least_epoch_s():
                    self._waits.end_wanted.clear()
                    actions += coordinator.end_now()
                elif self._idle_epoch_s is not None and now - self._epoch_since >= self._idle_epoch_s:
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
                control.is_reading = self.has_read = True
                control.message = _READING
                self._context.progress.begin(now)
                self._epoch_since = now
                partition_watch.start()
            if control.is_reading and coordinator.is_idle:
                self._context.progress.rest(now)
            if not coordinator.is_running and now > self._slots_due:
                self._slots_due = now + _SLOTS_SECONDS
                self._say_late_start(watch, coordinator.starting)
            if control.give_up.is_set():
                self.failure = run_failed("it was asked to stop again before the epoch had ended", "Start it again.")
            if stop_since is not None and now - stop_since > _STOP_SECONDS:
                why = "its input partitions or slots had changed"
                if control.stop_asked.is_set():
                    # A commit that rides out an outage ends with the query. The next run has the event as well.
                    control.give_up.set()
                    why = "the query was asked to stop"
                self.failure = run_failed(
                    f"a lane did not end its epoch within {_STOP_SECONDS:.0f} s after {why}",
                    "Look for a function that waits; the rows of this epoch will be read again.",
                )
            if now >= watch.due_at and stop_since is None:
                self._reconfigure = watch.look(now, is_running=coordinator.is_running) or self._reconfigure
            if now >= next_look:
                next_look = now + _LOOK_SECONDS
                self._late_lanes.look(coordinator.awaited, self._spans, now)

    def _wait_seconds(self, coordinator: EpochCoordinator, due: float) -> float:
        """Return how long to wait for an event: until something is due by time. Nothing is for long; no spinning."""
        now = time.monotonic()
        if self._reconfigure or self._waits.are_waiting:
            return _TICK_SECONDS
        end_ms = coordinator.due_ms()
        if end_ms is not None:
            # A thousandth more: `ticked` is called with whole ones.
            due = min(due, (end_ms + 1) / 1000)
        return max(0.0, due - now)

    def _take_events(self, coordinator: EpochCoordinator, seconds: float) -> list[Action]:
        """Wait for an event for a time, and take those that are there, until one of them is to be acted on.

        All tasks report at the same time; this thread looks at its clock once for many of them.
        """
        actions: list[Action] = []
        with suppress(queue.Empty):
            actions = self._take(coordinator, self._events.get(timeout=seconds))
            for _ in range(_MOST_EVENTS):
                if actions or self.failure is not None:
                    break
                actions = self._take(coordinator, self._events.get_nowait())
        return actions

    def _take(self, coordinator: EpochCoordinator, event: Any) -> list[Action]:
        if isinstance(event, Reports):
            return [action for report in event.reports for action in coordinator.reported(report)]
        if isinstance(event, Moved):
            return coordinator.moved(event.lane, event.epoch)
        if isinstance(event, LaneCommitted):
            return coordinator.lane_committed(event.lane, event.epoch)
        if isinstance(event, Started):
            return coordinator.started(event.lane)
        if isinstance(event, LaneEnded):
            return coordinator.ended(event.lane)
        if isinstance(event, CommitEnded):
            return self._take_commit(coordinator, event)
        if isinstance(event, Hello):
            self._tasks_here += 1
        elif isinstance(event, Failed):
            coordinator.failed(event.lane)
            self._failed_lanes = {event.lane}
            self.failure = lane_failed(event, coordinator.current_epoch)
        elif isinstance(event, _TaskLost):
            self._failed_lanes = self._lanes_of.get(event.task, set())
            self.failure = task_lost(event.task, event.reason, self._failed_lanes)
        elif isinstance(event, ContinuousQueryError):
            # Of the job of Spark: whose task has ended it is not known.
            self._failed_lanes = {lane for lanes in self._lanes_of.values() for lane in lanes}
            self.failure = event
        elif isinstance(event, _PartitionsChanged):
            self._reconfigure = True
        elif isinstance(event, _LookFailed):
            raise event.error
        elif isinstance(event, _EndFound):
            self._take_end(event)
        return []

    def _act(self, coordinator: EpochCoordinator, connections: TaskConnections, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, BeginReading):
                connections.broadcast(Go())
            elif isinstance(action, EndEpoch):
                now = time.monotonic()
                self._spans[action.epoch] = self._epoch_since, now
                self._epoch_since = now
                connections.broadcast(End(action.epoch, int(action.last), self._context.pace.lanes_ms))
            elif isinstance(action, CommitEpoch):
                # One at a time: the coordinator waits for the end of one before it says the next.
                self._committer.commit(action)
            elif isinstance(action, RunIsDone):
                self._done = True
                self.is_at_end = coordinator.is_at_end

    def _take_commit(self, coordinator: EpochCoordinator, commit: CommitEnded) -> list[Action]:
        if commit.end is None:
            raise commit.error or RuntimeError("a commit without an end has an error")
        action = commit.action
        if self._late_lanes.is_over():
            self._control.message = _READING
        begun, ended = self._spans.pop(action.epoch)
        # A lane that was held up, by the end of the epoch before or a slow start, may have left rows where they are.
        looked = all(report.looked and not report.rows_read for report in action.reports)
        was_idle = ended - begun >= _IDLE_SECONDS and looked
        self._waits.committed(commit.end, begun if was_idle else None)
        # Of the whole query: a run that follows continues with it.
        if self._context.pace.committed(EpochLoad.of(action.reports, (ended - begun) * 1000, commit.took_s * 1000)):
            self._change_pace(coordinator)
        return coordinator.committed(action.epoch)

    def _change_pace(self, coordinator: EpochCoordinator) -> None:
        pace = self._context.pace
        coordinator.set_interval(pace.interval_ms)
        self._context.progress.set_interval(pace.interval_ms, pace.reason)
        if pace.reason:
            _LOG.warning(
                "Epochs of continuous query %s last %d ms from now on, not %d ms, as %s",
                self._context.query_id,
                pace.interval_ms,
                pace.asked_ms,
                pace.explained(),
            )
        else:
            _LOG.warning("Epochs of continuous query %s last %d ms again.", self._context.query_id, pace.asked_ms)

    def _least_epoch_s(self) -> float:
        """Return after which time an epoch may end before its time."""
        pace = self._context.pace
        return max(_IDLE_SECONDS, pace.interval_ms / 1000) if pace.reason else _IDLE_SECONDS

    def _look_for_waits(self, watch: PartitionWatch) -> None:
        if self._waits.need_target and not self._end_asked:
            self._end_asked = True
            self._waits.begin_look()
            watch.want_end()

    def _found_end(self) -> _EndFound:
        """Ask the source where readable rows end; runs on the thread of the watch."""
        try:
            return _EndFound(self._plan.stream.latestOffset())
        except Exception as error:  # noqa: BLE001 - those who wait raise it
            return _EndFound(None, error)

    def _take_end(self, found: _EndFound) -> None:
        self._end_asked = False
        if found.error is not None:
            self._waits.fail_look(found.error)
        else:
            # Nothing below the start is to be read, whether it is in the checkpoint or where a new query begins.
            start = self._plan.stream.deserializeOffset(self._context.commits.start)
            self._waits.set_target(found.target, start)

    def _say(self, message: str) -> None:
        self._control.message = message

    def _is_first(self, what: str) -> bool:
        is_first = what not in self._logged
        self._logged.add(what)
        return is_first

    def _say_late_start(self, watch: SlotWatch, starting: Sequence[int]) -> None:
        if self._tasks_here:
            # Spark starts all of them or none.
            tasks = [task for task, lanes in self._lanes_of.items() if not lanes.isdisjoint(starting)]
            named = f"task{'s' * (len(tasks) > 1)} {', '.join(map(str, tasks[:_MOST_NAMED]))}"
            self._control.message = f"Waiting for {named} to load the functions and open the state"
            if not self._is_first("tasks"):
                return
            _LOG.warning(
                "Continuous query %s waits for %d of its %d tasks, %s, which Spark has started: their Python "
                "processes start, load the functions of the query, or open the state. Nothing is read before.",
                self._context.query_id,
                len(tasks),
                watch.tasks,
                named,
            )
            return
        free = watch.free()
        if free is not None and free >= watch.tasks:
            # Spark is slow to start them: a first job on a busy machine. Slots may be missing later.
            return
        self._control.message = f"Waiting for Spark to run {watch.tasks} tasks at the same time"
        if not self._is_first("slots"):
            return
        _LOG.warning(
            "Continuous query %s waits for Spark to start its tasks (%d), which must run at the same time%s. "
            "Raise the cores of the application, stop other jobs, or set option tasks.",
            self._context.query_id,
            watch.tasks,
            "" if free is None else f" (free slots: {free})",
        )


@dataclass(frozen=True, slots=True)
class _TaskLost:
    """A task does not answer any more."""

    task: int
    reason: str


@dataclass(frozen=True, slots=True)
class _PartitionsChanged:
    """The source has other input partitions than those that are read."""


@dataclass(frozen=True, slots=True)
class _EndFound:
    """Where readable rows end: None if the source does not know; or why it could not say."""

    target: Offset | None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _LookFailed:
    """The source could not say whether its input partitions have changed."""

    error: BaseException
