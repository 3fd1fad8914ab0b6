"""A thread that works on the newest value it was given: older ones that it has not begun are dropped."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)

# A thread that gets nothing for that long ends; the next value starts another one.
_IDLE_S = 30.0


class LatestValueWorker(Generic[_T]):
    """Passes values to a function in a thread of its own; callers do not wait for it.

    One value can wait while another one is processed. A thread is started by the first value and does not keep the
    process from ending; in a fork of the process there is none, and the fork's first value starts one. If a thread
    cannot be started, the value waits, and the next one, or a flush, tries again.

    Runs on: driver; any thread; `offer` does not block.

    Args:
        name: of the thread, for people who inspect a process.
        work: what to do; an error of it is logged, and the next value is taken.
        pause_s: the shortest time between two beginnings of work.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[_T], None],
        *,
        pause_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._work, self._pause_s, self._clock = name, work, pause_s, clock
        self._waiting: list[_T] = []
        self._thread: threading.Thread | None = None
        self._clear()

    def offer(self, value: _T) -> None:
        """Hand over a value to work on; an earlier pending one is dropped."""
        if os.getpid() != self._process:
            self._clear()
        with self._changed:
            self._waiting = [value]
            self._start()
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until all values are worked on, without pauses; return whether they are.

        Args:
            timeout_s: the maximum wait; the work continues after it.
        """
        if os.getpid() != self._process:
            return True
        with self._changed:
            if self._waiting and not self._start():
                return False
            self._flushes += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._waiting and not self._is_working, timeout_s)
            finally:
                self._flushes -= 1

    def close(self) -> None:
        """Drop the pending value. Does not wait; a later value is worked on."""
        if os.getpid() == self._process:
            with self._changed:
                self._waiting = []

    def _clear(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._waiting, self._thread = [], None
        self._is_working = self._has_failed = False
        self._flushes = 0

    def _start(self) -> bool:
        """Start the thread if it does not run; return whether it runs. The caller holds the lock."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # A process at its limit of threads. Values come often: one line until a thread was started again.
                if not self._has_failed:
                    _LOG.warning(
                        "The thread '%s' cannot be started; the query continues and tries again with the next value.",
                        self._name,
                        exc_info=True,
                    )
                self._has_failed = True
                return False
            self._thread, self._has_failed = thread, False
        return True

    def _run(self) -> None:
        begun = -self._pause_s
        while (value := self._take(begun + self._pause_s)) is not None:
            if not value:
                continue
            begun = self._clock()
            try:
                self._work(value[0])
            except Exception:  # noqa: BLE001 - logged; a defect here must not end the query
                _LOG.warning("A background step of the query failed; the query continues.", exc_info=True)
            finally:
                with self._changed:
                    self._is_working = False
                    self._changed.notify_all()

    def _take(self, not_before: float) -> list[_T] | None:
        """Return the next value as the only one of a list; none if it was dropped, None if none comes for long."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._waiting), _IDLE_S):
                self._thread = None
                return None
            # Meanwhile a newer value may arrive, or the waiting one may be dropped.
            self._changed.wait_for(lambda: self._flushes > 0, max(0.0, not_before - self._clock()))
            value, self._waiting = self._waiting, []
            self._is_working = bool(value)
            return value
