"""Words and phrases that the house style does not use, in pages and sources: docs/house-style.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from kit.pointers import REPO
from kit.source_tree import PACKAGE, python_files, text_of

# Pages that show what is not used.
EXEMPT = {"docs/glossary.md", "docs/house-style.md"}

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
    r"\bwhichever\b": "any",
    r"\bas of `": "see",
    r"\b[Ww]hat becomes of\b": "the handling of",
    r"\bmend(?:s|ed|ing)?\b(?!\()": "fix, correct",
    r"\b(?:it|they|that|which|text|value) (?:is|are) no (?:JSON|UUID|UTF|number|text|loss|error|rows?)\b": "is not",
}

# Pronouns that make a reader search for the noun. Pages and the package use none of these either.
PRONOUNS = {
    r"\bthose (?:of|that)\b": "the noun again, or a genitive: the offsets of the other broker, partitions that moved",
    r"(?<!\bso\W)\bthat of\b": "the noun again, or a genitive: the driver's clock",
    r"\bthe ones? (?:that|which)\b": "the noun: the leader, the failed attempts",
}

# Pages use none of these either.
NOT_USED_ON_PAGES = NOT_USED | {
    r"\banother one\b(?! for)": "another",
    r"\bother ones\b": "others, or the noun",
    r"\bmeanwhile\b": "in the meantime",
    r"\bagain and again\b": "repeatedly",
}

# Its entries are history, and are not rewritten.
CHANGELOG = "CHANGELOG.md"

# A comment, or a string of one or of several lines.
_PROSE = re.compile(r"""#.*|(\"{3}|'{3})(?:\\[\s\S]|[^\\])*?\1|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'""")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def find(text: str, listed: Mapping[str, str] = NOT_USED) -> list[str]:
    """Return what a text has of the list, each with its line and what to write instead; code is left out."""
    prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return [
        f"{prose.count(chr(10), 0, match.start()) + 1}: {match[0]!r}: write {instead}"
        for pattern, instead in listed.items()
        for match in re.finditer(pattern.replace(" ", r"\s+"), prose, re.IGNORECASE)
    ]


def prose_of(source: str) -> str:
    """Return the comments and strings of a Python file, each in its line, without the rest."""
    parts, end = [], 0
    for match in _PROSE.finditer(source):
        parts += [" ", "\n" * source.count("\n", end, match.start()), match[0]]
        end = match.end()
    return "".join(parts)


def test_pages_use_no_word_of_the_list() -> None:
    pages = {str(page.relative_to(REPO)): page for folder in ("", "docs/**/") for page in REPO.glob(f"{folder}*.md")}
    found = [
        f"{name}:{word}"
        for name in sorted(pages.keys() - EXEMPT)
        for word in find(pages[name].read_text(), NOT_USED_ON_PAGES | (PRONOUNS if name != CHANGELOG else {}))
    ]
    assert len(pages) > len(EXEMPT)
    assert not found, "\n".join(found)


def test_source_files_use_no_word_of_the_list() -> None:
    """Their docstrings, comments and texts; but for the list itself."""
    files = [path for path in python_files() if path != Path(__file__)]
    found = [f"{path.relative_to(REPO)}:{word}" for path in files for word in find(prose_of(text_of(path)))]
    assert not found, "\n".join(found)


def test_source_files_of_the_package_repeat_the_noun() -> None:
    files = python_files(PACKAGE)
    found = [f"{path.relative_to(REPO)}:{word}" for path in files for word in find(prose_of(text_of(path)), PRONOUNS)]
    assert not found, "\n".join(found)


def test_prose_is_read_from_comments_and_strings_in_their_lines() -> None:
    source = 'a = 1  # one "two"\nb = f"three {c} # four" + \'it\\\'s\'\n"""five "six"\n# seven"""\ngoes = on\n# eight'
    lines = [line.strip() for line in prose_of(source).split("\n")]
    assert lines == ['# one "two"', "\"three {c} # four\" 'it\\'s'", '"""five "six"', '# seven"""', "", "# eight"]


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
        "It is mended.",
        "the bytes of a value that is no JSON",
    ],
)
def test_the_list_finds_what_it_names(sentence: str) -> None:
    assert find(sentence)


@pytest.mark.parametrize("sentence", ["The broker gives up.", "`give` in code", "```\ngive\n```", "so that"])
def test_the_list_leaves_the_rest_alone(sentence: str) -> None:
    assert find(sentence) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "the offsets of this broker and those\nof the other",
        "Partitions are left out, but for those that moved.",
        "The clock is behind that of the driver.",
        "The id is not the one that was read.",
        "Values have the ones which the schema names.",
    ],
)
def test_the_list_finds_pronouns_far_from_their_noun(sentence: str) -> None:
    assert find(sentence, PRONOUNS)


@pytest.mark.parametrize("sentence", ["so that of two drivers one stops", "so\nthat of two", "those partitions"])
def test_the_list_leaves_other_pronouns_alone(sentence: str) -> None:
    assert find(sentence, PRONOUNS) == []
