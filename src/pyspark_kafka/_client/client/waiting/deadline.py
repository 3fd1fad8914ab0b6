"""Time budgets: all parts of a step share one `Deadline`, retries included. No sockets."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark_kafka._base.interrupt import pause
from pyspark_kafka.errors import ConnectorError, DeadlineError

_HINT = "Check that the brokers can be reached and are not overloaded."


class Deadline:
    """A point in time by which a step must be done.

    Runs on: driver and executor. Do not pickle it: a clock of one process means nothing in another.
    Units: milliseconds for budgets, seconds (`_s`) for what sockets and sleeps take.

    Args:
        timeout_ms: the budget, counted from now, or from when it began.
        clock: monotonic seconds; tests pass their own.
        sleep: waits for seconds, and returns true if the wait was ended early; tests pass their own.
        began: when it began, if that was before now.
    """

    __slots__ = ("_clock", "_ends_at", "_sleep", "_started_at", "timeout_ms")

    def __init__(
        self,
        timeout_ms: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = pause,
        began: float | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self._clock = clock
        self._sleep = sleep
        self._started_at = clock() if began is None else began
        self._ends_at = self._started_at + timeout_ms / 1000

    def remaining_s(self) -> float:
        """Return the seconds left; never below 0."""
        return max(0.0, self._ends_at - self._clock())

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self._clock() >= self._ends_at

    def elapsed_ms(self) -> int:
        """Return the milliseconds since the start."""
        return int((self._clock() - self._started_at) * 1000)

    def within(self, timeout_ms: float) -> Deadline:
        """Return a deadline of `timeout_ms` from now, or this one's end if that comes first."""
        return Deadline(min(timeout_ms, self.remaining_s() * 1000), clock=self._clock, sleep=self._sleep)

    def extended(self, timeout_ms: float) -> Deadline:
        """Return a deadline that began when this one did, with another budget."""
        return Deadline(timeout_ms, clock=self._clock, sleep=self._sleep, began=self._started_at)

    def moved_on(self, timeout_ms: float, limit: Deadline) -> Deadline:
        """Return a deadline that began when this one did and ends `timeout_ms` from now, or with `limit`."""
        elapsed_s = self._clock() - self._started_at
        return self.extended(elapsed_s * 1000 + min(timeout_ms, limit.remaining_s() * 1000))

    def pause(self, seconds: float) -> bool:
        """Wait, but not beyond the deadline; return whether the wait was interrupted: then no time is left."""
        seconds = min(seconds, self.remaining_s())
        if seconds <= 0 or not self._sleep(seconds):
            return False
        self._ends_at = min(self._ends_at, self._clock())
        return True

    def check(self, step: str, cause: BaseException | None = None) -> None:
        """Raise if no time is left.

        Args:
            step: what is being done, as the subject of the sentence in the error.
            cause: the last failure of a retried step; the error repeats its text.

        Raises:
            DeadlineError: the time is over.
        """
        if self.expired:
            raise self.error(step, cause) from cause

    def error(self, step: str, cause: BaseException | None = None) -> DeadlineError:
        """Build the error that `check` raises."""
        reason = "" if cause is None else f" Last failure: {failure_text(cause)}"
        return DeadlineError(
            f"{step} did not finish within {self.timeout_ms:.0f} ms ({self.elapsed_ms()} ms elapsed).{reason}",
            condition="DEADLINE_EXCEEDED",
            hint=getattr(cause, "hint", "") or _HINT,
            retriable=True,
            parameters={"step": step, "timeout_ms": f"{self.timeout_ms:.0f}", "elapsed_ms": self.elapsed_ms()},
        )


def failure_text(cause: BaseException) -> str:
    """Return the text of a failure without its hint, which becomes the hint of the whole."""
    return f"[{cause.condition}] {cause.message}" if isinstance(cause, ConnectorError) else str(cause)
