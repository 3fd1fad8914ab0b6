"""Every numbered rule has a source, a module that keeps it, and tests that exist; every number that is cited exists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
SOURCE = REPO / "src" / "pyspark_kafka"
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

# A citation names the page and then the numbers: "docs/internals/fetch-rules.md, R4, R7 to R9".
_CITATION = re.compile(r"docs/internals/(?:fetch|transaction)-rules\.md((?:,? (?:and |to )?[RT]\d+)*)")
_NUMBER = re.compile(r"(?<![\w.])([RT])(\d+)(?![\w.])")


def find_tests() -> dict[str, set[Path]]:
    """Return the files that have a test, by the test's name."""
    found: dict[str, set[Path]] = {}
    for path in TESTS.rglob("test_*.py"):
        for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE):
            found.setdefault(name, set()).add(path)
    return found


FOUND = find_tests()


def files_of(test: str) -> set[Path]:
    """Return the files that have this test; a name that ends in `*` stands for all tests that begin with it."""
    if test.endswith("*"):
        return {path for name, paths in FOUND.items() if name.startswith(test[:-1]) for path in paths}
    return FOUND.get(test, set())


def python_files() -> list[Path]:
    folders = (REPO / "src", TESTS, REPO / "bench", REPO / "tools", REPO / "fuzz")
    return [path for folder in folders for path in sorted(folder.rglob("*.py")) if path != Path(__file__)]


@pytest.mark.parametrize(("letter", "page"), PAGES.items())
def test_rules_are_numbered_from_one_without_gaps(letter: str, page: str) -> None:
    names = [rule.name for rule in RULES[page]]
    assert names == [f"{letter}{number}" for number in range(1, len(names) + 1)]
    assert len(names) >= LEAST[page]


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_a_rule_has_a_source_a_module_and_tests_that_exist(rule: Rule) -> None:
    assert rule.source
    assert rule.modules
    assert [module for module in rule.modules if not (SOURCE / module).is_file()] == []
    assert rule.tests
    assert [test for test in rule.tests if not files_of(test)] == []


@pytest.mark.parametrize("name", RULES_IN_TEST_NAMES)
def test_a_rule_of_fetch_responses_has_tests_of_its_number(name: str) -> None:
    rule = next(rule for rule in ALL_RULES if rule.name == name)
    assert f"test_{name.lower()}_*" in rule.tests


@pytest.mark.parametrize("name", CODEC_RULES)
def test_a_rule_of_the_codec_is_tested_on_both_variants(name: str) -> None:
    files = files_of(f"test_{name.lower()}_*")
    assert "codec_variant" in (UNIT_RECORDS / "conftest.py").read_text()
    assert any(path.parent == UNIT_RECORDS for path in files)


def test_every_number_that_is_cited_is_a_rule() -> None:
    known = {rule.name for rule in ALL_RULES}
    cited = {
        (path.relative_to(REPO), letter + number)
        for path in python_files()
        for numbers in _CITATION.findall(path.read_text())
        for letter, number in _NUMBER.findall(numbers)
    }
    assert cited, "nothing cites the rules: is the form of a citation still the one that this test looks for?"
    assert {(path, name) for path, name in cited if name not in known} == set()


def test_a_number_is_cited_only_with_its_page() -> None:
    """A bare `R4` in a comment says nothing to a reader who does not know the page."""
    bare = []
    for path in python_files():
        text = path.read_text()
        for line_number, line in enumerate(text.splitlines(), 1):
            comment = re.search(r"(?:#|\"\"\"|Source:).*$|^\s*[A-Z`].*$", line)
            if comment and re.search(r"(?<![\w.])R\d+(?![\w.\"'])", comment[0]) and not _CITATION.search(line):
                bare.append(f"{path.relative_to(REPO)}:{line_number}: {line.strip()}")
    assert bare == []


def test_code_cites_no_rules_that_the_repository_does_not_hold() -> None:
    unknown = re.compile(r"kafka-rules|design of the exactly-once|of the fetch rules|\bR: \"")
    assert [str(path.relative_to(REPO)) for path in python_files() if unknown.search(path.read_text())] == []
