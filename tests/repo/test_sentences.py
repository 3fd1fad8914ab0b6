"""Syntax that makes a reader read a sentence twice, on the pages: docs/house-style.md. Words are in `test_words`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kit.pointers import REPO

# Made from the sources.
GENERATED = {"docs/command-line.md", "docs/errors.md", "docs/options.md"}
# Shows what is not to be written.
HOUSE_STYLE = "docs/house-style.md"
MAX_WORDS = 45

# Code, comments, and the addresses of links.
_FENCE = re.compile(r"^ *```.*?^ *```|<!--.*?-->|^\[\w+\]: \S+$", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"(?<!\\)\|")
_ITEM = re.compile(r"^(?:[-*>]|\d+\.|#+)\s+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r"(?<=[.!?:])[\"”)]?\s+(?=[\"“(]?[A-Z0-9])")

# A phrase ends before these, so that an *of* after them belongs to another noun.
_APART = (
    "of and or but nor than as to in on at by for from with without within after before between beside into over under "
    "against through per if when while until because so that which who whose where is are was were be been has have "
    "had does do can must takes take instead out inside outside ahead"
).replace(" ", "|")
# What is counted or picked is one noun with the next: "an epoch of one of the lanes".
_PICKED = "one|two|each|any|some|all|both|half|quarter|none"
_NOUN = rf"\s+(?!(?:{_APART})\b)[\w'/-]+(?:[.,]\d+)*"
FAULTS = {
    rf"\bof(?:{_NOUN}){{0,2}}(?!\s+(?:{_PICKED})\b){_NOUN}\s+of\b": "a compound, a genitive or another preposition",
    rf"\bof(?:{_NOUN}){{1,5}}\s+of(?:{_NOUN}){{1,5}}\s+of\b": "at most one *of* in a phrase",
    r"\bbrokers?\s+(?:(?:also|never|then)\s+)?(?:tells?|told|knows?|knew|asks?|asked|answers?|answered|may)\b": (
        "brokers return, require, have or can"
    ),
}


def passages(page: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, items, headings and cells of a page, each with its line; a piece of code is one word."""
    lines: list[str] = []
    text = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), page)
    for number, line in enumerate([*text.split("\n"), ""], 1):
        bare = line.strip()
        alone = not bare or bare.startswith(("|", "#"))
        if lines and (alone or _ITEM.match(bare)):
            yield number - len(lines), _prose(" ".join(lines))
            lines = []
        if not alone:
            lines.append(_ITEM.sub("", bare, count=1))
        elif bare:
            yield from ((number, _prose(cell)) for cell in _CELL.split(bare) if cell.strip(" :-#"))


def _prose(passage: str) -> str:
    return re.sub(r"`[^`]*`", "CODE", _LINK.sub(r"\1", passage)).replace("*", "")


def faults(passage: str) -> Iterator[str]:
    """Yield what the sentences of a passage have of the list, each with what to write instead."""
    for sentence in _SENTENCE.split(passage):
        words = sum(any(map(str.isalnum, word)) for word in sentence.split())
        if words > MAX_WORDS:
            yield f"{words} words, {sentence[:60]!r}…: write two sentences, or a list"
        for pattern, instead in FAULTS.items():
            for match in re.finditer(pattern, sentence, re.IGNORECASE):
                yield f"{match[0]!r}: write {instead}"


def test_pages_have_no_sentence_to_read_twice() -> None:
    pages = {str(page.relative_to(REPO)): page for folder in ("", "docs/**/") for page in REPO.glob(f"{folder}*.md")}
    found = [
        f"{name}:{line}: {fault}"
        for name in sorted(pages.keys() - GENERATED - {HOUSE_STYLE})
        for line, passage in passages(pages[name].read_text())
        for fault in faults(passage)
    ]
    assert pages.keys() > GENERATED | {HOUSE_STYLE, "README.md"}
    assert not found, "\n".join(found)


def test_page_is_divided_into_passages_without_code() -> None:
    page = (
        "# One `of`\n\nTwo 2. of\n[three](a/of/b)\n- four\n  **five**\n1. six\n\n"
        "| seven | `a|b` eight |\n| --- | --- |\n```sh\nof of\n```\nnine <!-- ten -->"
    )
    assert list(passages(page.replace("a|b", "a\\|b"))) == [
        (1, "# One CODE"),
        (3, "Two 2. of three"),
        (5, "four five"),
        (7, "six"),
        (9, " seven "),
        (9, " CODE eight "),
        (14, "nine"),
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "the text of a schema of a registry",
        "Offsets have the order of the changes of one key.",
        "the mean of 1,000 records of 0.5 kB",
        "before each call of a function of one of the modules",
        "The broker tells the client.",
        "Brokers also know it.",
        "no broker may delay the others",
        "word " * (MAX_WORDS + 1),
        f"Short. {'word ' * MAX_WORDS}(in brackets).",
    ],
)
def test_finder_notices_planted_faults(sentence: str) -> None:
    assert list(faults(sentence))


@pytest.mark.parametrize(
    "sentence",
    [
        "the text of the driver and of the lanes",
        "The tasks of a query fill the slots of every broker.",
        "an epoch of one of the lanes",
        "The length of an epoch. Of two lanes, one waits.",
        "The broker returns it; clients may know it.",
        "word " * MAX_WORDS,
        f"{'word ' * 30}. {'Word ' * 30}",
    ],
)
def test_finder_leaves_other_sentences_alone(sentence: str) -> None:
    assert list(faults(sentence)) == []
