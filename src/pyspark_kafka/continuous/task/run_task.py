"""One task of a run: its lanes, side by side, until the driver says stop or one of them fails."""

from __future__ import annotations

import gc
import threading
import time
import traceback
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.roles import tracer_of
from pyspark_kafka.continuous.channel.task_side import DriverConnection
from pyspark_kafka.continuous.epochs.messages import MAX_TEXT, Failed
from pyspark_kafka.continuous.task.lane import Lane
from pyspark_kafka.errors import ConnectorError, ContinuousQueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka.connector import ContinuousPartitionReaderFactory, InputPartition, StreamingDataWriterFactory
    from pyspark_kafka.continuous.state.versions import StatePlan
    from pyspark_kafka.continuous.task.stages import Stages

# A longer position is left out of a failure: the error itself must fit in a message.
_MAX_OFFSET = 1_000_000
_MAX_ROWS = 1_000
# What a lane may take to see that its run is over; a slow function has until then.
_LANES_END_SECONDS = 10.0


@dataclass(frozen=True)
class TaskPlan:
    """The plan for every task of a run; it travels with the code of the task, through Spark.

    Attributes:
        address: of the driver: host, port.
        key: of the run.
        lanes: the input partitions of each task, by number of the lane.
        readers: makes the readers.
        stages: the functions of the query.
        writers: makes the writers.
        query_id: of the query.
        run_id: of this start of it.
        first_epoch: of this run.
        epoch_s: the epoch length.
        lost_s: after how many seconds of silence the driver is lost.
        state: the first versions of the functions' states; None without state.
        trace_parent: the span that runs the query, if it has spans; empty: each epoch begins a trace.
    """

    address: tuple[str, int]
    key: bytes
    lanes: tuple[Mapping[int, InputPartition], ...]
    readers: ContinuousPartitionReaderFactory
    stages: Stages
    writers: StreamingDataWriterFactory
    query_id: str
    run_id: str
    first_epoch: int
    epoch_s: float
    lost_s: float
    state: StatePlan | None = None
    trace_parent: str = ""

    def __repr__(self) -> str:
        # The key is not for logs.
        return f"TaskPlan({len(self.lanes)} tasks from epoch {self.first_epoch})"


def run_task(plan: TaskPlan, task: int, attempt: int) -> None:
    """Run the lanes of a task until they end; one that fails ends the others.

    Runs on: executor, on the main thread of a Python worker; returns when the run ends.

    Args:
        plan: of the run.
        task: the number of the task.
        attempt: the number of its Spark task attempt; the `task_id` of its writers.

    Raises:
        TransportError: the driver cannot be reached.
        ContinuousQueryError: the run has ended, and a lane has not. Spark ends the Python worker with the task, so that
            the slot is free.
    """
    # What PySpark has imported by now stays: a collection that walks over it stops a lane for 30 to 40 ms. What the
    # former run of this process has left does not.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    driver = DriverConnection(plan.address, plan.key, task, len(plan.lanes[task]), plan.lost_s)
    writers = plan.writers.of_query(plan.query_id)
    tracer = tracer_of(plan.readers, writers)
    build_lane: Callable[..., Lane] = Lane
    if tracer is not None:
        # Few queries have spans.
        from pyspark_kafka.continuous.task.traced_lane import TracedLane  # noqa: PLC0415 - see above

        build_lane = partial(TracedLane, tracer, plan.trace_parent, plan.run_id)

    def run_lane(number: int, partition: InputPartition) -> None:
        lane = None
        try:
            with ExitStack() as resources:
                stages, state = plan.stages, None
                if plan.state is not None:
                    # Other queries need no store.
                    from pyspark_kafka.continuous.state.lane_state import LaneState  # noqa: PLC0415 - see above

                    state = resources.enter_context(closing(LaneState(plan.state, number, attempt)))
                    stages = stages.holding(state)
                reader = plan.readers.createReader(partition)
                lane = build_lane(
                    number,
                    reader,
                    stages,
                    lambda epoch: writers.createWriter(number, attempt, epoch),
                    driver,
                    state,
                    has_timer_due=stages.has_timer_due,
                    has_timer_left=stages.has_timer_left,
                    poll=stages.poll if stages.can_be_idle else None,
                    end_epoch=stages.end_epoch,
                    epoch_s=plan.epoch_s,
                )
                lane.run(plan.first_epoch)
        except BaseException as error:  # noqa: BLE001 - the driver gets it: of sys.exit() a thread would say nothing
            try:
                driver.send_message(_failure(number, lane, error))
            finally:
                driver.stop()

    lanes = plan.lanes[task]
    threads = [
        threading.Thread(target=run_lane, args=item, name=f"lane-{item[0]}", daemon=True) for item in lanes.items()
    ]
    try:
        if not driver.wait_until_let_in():
            return
        for thread in threads:
            thread.start()
        # The driver says so when it has what lanes sent last. An ended connection is a lost task, as long as
        # the last epoch is not committed.
        driver.wait_until_stopped()
        until = time.monotonic() + _LANES_END_SECONDS
        for number, thread in zip(lanes, threads, strict=True):
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                raise _stuck(number)
    finally:
        driver.close()
        if tracer is not None:
            tracer.flush()


def _stuck(number: int) -> ContinuousQueryError:
    return ContinuousQueryError(
        f"Lane {number} of a continuous query did not end within {_LANES_END_SECONDS:.0f} s after its run. Its Python "
        "worker is ended; uncommitted rows will be read again.",
        condition="CONTINUOUS_LANE_STUCK",
        hint="Find the function that waits without a deadline.",
        parameters={"lane": number},
    )


def _failure(number: int, lane: Lane | None, error: BaseException) -> Failed:
    try:
        offset = "" if lane is None else lane.position()
        if len(offset) > _MAX_OFFSET:
            offset = ""
    except Exception:  # noqa: BLE001 - a reader that failed may not know; the error matters more
        offset = ""
    try:
        rows = "" if lane is None else lane.rows()[:_MAX_ROWS]
    except Exception:  # noqa: BLE001 - likewise
        rows = ""
    text = "".join(traceback.format_exception(error))
    summary = "".join(traceback.format_exception_only(error)).strip()
    # Its class and its condition are how the driver decides, and what users catch.
    carried = error.to_json() if isinstance(error, ConnectorError) else ""
    return Failed(number, summary[-MAX_TEXT:], text[-MAX_TEXT:], offset, rows, carried)
