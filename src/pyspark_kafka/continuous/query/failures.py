"""Which failures of a continuous query are followed by another run, and after which pause. Pure: no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark_kafka.continuous.run.plan import RestartPauses

# As long as brokers may be away by default (`outageTimeout`).
CHECKPOINT_OUTAGE_S = 600.0
_OUTAGES = frozenset({"CHECKPOINT_IO", "CHECKPOINT_GONE"})


class FailureLimit:
    """The failures of a query in a row, and how many it may have.

    Failures are counted. An outage of the checkpoint is timed instead: its files fail again within milliseconds, so a
    number of attempts would say little about how long it has lasted.

    Args:
        max_failures: failures in a row after which the query still starts again; with 0 no failure is followed by a
            start.
        pauses: between a failure and the next start.
    """

    def __init__(self, max_failures: int, pauses: RestartPauses) -> None:
        self._max_failures, self._pauses = max_failures, pauses
        self._failures = self._outage_failures = 0
        # When the outage of the checkpoint began; None without one.
        self._outage_since: float | None = None
        self._told = ""

    def advanced(self) -> None:
        """Record that rows were committed: the next failure is the first one in a row."""
        self._failures = self._outage_failures = 0
        self._outage_since = None

    def failed(self, failure: BaseException, now: float) -> float | None:
        """Record a failure, and return the pause in seconds before the next start; None if there is to be none.

        Args:
            failure: why the run ended.
            now: in monotonic seconds.
        """
        if self._max_failures and _is_outage_of_checkpoint(failure):
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
        """Return how near the limit the last failure is, for the log."""
        return self._told


def _is_outage_of_checkpoint(failure: BaseException) -> bool:
    return isinstance(failure, CheckpointError) and failure.condition in _OUTAGES and failure.retriable
