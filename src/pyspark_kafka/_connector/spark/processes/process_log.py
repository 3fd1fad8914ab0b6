"""Log lines of the Python processes that Spark starts, in the form of Spark's own.

Python prints the warnings of a process that has configured no logging as bare text. Nobody finds that
among the lines of a driver or an executor. So the processes that plan, read and write get one handler, which adds what
Spark's lines have: time, level and logger, and the query and the task.

    26/11/22 01:44:28 WARN pyspark_kafka._connector.source.executor.range_decoder: [queryId=8c0e… stage=3 TID=12] …

Modules decide what they log; this one decides only how it looks.
"""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import TaskContext

from pyspark_kafka._base.traces.task_place import TaskPlace, find_places_with
from pyspark_kafka._client.client.net.client_id import forget_task, name_requests
from pyspark_kafka._connector.spark.processes.gc_freeze import freeze_gc
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = "pyspark_kafka"
# Java's names of the levels that are called otherwise in Python.
_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}
# Local properties in which Spark tells tasks their query; internal, hence probed. The job group of a streaming query
# is the id of its run.
_QUERY_ID, _RUN_ID, _BATCH_ID = "sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId"
# A subscription may list thousands of topics.
_MAX_WHERE = 120

_where = ""
_query_id = _run_id = ""


class SparkFormatter(logging.Formatter):
    """Formats a record as Spark's log lines, `yy/MM/dd HH:mm:ss LEVEL logger: text`, in local time."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(spark_level)s %(name)s: %(where)s%(message)s", "%y/%m/%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and after it the lines of an exception's traceback."""
        where = _task() or _where
        record.spark_level = _LEVELS.get(record.levelname, record.levelname)
        record.where = f"[{where}] " if where else ""
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line, without control characters of what it quotes: it stays one line."""
        record.message = printable(record.message)
        return super().formatMessage(record)


class StandInHandler(logging.Handler):
    """Writes to standard error what no other handler takes, like Python's last resort, but as whole lines.

    It looks for other handlers at each record: Spark has one while it captures what workers log
    (`spark.sql.pyspark.worker.logging.enabled`), and a user's function may configure logging at any time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(SparkFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, unless another handler does."""
        if self._is_taken(record.name):
            return
        try:
            # Looked up each time: Spark replaces it, too. One call, so that lines of several processes do not mix.
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001 - a line that cannot be written must not end a task
            self.handleError(record)

    def _is_taken(self, name: str) -> bool:
        """Return whether a line has another handler; of several of this class the nearest one to the line writes it."""
        nearest: StandInHandler | None = None
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            for handler in logger.handlers:
                if not isinstance(handler, StandInHandler):
                    return True
                nearest = nearest or handler
            logger = logger.parent if logger.propagate else None
        return nearest is not self


def stand_in(name: str = _PACKAGE) -> StandInHandler:
    """Attach the handler to a logger, if it has none of ours yet, and return it.

    Runs on: wherever `log_as_spark` does, and in a program that runs continuous queries.

    Args:
        name: the package's logger, for all lines; or a part of it, which leaves the others as they are.
    """
    logger = logging.getLogger(name)
    for handler in logger.handlers:
        if isinstance(handler, StandInHandler):
            return handler
    added = StandInHandler()
    logger.addHandler(added)
    return added


def log_as_spark(where: str = "", query_id: str = "", run_id: str = "") -> None:
    """Make this process write its log lines as Spark does from now on, if nothing else is configured.

    Its requests to brokers are named after its task, as its log lines are.

    Called first by whatever Spark calls: readers, writers, planning. It costs next to nothing when it is called again.

    Runs on: executor, and the Python processes that Spark starts on the driver; never the user's own program.

    Args:
        where: what the process is doing, for processes without a task; it holds until the next call.
        query_id: of a continuous query, whose tasks are tasks of a batch to Spark; it holds as long.
        run_id: of this start of it.
    """
    global _where, _query_id, _run_id  # noqa: PLW0603 - of this process
    _query_id, _run_id = query_id, run_id
    _where = where if len(where) <= _MAX_WHERE else f"{where[:_MAX_WHERE]}…"
    stand_in()
    place = _place()
    if place is None:
        forget_task()
    else:
        name_requests(query_id=place.query_id, run_id=place.run_id, stage=place.stage, task=place.task)


@contextmanager
def spark_step(where: str = "", *, query_id: str = "", run_id: str = "", freeze: bool = False) -> Iterator[None]:
    """Log a step as Spark does.

    The order is a rule. The log comes first: no line of the step is without its place. Then garbage is frozen, before
    the step has any of its own.

    Runs on: executor, and the Python processes that Spark starts on the driver.

    Args:
        where: as in `log_as_spark`.
        query_id: of a continuous query; the step after it may be of another query.
        run_id: of this start of it.
        freeze: whether garbage collections leave out what is alive now (`freeze_gc`).
    """
    log_as_spark(where, query_id, run_id)
    if freeze:
        freeze_gc()
    try:
        yield
    finally:
        if query_id:
            log_as_spark()


def _task() -> str:
    """Return the query and task of a line; empty outside of tasks."""
    place = _place()
    if place is None:
        return ""
    fields = {
        "queryId": place.query_id,
        "runId": place.run_id,
        "batchId": place.batch_id,
        "stage": place.stage,
        "TID": place.attempt,
    }
    return " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)


def _place() -> TaskPlace | None:
    """Return the task of this process, for its log lines, its client id and its spans."""
    context = TaskContext.get()
    if context is None:
        return None
    query_id, run_id = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_RUN_ID)
    if not query_id:
        # The job group of other jobs is whatever the user calls a group.
        query_id, run_id = _query_id or None, _run_id or None
    batch_id = context.getLocalProperty(_BATCH_ID)
    return TaskPlace(query_id, run_id, batch_id, context.stageId(), context.partitionId(), context.taskAttemptId())


find_places_with(_place)
