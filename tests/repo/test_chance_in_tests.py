"""No test depends on what ids, ports and times happen to be."""

from __future__ import annotations

import ast

from kit.pointers import REPO
from kit.source_tree import trees

HEXADECIMAL_DIGITS = set("0123456789abcdef")
# A text of one digit is a key of a mapping; in a longer text it would be found nearly always.
SHORT = range(2, 9)


def short_numbers_to_be_absent(tree: ast.AST) -> list[str]:
    """Return the short hexadecimal texts that must not be in another text, which random ids and times may contain."""
    return [
        node.left.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotIn)
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if len(node.left.value) in SHORT and HEXADECIMAL_DIGITS.issuperset(node.left.value)
    ]


def test_absent_texts_cannot_be_part_of_a_random_id() -> None:
    wrong = {
        path: found
        for path, tree in trees(REPO / "tests", containing=" not in ")
        if (found := short_numbers_to_be_absent(tree))
    }
    assert wrong == {}


def test_a_short_number_that_must_be_absent_is_found() -> None:
    assert short_numbers_to_be_absent(ast.parse('assert "4111" not in text')) == ["4111"]
    assert short_numbers_to_be_absent(ast.parse('assert "Pl4nted" not in text')) == []
