"""One run of a continuous query: tasks are started, their epochs ended and committed, until it is done or fails.

What happens next is decided by `machine.py`. Here is what it needs: threads, connections, Spark's job, a clock.
"""

from __future__ import annotations

import queue
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka.continuous.channel.driver_side import TaskConnections
from pyspark_kafka.continuous.channel.frames import new_key
from pyspark_kafka.continuous.epochs.coordinator import (
    BeginReading,
    CommitEpoch,
    EndEpoch,
    EpochCoordinator,
    EpochOrderError,
)
from pyspark_kafka.continuous.epochs.messages import End, Go, Reports
from pyspark_kafka.continuous.placement.job import TasksJob
from pyspark_kafka.continuous.placement.slots import SlotWatch
from pyspark_kafka.continuous.reports.run_log import RunLog
from pyspark_kafka.continuous.run import effects, events
from pyspark_kafka.continuous.run.commits import EpochCommitter
from pyspark_kafka.continuous.run.errors import run_failed
from pyspark_kafka.continuous.run.machine import READING_STATUS, RunMachine, RunState, Timer
from pyspark_kafka.continuous.run.partition_watch import PartitionWatch
from pyspark_kafka.continuous.run.planner import RunPlanner
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.connector import InputPartition, Offset
    from pyspark_kafka.continuous.run.context import RunContext
    from pyspark_kafka.continuous.run.effects import RunCommand
    from pyspark_kafka.continuous.run.events import RunEvent

_MAX_EVENTS = 100
_NO_PARTITIONS_SECONDS = 1.0
_TASKS_END_SECONDS = 5.0
# The tasks of a run that failed: Spark ends them itself if it has lost one of them.
_FAILED_TASKS_END_SECONDS = 1.0


