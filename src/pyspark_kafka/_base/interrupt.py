"""How a wait of the driver is ended early: whoever runs the work names the event, whoever waits asks for it here.

A wait within a step, such as the pause before another attempt, knows nothing of the query that it is part of. The
event is the thread's own (a context variable), so that it needs no argument in each function between the two.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

_A = TypeVar("_A")
_R = TypeVar("_R")
_INTERRUPT: ContextVar[threading.Event | None] = ContextVar("interrupt", default=None)


@contextmanager
def interrupted_by(event: threading.Event) -> Iterator[None]:
    """End waits in this block, on this thread, when an event is set. Blocks may be nested; the inner event counts."""
    former = _INTERRUPT.set(event)
    try:
        yield
    finally:
        _INTERRUPT.reset(former)


def carried(work: Callable[[_A], _R]) -> Callable[[_A], _R]:
    """Return work for other threads, whose waits are ended by the event of this one."""
    event = _INTERRUPT.get()
    if event is None:
        return work

    def interrupted(item: _A) -> _R:
        with interrupted_by(event):
            return work(item)

    return interrupted


def pause(seconds: float) -> bool:
    """Wait; return whether the wait was ended early: then nothing is to be tried again.

    Runs on: driver and executor; blocks for the seconds at most. Where no event was named, it is a sleep.
    """
    event = _INTERRUPT.get()
    if event is None:
        time.sleep(seconds)
        return False
    return event.wait(seconds)
