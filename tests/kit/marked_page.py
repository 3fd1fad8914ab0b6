"""Pages of the docs with a part that a program writes, between two marks, and tables for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def put_between(path: Path, begin: str, text: str, end: str) -> None:
    """Replace what is between the two marks of a page."""
    page = path.read_text()
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")
