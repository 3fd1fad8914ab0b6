"""What documents and code point to exists: linked pages and their headings, paths of files, pages named in the code."""

from __future__ import annotations

import importlib
import pydoc
import re
from pathlib import Path

import pyspark_kafka
from kit.pointers import (
    REPO,
    ROOTS,
    StateDiagram,
    calls,
    files_of_classes,
    has_symbol,
    locate,
    members,
    methods,
    names,
    pointers,
    state_diagrams,
    symbols,
    table_of_transitions,
    with_whole_paths,
    words_of_the_code,
)
from kit.source_tree import places, python_files
from pyspark_kafka._client.options import OPTIONS
from pyspark_kafka._connector.spark.data_source import KafkaDataSource
from pyspark_kafka._ops.reference.conditions import read_entries
from pyspark_kafka.version import DOCUMENTATION

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


def test_links_of_pages_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in _LINK.findall(_CODE_BLOCK.sub("", page.read_text())):
            target, _, anchor = link.partition("#")
            if target.startswith(("http:", "https:", "mailto:")):
                continue
            file = (page.parent / target).resolve() if target else page
            if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
                broken.append(f"{name(page)}: {link}")
    assert not broken, "\n".join(broken)


def test_paths_that_pages_name_exist() -> None:
    gone = [
        f"{name(page)}: {path}"
        for page in PAGES
        # It tells of the past.
        if page.name != "CHANGELOG.md"
        for path in sorted(set(_PATH.findall(with_whole_paths(page.read_text()))))
        if not any((root / path).exists() for root in (*ROOTS, page.parent))
    ]
    assert not gone, "\n".join(gone)


def test_symbols_that_a_page_names_beside_a_path_stand_in_that_file() -> None:
    gone = [
        f"{name(page)}: {path}: {symbol}"
        for page in CODE_PAGES
        for path, symbol in sorted(pointers(with_whole_paths(page.read_text())))
        if not has_symbol(path, symbol)
    ]
    assert not gone, "\n".join(gone)


def test_names_on_pages_about_the_code_occur_in_the_code() -> None:
    gone = [
        f"{name(page)}: {word}"
        for page in CODE_PAGES
        for word in sorted(names(page.read_text()) - words_of_the_code() - NOT_OURS)
    ]
    assert not gone, "\n".join(gone)


def test_calls_in_diagrams_are_methods_of_the_class_that_is_called() -> None:
    gone = [
        f"{name(page)}: {cls}.{method}"
        for page in CODE_PAGES
        for cls, method in sorted(calls(page.read_text()))
        if cls in files_of_classes() and method not in methods(cls)
    ]
    assert not gone, "\n".join(gone)


def test_diagrams_of_states_are_those_of_the_code() -> None:
    texts = [page.read_text() for page in CODE_PAGES]
    diagrams = [diagram for text in texts for diagram in state_diagrams(text)]
    assert len(diagrams) == sum(text.count("stateDiagram-v2") for text in texts) > 0
    for diagram in diagrams:
        compare_with_the_code(diagram)


def compare_with_the_code(diagram: StateDiagram) -> None:
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
    named = [place for path in python_files() for place in places(_PAGE_IN_CODE, path)]
    assert named
    there = {name(page) for page in PAGES}
    gone = [place for place in named if place.rpartition(" ")[2] not in there]
    assert not gone, "\n".join(gone)


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


def test_addresses_of_options_and_conditions_are_anchors_of_their_pages() -> None:
    for page, entries in (("options", OPTIONS), ("errors", read_entries())):
        addresses = {entry.address.partition("#")[2] for entry in entries}
        assert addresses
        assert addresses <= anchors(REPO / "docs" / f"{page}.md")


def test_addresses_in_the_code_are_pages() -> None:
    address = re.compile(rf"(?:{{DOCUMENTATION}}|{re.escape(DOCUMENTATION)})([\w-]+(?:/[\w-]+)*)/")
    sources = (REPO / "src").rglob("*.py")
    named = {(name(path), page) for path in sources for page in address.findall(path.read_text())}
    assert {page for _, page in named} >= {"options", "errors", "custom-sinks", "rights"}
    assert [(path, page) for path, page in named if not (REPO / "docs" / f"{page}.md").is_file()] == []


def test_help_of_the_package_and_of_the_source_names_the_address_of_the_options() -> None:
    for helped in (pyspark_kafka, KafkaDataSource):
        assert f"{DOCUMENTATION}options/" in pydoc.render_doc(helped)
