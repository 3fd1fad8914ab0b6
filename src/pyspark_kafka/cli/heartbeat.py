"""A step of a program that takes a while: what it waits for, and for how long. Layer: cli.

On a terminal the step is one line with a spinner and its seconds. Elsewhere, such as in a pipe or a log, it is a line
when it begins and another one every few seconds: a slow download must not look like a program that hangs.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

# Readers of a log were promised a line every 5 s; a busy machine may run the thread late.
_INTERVAL_S = 4.0
# On a terminal the line is redrawn, not added to.
_REDRAW_S = 1.0


class Step:
    """Shows a step while the block runs; the lines come from a thread of its own.

    Args:
        console: where to show it.
        text: what is waited for, without a full stop.
    """

    def __init__(self, console: Console, text: str) -> None:
        self._console = console
        self._text = text
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._began = 0.0

    def __enter__(self) -> Step:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._began = time.monotonic()
        if not self._console.is_terminal:
            self._console.print(f"{self._text} …", markup=False, highlight=False)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def update(self, text: str) -> None:
        """Set what the next line shows. Prints nothing and takes no lock, so that signal handlers may call it."""
        self._text = text

    def _line(self) -> str:
        return f"{self._text} … {time.monotonic() - self._began:.0f} s"

    def _beat(self) -> None:
        if not self._console.is_terminal:
            while not self._over.wait(_INTERVAL_S):
                self._console.print(self._line(), markup=False, highlight=False)
            return
        with self._console.status(self._line()) as status:
            while not self._over.wait(_REDRAW_S):
                status.update(self._line())
