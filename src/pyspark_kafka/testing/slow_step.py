"""Says what a program waits for that takes longer than 2 s: a download, a broker that starts."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

_QUIET_S = 2.0
_INTERVAL_S = 10.0


def _print(line: str) -> None:
    # Looked up at each line: a notebook and pytest replace it.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class SlowStep:
    """Tells of a step while the block runs: after 2 s, and every 10 s from then on. Nothing of one that is quick.

    The lines come from a thread of its own.

    Args:
        text: what is waited for, without a full stop.
        tell: takes a line; standard error by default.
        quiet_s: after which time the first line comes.
    """

    def __init__(self, text: str, tell: Callable[[str], None] = _print, quiet_s: float = _QUIET_S) -> None:
        self._text = text
        self._tell = tell
        self._quiet_s = quiet_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slow-step", daemon=True)
        self._began = 0.0

    def __enter__(self) -> SlowStep:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def update(self, text: str) -> None:
        """Set what the next line tells."""
        self._text = text

    def _run(self) -> None:
        wait_s = self._quiet_s
        while not self._over.wait(wait_s):
            self._tell(f"{self._text} … {time.monotonic() - self._began:.0f} s")
            wait_s = _INTERVAL_S
