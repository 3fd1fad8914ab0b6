"""A check for files, sockets and threads that work leaves behind."""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path


def check_leaks(work: Callable[[], None], times: int) -> None:
    """Repeat some work, and fail if files, sockets or threads stay.

    Args:
        work: what is done.
        times: how often, after a first time that does not count: it opens what is kept for the next time on purpose.
    """
    work()
    before = _open_files(), threading.active_count()
    for _ in range(times):
        work()
    after = _open_files(), threading.active_count()
    assert after[0] <= before[0], f"{after[0] - before[0]} files or sockets stay open"
    assert after[1] <= before[1], f"{after[1] - before[1]} threads stay"


def _open_files() -> int:
    for directory in ("/proc/self/fd", "/dev/fd"):
        if Path(directory).is_dir():
            return len(os.listdir(directory))  # noqa: PTH208 - a plain count
    return 0
