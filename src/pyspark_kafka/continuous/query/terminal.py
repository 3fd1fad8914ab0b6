"""Shows a continuous query while it runs: one line that changes every second, or lines where there is no terminal."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from pyspark_kafka.continuous.query.handle import ContinuousQuery

_SECONDS = 1.0
_SHOWN_ID = 8


class ProgressLine:
    """Shows a query until it ends, on a thread of its own.

    On a terminal the line is redrawn. Elsewhere, such as in a log, it is a line for each second with a commit
    or a changed state. The last line reports the end of the query.

    Runs on: driver, or the client of Spark Connect. A program need not wait for it.

    Args:
        query: the query.
        console: where to show it.
    """

    def __init__(self, query: ContinuousQuery, console: Console) -> None:
        self._query = query
        self._console = console
        self._stopped = threading.Event()
        self._epoch: int | None = None
        self._rows = 0
        self._thread = threading.Thread(target=self._run, name=f"show-{query.id[:_SHOWN_ID]}", daemon=True)

    def start(self) -> ProgressLine:
        """Start the thread."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop the display; the query continues."""
        self._stopped.set()
        self._thread.join()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the last line is shown; return whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if self._console.is_terminal:
            from rich.text import Text  # noqa: PLC0415 - few programs show a query

            # Not as markup: a name may have brackets.
            with self._console.status(Text(self._line(0))) as status:
                self._follow(lambda line: status.update(Text(line)))
        else:
            self._follow(self._print)
        if not self._stopped.is_set():
            self._print(self._last_line())

    def _follow(self, show: Callable[[str], None]) -> None:
        """Show a line each second, if it has changed; return when the query has ended."""
        shown = ""
        while not self._stopped.is_set() and not self._has_ended():
            line = self._line(self._new_rows())
            if line != shown:
                shown = line
                show(line)
        self._new_rows()

    def _has_ended(self) -> bool:
        try:
            return bool(self._query.awaitTermination(_SECONDS))
        except Exception:  # noqa: BLE001 - the query's error; the last line names it
            return True

    def _new_rows(self) -> int:
        """Return the number of rows in the epochs since the last call."""
        rows = 0
        for progress in self._query.recentProgress:
            if self._epoch is None or progress.batchId > self._epoch:
                self._epoch = progress.batchId
                rows += progress.numInputRows
        self._rows += rows
        return rows

    def _line(self, rows: int) -> str:
        last = self._query.lastProgress
        if last is None:
            return f"{self._title()}: {self._query.status['message']}"
        parts = [f"epoch {last.batchId}", f"{rows:,} rows/s"]
        behind = last.sources[0].metrics.get("maxOffsetsBehindLatest")
        if behind is not None:
            parts.append(f"behind {int(behind):,}")
        latency = last.get("latencyMs")
        if latency:
            parts.append(f"latency p50 {latency['p50']:,.1f} ms p99 {latency['p99']:,.1f} ms")
        return f"{self._title()}: {', '.join(parts)}: {self._query.status['message']}"

    def _last_line(self) -> str:
        epoch = "before its first epoch" if self._epoch is None else f"after epoch {self._epoch}"
        failure = self._query.exception()
        why = self._query.status["message"] if failure is None else str(failure).partition("\n")[0]
        return f"{self._title()}: ended {epoch}, {self._rows:,} rows: {why}"

    def _title(self) -> str:
        short = self._query.id[:_SHOWN_ID]
        return f"{self._query.name} {short}" if self._query.name else short

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def show(query: ContinuousQuery, console: Console | None = None) -> ProgressLine:
    """Show a query until it ends: its epoch, rows, lag and latency, about once a second, in a line that changes.

    Where there is no terminal, in lines. Runs on: driver, or the client of Spark Connect. Returns immediately; the
    lines come from a thread.

    Args:
        query: the result of `start()`.
        console: where to show it; standard error if None.

    Returns:
        The display; its `stop()` ends the display and not the query.

    Raises:
        MissingDependencyError: rich is not installed, which the extra `cli` has.
    """
    try:
        from rich.console import Console  # noqa: PLC0415 - few programs show a query
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "continuous.show needs the package 'rich', which is not installed. The query is not shown; it continues.",
            condition="SHOW_PACKAGE_MISSING",
            hint=f"Run {install_command('cli')} where this program runs.",
        ) from None

    return ProgressLine(query, console or Console(stderr=True)).start()
