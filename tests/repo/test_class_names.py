"""A class name stands for one class of this package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

REPO = Path(__file__).parents[2]


def classes(source: str) -> list[str]:
    """Return the names of all classes of a module, with those inside of others."""
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def test_class_name_stands_once_in_the_source() -> None:
    files = defaultdict(list)
    for path in sorted((REPO / "src").rglob("*.py")):
        for name in classes(path.read_text()):
            files[name].append(str(path.relative_to(REPO)))
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


def test_inner_classes_are_found() -> None:
    assert classes("class A:\n    class B: ...\ndef f():\n    class C: ...\n") == ["A", "B", "C"]
