"""Measure what grows with the cluster and with the batch, each line beside its goal.

Every part runs in a process of its own, so that none measures what another has left: `lookups` and reads over 40
brokers (TCP fakes), `planning` of 10,000 partitions, exactly-once batches of tasks `below` and `above`
the spool threshold with a driver of 1 GiB, what the driver can `publish` into 1,000 partitions, the calls
of a spool on an object `store`, the `lag` of 10,000 partitions of a real broker, what a continuous query costs its
`driver`, and a broker by its transaction `markers`.
Run: make bench-scale, or with ARGS="--parts lookups,store".
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from goals import Figure

# The module and function of each part, and about how long it takes on two cores.
_PARTS = {
    "lookups": ("scale_cluster", "measure", "1 minute"),
    "planning": ("scale_planning", "measure", "2 minutes"),
    "below": ("scale_exactly_once", "measure_below", "1 to 2 minutes"),
    "above": ("scale_exactly_once", "measure_above", "1 to 2 minutes"),
    "publish": ("scale_publish", "measure", "2 minutes"),
    "store": ("scale_spool", "measure", "1 minute"),
    "lag": ("scale_lag", "measure", "2 minutes"),
    "driver": ("scale_driver", "measure", "3 minutes"),
    "markers": ("scale_markers", "measure", "3 minutes"),
}


def _measure(module: str, function: str) -> list[Figure]:
    found: list[Figure] = getattr(importlib.import_module(module), function)()
    return found


def main(
    parts: Annotated[str, typer.Option(help=f"Which: any of {', '.join(_PARTS)}.")] = ",".join(_PARTS),
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Measure the parts and print a table; whether goals are met does not change the exit status."""
    wanted = [name.strip() for name in parts.split(",")]
    unknown = [name for name in wanted if name not in _PARTS]
    if unknown:
        raise typer.BadParameter(f"there is no part {', '.join(unknown)}; there are {', '.join(_PARTS)}")
    console = Console(width=None if sys.stdout.isatty() else 200)
    figures: list[Figure] = []
    for number, name in enumerate(wanted, start=1):
        module, function, lasts = _PARTS[name]
        console.print(f"{number} of {len(wanted)}: {name}, about {lasts}", highlight=False)
        began = time.monotonic()
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            figures += pool.submit(_measure, module, function).result()
        console.print(f"    {time.monotonic() - began:.0f} s", highlight=False)
    table = Table(title=f"size: {os.cpu_count()} cores, Python {platform.python_version()}")
    for heading in ("what", "figure", "goal", "met"):
        table.add_column(heading)
    for figure in figures:
        table.add_row(figure.name, figure.figure, figure.goal, figure.verdict)
    console.print(table)
    result = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "figures": [asdict(figure) for figure in figures],
    }
    output = output or Path(__file__).parent / "results" / "scale.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
