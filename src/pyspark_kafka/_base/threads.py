"""Threads: a call for several values side by side, a call that may never return."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._base.interrupt import INTERRUPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_A = TypeVar("_A")
_R = TypeVar("_R")


def side_by_side(
    work: Callable[[_A], _R], values: Iterable[_A], at_once: int, name: str, give_up: Callable[[], None] = lambda: None
) -> list[_R]:
    """Return what `work` returns for each value, in their order; several at a time.

    No call runs any more when it returns or raises. After an error, calls that have not begun are left out. An event
    of `interrupted_by` ends the waits of the calls, too.

    Args:
        work: what to call.
        values: the arguments.
        at_once: the maximum of calls at the same time.
        name: of the threads.
        give_up: called after an error, or an interrupt of this thread, before it waits for the running calls.

    Raises:
        BaseException: of the first value, in their order, whose call failed.
    """
    values = list(values)
    if not values:
        return []
    with ThreadPoolExecutor(min(at_once, len(values)), name, INTERRUPT.set, (INTERRUPT.get(),)) as pool:
        try:
            calls = [pool.submit(work, value) for value in values]
            return [call.result() for call in calls]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            give_up()
            raise


def begin(call: Callable[[], _R], name: str) -> Future[_R]:
    """Begin a call that may never return, in a thread of its own: then the process ends without it.

    `concurrent.futures.wait` waits for the result with a limit.
    """
    future: Future[_R] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the result is used
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
