"""The line that shows a query: on a terminal, in a log, and at its end. The query is a script; no time passes."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any

import pytest
from rich.console import Console

from kit.waiting import PATIENCE_S
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.terminal import ProgressLine
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

ID = "8c0e2b1e-0000-4000-8000-000000000001"


class Report(dict[str, Any]):
    """A progress report, with the attributes that are shown."""

    def __init__(self, epoch: int, rows: int, behind: str | None = None, **latency: float) -> None:
        super().__init__(latencyMs=latency)
        self.batchId, self.numInputRows = epoch, rows
        metrics = {} if behind is None else {"maxOffsetsBehindLatest": behind}
        self.sources = [type("Source", (), {"metrics": metrics})()]


class Scripted:
    """A query: each wait of a second brings the next list of reports; after the last one it has ended."""

    def __init__(self, *seconds: list[Report], name: str | None = "orders", failure: Exception | None = None) -> None:
        self.id, self.name = ID, name
        self.status = {"message": "Processing new data"}
        self.recentProgress: list[Report] = []
        self.failure = failure
        self._seconds = list(seconds)

    @property
    def lastProgress(self) -> Report | None:
        return self.recentProgress[-1] if self.recentProgress else None

    def awaitTermination(self, timeout: float) -> bool:
        assert timeout == 1
        if self._seconds:
            self.recentProgress = [*self.recentProgress, *self._seconds.pop(0)][-100:]
            return False
        self.status = {"message": "Stopped"}
        if self.failure is not None:
            raise self.failure
        return True

    def exception(self) -> Exception | None:
        return self.failure


def shown(query: Any, *, terminal: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120, color_system=None)
    assert continuous.show(query, console).wait(PATIENCE_S)
    return file.getvalue()


def test_log_gets_a_line_for_each_second_with_news() -> None:
    query = Scripted(
        [],
        [],
        [Report(0, 5, "1200", p50=3.14, p99=8.06), Report(1, 1_000, "0", p50=2.0, p99=4_000.0)],
        [],
        [],
        [Report(2, 7)],
    )
    assert shown(query).splitlines() == [
        "orders 8c0e2b1e: Processing new data",
        "orders 8c0e2b1e: epoch 1, 1,005 rows/s, behind 0, latency p50 2.0 ms p99 4,000.0 ms: Processing new data",
        # The rows of that second, once.
        "orders 8c0e2b1e: epoch 1, 0 rows/s, behind 0, latency p50 2.0 ms p99 4,000.0 ms: Processing new data",
        "orders 8c0e2b1e: epoch 2, 7 rows/s: Processing new data",
        "orders 8c0e2b1e: ended after epoch 2, 1,012 rows: Stopped",
    ]


def test_terminal_shows_one_line_that_changes_and_then_the_end() -> None:
    text = shown(Scripted([Report(0, 5, "0", p50=3.1, p99=8.0)], [Report(1, 6)]), terminal=True)
    # Redrawn in place: the cursor is hidden meanwhile, and only the last line stays.
    assert "\x1b[?25l" in text
    assert "\x1b[2K" in text
    assert text.rstrip("\n").splitlines()[-1].endswith("orders 8c0e2b1e: ended after epoch 1, 11 rows: Stopped")
    assert text.count("\n") <= 3


def test_name_with_brackets_is_shown_as_it_is() -> None:
    for terminal in (True, False):
        text = shown(Scripted([], [Report(0, 5)], name="[bold]orders[/]"), terminal=terminal)
        assert text.count("[bold]orders[/] 8c0e2b1e: ") >= 2


def test_error_of_the_query_is_the_last_line_and_is_not_raised() -> None:
    failure = ValueError("boom\nand a traceback")
    assert shown(Scripted([], name=None, failure=failure)).splitlines() == [
        "8c0e2b1e: Processing new data",
        "8c0e2b1e: ended before its first epoch, 0 rows: boom",
    ]


def test_stop_ends_the_lines_and_not_the_query() -> None:
    asked = threading.Event()
    resume = threading.Event()

    class Endless(Scripted):
        def awaitTermination(self, timeout: float) -> bool:
            asked.set()
            assert resume.wait(PATIENCE_S)
            return False

    file = io.StringIO()
    query: Any = Endless()
    line = ProgressLine(query, Console(file=file)).start()
    assert asked.wait(PATIENCE_S)
    assert not line.wait(0.001)
    resume.set()
    line.stop()
    assert "ended" not in file.getvalue()


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    query: Any = Scripted()
    assert continuous.show(query).wait(PATIENCE_S)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "ended before its first epoch" in captured.err


def test_query_is_not_shown_without_the_package_that_draws_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    query: Any = object()
    with pytest.raises(MissingDependencyError, match="needs the package 'rich'") as caught:
        continuous.show(query)
    assert caught.value.condition == "SHOW_PACKAGE_MISSING"
    assert caught.value.hint == f"Run {install_command('cli')} where this program runs."
