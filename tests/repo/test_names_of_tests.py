"""Names of tests: the subject first, a verb, the condition last; `pytest -k fetcher` finds what concerns fetchers."""

from __future__ import annotations

import re

from kit.pointers import REPO
from kit.source_tree import python_files, text_of

TESTS = REPO / "tests"
MAX_LENGTH = 90
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
        for path in python_files(TESTS / folder)
        if path.name.startswith("test_")
        for name in _NAME.findall(text_of(path))
    ]


def test_names_begin_with_their_subject() -> None:
    names = {folder: names_in(folder) for folder in HELD}
    assert all(names.values()), "a folder is gone: is there another one in its place?"
    found = [name for folder in HELD for name in names[folder] if _NO_SUBJECT.match(name.partition(": ")[2])]
    assert not found, "\n".join(found)


def test_names_are_at_most_90_characters_long() -> None:
    found = [name for name in names_in(".") if len(name.partition(": ")[2]) > MAX_LENGTH]
    assert not found, "\n".join(found)
