"""Work in its own process, which ends, as by kill -9, before one of its steps, or inside it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path
    from types import FrameType


# A fork whose test run was killed has no parent that would end it.
_MAX_SECONDS = 120
# Functions of modules of the outside that change nothing there.
_UNSEEN = frozenset({"fspath", "getpid", "urandom", "stat", "lstat", "fileno", "is_file", "poll", "select"})


class Steps:
    """Counts the steps of some work, and kills the process before one of them."""

    def __init__(self, kill_before: int | None) -> None:
        self._kill_before = kill_before
        self._done = 0

    def next(self) -> None:
        """Begin the next step, or die."""
        if self._done == self._kill_before:
            os.kill(os.getpid(), signal.SIGKILL)
        self._done += 1


class InnerSteps:
    """Counts what a call does outside of the process, and kills the process before one of these steps.

    A step is a call of a function in C of one of some modules: of files, sockets, databases. Python reports each of
    them to `sys.setprofile` before it runs; so the process dies where it could die in a crash, and no code of the
    connector is changed.

    Args:
        modules: names of modules, without what comes after a dot.
        kill_at: the number of the step before which the process dies; None for none.
        counted: where the number of steps is written if the process lives; None: nowhere.
    """

    def __init__(self, modules: Collection[str], kill_at: int | None = None, counted: Path | None = None) -> None:
        self._modules = frozenset(modules)
        self._kill_at = kill_at
        self._counted = counted
        self._seen = 0

    def __enter__(self) -> None:
        threading.setprofile(self._look)
        sys.setprofile(self._look)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        if self._counted is not None:
            self._counted.write_text(str(self._seen))

    def _look(self, _: FrameType, event: str, function: Any) -> None:
        if event != "c_call" or function.__name__ in _UNSEEN or _module_of(function) not in self._modules:
            return
        if self._seen == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self._seen += 1


def _module_of(function: Any) -> str:
    owner = getattr(function, "__objclass__", None) or type(getattr(function, "__self__", None))
    return str(getattr(function, "__module__", None) or owner.__module__).partition(".")[0]


def run_until_killed(work: Callable[[Steps], None], kill_before: int | None) -> bool:
    """Run `work` in a fork of this process; return whether it reached its end.

    Args:
        work: calls `steps.next()` before each of its steps.
        kill_before: the number of the step before which the process dies; None for none.

    Raises:
        AssertionError: the work failed with an error, or was not done after two minutes.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside threads; this child does its work, and does not return.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        # Ends this process, whatever it does then.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_MAX_SECONDS)
        try:
            work(Steps(kill_before))
            code = 0
        except BaseException:  # noqa: BLE001 - the parent tells
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    if ended == -signal.SIGKILL:
        return False
    assert ended != -signal.SIGALRM, f"the work was not done after {_MAX_SECONDS} seconds"  # noqa: S101
    assert ended == 0, f"the work failed in its process, which ended with {ended}; its traceback is above"  # noqa: S101
    return True
