"""Threads that the system does not start."""

from __future__ import annotations

import threading


class ThreadOverTheLimit(threading.Thread):
    """A thread of a process that has as many as it may have; stands in for `threading.Thread`."""

    def start(self) -> None:
        """Raise what Python raises then."""
        raise RuntimeError("can't start new thread")
