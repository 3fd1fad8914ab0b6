"""Count what one turn of a continuous query costs, and one micro-batch: calls, system calls, requests, Arrow's memory.

All but the CPU time are whole numbers that do not depend on the machine; tests/protocol/continuous/test_cycle.py and
tests/protocol/_connector/source/test_batch_costs.py hold them. Python's own counting is used, so calls inside compiled
code and inside pyarrow are not among them. Run: make bench-cycle
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kit.batch_costs import count_batch
from kit.cycle import Shape, count_turn

_SIZES = [
    (partitions, records, batches) for partitions in (1, 2, 20) for records, batches in ((1, 1), (100, 1), (100, 20))
]
SHAPES = [Shape(), *(Shape(*size, sides) for size in _SIZES for sides in ("both", "reader", "writer"))]
_PARTITIONS = (1, 4, 20)
_HEADINGS = (
    "Python calls",
    "built-in calls",
    "sends",
    "receives",
    "waits",
    "Fetch",
    "Produce",
    "Arrow allocations",
    "Arrow KiB",
    "CPU ms",
)


def main(
    modules: Annotated[int, typer.Option(help="How many modules to list, of the first shape.")] = 0,
) -> None:
    """Print a row for each shape."""
    console = Console(width=180)
    table = Table(title="one turn: next, get, write and flushNow, until the records of one fetch are sent")
    table.add_column("shape")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for shape in SHAPES:
        turn = count_turn(shape)
        numbers = [turn.python_calls, turn.builtin_calls, turn.sends, turn.receives, turn.waits]
        numbers += [turn.requests.get(name, 0) for name in ("FetchRequest", "ProduceRequest")]
        numbers += [turn.arrow_allocations, turn.arrow_bytes >> 10]
        table.add_row(str(shape), *(f"{number:,}" for number in numbers), f"{turn.cpu_ms:.2f}")
        if shape == SHAPES[0]:
            for module, calls in turn.by_module.most_common(modules):
                console.print(f"{calls:6} {module}")
    console.print(table)
    console.print(_micro_batches())


def _micro_batches() -> Table:
    table = Table(title="one micro-batch without Spark: the steps of the driver, and of each task")
    for heading in ("partitions", "step", "Python calls", "built-in calls", "sends", "receives", "waits", "CPU ms"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for partitions in _PARTITIONS:
        for step, turn in count_batch(partitions).items():
            numbers = [turn.python_calls, turn.builtin_calls, turn.sends, turn.receives, turn.waits]
            table.add_row(str(partitions), step, *(f"{number:,}" for number in numbers), f"{turn.cpu_ms:.2f}")
    return table


if __name__ == "__main__":
    typer.run(main)
