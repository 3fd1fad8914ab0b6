"""Every dependency has a licence that was agreed to, and its row in docs/licences.md."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

import licences
from kit.pointers import REPO

PAGE = (REPO / "docs" / "licences.md").read_text()
ROWS = {
    name: line
    for line in PAGE.partition("## Exceptions")[0].splitlines()
    if (found := re.match(r"\| `([\w.-]+)` \|", line)) and (name := found[1])
}


@cache
def installed() -> dict[str, licences.Found]:
    """Return the dependencies; one that this environment lacks, as of an extra, has the licence of its row."""
    return {
        name: replace(each, licence=each.licence or (ROWS[name].split(" | ")[1] if name in ROWS else None))
        for name, each in licences.dependencies().items()
    }


def named_parents(row: str) -> set[str]:
    """Return the packages that ask for the one of a row."""
    return set(re.findall(r"`([\w.-]+)`", row.split(" | ")[2]))


AGAIN = "write it again: .venv/bin/python tools/licences.py > docs/licences.md"


def test_dependency_has_a_licence_that_was_agreed_to() -> None:
    unknown = [
        f"{name} is not installed here: look its licence up, and put it into STATED of tools/licences.py"
        for name, each in installed().items()
        if each.licence is None
    ]
    others = [
        f"{name}: {each.licence} is none of ALLOWED in tools/licences.py"
        for name, each in installed().items()
        if each.licence is not None and not licences.is_allowed(name, each.licence)
    ]
    assert not unknown + others, "\n".join(unknown + others)


def test_page_has_the_rows_of_what_this_package_asks_for() -> None:
    """Those of what its dependencies ask for may lag behind: they change with releases of others."""
    direct = {name: licences.row(each) for name, each in installed().items() if licences.is_direct(each)}
    assert {name: ROWS.get(name) for name in direct} == direct, AGAIN


def test_page_names_nothing_that_is_not_needed_any_more() -> None:
    """What a package asks for that this environment lacks is not known here; `make test` has nearly all of them."""
    needed = licences.dependencies(everywhere=True)
    parents = {name for name in needed if licences.licence_of(name) is None}
    left = {name for name in ROWS.keys() - needed.keys() if not named_parents(ROWS[name]) & (parents | ROWS.keys())}
    assert left == set(), AGAIN


def test_text_around_the_table_is_that_of_the_tool() -> None:
    def around(page: str) -> list[str]:
        return [line for line in page.strip().splitlines() if not line.startswith("| `")]

    assert around(PAGE) == around(licences.page()), AGAIN


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND 0BSD AND MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("LGPL-2.1-or-later", False),
        ("unknown", False),
    ],
)
def test_expression_is_allowed_if_each_part_or_one_choice_is(licence: str, allowed: bool) -> None:
    assert licences.is_allowed("a-package", licence) is allowed


def test_exceptions_are_for_one_package_and_one_licence() -> None:
    for name, (licence, _) in licences.EXCEPTIONS.items():
        assert licences.is_allowed(name, licence)
        assert not licences.is_allowed(name, "GPL-3.0-only")
    assert licences.EXCEPTIONS.keys() <= licences.dependencies(everywhere=True).keys()
