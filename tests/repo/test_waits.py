"""Waits for success have one limit, `kit.waiting.PATIENCE_S`: a shorter one fails on a busy machine.

A wait that expects silence or measures a limit of time is another thing: `assert not event.wait(0.1)`, a wait below
`pytest.raises`. Waits whose purpose the code does not show (`thread.join(5)`) are not looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from kit.pointers import REPO
from kit.source_tree import trees
from kit.waiting import PATIENCE_S

TESTS = REPO / "tests"
# They run for hours, on machines that are busy on purpose, and have limits of their own.
OWN_LIMITS = ("chaos/", "faults/", "soak/")
# Shorter ones are pauses, or the time in which nothing may come.
MIN_S = 1.0
# True in time, or false: as what is asserted, it is success.
ANSWERS = {"awaitTermination", "readable", "wait", "wait_for"}


def number_of(node: ast.AST) -> float:
    """Return a literal number; 0 for another expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    return 0.0


def short_waits(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of waits for success that end too early."""
    asserted = {node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)}
    limited = {
        call
        for node in ast.walk(tree)
        if isinstance(node, ast.With) and any("raises" in ast.dump(item.context_expr) for item in node.items)
        for call in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node in limited:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        named = [keyword.value for keyword in node.keywords if "timeout" in (keyword.arg or "")]
        given = [*node.args, *named] if name != "get" else named
        times = [number_of(each) for each in given]
        waits = name in {"eventually", "result", "get"} or (name in ANSWERS and node in asserted)
        if waits and any(MIN_S <= seconds < PATIENCE_S for seconds in times):
            yield node.lineno


def test_waits_for_success_are_as_long_as_any_machine_takes() -> None:
    found = [
        f"tests/{file}:{line}: use kit.waiting.PATIENCE_S"
        for file, tree in trees(TESTS, containing="wait|eventually|result|timeout|readable|awaitTermination")
        if not file.startswith(OWN_LIMITS)
        for line in short_waits(tree)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "is_short"),
    [
        ("eventually(done, 30)", True),
        ("eventually(done)", False),
        ("assert event.wait(30)", True),
        ("assert event.wait(PATIENCE_S)", False),
        ("assert not event.wait(5)", False),
        ("future.result(timeout=10)", True),
        ("queue.get(timeout=20)", True),
        ("options.get('a', 20)", False),
        ("with pytest.raises(TimeoutError): future.result(5)", False),
    ],
)
def test_a_short_wait_for_success_is_found(line: str, is_short: bool) -> None:
    assert bool([*short_waits(ast.parse(line))]) is is_short
