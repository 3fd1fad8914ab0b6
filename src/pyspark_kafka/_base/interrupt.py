"""The early end of a driver's wait: the runner of the work names the event, and the waiting code requests it here.

A wait within a step, such as the pause before another attempt, knows nothing of the query that it is part of. The
event is the thread's own (a context variable), so that it needs no argument in each function between the two.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

INTERRUPT: ContextVar[threading.Event | None] = ContextVar("interrupt", default=None)


@contextmanager
def interrupted_by(event: threading.Event) -> Iterator[None]:
    """End waits in this block, on this thread, when an event is set. Blocks may be nested; the inner event counts."""
    former = INTERRUPT.set(event)
    try:
        yield
    finally:
        INTERRUPT.reset(former)


def pause(seconds: float) -> bool:
    """Wait; return whether the wait was ended early: then nothing is to be tried again.

    Runs on: driver and executor; blocks for the seconds at most. Where no event was named, it is a sleep.
    """
    event = INTERRUPT.get()
    if event is None:
        time.sleep(seconds)
        return False
    return event.wait(seconds)
