"""Words and phrases that the house style does not use, in the files that are held to it so far: docs/house-style.md."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

REPO = Path(__file__).parents[2]

# The pages that are held to the list.
HELD = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "DESIGN.md",
    "README.md",
    "docs/batch-reads.md",
    "docs/chaos.md",
    "docs/check.md",
    "docs/checkpoints.md",
    "docs/custom-sinks.md",
    "docs/custom-sources.md",
    "docs/dead-letters.md",
    "docs/decisions/codec.md",
    "docs/decisions/driver-as-publisher.md",
    "docs/decisions/exactly-once.md",
    "docs/decisions/format-name.md",
    "docs/decisions/keyed-state-store.md",
    "docs/decisions/one-connection-per-broker.md",
    "docs/decisions/protocol-classes.md",
    "docs/decisions/pure-state-machines.md",
    "docs/decisions/schema-projection.md",
    "docs/decisions/sessionless-fetch.md",
    "docs/decisions/threads.md",
    "docs/decisions/unknown-options.md",
    "docs/errors.md",
    "docs/exactly-once.md",
    "docs/first-seconds.md",
    "docs/formats.md",
    "docs/fuzzing.md",
    "docs/internals/fault-tests.md",
    "docs/internals/fetch-rules.md",
    "docs/internals/life-of-a-micro-batch.md",
    "docs/internals/life-of-a-record.md",
    "docs/internals/life-of-a-row.md",
    "docs/internals/life-of-an-error.md",
    "docs/internals/life-of-an-exactly-once-commit.md",
    "docs/internals/life-of-an-option.md",
    "docs/internals/transaction-rules.md",
    "docs/monitoring.md",
    "docs/options.md",
    "docs/outages.md",
    "docs/parity.md",
    "docs/performance.md",
    "docs/records.md",
    "docs/scale.md",
    "docs/secrets.md",
    "docs/stateful.md",
    "docs/transactions.md",
    "docs/troubleshooting.md",
    "docs/writes.md",
]

# The rooms of the source that are held to the list, as folders or files: their docstrings, comments and texts.
HELD_ROOMS: list[str] = [
    "bench",
    "examples",
    "fuzz",
    "src/pyspark_kafka",
    "tests",
    "tools",
]

# Each with what to write instead.
NOT_USED = {
    r"\bgives?\b(?! up)": "return, print, hold, yield; of an option: set",
    r"\bmade (?:again|anew)\b|\bcreated anew\b|\bdeleted and created again\b": "recreated",
    r"\banew\b": "again",
    r"\bby itself\b": "automatically",
    r"\bgoes before\b": "takes precedence over",
    r"\bwhat is said\b|\bis said of\b": "name the subject",
    r"\bwithout a word\b": "silently",
    r"\bof use\b": "useful",
    r"\bhow[- ]manieth\b": "which",
    r"\bso (?:many|long|few|much)\b(?! (?:as|that))": "the number, or at most N",
    r"\bat the most\b": "at most",
    r"\bunder way\b|\bon (?:its|their) way\b": "in flight, or not yet finished",
    r"\b(?:is|are|be) told\b": "is warned, is named, is shown",
    r"\bfor (?:\w+'s|a \w+'s) sake\b": "for compatibility",
    r"\b[Ii]s (?:it|there) [^?.|]*, there is\b": "if it is",
    r"\bbeside Spark's\b": "compared with Spark's",
    r"\bas long as one\b": "for as long as you",
    r"\bgoes? on\b": "continues",
    r"\bis (?:known|tried) by\b": "name the actor",
}

# An f-string is one token up to Python 3.11, and tokens of its parts from 3.12 on.
_PROSE = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def find(text: str) -> list[str]:
    """Return what a text has of the list, each with its line and what to write instead; code is left out."""
    prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return [
        f"line {prose.count(chr(10), 0, match.start()) + 1}: {match[0]!r}: write {instead}"
        for pattern, instead in NOT_USED.items()
        for match in re.finditer(pattern.replace(" ", r"\s+"), prose, re.IGNORECASE)
    ]


def prose_of(path: Path) -> str:
    """Return the comments and strings of a Python file, each in its line and column; the rest is blank."""
    blank = [[" "] * len(line) for line in path.read_text().splitlines()]
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in _PROSE:
                for number, line in enumerate(token.string.splitlines()):
                    begin = token.start[1] if number == 0 else 0
                    blank[token.start[0] + number - 1][begin : begin + len(line)] = line
    return "\n".join("".join(line) for line in blank)


def python_files(rooms: Iterable[str]) -> list[str]:
    """Return the Python files of folders, and files that are named themselves, as paths from the repository."""
    paths = [REPO / room for room in rooms]
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return [str(file.relative_to(REPO)) for file in files]


@pytest.mark.parametrize("path", HELD)
def test_a_page_uses_no_word_of_the_list(path: str) -> None:
    assert find((REPO / path).read_text()) == []


# But for the list itself.
@pytest.mark.parametrize("path", sorted({*python_files(HELD_ROOMS)} - {"tests/repo/test_words.py"}))
def test_a_source_file_uses_no_word_of_the_list(path: str) -> None:
    assert find(prose_of(REPO / path)) == []


def test_the_list_names_files_once_and_in_order() -> None:
    assert sorted(set(HELD)) == HELD
    assert sorted(set(HELD_ROOMS)) == HELD_ROOMS


@pytest.mark.parametrize(
    "sentence",
    [
        "Give numbers there.",
        "It gives a DataFrame.",
        "a topic that was made\nagain",
        "The option goes before the column.",
        "leave out without a word",
        "Is it this batch, there is nothing left to do.",
        "only those that are open for so long",
        "The query goes on by itself.",
    ],
)
def test_the_list_finds_what_it_names(sentence: str) -> None:
    assert find(sentence)


@pytest.mark.parametrize("sentence", ["The broker gives up.", "`give` in code", "```\ngive\n```", "so that"])
def test_the_list_leaves_the_rest_alone(sentence: str) -> None:
    assert find(sentence) == []
