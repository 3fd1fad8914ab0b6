"""Calls that are tried again: attempts, delays with jitter, a deadline, and the story of the attempts in the error.

Only retriable failures are tried again, no attempt starts after the deadline, and the final error names every attempt.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyspark_kafka.errors import ConnectorError, RetryError

_T = TypeVar("_T")

_SHOWN_ATTEMPTS = 10


def is_transient(error: BaseException) -> bool:
    """Return whether a failure is one that often passes: a connection or time-out error, or one that says so itself."""
    if isinstance(error, ConnectorError):
        return error.retriable
    return isinstance(error, (ConnectionError, TimeoutError))


def no_pause_asked(error: BaseException) -> None:
    """Return None: the failure requires no pause, and the pause of the policy applies."""


@dataclass(frozen=True)
class RetryPolicy:
    """The number of attempts of a call, and the pauses between. Plain data; pickles if its two functions do.

    Attributes:
        attempts: at most this many calls.
        initial_delay_ms: the pause after the first failure; it doubles after each further one.
        max_delay_ms: the upper bound of a pause, before jitter.
        jitter: each pause is between `1 - jitter` and `1 + jitter` times its length, so that tasks that failed together
            do not come back together.
        deadline_ms: no attempt starts later than this after the first one.
        is_retriable: whether an error is worth another attempt; any other one is raised immediately, as it is.
        asked_pause_ms: the pause that a failure itself requires, such as `Retry-After` of HTTP; None if it requires
            none. The pause of the policy is added, so that tasks do not come back together, and never too soon. If the
            sum ends after the deadline, there is no further attempt.
    """

    attempts: int = 5
    initial_delay_ms: int = 100
    max_delay_ms: int = 10_000
    jitter: float = 0.2
    deadline_ms: int = 60_000
    is_retriable: Callable[[BaseException], bool] = is_transient
    asked_pause_ms: Callable[[BaseException], float | None] = no_pause_asked

    def __post_init__(self) -> None:
        for name in ("attempts", "initial_delay_ms", "max_delay_ms", "deadline_ms"):
            if getattr(self, name) < (1 if name == "attempts" else 0):
                raise ValueError(f"{name} of a RetryPolicy must not be {getattr(self, name)}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter of a RetryPolicy must be between 0 and 1, not {self.jitter}")


def retry(
    call: Callable[[], _T],
    *,
    what: str,
    policy: RetryPolicy | None = None,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> _T:
    """Return what `call` returns, calling it again after retriable failures.

    Runs on: driver or executor; blocks for at most the deadline of the policy and the length of one call.

    Args:
        call: must be safe to call again after it failed.
        what: what is tried, for the error: "reading page 7 of https://…". Must hold no secret.
        policy: how often and how long; None for the defaults of `RetryPolicy`.
        sleep: waits for seconds; `CancelSignal.wait` returns sooner if the work is to end. For tests too.
        clock: for tests; seconds.

    Raises:
        RetryError: attempts or time are used up; names every attempt; the last failure is its cause.
        Exception: whatever `call` raised, if the policy does not call it retriable.
    """
    policy = policy or RetryPolicy()
    began = clock()
    lines: list[str] = []
    while True:
        try:
            return call()
        except Exception as error:
            elapsed_ms = (clock() - began) * 1000
            lines.append(f"attempt {len(lines) + 1} after {elapsed_ms:,.0f} ms: {type(error).__name__}: {error}")
            if not policy.is_retriable(error):
                raise
            pause_ms = _pause_ms(policy, len(lines), error)
            elapsed_ms = (clock() - began) * 1000
            if len(lines) >= policy.attempts or elapsed_ms + pause_ms > policy.deadline_ms:
                raise RetryError(
                    f"Gave up {what} after {len(lines)} attempts in {elapsed_ms:,.0f} ms. {_story(lines)}.",
                    condition="RETRIES_EXHAUSTED",
                    hint="Read the last error. If a later attempt may succeed, raise 'attempts' or 'deadline_ms'.",
                    parameters={"what": what, "attempts": len(lines)},
                ) from error
        sleep(pause_ms / 1000)


def _pause_ms(policy: RetryPolicy, failures: int, error: Exception) -> float:
    # The exponent is bounded: very many attempts would overflow.
    base_ms = min(policy.max_delay_ms, policy.initial_delay_ms * 2.0 ** min(failures - 1, 60))
    # A share of the pause, so that short pauses stay short.
    own_ms = base_ms * random.uniform(1 - policy.jitter, 1 + policy.jitter)  # noqa: S311 - not for secrets
    return own_ms + max(0.0, policy.asked_pause_ms(error) or 0.0)


def _story(lines: list[str]) -> str:
    if len(lines) > _SHOWN_ATTEMPTS:
        half = _SHOWN_ATTEMPTS // 2
        lines = [*lines[:half], f"({len(lines) - _SHOWN_ATTEMPTS} more attempts)", *lines[-half:]]
    return "; ".join(lines)
