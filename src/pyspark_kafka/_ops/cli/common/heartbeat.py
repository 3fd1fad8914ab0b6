"""A step of a program that takes a while: what it waits for, and for how long.

On a terminal the step is one line with a spinner and its seconds. Elsewhere, such as in a pipe or a log, it is a line
when it begins and another one every few seconds: a slow download must not look like a program that hangs. A command
that prints data is silent about what takes less than 2 s: `progress`.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from pyspark_kafka._base.threads import BackgroundLoop
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.errors import ConnectorError

# Readers of a log were promised a line every 5 s; a busy machine may run the thread late.
_INTERVAL_S = 4.0
# What is over by then needs no line.
_QUIET_S = 2.0
# Attempts come at least as often; an older failure may be over.
_FAILURE_S = 5.0


class Step(BackgroundLoop):
    """Shows a step while the block runs; the lines come from a thread of its own.

    Args:
        console: where to show it.
        text: what is waited for, without a full stop. It is shown without control characters.
        quiet_s: how long nothing is shown; a step that is over by then shows nothing at all.
    """

    def __init__(self, console: Console, text: str, *, quiet_s: float = 0.0) -> None:
        super().__init__("heartbeat", self._begin, quiet_s)
        self._console = console
        self._text = printable(text)
        self._began = time.monotonic()
        self._failed_at, self._failure = -math.inf, ""
        self._spinner = ExitStack()

    def start(self) -> None:
        """Show the step, now or after its quiet time."""
        if not self.first_s:
            self.first_s = self._begin()
        super().start()

    def end(self, within_s: float | None = None) -> None:
        """Show the step no more."""
        super().end(within_s)
        self._spinner.close()

    def __rich__(self) -> Text:
        """Return the line of this moment: a spinner asks for it several times a second."""
        # A path or a name is not markup.
        return Text(self._line())

    def update(self, text: str) -> None:
        """Set what the next line shows. Prints nothing and takes no lock, so that signal handlers may call it."""
        self._text = printable(text)

    def fail(self, error: ConnectorError) -> None:
        """Show in the next lines why an attempt failed, until no attempt has failed for some seconds."""
        self._failed_at, self._failure = time.monotonic(), printable(error.message.partition(". ")[0].rstrip("."))

    def _line(self) -> str:
        now = time.monotonic()
        failure = f" ({self._failure})" if now - self._failed_at <= _FAILURE_S else ""
        return f"{self._text}{failure} … {now - self._began:.0f} s"

    def _begin(self) -> float | None:
        if self._console.is_terminal:
            self._spinner.enter_context(self._console.status(self))
            return None
        self._announce()
        self.turn = self._beat
        return _INTERVAL_S

    def _announce(self) -> None:
        self._console.print(f"{self._text} …", markup=False, highlight=False)

    def _beat(self) -> float:
        if time.monotonic() - self._began >= _INTERVAL_S:
            self._console.print(self._line(), markup=False, highlight=False)
        return _INTERVAL_S


@contextmanager
def progress(text: str, *, quiet_s: float = _QUIET_S) -> Iterator[Step]:
    """Return a step of a command, shown on standard error once it has taken `quiet_s`, with its failures."""
    from pyspark_kafka._client.client.waiting.stalls import hearing_failures  # noqa: PLC0415 - the client only when needed

    with Step(Console(stderr=True, soft_wrap=True), text, quiet_s=quiet_s) as step, hearing_failures(step.fail):
        yield step
