"""Every numbered rule has a source, a module that keeps it, and tests that exist; every number that is cited exists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kit.pointers import REPO
from kit.source_tree import PACKAGE, places, python_files, text_of

PAGES = {"R": "docs/internals/fetch-rules.md", "T": "docs/internals/transaction-rules.md"}

_HEADING = re.compile(r"^### ([RT])(\d+) ", re.MULTILINE)
# A field continues in indented lines.
_FIELD = re.compile(r"^- ([A-Z][a-z ]+): ((?:.|\n  )+)$", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """One rule of a page: where it comes from, the modules that keep it, the tests that would notice."""

    name: str
    source: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


def read_rules(page: str) -> list[Rule]:
    """Return the rules of one page, in the order of the page."""
    text = (REPO / page).read_text()
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return [_rule(heading, text[heading.end() : end]) for heading, end in zip(headings, ends, strict=True)]


def _rule(heading: re.Match[str], body: str) -> Rule:
    # The heading of the next chapter belongs to the page, not to this rule.
    fields = dict(_FIELD.findall(body.partition("\n## ")[0]))
    return Rule(
        name=f"{heading[1]}{heading[2]}",
        source=fields.get("Source", ""),
        modules=tuple(re.findall(r"`([\w/]+\.py)`", fields.get("Kept by", ""))),
        tests=tuple(re.findall(r"`(test_\w+\*?)`", fields.get("Tests", ""))),
    )


TESTS = REPO / "tests"
UNIT_RECORDS = TESTS / "unit" / "records"

RULES = {page: read_rules(page) for page in PAGES.values()}
ALL_RULES = [rule for rules in RULES.values() for rule in rules]
# How many rules there were when this test was written: a page that cannot be read has none, and would pass.
LEAST = {"docs/internals/fetch-rules.md": 51, "docs/internals/transaction-rules.md": 24}
# R1 to R13 are the rules of decoding; they hold for the compiled and for the uncompiled kernel.
CODEC_RULES = [f"R{number}" for number in range(1, 14)]
# Rules whose tests carry the number in their names.
RULES_IN_TEST_NAMES = [f"R{number}" for number in range(1, 16)]

# A rule by its number, bare or not, and a line that may be a comment or a part of a docstring.
_BARE = re.compile(r"(?<![\w.])R\d+(?![\w.\"'])")
_COMMENT = re.compile(r"(?:#|\"\"\"|Source:).*$|^\s*[A-Z`].*$")
# A citation names the page and then the numbers: "docs/internals/fetch-rules.md, R4, R7 to R9".
_CITATION = re.compile(r"docs/internals/(?:fetch|transaction)-rules\.md((?:,? (?:and |to )?[RT]\d+)*)")
_NUMBER = re.compile(r"(?<![\w.])([RT])(\d+)(?![\w.])")


@cache
def files_by_test() -> dict[str, set[Path]]:
    """Return the files that have a test, by the test's name."""
    found: dict[str, set[Path]] = {}
    for path in python_files(TESTS):
        for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", text_of(path), re.MULTILINE):
            found.setdefault(name, set()).add(path)
    return found


def files_of(test: str) -> set[Path]:
    """Return the files that have this test; a name that ends in `*` stands for all tests that begin with it."""
    if test.endswith("*"):
        return {path for name, paths in files_by_test().items() if name.startswith(test[:-1]) for path in paths}
    return files_by_test().get(test, set())


def other_files() -> list[Path]:
    """Return the Python files of the repository but for this one."""
    return [path for path in python_files() if path != Path(__file__)]


def test_rules_are_numbered_from_one_without_gaps() -> None:
    for letter, page in PAGES.items():
        names = [rule.name for rule in RULES[page]]
        assert names == [f"{letter}{number}" for number in range(1, len(names) + 1)]
        assert len(names) >= LEAST[page], page


def test_a_rule_has_a_source_a_module_and_tests_that_exist() -> None:
    found = []
    for rule in ALL_RULES:
        named = {"source": rule.source, "module": rule.modules, "test": rule.tests}
        found += [f"{rule.name}: has no {kind}" for kind, value in named.items() if not value]
        found += [f"{rule.name}: {module}" for module in rule.modules if not (PACKAGE / module).is_file()]
        found += [f"{rule.name}: {test}" for test in rule.tests if not files_of(test)]
    assert not found, "\n".join(found)


def test_a_rule_of_fetch_responses_has_tests_of_its_number() -> None:
    named = {rule.name: rule.tests for rule in ALL_RULES}
    assert [name for name in RULES_IN_TEST_NAMES if f"test_{name.lower()}_*" not in named[name]] == []


def test_a_rule_of_the_codec_is_tested_on_both_variants() -> None:
    assert "codec_variant" in (UNIT_RECORDS / "conftest.py").read_text()
    folders = {name: {path.parent for path in files_of(f"test_{name.lower()}_*")} for name in CODEC_RULES}
    assert [name for name in CODEC_RULES if UNIT_RECORDS not in folders[name]] == []


def test_every_number_that_is_cited_is_a_rule() -> None:
    known = {rule.name for rule in ALL_RULES}
    cited = [
        (place, letter + number)
        for path in other_files()
        for place in places(_CITATION, path)
        for letter, number in _NUMBER.findall(place)
    ]
    assert cited, "nothing cites the rules: is the form of a citation still the one that this test looks for?"
    unknown = [f"{place}: {name}" for place, name in cited if name not in known]
    assert not unknown, "\n".join(unknown)


def test_a_number_is_cited_only_with_its_page() -> None:
    """A bare `R4` in a comment says nothing to a reader who does not know the page."""
    bare = []
    for path in other_files():
        for line_number, line in enumerate(text_of(path).splitlines(), 1):
            comment = _COMMENT.search(line) if _BARE.search(line) else None
            if comment and _BARE.search(comment[0]) and not _CITATION.search(line):
                bare.append(f"{path.relative_to(REPO)}:{line_number}: {line.strip()}")
    assert not bare, "\n".join(bare)


def test_code_cites_no_rules_that_the_repository_does_not_hold() -> None:
    unknown = re.compile(r"kafka-rules|design of the exactly-once|of the fetch rules|\bR: \"")
    found = [place for path in other_files() for place in places(unknown, path)]
    assert not found, "\n".join(found)
