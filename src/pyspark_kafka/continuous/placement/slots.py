"""The number of tasks that a session's executors can run at the same time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark_kafka.continuous.placement.sessions import is_connect
from pyspark_kafka.errors import ContinuousQueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPLITS = re.compile(r"splits=(?:Some\()?([0-9]+)")


class TaskSlots:
    """All slots of a session: the cores of its present executors, divided by the cores of a task.

    The count needs no job, so it takes a few milliseconds, even if other jobs use every slot.

    Runs on: driver, or the client of Spark Connect; blocks on the JVM or on the server.

    Args:
        spark: the session.

    Source: Spark `SparkContext.maxNumConcurrentTasks`, by which it checks a barrier stage before its start.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._is_classic = not is_connect(spark)

    @property
    def are_exact(self) -> bool:
        """Return whether Spark itself counts: on classic Spark only."""
        return self._is_classic

    def count(self) -> int:
        """Return their number, busy or free; 0 without an executor.

        Spark Connect only reveals the number of tasks into which it divides rows, at least 2 on a cluster.

        Raises:
            ContinuousQueryError: the session has ended.
        """
        if not self._is_classic:
            return max(1, self._default_parallelism() // self._cores_a_task())
        context = self._jvm_context()
        return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))

    def count_free(self) -> int:
        """Return the number of free slots; 0 on Connect, which does not reveal it."""
        if not self._is_classic:
            return 0
        # The status of stages, which is public, lags by up to ten seconds.
        running = self._jvm_context().taskScheduler().runningTasksByExecutors().values().iterator()
        busy = 0
        while running.hasNext():
            busy += running.next()
        return self.count() - busy

    def count_executors(self) -> int:
        """Return the number of executors; 0 on Connect, which does not reveal it.

        In local mode the driver is the executor; elsewhere Spark counts it in addition.
        """
        if not self._is_classic:
            return 0
        context = self._jvm_context()
        return len(context.statusTracker().getExecutorInfos()) - (0 if context.isLocal() else 1)

    def _jvm_context(self) -> Any:
        context = self._spark.sparkContext._jsc  # noqa: SLF001 - PySpark does not hand it out
        if context is None or context.sc().isStopped():
            raise ContinuousQueryError(
                "The Spark session of a continuous query has ended. Uncommitted rows will be read again.",
                condition="CONTINUOUS_SESSION_ENDED",
                hint="Stop queries before their session; start this one again in another session.",
            )
        return context.sc()

    def _default_parallelism(self) -> int:
        plan = str(self._spark.sql("EXPLAIN SELECT * FROM range(1)").collect()[0][0])
        found = _SPLITS.search(plan)
        if found is not None:
            return int(found[1])
        # Another form of the plan: a number of rows that any number of cores divides.
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's custom

        return int(self._spark.range(0, 1_000_000).select(F.spark_partition_id()).distinct().count())

    def _cores_a_task(self) -> int:
        text = self._spark.conf.get("spark.task.cpus", "1") or "1"
        return int(text) if text.isdecimal() and int(text) else 1


class SlotWatch:
    """Decides when a run is planned again because the number of slots has changed.

    Immediately, if slots are missing: Spark cannot start the tasks. For more tasks, only if slots were free in two
    consecutive checks, because slots that other jobs use would make the query wait. Without clock and thread.

    Args:
        slots: of the session.
        tasks: how many the run has.
        now: when the run began, in monotonic seconds.
        limit: the user's maximum number of tasks; None for the number of slots.
        wants_more: whether more tasks would have work.

    Attributes:
        tasks: how many the run has.
        due_at: the time of the next check, in monotonic seconds.
    """

    _STARTING_SECONDS = 1.0
    _RUNNING_SECONDS = 3.0

    def __init__(self, slots: TaskSlots, tasks: int, now: float, *, limit: int | None, wants_more: bool) -> None:
        self.due_at = now + self._STARTING_SECONDS
        self.tasks = tasks
        self._slots = slots
        self._wants_more = wants_more and slots.are_exact and (limit is None or tasks < limit)
        # The count is not exact: a number that the user sets takes precedence.
        self._watches_start = slots.are_exact or limit is None
        self._were_free = False

    def look(self, now: float, *, is_running: bool) -> bool:
        """Check now, and return whether to plan the run again.

        Args:
            now: in monotonic seconds.
            is_running: whether every task has started.

        Raises:
            ContinuousQueryError: the session has ended.
        """
        if not is_running:
            self.due_at = now + self._STARTING_SECONDS
            return self._watches_start and self._slots.count() < self.tasks
        if not self._wants_more:
            self.due_at = float("inf")
            return False
        self.due_at = now + self._RUNNING_SECONDS
        were_free, self._were_free = self._were_free, self._slots.count_free() > 0
        return were_free and self._were_free

    def free(self) -> int | None:
        """Return the number of free slots; None if unknown."""
        return max(0, self._slots.count_free()) if self._slots.are_exact else None
