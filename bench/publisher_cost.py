"""Print what exactly-once batches cost by the number of executors: published by the driver, and by tasks.

A model, not a measurement: it computes with rates that `make bench-scale` measures (`bench/results/scale.json`) or that
are given. A micro-batch is tasks, then the driver's publishing, then the next one; nothing overlaps, as in Spark. Its
assumptions stand in docs/decisions/driver-as-publisher.md.
Run: python bench/publisher_cost.py [--driver-mb-s 150 --core-mb-s 60]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

_EXECUTORS = (1, 2, 4, 8, 16, 32, 64)
_RESULTS = Path(__file__).parent / "results" / "scale.json"


def main(
    driver_mb_s: Annotated[float, typer.Option(help="What the driver publishes; 0: as measured.")] = 0,
    core_mb_s: Annotated[float, typer.Option(help="What a core of an executor prepares; 0: as measured.")] = 0,
    cores: Annotated[int, typer.Option(help="Cores of an executor.")] = 4,
    tasks_s: Annotated[float, typer.Option(help="For how long the tasks of a micro-batch run.")] = 10,
    fixed_s: Annotated[float, typer.Option(help="A commit without records: fence, marker, end.")] = 0.2,
    timeout_s: Annotated[float, typer.Option(help="kafka.transaction.timeout.ms, in seconds.")] = 60,
    task_core_mb_s: Annotated[
        float, typer.Option(help="What a core prepares and sends with exactlyOnceCommit=tasks; 0: leave it out.")
    ] = 0,
    task_fixed_s: Annotated[float, typer.Option(help="Planning and decision of a micro-batch of tasks.")] = 0.2,
    ends_s: Annotated[float, typer.Option(help="Transactions of tasks that are ended in a second.")] = 500,
) -> None:
    """Print the table."""
    driver = driver_mb_s or _measured("mb_s")
    core = core_mb_s or _measured("core_mb_s")
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(
        title=f"driver {driver:,.0f} MB/s, {cores} cores an executor, {core:,.0f} MB/s a core, tasks of {tasks_s:g} s"
    )
    headings = ("executors", "MB/s prepared", "MB a batch", "held back", "MB/s written", "of what is prepared")
    for heading in (*headings, *(("MB/s by tasks", "of what is prepared") if task_core_mb_s else ())):
        table.add_column(heading, justify="right")
    for executors in _EXECUTORS:
        prepared = executors * cores * core
        batch = prepared * tasks_s
        open_s = batch / driver
        written = batch / (tasks_s + open_s + fixed_s)
        late = "" if open_s < timeout_s else " (too long)"
        table.add_row(
            str(executors),
            f"{prepared:,.0f}",
            f"{batch:,.0f}",
            f"{open_s:.1f} s{late}",
            f"{written:,.0f}",
            f"{100 * written / prepared:.0f} %",
            *(_by_tasks(batch, executors * cores, task_core_mb_s, task_fixed_s, ends_s, prepared)),
        )
    console.print(table)
    half = driver / (cores * core)
    console.print(f"half of what is prepared: with {half:.1f} executors", highlight=False)
    console.print(f"largest micro-batch in {timeout_s:g} s: {driver * timeout_s / 1000:,.1f} GB", highlight=False)


def _by_tasks(
    batch: float, tasks: int, core_mb_s: float, fixed_s: float, ends_s: float, prepared: float
) -> tuple[str, ...]:
    """Return the columns of batches that tasks publish: a task for each core, ended side by side."""
    if not core_mb_s:
        return ()
    written = batch / (batch / (tasks * core_mb_s) + fixed_s + tasks / ends_s)
    return f"{written:,.0f}", f"{100 * written / prepared:.0f} %"


def _measured(name: str) -> float:
    """Find a rate in the last results: of 1,000 partitions, and of tasks that spool."""
    try:
        figures = json.loads(_RESULTS.read_text())["figures"]
    except FileNotFoundError:
        raise typer.BadParameter(f"{_RESULTS} is not there: run make bench-scale, or pass the rates") from None
    for figure in figures:
        values = figure["values"] or {}
        if name == "mb_s" and "mb_s" in values:
            return float(values["mb_s"])
        if name == "core_mb_s" and values.get("spool_bytes", 0) > 0 and values["tasks_seconds"] > 0:
            return float(values["bytes"]) / 1e6 / float(values["tasks_seconds"]) / 2
    raise typer.BadParameter(f"{_RESULTS} does not hold what is needed: run make bench-scale, or pass the rates")


if __name__ == "__main__":
    typer.run(main)
