"""Says what a program waits for that takes longer than 2 s: a download, a broker that starts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from pyspark_kafka._base.threads import BackgroundLoop

_QUIET_S = 2.0
_INTERVAL_S = 10.0


def _print(line: str) -> None:
    # Looked up at each line: a notebook and pytest replace it.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class SlowStep(BackgroundLoop):
    """Reports a step while the block runs: after 2 s, and every 10 s from then on. Nothing of one that is quick.

    The lines come from a thread of its own.

    Args:
        text: what is waited for, without a full stop.
        tell: takes a line; standard error by default.
        quiet_s: after which time the first line comes.
    """

    def __init__(self, text: str, tell: Callable[[str], None] = _print, quiet_s: float = _QUIET_S) -> None:
        super().__init__("slow-step", self._tell_again, quiet_s)
        self._text, self._tell, self._began = text, tell, time.monotonic()

    def update(self, text: str) -> None:
        """Set the text of the next line."""
        self._text = text

    def _tell_again(self) -> float:
        self._tell(f"{self._text} … {time.monotonic() - self._began:.0f} s")
        return _INTERVAL_S
