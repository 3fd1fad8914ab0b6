"""Work in a process of its own that ends, as by kill -9, before one of its steps."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


# A fork whose test run was killed has no parent that would end it.
_LONGEST_SECONDS = 120


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
        signal.alarm(_LONGEST_SECONDS)
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
    assert ended != -signal.SIGALRM, f"the work was not done after {_LONGEST_SECONDS} seconds"  # noqa: S101
    assert ended == 0, f"the work failed in its process, which ended with {ended}; its traceback is above"  # noqa: S101
    return True
