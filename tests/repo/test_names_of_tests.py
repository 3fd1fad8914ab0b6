"""Names of tests: the subject first, a verb, the condition last; `pytest -k fetcher` finds what concerns fetchers."""

from __future__ import annotations

import re

import pytest

from kit.pointers import REPO

TESTS = REPO / "tests"
LONGEST = 90
# A pronoun, a preposition or a conjunction in the place of the subject.
_NO_SUBJECT = re.compile(
    r"test_(?:what|who|of|where|it|there|that|after|as|at|by|for|from|if|in|on|to|when|while|with|without)_"
)
_NAME = re.compile(r"^ *def (test_\w+)", re.MULTILINE)
# Folders that the first rule holds; the length is held everywhere.
HELD = [
    "contract",
    "hostile",
    "integration",
    "property",
    "protocol",
    "repo",
    "unit",
]


def names_in(folder: str) -> list[str]:
    """Return `file: name` of every test below a folder of tests/."""
    return [
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted((TESTS / folder).rglob("test_*.py"))
        for name in _NAME.findall(path.read_text())
    ]


@pytest.mark.parametrize("folder", HELD)
def test_names_begin_with_their_subject(folder: str) -> None:
    found = names_in(folder)
    assert found, "the folder is gone: is there another one in its place?"
    assert [name for name in found if _NO_SUBJECT.match(name.partition(": ")[2])] == []


def test_names_are_at_most_90_characters_long() -> None:
    assert [name for name in names_in(".") if len(name.partition(": ")[2]) > LONGEST] == []
