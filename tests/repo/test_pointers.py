"""What documents and code point to exists: linked pages and their headings, paths of files, pages named in the code."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING

import pytest

from kit.pointers import (
    FOLDERS,
    REPO,
    ROOTS,
    StateDiagram,
    calls,
    has_symbol,
    locate,
    members,
    methods,
    names,
    pointers,
    state_diagrams,
    symbols,
    table_of_transitions,
    words_of_the_code,
)

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [*sorted(REPO.glob("*.md")), *sorted((REPO / "docs").rglob("*.md"))]
# Pages about the code, which point to symbols; the rules of the protocol are held by test_rules_have_tests.
CODE_PAGES = [
    REPO / "ARCHITECTURE.md",
    REPO / "DESIGN.md",
    *(page for page in sorted((REPO / "docs" / "internals").glob("*.md")) if not page.name.endswith("-rules.md")),
]
# Words on them that are Spark's or Kafka's.
NOT_OURS = {"FetchCollector"}
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/[\w.-]+\.(?:py|pyi|md|toml|cfg))`")
_PAGE_IN_CODE = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.md")
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _CODE_BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def name(page: Path) -> str:
    return str(page.relative_to(REPO))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_CODE_BLOCK.sub("", page.read_text())):
        target, _, anchor = link.partition("#")
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_that_a_page_names_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return  # it tells of the past
    paths = set(_PATH.findall(page.read_text()))
    assert {path for path in paths if not any((root / path).exists() for root in (*ROOTS, page.parent))} == set()


@pytest.mark.parametrize("page", CODE_PAGES, ids=name)
def test_symbols_that_a_page_names_beside_a_path_stand_in_that_file(page: Path) -> None:
    found = pointers(page.read_text())
    assert {pointer for pointer in found if not has_symbol(*pointer)} == set()


@pytest.mark.parametrize("page", CODE_PAGES, ids=name)
def test_names_on_a_page_about_the_code_occur_in_the_code(page: Path) -> None:
    assert names(page.read_text()) - words_of_the_code() - NOT_OURS == set()


@pytest.mark.parametrize("page", CODE_PAGES, ids=name)
def test_calls_in_a_diagram_are_methods_of_the_class_that_is_called(page: Path) -> None:
    ours = {(cls, method) for cls, method in calls(page.read_text()) if cls in methods()}
    assert {(cls, method) for cls, method in ours if method not in methods()[cls]} == set()


DIAGRAMS = [(page, diagram) for page in CODE_PAGES for diagram in state_diagrams(page.read_text())]


def test_diagrams_of_states_are_found() -> None:
    assert len(DIAGRAMS) == sum(page.read_text().count("stateDiagram-v2") for page in CODE_PAGES) > 0


@pytest.mark.parametrize(("page", "diagram"), DIAGRAMS, ids=[page.stem for page, _ in DIAGRAMS])
def test_a_diagram_of_states_is_that_of_the_code(page: Path, diagram: StateDiagram) -> None:
    path, enum = diagram.notes["states"]
    file = locate(path)
    assert file is not None
    assert diagram.states == members(file, enum)
    for kind, (path, named) in diagram.notes.items():
        module = importlib.import_module(f"pyspark_kafka.{path.removesuffix('.py').replace('/', '.')}")
        if kind == "events":
            assert {event for *_, event in diagram.moves if event} <= set(dir(getattr(module, named)))
        elif kind == "table":
            ends = {move for move in diagram.moves if move[1] != "[*]"}
            assert ends == table_of_transitions(module.__doc__ or "")
        elif kind == "transitions":
            allowed = {(begin.name, end.name) for begin, all_ends in getattr(module, named).items() for end in all_ends}
            assert {move[:2] for move in diagram.moves if "[*]" not in move} <= allowed
    assert page.exists()


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [REPO / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(page.read_text())}
        waiting += sorted(target for target in targets if target.suffix == ".md" and target.is_file())
    assert sorted(name(page) for page in set(PAGES) - reached) == []


def test_pages_that_code_names_exist() -> None:
    files = [path for folder in FOLDERS for path in sorted((REPO / folder).rglob("*.py"))]
    named = {(name(path), page) for path in files for page in _PAGE_IN_CODE.findall(path.read_text())}
    assert named
    there = {name(page) for page in PAGES}
    assert {(path, page) for path, page in named if page not in there} == set()


def test_this_test_notices_what_is_missing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading, with `code`\n[to](other.md#part) and `client/no_such_file.py`\n")
    assert anchors(page) == {"a-heading-with-code"}
    assert _LINK.findall(page.read_text()) == ["other.md#part"]
    assert _PATH.findall(page.read_text()) == ["client/no_such_file.py"]


def test_symbols_are_read_beside_their_path(tmp_path: Path) -> None:
    text = "in `a/b.py` `One.two`, or\n`c.py`: `three`, `Four` and `five`; `six` is apart, and `d.py`, `e.py` are files"
    assert pointers(text) == {("a/b.py", "One.two"), ("c.py", "three"), ("c.py", "Four"), ("c.py", "five")}
    module = tmp_path / "module.py"
    module.write_text("A = 1\nclass B:\n    c: int\n    def d(self): self._e = 1\n    class F: pass\n")
    assert symbols(module) == {"A", "B", "B.c", "B.d", "B._e", "B.F"}


def test_names_are_read_from_backquotes_and_diagrams() -> None:
    text = "A `SomeClass.some_method`, `src/a_path.py`, no_name\n"
    text += "```mermaid\nOther->>X: ask_it(Word)\n```\n```sh\nnot_this\n```\n"
    assert names(text) == {"SomeClass", "some_method", "ask_it"}


def test_a_diagram_of_states_is_read() -> None:
    text = "<!-- states: a/b.py State -->\n<!-- events: a/c.py Door -->\n```mermaid\nstateDiagram-v2\n"
    text += "    [*] --> ONE\n    ONE --> TWO: why\n```\n"
    (diagram,) = state_diagrams(text)
    assert diagram.notes == {"states": ("a/b.py", "State"), "events": ("a/c.py", "Door")}
    assert diagram.moves == {("[*]", "ONE", ""), ("ONE", "TWO", "why")}
    assert diagram.states == {"ONE", "TWO"}


def test_a_table_of_transitions_is_read() -> None:
    text = """States:

    | from | event | to | method |
    | --- | --- | --- | --- |
    | | it begins | ONE | `begin` |
    | ONE | it ends | TWO, and more | `end`, `more` |
    """
    assert table_of_transitions(text) == {("[*]", "ONE", "begin"), ("ONE", "TWO", "end")}


def test_calls_are_read_from_a_diagram() -> None:
    text = "```mermaid\nsequenceDiagram\n    participant D as Door\n    A->>D: open(wide)\n    D-->>A: opened\n```\n"
    assert calls(text) == {("Door", "open")}
