"""Retries: which action a failure requires (`decide`), how long to wait (`Backoff`), and the loop (`attempts`).

Classes of errors only say whether they are `retriable`; what to do first is decided here, with a reason a branch.

A loop over several brokers at a time has a due time for each of them instead of `attempts`, with the same waits:
`cluster/bootstrap.py`, `queries/offsets.py`, `fetch/session/routing.py`, `produce/delivery/`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._base.counters import COUNTERS, RETRIES
from pyspark_kafka._base.interrupt import pause
from pyspark_kafka._client.client.waiting.stalls import note_failure
from pyspark_kafka._client.client.wire.error_codes import ErrorCode, error_kind
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError, DeadlineError, ProtocolError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka._client.client.waiting.deadline import Deadline

_T = TypeVar("_T")


class RetryAction(Enum):
    """The reaction to a failure."""

    FAIL = "fail"
    RETRY = "retry"
    REFRESH = "refresh metadata, then retry"
    ASK_LEADER = "ask the leader instead of a follower"
    CHECK_LOG = "compare the position with the ends of the log"


@dataclass(frozen=True, slots=True)
class Decision:
    """An action and why."""

    action: RetryAction
    reason: str


# How often in a row a code that this client does not know, or that should not occur, is accepted before it is final.
_SURPRISES = 5
_FATAL_OF_FETCH = frozenset(
    {ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNSUPPORTED_VERSION}
)
# A search for a server that had no longer than that says little about the servers.
_TELLING_MS = 1_000
# Of `ClosedAtOnce`.
CLOSED_AT_ONCE_ATTEMPTS = 8
CLOSED_AT_ONCE_MS = 3_000
_FAIL_UNKNOWN_TOPIC = Decision(RetryAction.FAIL, "the topic was looked up and is not there")


def decide(error: ConnectorError) -> Decision:
    """Return which action a failure of one request requires, and why.

    The deadline of the step bounds retries, never this function.
    """
    if isinstance(error, AccessError):
        return Decision(RetryAction.FAIL, "the same credentials will be refused again")
    if isinstance(error, BrokerError):
        return _decide_code(error)
    if isinstance(error, DeadlineError):
        return Decision(RetryAction.REFRESH, "one broker did not respond in time; another may lead by now")
    if isinstance(error, TransportError):
        if error.retriable:
            return Decision(RetryAction.REFRESH, "the connection was lost; the broker may come back, or another lead")
        return Decision(RetryAction.FAIL, "waiting does not change certificates or addresses")
    if isinstance(error, ProtocolError) and error.retriable:
        return Decision(RetryAction.REFRESH, "the response was not complete; another one may be")
    return Decision(RetryAction.FAIL, "not a failure of the cluster: options, protocol or a defect")


def decide_fetch(error: ConnectorError, *, from_follower: bool, surprises: int) -> Decision:
    """Return which action a failure to fetch from a partition requires, and why.

    Args:
        error: the failure.
        from_follower: whether it comes from a follower.
        surprises: how many unknown codes came in a row before this one.

    Source: docs/internals/fetch-rules.md, R36 to R44; Java `FetchCollector`.
    """
    if not isinstance(error, BrokerError):
        return decide(error)
    if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
        if from_follower:
            return Decision(RetryAction.ASK_LEADER, "a follower may lag, or hold less; the leader's response counts")
        return Decision(RetryAction.CHECK_LOG, "records are gone, or the leader has only just changed")
    if error.code in _FATAL_OF_FETCH:
        return Decision(RetryAction.FAIL, "the same bytes or versions would come again")
    decision = decide(error)
    if decision.action is RetryAction.RETRY:
        return Decision(RetryAction.REFRESH, f"{decision.reason}; a look at the leader costs little")
    name = error_kind(error.code).name
    surprising = error.code == ErrorCode.UNKNOWN_SERVER_ERROR or name.startswith("UNKNOWN_CODE_")
    if decision.action is RetryAction.FAIL and surprising and surprises + 1 < _SURPRISES:
        return Decision(RetryAction.REFRESH, "what this client does not know may pass")
    return decision


def _decide_code(error: BrokerError) -> Decision:
    if error.condition == "UNKNOWN_TOPIC":
        return _FAIL_UNKNOWN_TOPIC
    kind = error_kind(error.code)
    if error.code in (ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_NOT_AVAILABLE):
        return Decision(RetryAction.REFRESH, "another broker is to be asked")
    if kind.refreshes_metadata:
        return Decision(RetryAction.REFRESH, "what was known of leaders or topics is out of date")
    if kind.retriable:
        return Decision(RetryAction.RETRY, "the broker says that the same request may succeed later")
    return Decision(RetryAction.FAIL, "the broker refused the request for good")


class Backoff:
    """The waits between attempts: they double, with 20 % jitter, so that many tasks do not come back together.

    Units: milliseconds in, seconds out.

    Args:
        initial_ms: the first wait.
        max_ms: the longest wait.
        rng: uniform numbers in [0, 1); tests pass their own.

    Attributes:
        attempts: how many waits `next_s` has returned since the last success.

    Source: KIP-580; Java `ExponentialBackoff`.
    """

    __slots__ = ("_initial_ms", "_max_ms", "_rng", "attempts")

    def __init__(self, initial_ms: float, max_ms: float, rng: Callable[[], float] = random.random) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._rng = rng
        self.attempts = 0

    @classmethod
    def constant(cls, interval_ms: float) -> Backoff:
        """Build waits that are all of the same length, for an option that sets the interval."""
        return cls(interval_ms, interval_ms, rng=lambda: 0.5)

    def wait_s(self, failures: int) -> float:
        """Return a wait after a failure before which there were `failures` others in a row."""
        # The exponent is bounded: 2.0 ** failures would overflow in a very long wait.
        base = min(self._max_ms, self._initial_ms * 2.0 ** min(failures, 30))
        return min(self._max_ms, base * (0.8 + 0.4 * self._rng())) / 1000

    def next_s(self) -> float:
        """Return the next wait, and count it."""
        self.attempts += 1
        COUNTERS.add_count(RETRIES)
        return self.wait_s(self.attempts - 1)

    def reset(self) -> None:
        """Start over after a success."""
        self.attempts = 0


class ClosedAtOnce:
    """Connections in a row that a server closed at their first request.

    That is a listener that wants a login, or is confused with another, rather than a broker that stops or a wire that
    fails. Some seconds of attempts distinguish them: a number of attempts alone takes half a second if waits are short.

    Attributes:
        is_final: whether more attempts are of no use.
    """

    __slots__ = ("_count", "_since_ms", "is_final")

    def __init__(self) -> None:
        self._count, self._since_ms = 0, 0.0
        self.is_final = False

    def note(self, closed: bool, now_ms: float) -> None:
        """Count a failure, which was such a connection or another one."""
        if not self._count:
            self._since_ms = now_ms
        self._count = self._count + 1 if closed else 0
        self.is_final = self._count >= CLOSED_AT_ONCE_ATTEMPTS and now_ms - self._since_ms >= CLOSED_AT_ONCE_MS


def attempts(
    backoff: Backoff,
    *,
    deadline: Deadline | None = None,
    max_attempts: int | None = None,
    sleep: Callable[[float], object] = pause,
) -> Iterator[int]:
    """Yield the number of each attempt: 1, 2, 3…; wait before each attempt but the first.

    Ends after `max_attempts`, or after the attempt during which the deadline expired. Which failure to raise then, the
    caller knows. A wait is not longer than the deadline, so the last attempt may have no time left. A wait that is
    interrupted (`pyspark_kafka._base.interrupt`) ends immediately, and the deadline with it.

    Runs on: driver and executor; blocks between attempts.

    Args:
        backoff: how long to wait.
        deadline: for all attempts and waits; None for no limit.
        max_attempts: the maximum number of attempts; None for no limit.
        sleep: waits for seconds, if there is no deadline; tests pass their own.
    """
    wait = sleep if deadline is None else deadline.pause
    number = 1
    yield number
    while number != max_attempts and not (deadline is not None and deadline.expired):
        if wait(backoff.next_s()) and deadline is not None:
            return
        number += 1
        yield number


def retrying(step: str, deadline: Deadline, backoff: Backoff, attempt: Callable[[Deadline], _T]) -> _T:
    """Run `attempt` until it succeeds, fails finally (see `decide`), or the deadline expires.

    Runs on: driver and executor; blocks.

    Args:
        step: what is done, as the subject of the sentence in an error.
        deadline: for all attempts and the waits between them.
        backoff: the waits.
        attempt: gets the deadline to pass on; raises ConnectorError on failure.

    Raises:
        ConnectorError: the failure of the last attempt, if it is final, or if brokers closed too many
            connections in a row at their first request (`ClosedAtOnce`).
        DeadlineError: the deadline expired; names the step and the failure that explains most.
    """
    newest: ConnectorError | None = None
    # The failure that explains most: an attempt that the deadline cut short explains less than the failure before it.
    best: ConnectorError | None = None
    closed_at_once = ClosedAtOnce()
    for _ in attempts(backoff, deadline=deadline):
        began_ms = deadline.elapsed_ms()
        try:
            return attempt(deadline)
        except ConnectorError as error:
            newest = error
            no_server = error.condition == "BOOTSTRAP_FAILED"
            closed_at_once.note(error.condition == "BROKER_CLOSED_FIRST_READ", deadline.elapsed_ms())
            if closed_at_once.is_final:
                raise
            took_ms = deadline.elapsed_ms() - began_ms
            cut_short = isinstance(error, DeadlineError) or (no_server and took_ms < _TELLING_MS)
            if decide(error).action is RetryAction.FAIL or (no_server and (best is None or not cut_short)):
                # The search for a server has used up the deadline itself, and names more than a deadline would.
                raise
            if best is None or not cut_short:
                best = error
                note_failure(error)
    if newest is not None and isinstance(best, DeadlineError):
        raise newest
    if isinstance(best, ProtocolError):
        # Brokers have responded in time, each time: that is no outage, which a query would wait out.
        raise best
    raise deadline.error(step, best) from newest
