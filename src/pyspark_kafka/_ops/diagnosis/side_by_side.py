"""The same question about several servers at the same time, with a deadline that the question need not know."""

from __future__ import annotations

from concurrent.futures import wait
from functools import partial
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka._base.threads import begin
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from pyspark_kafka._client.client.waiting.deadline import Deadline

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

# A question that ends with its own deadline takes a moment to say so.
_GRACE_S = 0.3


def ask_all(
    keys: Iterable[_Key], question: Callable[[_Key], _Value], deadline: Deadline, *, foreign: bool = False
) -> dict[_Key, _Value | BaseException]:
    """Call a question for each key, each in its own thread.

    The system's resolver has no deadline, so a question may outlast this call: its thread is then left behind,
    and ends with its question, or with the process.

    Args:
        keys: the arguments of the question.
        question: returns the result of one key.
        deadline: for all of them.
        foreign: whether the question calls other packages, whose errors are results as well.

    Returns:
        By key, in the order of the keys: the result, or what the question raised; a DeadlineError if it did neither in
        time.

    Raises:
        ConnectorError: `CHECK_FAILED`: the question raised what is not an error of this package, which is a defect.
    """
    asked = {key: begin(partial(question, key), "pyspark-kafka-check") for key in dict.fromkeys(keys)}
    wait(asked.values(), deadline.remaining_s() + _GRACE_S)
    return {
        key: _outcome(call, foreign=foreign) if call.done() else deadline.error("This step")
        for key, call in asked.items()
    }


def _outcome(call: Future[Any], *, foreign: bool) -> Any:
    error = call.exception()
    if isinstance(error, Exception) and not isinstance(error, ConnectorError) and not foreign:
        raise _defect(error)
    return call.result() if error is None else error


def _defect(error: Exception) -> ConnectorError:
    """Build the error of a defect; the text of what was raised may hold a secret, and is not repeated."""
    frames = extract_tb(error.__traceback__)
    place = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    return ConnectorError(
        f"The check cannot judge this: {type(error).__name__}{place}.",
        condition="CHECK_FAILED",
        hint="This is a defect of pyspark-kafka: report it with this text. The cluster may be as it should be.",
        parameters={"error": type(error).__name__},
    )
