"""A module that calls itself pure imports nothing that waits, tells the time, or reaches another machine or a file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "pyspark_kafka"
CLAIM = "Pure: no sockets, no clock"
IMPURE = {
    "asyncio",
    "os",
    "pathlib",
    "select",
    "selectors",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
}
PURE = [path for path in sorted(SRC.rglob("*.py")) if CLAIM in (ast.get_docstring(ast.parse(path.read_text())) or "")]


def imported(source: str) -> set[str]:
    """Return the top-level packages that a module imports, functions included, types excluded."""
    found: set[str] = set()
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending.extend(node.orelse)
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        else:
            pending.extend(ast.iter_child_nodes(node))
    return found


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(SRC)))
def test_pure_module_imports_nothing_that_waits_or_reaches_out(path: Path) -> None:
    assert imported(path.read_text()) & IMPURE == set()


def test_pure_modules_are_found() -> None:
    assert SRC / "client" / "cluster" / "metadata.py" in PURE


def test_imports_of_functions_count_and_those_of_types_do_not() -> None:
    source = "if TYPE_CHECKING:\n    import socket\ndef f():\n    import time\nfrom os.path import join\n"
    assert imported(source) == {"time", "os"}
