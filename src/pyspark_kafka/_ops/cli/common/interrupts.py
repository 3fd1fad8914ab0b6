"""Ctrl-C and SIGTERM in a program that has started processes: they become `KeyboardInterrupt`, once."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Not an event: a second signal that interrupts its `set` would wait for a lock that its own thread holds, for ever.
_came: list[object] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGINT and SIGTERM raise `KeyboardInterrupt` in the block, so that its clean-up runs after both."""
    _came.clear()
    with handled_by(_interrupt):
        yield


@contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM with `handler` in the block, and as before afterwards. Main thread only."""
    previous = [(number, signal.signal(number, handler)) for number in _ENDING_SIGNALS]
    try:
        yield
    finally:
        for number, handler_before in previous:
            signal.signal(number, handler_before)


def was_interrupted() -> bool:
    """Return whether a signal has come since `interruptible` began."""
    return bool(_came)


def raise_if_interrupted() -> None:
    """Raise `KeyboardInterrupt` if a signal has come before: Python drops one that is raised within a finalizer."""
    if was_interrupted():
        raise KeyboardInterrupt


def note_interrupt(number: object, *_: object) -> None:
    """Remember a signal, and log nothing more: a handler of signals, or its first step.

    Calls into the JVM that a signal breaks off would be logged as errors, with a traceback.
    """
    logging.disable(logging.CRITICAL)
    _came.append(number)


def _interrupt(*signal_and_frame: object) -> None:
    note_interrupt(*signal_and_frame)
    raise KeyboardInterrupt
