"""The Spark job of a run's tasks: started, watched, and ended."""

from __future__ import annotations

import logging
import threading
import uuid
from typing import TYPE_CHECKING, Any

from pyspark_kafka.continuous.task.run_task import run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pyspark_kafka.continuous.task.run_task import TaskPlan

_LOG = logging.getLogger(__name__)

# A cancelled job ends immediately, whatever its tasks do.
_CANCEL_SECONDS = 2.0


class TasksJob:
    """One Spark job whose tasks run at the same time, as a barrier stage, for as long as the run lasts.

    Runs on: driver, or the client of Spark Connect; `collect` blocks on a thread of its own.

    Args:
        spark: the session.
        plan: of the run.
        on_end: called once on that thread when the job has ended: None, or its error.
    """

    def __init__(self, spark: SparkSession, plan: TaskPlan, on_end: Callable[[BaseException | None], None]) -> None:
        self._spark = spark
        self._plan = plan
        self._on_end = on_end
        self._tag = f"pyspark-kafka-continuous-{uuid.uuid4().hex}"
        self._thread = threading.Thread(target=self._run, name="continuous-job", daemon=True)

    def start(self) -> None:
        """Start the job."""
        self._thread.start()

    def end(self, seconds: float) -> bool:
        """Wait for the end of the job; cancel it when the time is over. Return whether it ended without that.

        A job that waits in Spark for missing slots cannot be cancelled. If it starts later, its tasks find no
        driver, and end.
        """
        self._thread.join(seconds)
        if not self._thread.is_alive():
            return True
        try:
            self._spark.interruptTag(self._tag)
        except Exception:  # noqa: BLE001 - logged; a session that has ended has no jobs
            _LOG.warning("The tasks of a continuous query could not be cancelled.", exc_info=True)
        self._thread.join(_CANCEL_SECONDS)
        if self._thread.is_alive():
            _LOG.info("The tasks of a continuous query were cancelled, and their Spark job has not ended yet.")
        return False

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            # Of this thread alone.
            self._spark.addTag(self._tag)
            tasks = len(self._plan.lanes)
            frame = self._spark.range(0, tasks, 1, tasks)
            frame.mapInArrow(task_function(self._plan), "done boolean", barrier=True).collect()
        except Exception as failed:  # noqa: BLE001 - handed on
            error = failed
        self._on_end(error)


def task_function(plan: TaskPlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that Spark runs in each task: it returns when the run ends, and yields nothing."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # In the task: what this function names of its module would travel with it.
        from pyspark import TaskContext  # noqa: PLC0415

        from pyspark_kafka._connector.spark.processes.process_log import spark_step  # noqa: PLC0415

        for _ in batches:
            pass
        context: Any = TaskContext.get()
        with spark_step(query_id=plan.query_id, run_id=plan.run_id):
            run_task(plan, context.partitionId(), context.taskAttemptId())
        yield from ()

    return run
