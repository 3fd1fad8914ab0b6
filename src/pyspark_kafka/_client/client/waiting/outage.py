"""Outages: for how long a streaming query repeats its steps while brokers are away, and which failures are outages.

A query that ends in an outage has to be started again by someone, and finds the same outage; so it waits. A cluster
that was never reached is not an outage but a mistake in the options, which is reported immediately. Single requests are
retried by `retry.py`; `stalls.py` logs long waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from pyspark_kafka._base.interrupt import pause
from pyspark_kafka._client.client.waiting.retry import Backoff
from pyspark_kafka._client.client.waiting.stalls import Contact, Stall, clock_time, what_failed
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError, DeadlineError, TransportError

_T = TypeVar("_T")

# Attempts take their own time to fail; the pauses are for attempts that fail immediately.
_PAUSE_MS, _MAX_PAUSE_MS = 100, 2_000
_HINT = (
    "Check that the brokers are running, then restart the query: it continues from its checkpoint. Option "
    "'outageTimeout' sets how long an outage is waited out."
)


def may_be_outage(error: ConnectorError) -> bool:
    """Return whether a failure may be one of an outage, if the cluster was reached before."""
    if isinstance(error, AccessError) or error.condition == "UNKNOWN_TOPIC":
        return False
    if error.condition == "BOOTSTRAP_FAILED" and error.parameters.get("closed_at_once"):
        # At first contact a server that closes every connection is a wrong listener. Later it is a broker that starts,
        # or a proxy before one that is away.
        return True
    return error.retriable and isinstance(error, (TransportError, DeadlineError, BrokerError))


class OutageRetry:
    """Repeats steps of a streaming query while the cluster is away.

    Runs on: driver and executor; one thread.

    Args:
        timeout_ms: how long one outage is waited out (`outageTimeout`); with 0 every failure is raised.
        contact: which broker responded last, for errors and logs.
        reached: whether the query is known to have reached the cluster before; otherwise its first success counts.
        clock: monotonic seconds; tests pass their own.
        sleep: waits for seconds, and returns true if the wait was ended early; tests pass their own.
    """

    def __init__(
        self,
        timeout_ms: float,
        contact: Contact,
        *,
        reached: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = pause,
    ) -> None:
        self._timeout_ms = timeout_ms
        self._contact = contact
        self._reached = reached
        self._clock = clock
        self._sleep = sleep
        # Steps that have succeeded.
        self._done = 0

    def call(
        self, step: str, attempt: Callable[[], _T], *, passes: Callable[[ConnectorError], bool] = may_be_outage
    ) -> _T:
        """Run a step; while an outage makes it fail, run it again until the outage has lasted for the timeout.

        Args:
            step: what is done, as logs and errors name it: "listing partitions".
            attempt: does it; has a deadline of its own.
            passes: whether a failure may be one of an outage.

        Raises:
            DeadlineError: the outage has lasted too long (condition OUTAGE_TOO_LONG).
            ConnectorError: a failure that is not one of an outage; the first one if the cluster was never reached; the
                last one if the wait was interrupted (`pyspark_kafka._base.interrupt`).
        """
        backoff = Backoff(_PAUSE_MS, _MAX_PAUSE_MS)
        began: float | None = None
        with Stall(lambda: step, self._contact) as wait:
            # Not `retry.attempts`: the time of an outage begins with the first failure.
            while True:
                try:
                    found = attempt()
                except ConnectorError as error:
                    if wait.failure is None:
                        wait.failed(error)
                    if began is None:
                        # The attempt may have made progress for long before it failed: that is not an outage.
                        began = self._clock() - wait.waited_s
                    if not self._timeout_ms or not passes(error) or not (self._done or self._reached()):
                        raise
                    left_s = self._timeout_ms / 1000 - (self._clock() - began)
                    if left_s <= 0:
                        raise outage_error(step, self._clock() - began, self._contact, error, self._done) from error
                    if self._sleep(min(backoff.next_s(), left_s)):
                        raise
                else:
                    self._done += 1
                    wait.progress()
                    return found


def outage_error(
    step: str, lasted_s: float, contact: Contact, cause: ConnectorError | None, done: int = 0
) -> DeadlineError:
    """Build the error of an outage that lasts too long.

    Args:
        step: what could not be done.
        lasted_s: for how long.
        contact: which broker responded last.
        cause: the last failure; None if there was only silence.
        done: how many steps of the same kind this run had done before.
    """
    since = clock_time(lasted_s)
    before = f" {done} such steps of this run succeeded before." if done else ""
    reason = "" if cause is None else f" Last failure: {what_failed(cause)}"
    return DeadlineError(
        f"An outage of the Kafka brokers lasts since {since} ({lasted_s:.0f} s), longer than option 'outageTimeout' "
        f"allows: {step}. Until then the cluster was reachable: {contact.describe()}.{before}{reason}",
        condition="OUTAGE_TOO_LONG",
        hint=_HINT,
        retriable=True,
        parameters={"step": step, "lasted_ms": round(lasted_s * 1000), "broker": contact.address},
    )
