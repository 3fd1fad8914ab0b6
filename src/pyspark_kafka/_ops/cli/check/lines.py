"""The output of a check: a line for each finding, its remedy below it, and the current step."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from rich.text import Text

from pyspark_kafka._ops.cli.common.heartbeat import Step
from pyspark_kafka._ops.cli.common.output import print_rows, shows_unicode
from pyspark_kafka._ops.diagnosis import FindingStatus
from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pyspark_kafka._ops.diagnosis import Diagnosis, Finding

_MARKS = {
    FindingStatus.OK: ("✓", "ok", "green"),
    FindingStatus.WARNING: ("!", "!!", "yellow"),
    FindingStatus.FAILED: ("✗", "XX", "red"),
    FindingStatus.SKIPPED: ("-", "--", "dim"),
    FindingStatus.UNKNOWN: ("?", "??", "cyan"),
}
_YES = {True: "yes", False: "no", None: "?"}
_EXECUTOR_COLUMNS = (
    "executor",
    "status",
    "pyspark-kafka",
    "compiled",
    "Python",
    "PySpark",
    "pyarrow",
    "extras",
    "brokers",
    "clock",
    "driver reached",
)
_STEP_WIDTH = 10
_COUNTED = ((FindingStatus.FAILED, "failed"), (FindingStatus.WARNING, "to watch"), (FindingStatus.SKIPPED, "skipped"))


class Lines(Step):
    """Shows findings as they come. On a terminal the last line is what is being checked.

    Elsewhere a step that takes a while is named, repeatedly: a slow one must not look like a program that hangs.

    Args:
        console: where to show them.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console, "Starting")
        self._where = ""

    def show(self, title: str, finding: Finding | None) -> None:
        """Show a finding, or what begins; the watch of `diagnosis.check`."""
        if finding is None:
            self.update(title if self._console.is_terminal else f"  {title}")
            self._began = time.monotonic()
            return
        if is_executor(finding):
            # A row of the table at the end.
            return
        if finding.where != self._where:
            self._where = finding.where
            self._console.print(Text(printable(finding.where), style="bold"))
        for line in to_lines(finding, ascii_only=not shows_unicode(self._console)):
            self._console.print(line, highlight=False)

    def _announce(self) -> None:
        """Name nothing that has not taken a while."""


def to_lines(finding: Finding, *, ascii_only: bool = False) -> list[Text]:
    """Return the line of a finding, and the line of its remedy."""
    mark, plain, style = _MARKS[finding.status]
    first = Text()
    first.append(f"{plain if ascii_only else mark} ", style=style)
    first.append(f"{finding.step:<{_STEP_WIDTH}}  ", style="bold")
    first.append(printable(finding.text))
    if not finding.remedy:
        return [first]
    arrow = "->" if ascii_only else "→"
    return [first, Text(f"{'':<{_STEP_WIDTH + 4}}{arrow} {printable(finding.remedy)}", style=style)]


def is_executor(finding: Finding) -> bool:
    """Return whether a finding describes one executor: it is a row of the table."""
    return finding.step == "executor" and "executor" in finding.facts


def print_executors(diagnosis: Diagnosis, console: Console | None = None) -> None:
    """Print a row for each checked executor; nothing if there is none."""
    rows = [_executor_row(finding) for finding in diagnosis.findings if is_executor(finding)]
    if rows:
        print_rows(_EXECUTOR_COLUMNS, rows, console)


def _executor_row(finding: Finding) -> list[str]:
    facts = finding.facts
    packages, clock, driver = facts["packages"], facts["clock"], facts["driver"]
    reached, unreached = len(facts["brokers_reached"]), len(facts["brokers_not_reached"])
    return [
        facts["executor"],
        _MARKS[finding.status][1],
        packages.get("pyspark-kafka") or "missing",
        _YES[facts["compiled"]],
        facts["python"],
        packages.get("pyspark") or "missing",
        packages.get("pyarrow") or "missing",
        ", ".join(facts["extras"]),
        f"{reached} of {reached + unreached}",
        "?" if clock is None else f"{clock['ahead_ms']:+d} ms",
        _YES[None if driver is None else driver["reached"]],
    ]


def summary(diagnosis: Diagnosis) -> str:
    """Return the result of a check, as one sentence."""
    counts = diagnosis.counts()
    told = [f"{counts[status]} {noun}" for status, noun in _COUNTED if counts[status]]
    seconds = f"{diagnosis.elapsed_ms / 1000:.1f} s"
    if diagnosis.ok:
        return f"Everything works ({', '.join([*told, seconds])})."
    return f"Something does not work: {', '.join([*told, seconds])}."


def to_text(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as JSON."""
    return json.dumps(diagnosis.to_json(), indent=2, ensure_ascii=True)
