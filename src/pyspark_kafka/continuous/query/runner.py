"""The life of a continuous query on the driver: its thread, its runs one after the other, restarts after failures."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from pyspark_kafka._base.interrupt import interrupted_by
from pyspark_kafka.connector import SupportsSourceOffsets
from pyspark_kafka.continuous.epochs.pace import EpochPace
from pyspark_kafka.continuous.placement.slots import TaskSlots
from pyspark_kafka.continuous.query.failures import FailureLimit
from pyspark_kafka.continuous.run.commits import EpochCommits
from pyspark_kafka.continuous.run.context import QueryControl, RunContext
from pyspark_kafka.continuous.run.run import QueryRun
from pyspark_kafka.continuous.run.waits import RowWaits
from pyspark_kafka.continuous.traces.query_spans import query_spans
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from pyspark_kafka.checkpoint import CheckpointFiles
    from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
    from pyspark_kafka.continuous.reports.events import QueryNames
    from pyspark_kafka.continuous.reports.progress import ProgressLog
    from pyspark_kafka.continuous.run.plan import QueryPlan

_LOG = logging.getLogger(__name__)

_HANDLER_LOOK_SECONDS = 0.02
_TELL_SECONDS = 5.0


class QueryRunner:
    """Runs a continuous query on a thread of its own until it is stopped or fails for good.

    Runs on: driver, or the client of Spark Connect. Only its thread calls the stream, the sink and the checkpoint.

    Args:
        spark: the session.
        plan: the plan of the query.
        files: its checkpoint, for the logs of Spark.
        epochs: its checkpoint, for the files of this engine.
        names: its ids and names.
        progress: receives an entry for each epoch.
        on_end: called once when the query has ended: None, or its error.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: QueryPlan,
        files: CheckpointFiles,
        epochs: EpochFiles,
        names: QueryNames,
        progress: ProgressLog,
        on_end: Callable[[BaseException | None], None] = lambda _: None,
    ) -> None:
        self._plan, self._names, self._on_end = plan, names, on_end
        self._control = QueryControl()
        self._waits = RowWaits(plan.stream.hasReached)
        self._commits = EpochCommits(plan, names.id, files, epochs, progress)
        slots = TaskSlots(spark)
        limit = plan.write.commitLimit() if isinstance(plan.write, SupportsSourceOffsets) else None
        pace = EpochPace(plan.interval_ms, limit)
        self._context = RunContext(
            spark,
            slots,
            plan,
            names.id,
            names.run_id,
            self._control,
            self._waits,
            self._commits,
            progress,
            pace,
            # Here, in the span of the caller.
            query_spans(plan.stream, plan.write, names.id, names.run_id),
        )
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        # Whether the lanes of a run have read.
        self._has_read = False
        # The unfinished work of a stopped query, as a sentence; empty if its last epoch was committed.
        self._left = ""
        # Whether a call has requested the end; the events follow within a moment.
        self._is_asked = False
        # Held by the reporter of the end: the thread of the query, or a caller that no longer waits for it.
        self._end_is_told = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"continuous-query-{names.id[:8]}", daemon=True)

    @property
    def is_active(self) -> bool:
        """Return whether the query runs."""
        return not self._ended.is_set()

    @property
    def failure(self) -> BaseException | None:
        """Return the error that ended the query; None if it runs or was stopped."""
        return self._failure

    @property
    def message(self) -> str:
        """Return the current activity of the query, as a sentence."""
        return self._control.message

    @property
    def is_reading(self) -> bool:
        """Return whether every lane reads."""
        return self._control.is_reading

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Request the end: the current epoch is ended and committed. Takes no lock."""
        self._ask(self._control.stop_asked)

    @property
    def is_stopping(self) -> bool:
        """Return whether a stop was requested and the query has not ended."""
        return self.is_active and self._is_asked

    def give_up(self) -> None:
        """Request the immediate end: the current epoch is aborted, and the next start reads its rows again."""
        self._ask(self._control.give_up, self._control.stop_asked)

    def _ask(self, *events: threading.Event) -> None:
        self._is_asked = True

        def set_all() -> None:
            for event in events:
                event.set()
            self._control.wake()

        # On a thread: a signal handler may have interrupted `set` of the same event on this one, which holds its lock.
        threading.Thread(target=set_all, name="continuous-ask", daemon=True).start()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end of the query; return whether it has ended."""
        return self._ended.wait(seconds)

    def wait_in_handler(self, seconds: float) -> bool:
        """Wait for the end of the query, also within a signal handler that has interrupted a wait for it.

        Returns:
            Whether it has ended.
        """
        # Not by the event: the interrupted wait may hold its lock.
        until = time.monotonic() + seconds
        while self.is_active and time.monotonic() < until:
            time.sleep(_HANDLER_LOOK_SECONDS)
        return not self.is_active

    def abandon(self) -> None:
        """End the query even if its thread waits for a commit, a checkpoint, a broker or Spark without a response.

        The thread is abandoned: it starts nothing new when its call returns, and the next start of the query fences
        its writes.
        """
        waits_for = self._control.message
        self._left = f"Stopped; it is not known whether the last epoch was committed, after a wait in: {waits_for}"
        _LOG.warning(
            "Continuous query %s was stopped, and did not end within its time (%s). It is not known whether its last "
            "epoch is committed; the next start finds out.",
            self._names.id,
            waits_for,
        )
        # On a thread: in a signal handler this one may hold a lock that it takes.
        telling = threading.Thread(target=self._tell_end, name="continuous-end", daemon=True)
        telling.start()
        telling.join(_TELL_SECONDS)

    def wait_until_idle(self) -> None:
        """Wait until every row that is readable now is committed; return if the query ends first."""
        self._waits.wait(lambda: self.is_active, self._control.wake)

    def _work(self) -> None:
        try:
            # The end of the query also ends a wait for an outage during recovery or planning.
            with interrupted_by(self._control.stop_asked):
                self._run_until_stopped()
        except BaseException as error:  # noqa: BLE001 - the handle raises it
            if not self.is_active:
                # The query was abandoned: nobody waits for its error.
                _LOG.warning("Continuous query %s, which was stopped before, ended: %s", self._names.id, error)
                return
            self._failure = error
            _LOG.error("Continuous query %s ended: %s", self._names.id, error)
            self._commits.end_transactions()
        finally:
            try:
                self._plan.stream.stop()
                if self._context.spans is not None:
                    self._context.spans.tracer.flush()
            finally:
                self._tell_end()

    def _tell_end(self) -> None:
        if not self._end_is_told.acquire(blocking=False):
            return
        self._control.is_reading = False
        if self._failure is not None:
            self._control.message = "Terminated with exception"
        else:
            self._control.message = self._left or "Stopped"
        # Threads that wait for the end find it reported.
        try:
            self._on_end(self._failure)
        finally:
            self._ended.set()
        self._waits.wake()

    def _run_until_stopped(self) -> None:
        try:
            self._run_again_and_again()
        except ConnectorError as error:
            if not error.retriable or not self._control.stop_asked.is_set():
                raise
            self._stopped_with(error)

    def _run_again_and_again(self) -> None:
        limit = FailureLimit(self._plan.max_failures, self._plan.pauses)
        self._commits.take_over(self._names.run_id)
        if self._plan.available_now:
            self._plan.stream.prepareForTriggerAvailableNow()
        while not self._control.stop_asked.is_set():
            failure, is_at_end, has_advanced = self._run_once()
            if is_at_end:
                return
            if has_advanced:
                limit.advanced()
            if failure is None:
                continue
            if self._control.stop_asked.is_set():
                self._stopped_with(failure)
                return
            pause = limit.failed(failure, time.monotonic(), has_read=self._has_read)
            if pause is None:
                raise failure
            _LOG.warning(
                "Continuous query %s failed (%s) and starts again in %.1f s at its last committed epoch: %s",
                self._names.id,
                limit.describe(),
                pause,
                # The traceback is for the handle.
                str(failure).partition("\n")[0],
            )
            self._control.message = f"Waiting {pause:g} s after a failure"
            self._control.stop_asked.wait(pause)

    def _run_once(self) -> tuple[BaseException | None, bool, bool]:
        """Recover, plan and run; return the error of the run, whether the query is at its end, whether it advanced."""
        run: QueryRun | None = None
        try:
            run = QueryRun(self._context, self._commits.resume())
            run.run()
        except ConnectorError as error:
            # Of unreachable brokers, for example. A query that has never read is more likely mistaken about them,
            # and its user should know at once.
            if not error.retriable or not self._has_read:
                raise
            return error, False, run is not None and run.has_advanced
        self._has_read = self._has_read or run.has_read
        return run.failure, run.is_at_end, run.has_advanced

    def _stopped_with(self, failure: BaseException) -> None:
        # The traceback is for readers of the log.
        self._left = "Stopped; the last epoch was not committed: " + str(failure).partition("\n")[0]
        _LOG.warning("Continuous query %s was stopped, and its last epoch failed: %s", self._names.id, failure)
        self._commits.end_transactions()
