"""The tables of docs/parity.md that compare values in JSON with Spark's `from_json`."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any, NamedTuple

_PAGE = Path(__file__).parents[2] / "docs" / "parity.md"
_CODE = re.compile(r"`([^`]*)`")
_HEADS = ("| column | in the document | `from_json` | here | why |", "| document | `from_json` | here | why |")


class Difference(NamedTuple):
    """A row: a document, the type of its field `v`, what `from_json` has there, and what we have."""

    kind: str
    document: str
    theirs: str
    ours: str


def differences() -> list[Difference]:
    """Return the rows of both tables."""
    found = []
    for head in _HEADS:
        _, _, table = _PAGE.read_text().partition(head)
        for line in table.partition("\n\n")[0].splitlines()[2:]:
            *given, theirs, ours, _ = (_of_cell(each) for each in line[2:-2].split(" | "))
            kind, document = (given[0], f'{{"v": {given[1]}}}') if len(given) == 2 else ("INT", given[0].strip())
            found.append(Difference(kind, document, theirs, ours))
    return found


def _of_cell(cell: str) -> str:
    found = _CODE.fullmatch(cell)
    return cell if found is None else found[1]


def shown(value: Any) -> str:
    """Return a value as the page shows it."""
    if value is None:
        return "a field that is null"
    if isinstance(value, dt.datetime):
        return str(value.replace(tzinfo=None))
    value = value.asDict() if hasattr(value, "asDict") else value
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return ", ".join(f"{name}: {'null' if each is None else each}" for name, each in value)
    return str(value)
