"""Calls that are tried again: attempts, delays with jitter, a deadline, and the story of the attempts in the error.

The waiting is tenacity's; this module adds what a connector needs: only retriable failures are tried again, the last
attempt ends within the deadline, and the final error names every attempt.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka.errors import ConnectorError, RetryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity import RetryCallState

_T = TypeVar("_T")

_SHOWN_ATTEMPTS = 10


def is_transient(error: BaseException) -> bool:
    """Return whether a failure is one that often passes: a connection or time-out error, or one that says so itself."""
    if isinstance(error, ConnectorError):
        return error.retriable
    return isinstance(error, (ConnectionError, TimeoutError))


def no_pause_asked(error: BaseException) -> None:
    """Return None: the failure asks for no pause, and that of the policy applies."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is tried, and how long the pauses are. Plain data; pickles if its two functions do.

    Attributes:
        attempts: at most this many calls.
        initial_delay_ms: the pause after the first failure; it doubles after each further one.
        max_delay_ms: the upper bound of a pause, before jitter.
        jitter: each pause is between `1 - jitter` and `1 + jitter` times its length, so that tasks that failed together
            do not come back together.
        deadline_ms: no attempt starts later than this after the first one.
        is_retriable: whether an error is worth another attempt; any other one is raised at once, as it is.
        asked_pause_ms: the pause that a failure itself asks for, such as `Retry-After` of HTTP; None if it asks for
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


@dataclass
class _Story:
    policy: RetryPolicy
    clock: Callable[[], float]
    lines: list[str] = field(default_factory=list)
    began: float = 0.0

    def note(self, error: BaseException) -> None:
        after_ms = (self.clock() - self.began) * 1000
        self.lines.append(f"attempt {len(self.lines) + 1} after {after_ms:,.0f} ms: {type(error).__name__}: {error}")

    def is_over(self, state: RetryCallState) -> bool:
        pause_ms = (state.upcoming_sleep or 0.0) * 1000
        late = (self.clock() - self.began) * 1000 + pause_ms > self.policy.deadline_ms
        return late or state.attempt_number >= self.policy.attempts

    def text(self) -> str:
        shown = self.lines
        if len(shown) > _SHOWN_ATTEMPTS:
            half = _SHOWN_ATTEMPTS // 2
            shown = [*shown[:half], f"({len(shown) - _SHOWN_ATTEMPTS} more attempts)", *shown[-half:]]
        return "; ".join(shown)


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
        sleep: waits for seconds; `CancelSignal.wait` returns sooner if the work is asked to end. For tests too.
        clock: for tests; seconds.

    Raises:
        RetryError: attempts or time are used up; names every attempt; the last failure is its cause.
        Exception: whatever `call` raised, if the policy does not call it retriable.
    """
    import tenacity  # noqa: PLC0415 - only programs that retry need it

    policy = policy or RetryPolicy()
    story = _Story(policy, clock)
    # tenacity's own jitter is added on top; a share of the pause keeps short pauses short.
    base = tenacity.wait_exponential(multiplier=policy.initial_delay_ms / 1000, max=policy.max_delay_ms / 1000)

    def pause(state: RetryCallState) -> float:
        import random  # noqa: PLC0415

        own = base(state) * random.uniform(1 - policy.jitter, 1 + policy.jitter)  # noqa: S311 - not for secrets
        failure = state.outcome.exception() if state.outcome else None
        return own + max(0.0, (policy.asked_pause_ms(failure) or 0) / 1000 if failure else 0.0)

    def attempt() -> _T:
        try:
            return call()
        except Exception as error:
            story.note(error)
            raise

    def wait(seconds: float) -> None:
        sleep(seconds)

    story.began = clock()
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(policy.is_retriable), wait=pause, stop=story.is_over, sleep=wait
    )
    try:
        return retrying(attempt)
    except tenacity.RetryError as error:
        last = error.last_attempt.exception()
        raise RetryError(
            f"Gave up {what} after {len(story.lines)} attempts in {(clock() - story.began) * 1000:,.0f} ms. "
            f"{story.text()}.",
            condition="RETRIES_EXHAUSTED",
            hint="Look at the last attempt first. If it would pass later, raise 'attempts' or 'deadline_ms'.",
            facts={"what": what, "attempts": len(story.lines)},
        ) from last
