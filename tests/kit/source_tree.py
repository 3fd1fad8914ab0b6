"""The Python files of the repository: paths, texts and syntax trees, for the rules of tests/repo."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kit.pointers import FOLDERS, REPO

PACKAGE = REPO / "src" / "pyspark_kafka"


@cache
def python_files(*folders: Path) -> tuple[Path, ...]:
    """Return the Python files below folders, in order; without folders those of the whole repository."""
    return tuple(
        path for folder in folders or [REPO / name for name in FOLDERS] for path in sorted(folder.rglob("*.py"))
    )


@cache
def text_of(path: Path) -> str:
    """Return the text of a file, which is read once in a process."""
    return path.read_text(encoding="utf-8")


def trees(folder: Path = PACKAGE, *, containing: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Yield each Python file below a folder, as its path from there and its syntax tree.

    Trees are not kept: to parse all files again takes half a second. Half a million nodes that stay make each later
    collection of garbage in the process as long, whatever test it is in.

    Args:
        folder: where the files are.
        containing: a regular expression; files whose text has no match are left out and not parsed.
    """
    pattern = re.compile(containing)
    for path in python_files(folder):
        if pattern.search(text_of(path)):
            yield path.relative_to(folder).as_posix(), ast.parse(text_of(path))


def dotted(node: ast.AST) -> str:
    """Return the dotted name that an expression is, such as `json.loads`; empty if it is another expression."""
    if isinstance(node, ast.Name):
        return node.id
    owner = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{owner}.{node.attr}" if owner and isinstance(node, ast.Attribute) else ""


def places(pattern: re.Pattern[str], path: Path) -> list[str]:
    """Return the matches in a file, each with its path and line."""
    text, name = text_of(path), path.relative_to(REPO)
    return [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}" for match in pattern.finditer(text)]
