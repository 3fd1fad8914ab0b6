"""Pages of the docs with a part that a program writes, between two marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def put_between(path: Path, begin: str, text: str, end: str) -> None:
    """Replace what is between the two marks of a page."""
    page = path.read_text()
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")
