"""Plans one run of a continuous query: how many tasks there are, and what each of them reads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark_kafka.connector import PhysicalWriteInfo, SupportsSourceOffsets
from pyspark_kafka.connector.engine.checked_reader import CheckedReaderFactory
from pyspark_kafka.continuous.channel.file_limit import file_limit, room_for_tasks
from pyspark_kafka.continuous.task.run_task import TaskPlan
from pyspark_kafka.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.connector import InputPartition
    from pyspark_kafka.continuous.reports.run_log import RunLog
    from pyspark_kafka.continuous.run.context import RunContext
    from pyspark_kafka.continuous.state.versions import StatePlan

_POLL_SECONDS = 0.2
_LATE_SECONDS = 10.0


class RunPlanner:
    """Plans a run, and waits for what a plan needs.

    Runs on: driver, on the thread of the query; every method may block.

    Args:
        context: of the query.
        log: of the run.
    """

    def __init__(self, context: RunContext, log: RunLog) -> None:
        self._context, self._log = context, log
        self._plan, self._control = context.plan, context.control
        self._state: StatePlan | None = None

    def wait_for_source(self) -> bool:
        """Return True when every request of earlier runs is completed; False if a stop is requested first."""
        question = self._control.open_question
        if question is not None and question.is_alive():
            self._log.wait_for_source()
            while question.is_alive():
                if self._control.stop_asked.wait(_POLL_SECONDS):
                    return False
        self._control.open_question = None
        return True

    def wait_for_slots(self) -> int:
        """Return the maximum of tasks to plan, when there are slots; 0 if a stop is requested first."""
        slots = self._context.slots
        late_at = time.monotonic() + _LATE_SECONDS
        while not (count := slots.count()):
            self._log.wait_for_executor(is_late=time.monotonic() > late_at)
            if self._control.stop_asked.wait(_POLL_SECONDS):
                return 0
        tasks = self._plan.tasks or count
        if tasks > count and slots.are_exact:
            self._log.have_fewer_slots(tasks, count)
            tasks = count
        room = room_for_tasks()
        if room is not None and tasks > room:
            self._log.have_fewer_files(room, tasks, file_limit())
            tasks = room
        return tasks

    def plan_partitions(self, tasks: int) -> Sequence[InputPartition]:
        """Return the input partitions, from the last committed offset on.

        Args:
            tasks: how many tasks there are at most.
        """
        stream = self._plan.stream
        stream.prepareForTasks(tasks)
        start = stream.deserializeOffset(self._context.commits.start)
        spans = self._context.spans
        if spans is None:
            return stream.planInputPartitions(start)
        with spans.planning() as span:
            partitions = stream.planInputPartitions(start)
            span.set_attributes({"pyspark_kafka.lanes": len(partitions)})
            return partitions

    def prepare_lanes(self, partitions: Sequence[InputPartition]) -> float | None:
        """Prepare a sink that keeps the positions of the source, and return its idle seconds before an epoch ends.

        Raises:
            CapabilityError: the source does not return the offset that it has planned.
        """
        stream, write = self._plan.stream, self._plan.write
        self._state = self._context.commits.states.plan(stream, partitions)
        if not isinstance(write, SupportsSourceOffsets):
            return None
        planned = stream.plannedOffset()
        if planned is None:
            raise CapabilityError.missing_method(stream, "plannedOffset", "CONTINUOUS_READ")
        if self._state is not None:
            write.prepareStates(self._state.committed())
        write.prepareLanes(planned, len(partitions))
        return write.idleEpochSeconds()

    def plan_tasks(
        self, partitions: Sequence[InputPartition], tasks: int, first_epoch: int, key: bytes, port: int
    ) -> TaskPlan:
        """Return the plans of the tasks: input partitions are dealt out to at most `tasks`; after `prepare_lanes`."""
        context, plan = self._context, self._plan
        tasks = min(len(partitions), tasks)
        lanes: list[dict[int, InputPartition]] = [{} for _ in range(tasks)]
        for number, partition in enumerate(partitions):
            lanes[number % tasks][number] = partition
        if not plan.available_now and not self._control.has_warned_of_all_slots and tasks >= context.slots.count():
            self._control.has_warned_of_all_slots = True
            self._log.take_all_slots(tasks)
        readers = plan.stream.createContinuousReaderFactory()
        return TaskPlan(
            address=(plan.host, port),
            key=key,
            lanes=tuple(lanes),
            readers=readers if plan.schema is None else CheckedReaderFactory(readers, plan.schema),
            stages=plan.stages,
            writers=plan.write.createStreamingWriterFactory(PhysicalWriteInfo(len(partitions))),
            query_id=context.query_id,
            run_id=context.run_id,
            first_epoch=first_epoch,
            epoch_s=context.pace.lanes_ms / 1000,
            lost_s=plan.lost_s,
            state=self._state,
            trace_parent="" if context.spans is None else context.spans.parent,
        )
