"""A module that calls itself pure imports nothing that waits, tells the time, or reaches another machine or a file."""

from __future__ import annotations

import ast

from kit.source_tree import trees

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


def imported(tree: ast.Module) -> set[str]:
    """Return the top-level packages that a module imports, functions included, types excluded."""
    found: set[str] = set()
    pending: list[ast.AST] = [tree]
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


def test_pure_module_imports_nothing_that_waits_or_reaches_out() -> None:
    pure = {name: tree for name, tree in trees(containing=CLAIM) if CLAIM in (ast.get_docstring(tree) or "")}
    assert "_client/client/cluster/metadata.py" in pure
    found = [f"{name}: {each}" for name, tree in pure.items() for each in sorted(imported(tree) & IMPURE)]
    assert not found, "\n".join(found)


def test_imports_of_functions_count_and_those_of_types_do_not() -> None:
    source = "if TYPE_CHECKING:\n    import socket\ndef f():\n    import time\nfrom os.path import join\n"
    assert imported(ast.parse(source)) == {"time", "os"}
