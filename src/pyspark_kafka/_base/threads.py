"""Threads: a call for several values side by side, a call that may never return, a call at intervals."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pyspark_kafka._base.interrupt import INTERRUPT, interrupted_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_A = TypeVar("_A")
_R = TypeVar("_R")
_Loop = TypeVar("_Loop", bound="BackgroundLoop")


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


class BackgroundLoop(threading.Thread):
    """Calls a function at intervals in a thread of its own. Use as a context manager, or call `start` and `end`.

    Waits of the function end with the loop (`interrupted_by`), and the process ends without it.

    Args:
        name: of the thread.
        turn: the function; returns the seconds until its next call, or None if there is none. Handles its errors.
        first_s: the seconds until its first call; None if there is none.
    """

    def __init__(self, name: str, turn: Callable[[], float | None], first_s: float | None = 0.0) -> None:
        super().__init__(name=name, daemon=True)
        self.turn, self.first_s = turn, first_s
        self._over, self._due = threading.Event(), threading.Event()

    def __enter__(self: _Loop) -> _Loop:  # noqa: PYI019 - typing.Self needs Python 3.11
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def is_over(self) -> bool:
        """Return whether the loop was ended; a call may still run."""
        return self._over.is_set()

    def wake(self) -> None:
        """Call the function now, or once more if it runs."""
        self._due.set()

    def end(self, within_s: float | None = None) -> None:
        """End the loop, and wait for the running call at most this long; `is_alive` returns whether it still runs.

        May be repeated, and called before `start` or by the function.
        """
        self._over.set()
        self._due.set()
        if self.ident is not None and self is not threading.current_thread():
            self.join(within_s)

    def run(self) -> None:
        """See `threading.Thread`."""
        wait_s = self.first_s
        with interrupted_by(self._over):
            while wait_s is not None:
                self._due.wait(wait_s)
                self._due.clear()
                if self.is_over:
                    return
                wait_s = self.turn()