class QueryRun:
    """One run: planned once, on one set of tasks, from one offset on.

    Runs on: driver, on the thread of the query; `run` blocks until the run is over. Used once.

    Attributes:
        is_at_end: whether everything that the query is to read is read and committed.

    Args:
        context: of the query.
        epoch: the first one of this run; it begins at `commits.start`.
    """

    def __init__(self, context: RunContext, epoch: int) -> None:
        self.is_at_end = False
        self._context, self._first_epoch = context, epoch
        self._plan, self._control, self._waits = context.plan, context.control, context.waits
        self._log = RunLog(context.query_id, self._set_status)
        self._events: queue.SimpleQueue[RunEvent] = queue.SimpleQueue()
        self._machine: RunMachine | None = None
        self._committer = EpochCommitter(context.commits, self._events.put, context.control.give_up, context.spans)

    @property
    def epoch(self) -> int:
        """Return the epoch in which rows are read now."""
        return self._first_epoch if self._machine is None else self._machine.coordinator.current_epoch

    @property
    def failure(self) -> BaseException | None:
        """Return the failure of the run; None if a stop was requested, it is at its end, or is to be planned again."""
        return None if self._machine is None else self._machine.failure

    @property
    def has_read(self) -> bool:
        """Return whether every lane has begun to read."""
        return self._machine is not None and self._machine.has_read

    @property
    def has_advanced(self) -> bool:
        """Return whether the run got past where it began, so that its failure is the first one in a row."""
        return self._machine is not None and self._machine.has_advanced(time.monotonic())

    def run(self) -> None:
        """Run until a stop is requested or the query must be planned again, or until `failure` is set.

        Raises:
            ConnectorError: an error that another run would repeat.
        """
        planner = RunPlanner(self._context, self._log)
        if not planner.wait_for_source() or not (tasks := planner.wait_for_slots()):
            return
        partitions = planner.plan_partitions(tasks)
        self._waits.poll_again()
        if partitions:
            self._run_tasks(planner, partitions, tasks)
        elif self._plan.available_now:
            self.is_at_end = True
        else:
            self._wait_for_partitions()

    def _wait_for_partitions(self) -> None:
        self._control.message = "Waiting for partitions to read"
        while not self._control.stop_asked.wait(_NO_PARTITIONS_SECONDS):
            if self._plan.stream.needsReconfiguration():
                return
            if self._waits.are_waiting:
                # Each time: no epoch can reach a target, and its topic may be gone.
                self._waits.poll_again()
                self._waits.begin_poll()
                found = self._find_end()
                # Where a source does not know its end, no partitions means no rows.
                self._take_end(events.EndFound(self._reached()) if found == events.EndFound(None) else found)

    def _run_tasks(self, planner: RunPlanner, partitions: Sequence[InputPartition], tasks: int) -> None:
        """Run on tasks of Spark until the machine is over.

        The stack closes in the reverse order, each step also if one before has failed:

        1. Tasks get `Stop`, and their job ends or is cancelled.
        2. The watch of the source is closed: after the tasks, because a slow response must not delay
           their end.
        3. Connections end; no event comes after that.
        4. The committer finishes: an abort, and the next run, must find the epoch in the checkpoint or not.
        5. Epochs that are not committed are aborted.
        """
        idle_epoch_s = planner.prepare_lanes(partitions)
        with ExitStack() as closing:
            closing.callback(self._abort_open_epochs)
            closing.callback(self._committer.close)
            key, put = new_key(), self._events.put
            self._control.wake = lambda: put(None)
            connections = TaskConnections(
                key,
                self._plan.host,
                lambda _, message: put(message),
                lambda task, reason: put(events.TaskLost(task, reason)),
                self._plan.port,
                self._plan.lost_s,
            )
            closing.callback(connections.close)
            plan = planner.plan_tasks(partitions, tasks, self._first_epoch, key, connections.port)
            now = time.monotonic()
            pace = self._context.pace
            coordinator = EpochCoordinator(len(partitions), self._first_epoch, pace.interval_ms)
            self._machine = machine = RunMachine(coordinator, dict(enumerate(plan.lanes)), now, idle_epoch_s)
            machine.take_event(events.PaceChanged(pace.interval_ms, bool(pace.reason)), now)
            slots = SlotWatch(
                self._context.slots,
                len(plan.lanes),
                now,
                limit=self._plan.tasks,
                # Fewer lanes than tasks: there is nothing for another.
                wants_more=len(partitions) >= tasks,
            )
            machine.set_timer(Timer.SLOTS, slots.due_at)
            watch = PartitionWatch(
                None if self._plan.available_now else self._plan.stream.needsReconfiguration,
                self._context.commits.check_owner,
                lambda: put(events.PartitionsChanged()),
                lambda error: put(events.SourceFailed(error)),
                lambda: put(self._find_end()),
            )
            closing.callback(self._close_watch, watch)
            job = TasksJob(self._context.spark, plan, lambda error: put(events.JobEnded(error)))
            self._control.message = "Starting tasks"
            job.start()
            closing.callback(self._end_job, machine, job)
            closing.callback(connections.stop_tasks)
            self._drive(machine, connections, slots, watch)

    def _close_watch(self, watch: PartitionWatch) -> None:
        self._control.open_question = watch.close()

    def _end_job(self, machine: RunMachine, job: TasksJob) -> None:
        is_orderly = machine.has_read and machine.state is RunState.DONE
        job.end(_TASKS_END_SECONDS if is_orderly else _FAILED_TASKS_END_SECONDS)

    def _abort_open_epochs(self) -> None:
        machine = self._machine
        if machine is None or machine.state is RunState.DONE:
            return
        while not self._events.empty():
            event = self._events.get()
            if isinstance(event, Reports):
                for report in event.reports:
                    # What its writer holds must be aborted as well.
                    with suppress(EpochOrderError):
                        machine.coordinator.reported(report)
        self._context.commits.abort(machine.coordinator.open_reports)

    def _drive(
        self, machine: RunMachine, connections: TaskConnections, slots: SlotWatch, watch: PartitionWatch
    ) -> None:
        """Process events until the run is done or has failed."""
        act = partial(self._act, machine, connections, slots, watch)
        try:
            while not machine.is_over:
                try:
                    act(self._take_events(machine))
                    # After that: a call whose rows are committed requests nothing more.
                    now = time.monotonic()
                    act(machine.tick(now, self._asked()))
                    if machine.is_idle:
                        self._context.progress.rest(now)
                except ConnectorError as error:
                    # Committing again, or planning again, may help; the next run does both.
                    if not error.retriable:
                        raise
                    machine.fail(error)
                except EpochOrderError as error:
                    machine.fail(
                        run_failed(f"a task broke the protocol: {error}", "Report it, with the log of the driver.")
                    )
        finally:
            self._control.is_reading = False
            self.is_at_end = machine.is_at_end

    def _take_events(self, machine: RunMachine) -> list[RunCommand]:
        """Wait for an event, and take all queued events, until one of them needs an action.

        All tasks report at the same time; the clock is read once for many reports.
        """
        commands: list[RunCommand] = []
        with suppress(queue.Empty):
            wait_s = machine.wait_seconds(time.monotonic(), calls_wait=self._waits.are_waiting)
            event = self._events.get(timeout=wait_s)
            now = time.monotonic()
            commands = machine.take_event(event, now)
            for _ in range(_MAX_EVENTS):
                if commands or machine.is_over:
                    break
                commands = machine.take_event(self._events.get_nowait(), now)
        return commands

    def _asked(self) -> events.Asked:
        control, waits = self._control, self._waits
        return events.Asked(
            control.stop_asked.is_set(), control.give_up.is_set(), waits.end_wanted.is_set(), waits.need_target
        )

    def _act(
        self,
        machine: RunMachine,
        connections: TaskConnections,
        slots: SlotWatch,
        watch: PartitionWatch,
        commands: Sequence[RunCommand],
    ) -> None:
        pace, progress, log, waits = self._context.pace, self._context.progress, self._log, self._waits
        for command in commands:
            match command:
                case EndEpoch():
                    waits.end_wanted.clear()
                    connections.broadcast(End(command.epoch, int(command.last), pace.lanes_ms))
                case CommitEpoch():
                    # One at a time: the coordinator waits for the end of one before it returns the next.
                    self._committer.start_commit(command)
                case BeginReading():
                    self._control.is_reading = True
                    log.set_status(READING_STATUS)
                    connections.broadcast(Go())
                    progress.begin(time.monotonic())
                    watch.start()
                case effects.FindEnd():
                    waits.begin_poll()
                    watch.want_end()
                case effects.TakeEnd():
                    self._take_end(command.found)
                case effects.TakeCommit():
                    if command.was_slow:
                        log.set_status(READING_STATUS)
                    waits.committed(command.reached, command.idle_since)
                    if pace.committed(command.load):
                        machine.take_event(events.PaceChanged(pace.interval_ms, bool(pace.reason)), time.monotonic())
                        progress.set_interval(pace.interval_ms, pace.reason)
                        log.change_interval(pace)
                case effects.GiveUp():
                    self._control.give_up.set()
                case effects.CheckSlots():
                    now = time.monotonic()
                    if slots.look(now, is_running=machine.has_read):
                        machine.take_event(events.PartitionsChanged(), now)
                    machine.set_timer(Timer.SLOTS, slots.due_at)
                case effects.WarnOfSlots():
                    # With slots free Spark is slow to start tasks: a first job on a busy machine.
                    free = slots.free()
                    if free is None or free < slots.tasks:
                        log.wait_for_slots(slots.tasks, free)
                case effects.WarnOfTasks():
                    log.wait_for_tasks(command.late, slots.tasks)
                case effects.WarnOfLanes():
                    log.wait_for_lanes(command.lanes, command.epoch, command.waited)

    def _find_end(self) -> events.EndFound:
        """Request the end of readable rows from the source; runs on the thread of the watch."""
        try:
            return events.EndFound(self._plan.stream.latestOffset())
        except BaseException as error:  # noqa: BLE001 - raised by the waiting calls; they would wait forever otherwise
            return events.EndFound(None, error)

    def _take_end(self, found: events.EndFound) -> None:
        if found.error is not None:
            self._waits.fail_poll(found.error)
        else:
            # Nothing below the start is to be read, whether it is in the checkpoint or where a new query begins.
            self._waits.set_target(found.target, self._reached())

    def _reached(self) -> Offset:
        return self._plan.stream.deserializeOffset(self._context.commits.start)

    def _set_status(self, message: str) -> None:
        self._control.message = message
