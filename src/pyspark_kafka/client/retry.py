"""The one policy for failures: what a failure asks for, and how long to wait before trying again. No I/O.

Classes of errors only say whether they are `retriable`; what to do first is decided here, with a reason a branch.
Layer: client.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pyspark_kafka.client.wire.error_codes import ErrorCode, error_kind
from pyspark_kafka.errors import AccessError, BrokerError, ConnectorError, DeadlineError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable


class Action(Enum):
    """What to do about a failure."""

    FAIL = "fail"
    RETRY = "retry"
    REFRESH = "refresh metadata, then retry"
    ASK_LEADER = "ask the leader instead of a follower"
    CHECK_LOG = "compare the position with the ends of the log"


@dataclass(frozen=True, slots=True)
class Decision:
    """An action and why."""

    action: Action
    reason: str


# How often in a row a code that this client does not know, or that should not occur, is tried again.
_SURPRISES = 5
_FATAL_OF_FETCH = frozenset(
    {ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNSUPPORTED_VERSION}
)
_FAIL_UNKNOWN_TOPIC = Decision(Action.FAIL, "the topic was looked up and is not there")


def decide(error: ConnectorError) -> Decision:
    """Decide what a failure of one request asks for.

    Retries are bounded by the deadline of the step, never by this function.
    """
    if isinstance(error, AccessError):
        return Decision(Action.FAIL, "the same credentials will be refused again")
    if isinstance(error, BrokerError):
        return _decide_code(error)
    if isinstance(error, DeadlineError):
        return Decision(Action.REFRESH, "one broker did not answer in time; another may lead by now")
    if isinstance(error, TransportError):
        if error.retriable:
            return Decision(Action.REFRESH, "the connection was lost; the broker may come back, or another lead")
        return Decision(Action.FAIL, "certificates or addresses do not change by waiting")
    return Decision(Action.FAIL, "not a failure of the cluster: options, protocol or a defect")


def decide_fetch(error: ConnectorError, *, from_follower: bool, surprises: int) -> Decision:
    """Decide what a failure to fetch from a partition asks for.

    Args:
        error: the failure.
        from_follower: whether a follower gave it.
        surprises: how many unknown codes came in a row before this one.

    Source: docs/internals/fetch-rules.md, R36 to R44; Java `FetchCollector`.
    """
    if not isinstance(error, BrokerError):
        return decide(error)
    if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
        if from_follower:
            return Decision(Action.ASK_LEADER, "a follower may lag, or hold less; only the leader's word counts")
        return Decision(Action.CHECK_LOG, "records are gone, or the leader has only just changed")
    if error.code in _FATAL_OF_FETCH:
        return Decision(Action.FAIL, "the same bytes or versions would come again")
    decision = decide(error)
    if decision.action is Action.RETRY:
        return Decision(Action.REFRESH, f"{decision.reason}; a look at the leader costs little")
    name = error_kind(error.code).name
    surprising = error.code == ErrorCode.UNKNOWN_SERVER_ERROR or name.startswith("UNKNOWN_CODE_")
    if decision.action is Action.FAIL and surprising and surprises + 1 < _SURPRISES:
        return Decision(Action.REFRESH, "what this client does not know may pass")
    return decision


def _decide_code(error: BrokerError) -> Decision:
    if error.condition == "UNKNOWN_TOPIC":
        return _FAIL_UNKNOWN_TOPIC
    kind = error_kind(error.code)
    if error.code in (ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_NOT_AVAILABLE):
        return Decision(Action.REFRESH, "another broker is to be asked")
    if kind.refreshes_metadata:
        return Decision(Action.REFRESH, "what was known of leaders or topics is out of date")
    if kind.retriable:
        return Decision(Action.RETRY, "the broker says that the same request may succeed later")
    return Decision(Action.FAIL, "the broker refused the request for good")


class Backoff:
    """Waiting times that double, with jitter so that many tasks do not come back at once.

    Units: milliseconds in, seconds out.

    Args:
        initial_ms: the first wait.
        max_ms: the longest wait.
        rng: uniform numbers in [0, 1); tests give their own.
    """

    __slots__ = ("_initial_ms", "_max_ms", "_rng", "attempts")

    def __init__(self, initial_ms: float, max_ms: float, rng: Callable[[], float] = random.random) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._rng = rng
        self.attempts = 0

    def next_s(self) -> float:
        """Give the next wait: 80 % to 120 % of the doubled one before, as Java's clients have it (KIP-580)."""
        # The exponent is bounded: 2.0 ** attempts would overflow in a very long wait.
        base = min(self._max_ms, self._initial_ms * 2.0 ** min(self.attempts, 30))
        self.attempts += 1
        return min(self._max_ms, base * (0.8 + 0.4 * self._rng())) / 1000

    def reset(self) -> None:
        """Start over after a success."""
        self.attempts = 0
