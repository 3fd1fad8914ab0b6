"""The same question about several servers at the same time, with a deadline that the question need not know.

Layer: diagnosis.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark_kafka.client.deadline import Deadline

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

# A question that ends with its own deadline takes a moment to say so.
_GRACE_S = 0.3


def ask_all(
    keys: Iterable[_Key], question: Callable[[_Key], _Value], deadline: Deadline
) -> dict[_Key, _Value | BaseException]:
    """Ask a question about each key, each in a thread of its own.

    The resolver of the system knows no deadline, so a question may outlast this call: its thread is then left behind,
    and ends with its question, or with the process.

    Returns:
        By key, in the order of the keys: the result, or what the question raised; a DeadlineError if it did neither in
        time.
    """
    wanted = list(dict.fromkeys(keys))
    results: queue.Queue[tuple[_Key, _Value | BaseException]] = queue.Queue()

    def run(key: _Key) -> None:
        try:
            results.put((key, question(key)))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, as every other result
            results.put((key, error))

    for key in wanted:
        threading.Thread(target=run, args=(key,), name="pyspark-kafka-check", daemon=True).start()
    found: dict[_Key, _Value | BaseException] = {}
    for _ in wanted:
        try:
            key, result = results.get(timeout=deadline.remaining_s() + _GRACE_S)
        except queue.Empty:
            break
        found[key] = result
    return {key: found[key] if key in found else deadline.error("This step") for key in wanted}
