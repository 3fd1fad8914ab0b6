"""Hints of errors are sentences: a capital at the beginning, a full stop at the end (docs/house-style.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from kit.source_tree import trees


def hint_values(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the expressions that are hints: arguments `hint=`, values of names like `_HINTS`, results of `_hint()`."""
    yield from (node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "hint")
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any("hint" in ast.unparse(each).lower() for each in node.targets):
            yield node.value
        elif isinstance(node, ast.FunctionDef) and "hint" in node.name.lower():
            yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)


def texts(value: ast.expr) -> Iterator[str]:
    """Yield the literal texts that an expression may have for its value; a placeholder stands for what is inserted."""
    if isinstance(value, ast.IfExp):
        yield from texts(value.body)
        yield from texts(value.orelse)
    elif isinstance(value, (ast.BoolOp, ast.Dict)):
        for each in value.values:
            yield from texts(each)
    elif isinstance(value, ast.JoinedStr):
        yield "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in value.values)
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value


def problems(tree: ast.Module) -> list[str]:
    """Return the hints of a module that are not sentences, each with its line."""
    found = [(value.lineno, text) for value in hint_values(tree) for text in texts(value) if text]
    return [
        f"{line}: {text}" for line, text in found if (text[0] != "{" and not text[0].isupper()) or text[-1] not in ".}"
    ]


def test_hints_are_sentences() -> None:
    found = [f"{name}:{problem}" for name, tree in trees(containing="(?i)hint") for problem in problems(tree)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        'raise Error("text", hint="create the topic.")',
        'raise Error("text", hint="Create the topic")',
        'raise Error("text", hint=f"create {topic}." if topic else "")',
        '_HINTS = {3: "create the topic."}',
        'def _hint(error):\n    return "create the topic."',
    ],
)
def test_a_hint_that_is_not_a_sentence_is_found(source: str) -> None:
    assert problems(ast.parse(source))


@pytest.mark.parametrize("source", ['raise Error(hint="")', 'raise Error(hint=f"{cause} Create it.")', 'hint = "Do."'])
def test_a_hint_that_is_a_sentence_is_left_alone(source: str) -> None:
    assert problems(ast.parse(source)) == []
