"""Restarts of a continuous query: the failures that lead to another run, and the pauses before it. Pure: no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark_kafka.continuous.run.plan import RestartPauses

# The default of `outageTimeout`, for brokers.
CHECKPOINT_OUTAGE_S = 600.0
_OUTAGES = frozenset({"CHECKPOINT_IO", "CHECKPOINT_GONE"})


class FailureLimit:
    """The consecutive failures of a query, and their maximum.

    Failures are counted. An outage of the checkpoint is timed instead: its files fail again within milliseconds, so the
    number of attempts is not a measure of its duration.

    Args:
        max_failures: the number of consecutive failures after which the query still starts again; 0: no restarts.
        pauses: between a failure and the next start.
    """

    def __init__(self, max_failures: int, pauses: RestartPauses) -> None:
        self._max_failures, self._pauses = max_failures, pauses
        self._failures = self._outage_failures = 0
        # When the outage of the checkpoint began; None without one.
        self._outage_since: float | None = None
        self._told = ""

    def advanced(self) -> None:
        """Record that rows were committed: the next failure is the first again."""
        self._failures = self._outage_failures = 0
        self._outage_since = None

    def failed(self, failure: BaseException, now: float, *, has_read: bool = True) -> float | None:
        """Record a failure, and return the pause in seconds before the next start; None without a next start.

        Args:
            failure: the error of the run, whether the driver or a lane met it.
            now: in monotonic seconds.
            has_read: whether a run has read: before, a user should know soon that executors cannot use the checkpoint.
        """
        if self._max_failures and has_read and _is_outage_of_checkpoint(failure):
            if self._outage_since is None:
                self._outage_since = now
            lasted = now - self._outage_since
            if lasted >= CHECKPOINT_OUTAGE_S:
                return None
            self._outage_failures += 1
            self._told = f"its checkpoint, for {lasted:.0f} s of at most {CHECKPOINT_OUTAGE_S:.0f} s"
            return min(self._pauses.after(self._outage_failures), CHECKPOINT_OUTAGE_S - lasted)
        self._failures += 1
        self._told = f"{self._failures} of {self._max_failures} in a row"
        return None if self._failures > self._max_failures else self._pauses.after(self._failures)

    def describe(self) -> str:
        """Return the distance of the last failure to the limit, for the log."""
        return self._told


def _is_outage_of_checkpoint(failure: BaseException) -> bool:
    return isinstance(failure, CheckpointError) and failure.condition in _OUTAGES and failure.retriable
