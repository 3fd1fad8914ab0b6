"""The handle of a started continuous query, with the methods of Spark's `StreamingQuery`."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from pyspark_kafka.continuous.query.frame_plan import QueryEnds
    from pyspark_kafka.continuous.query.runner import QueryRunner
    from pyspark_kafka.continuous.reports.events import QueryNames
    from pyspark_kafka.continuous.reports.progress import ProgressLog

# The maximum wait of a second `stop`, even if Spark or the sink do not respond.
_GIVE_UP_SECONDS = 15.0
# A run takes 30 s at most to end its epoch, and some seconds to end its tasks.
_STOP_SECONDS = 40.0


class ContinuousQuery:
    """A started continuous query.

    Runs on: driver, or the client of Spark Connect; its methods may be called from any thread.

    Source: Spark `pyspark.sql.streaming.StreamingQuery`.
    """

    def __init__(
        self,
        runner: QueryRunner,
        names: QueryNames,
        progress: ProgressLog,
        explanation: str = "",
        ends: QueryEnds | None = None,
    ) -> None:
        self._runner, self._names, self._progress, self._explanation = runner, names, progress, explanation
        self._ends = ends

    def __repr__(self) -> str:
        return f"<ContinuousQuery {self.name or ''} {self.id}: {self._runner.message}>".replace("  ", " ")

    @property
    def id(self) -> str:
        """Return the id of the query, which stays with its checkpoint."""
        return self._names.id

    @property
    def runId(self) -> str:
        """Return the id of this start."""
        return self._names.run_id

    @property
    def name(self) -> str | None:
        """Return the name of the query; None without a name."""
        return self._names.name

    @property
    def isActive(self) -> bool:
        """Return whether the query runs."""
        return self._runner.is_active

    @property
    def status(self) -> dict[str, Any]:
        """Return the current activity of the query: `message`, `isDataAvailable`, `isTriggerActive`."""
        reading = self._runner.is_reading
        return {"message": self._runner.message, "isDataAvailable": reading, "isTriggerActive": reading}

    @property
    def lastProgress(self) -> StreamingQueryProgress | None:
        """Return the newest committed epoch; None before the first.

        It has the members of Spark's own reports, and `latencyMs`, `commitLatencyMs`, `latencySince`, `epochIntervalMs`
        and `epochIntervalReason`; see <https://pyspark-kafka.github.io/pyspark-kafka/monitoring/>.
        """
        return self._progress.last

    @property
    def recentProgress(self) -> list[StreamingQueryProgress]:
        """Return the last 100 committed epochs, oldest first."""
        return self._progress.recent

    def exception(self) -> BaseException | None:
        """Return the error that ended the query; None if it runs, or was stopped."""
        return self._runner.failure

    def stop(self) -> None:
        """End the current epoch, commit it, and end the query. Blocks; at most about 40 seconds.

        The call ends waits for outages. If a commit, the checkpoint or Spark does not respond within that
        time, the query ends without it: `status` reports that the last epoch is in doubt, and the next start finds out
        whether it was committed.

        May be called in a signal handler; `stopOnSignals` is the better way: a handler that has interrupted
        `processAllAvailable` or `awaitTermination` of the same query while it held a lock returns after all of its
        time. A second call that comes in the meantime, from another thread or for a second
        signal, does not wait for the epoch: it is aborted, and both calls return within some seconds. An exception that
        interrupts the call is raised immediately, and the epoch is aborted as well. The next start reads its rows
        again.
        """
        if self._runner.is_stopping:
            self._runner.give_up()
            self._await_end(_GIVE_UP_SECONDS)
            return
        self._runner.stop()
        try:
            self._await_end(_STOP_SECONDS)
        except BaseException:
            self._runner.give_up()
            raise

    def _await_end(self, seconds: float) -> None:
        if not self._runner.wait_in_handler(seconds):
            self._runner.abandon()

    def _stop_by_signal(self) -> None:
        self._runner.stop()
        self._await_end(_STOP_SECONDS)

    def stopOnSignals(self) -> None:
        """From now on, end the query at Ctrl-C (SIGINT) and at SIGTERM as `stop` does; `awaitTermination` then returns.

        One signal ends all queries of the program that have called it. A second signal has the effect that signals had
        before the first call. Without this method, Ctrl-C on classic Spark cancels all jobs of the session, including
        the query's job: the current epoch may then be read again.

        Runs on: the main thread, after the session was made; does not block.

        Raises:
            ValueError: another thread calls it.
        """
        _SIGNALS.end(self)

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Wait for the end of the query.

        Args:
            timeout: seconds; None waits forever.

        Returns:
            With a timeout, whether the query has ended; without one, None.

        Raises:
            ConnectorError: why the query ended.
        """
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout must be a positive number of seconds, not {timeout}")
        ended = self._runner.wait(timeout)
        self._raise_failure()
        return None if timeout is None else ended

    def processAllAvailable(self) -> None:
        """Wait until everything that is readable now is committed. It can wait forever if rows keep arriving.

        Raises:
            ConnectorError: the error that ended the query; or the error of the source's look-up of ends: the query
                continues.
        """
        self._runner.wait_until_idle()
        self._raise_failure()

    def explain(self, extended: bool = False) -> None:  # noqa: ARG002 - Spark's signature
        """Print what the query reads, computes and writes, from the sink down.

        Args:
            extended: as in Spark; has no effect.
        """
        print(self._explanation)  # noqa: T201 - what Spark's `explain` does

    def _raise_failure(self) -> None:
        failure = self._runner.failure
        if failure is not None:
            raise failure


class _Signals:
    """The queries of this process that a signal ends, and the one handler for them."""

    def __init__(self) -> None:
        self._queries: list[ContinuousQuery] = []
        self._former: dict[int, Any] = {}
        self._joining: ContinuousQuery | None = None

    def end(self, query: ContinuousQuery) -> None:
        """From now on, end a query at the first signal."""
        # First: a signal may come between any two of these lines.
        self._joining = query
        for number in (signal.SIGINT, signal.SIGTERM):
            former = signal.getsignal(number)
            if former != self._handle:
                self._former[number] = former
                signal.signal(number, self._handle)
        self._queries = [*(other for other in self._queries if other.isActive), query]
        self._joining = None

    def _handle(self, _number: int, _frame: Any) -> None:
        for number, handler in self._former.items():
            # None: set by a library in C, which cannot be called from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        queries, self._queries = self._queries, []
        if self._joining is not None and self._joining not in queries:
            queries = [*queries, self._joining]
        for query in queries:
            # On threads: this one may hold a lock that the query needs to end. Each may take 40 s.
            threading.Thread(target=query._stop_by_signal, name="continuous-stop", daemon=True).start()  # noqa: SLF001 - of its module


_SIGNALS = _Signals()


def ends_of(query: ContinuousQuery) -> QueryEnds | None:
    """Return the source and the sink of a query, for reports about it; None if it has none, as in a test."""
    return query._ends  # noqa: SLF001 - not for users: its options may be secrets
