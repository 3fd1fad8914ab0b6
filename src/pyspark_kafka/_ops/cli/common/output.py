"""The output of commands: sentences, JSON, and rows: a table on a terminal, aligned lines elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspark_kafka.errors import printable

# Wider than any table.
_NO_EDGE = 100_000
# Rich takes a third of a millisecond for a row; more rows than this are lines on a terminal as well.
_MAX_TABLE_ROWS = 1_000
_GAP = "  "


class TableColumn(NamedTuple):
    """A column of a table.

    Attributes:
        name: its heading.
        right: whether its cells are numbers, which stand at its right edge.
        style: how a terminal shows it.
    """

    name: str
    right: bool = False
    style: str = ""


def number_columns(*names: str) -> tuple[TableColumn, ...]:
    """Return columns of numbers."""
    return tuple(TableColumn(name, right=True) for name in names)


def prose_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console for sentences: a terminal breaks them between words, a pipe gets each whole."""
    console = Console(stderr=stderr, quiet=quiet, highlight=False)
    console.soft_wrap = not console.is_terminal
    return console


def say(*sentences: str, style: str | None = None) -> None:
    """Print sentences on standard output, each on a line of its own; control characters are escaped."""
    console = prose_console()
    for sentence in sentences:
        console.print(printable(sentence), style=style, markup=False, highlight=False)


def without_links(markdown: str) -> str:
    """Return a text of the reference without the targets of its links: they are pages beside the text's own page."""
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", markdown)


def warn(*sentences: str, style: str = "yellow") -> None:
    """Print on standard error what the user should know besides the data: notes on options, what is unknown."""
    errors = prose_console(stderr=True)
    for sentence in sentences:
        errors.print(printable(sentence, "\n\t"), style=style, markup=False, highlight=False)


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    typer.echo(json.dumps(value, indent=2))


def print_rows(
    named: Sequence[TableColumn | str], rows: Sequence[Sequence[str]], console: Console | None = None
) -> None:
    """Print rows below the names of their columns, whatever characters are in the cells.

    On a terminal that is too narrow for the table, each row is a block of lines: folded cells could not be copied. A
    pipe gets one line for a row, for programs such as `grep`; the lines of a cell are joined with semicolons.

    Args:
        named: the columns from left to right; a name is a column of texts.
        rows: their cells, each as text.
        console: where to print; None: standard output.
    """
    console = console or Console()
    columns = [TableColumn(each) if isinstance(each, str) else each for each in named]
    if not console.is_terminal or len(rows) > _MAX_TABLE_ROWS:
        for line in to_lines(columns, rows):
            console.file.write(f"{line}\n")
        return
    table = Table(box=box.SIMPLE_HEAD if shows_unicode(console) else box.ASCII2, pad_edge=False)
    for column in columns:
        table.add_column(column.name, justify="right" if column.right else "left", style=column.style)
    for row in rows:
        table.add_row(*(Text(_shown(cell, kept="\n")) for cell in row))
    if console.measure(table, options=console.options.update(max_width=_NO_EDGE)).maximum <= console.width:
        console.print(table)
        return
    for row in rows:
        block = Table.grid(padding=(0, 2))
        for column, cell in zip(columns[1:], row[1:], strict=True):
            block.add_row(Text(f"  {column.name}"), Text(_shown(cell, kept="\n"), overflow="fold", style=column.style))
        console.print(Text(_shown(row[0])), soft_wrap=True, style="bold")
        console.print(block)


def to_lines(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the heading and a line for each row, with aligned columns; without blanks at the ends of lines."""
    cells = [[column.name for column in columns], *([_joined(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = []
        for column, width, cell in zip(columns, widths, row, strict=True):
            blanks = " " * (width - cell_len(cell))
            padded.append(f"{blanks}{cell}" if column.right else f"{cell}{blanks}")
        lines.append(_GAP.join(padded).rstrip())
    return lines


def shows_unicode(console: Console) -> bool:
    """Return whether a console shows more than ASCII."""
    return (console.encoding or "").lower().replace("-", "").startswith("utf")


def _joined(cell: str) -> str:
    # An empty cell would move the next one to its place for programs that split lines at blanks.
    return "; ".join(map(_shown, cell.split("\n"))) or "-"


def _shown(cell: str, kept: str = "") -> str:
    return printable(cell, kept)
