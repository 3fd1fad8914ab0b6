"""What documents have of the code: paths, symbols beside them, names, diagrams, programs. Imports none of it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

REPO = Path(__file__).parents[2]
# Where a path that a page names in backquotes may begin.
ROOTS = (REPO, REPO / "src" / "pyspark_kafka", REPO / "tests")
FOLDERS = ("src", "tests", "bench", "tools", "fuzz", "examples")

_PATH = r"[\w.-]+(?:/[\w.-]+)*\.py"
_SYMBOL = r"(?!\w+\.py`)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
# `a/path.py` `symbol`, `a/path.py`: `one`, `another`: the names that follow a path are names in that file.
_POINTER = re.compile(rf"`({_PATH})`((?:(?:,|:| and)?\s+`{_SYMBOL}`)+)")
# Names that look like code: CamelCase with a second capital, or snake_case.
_NAME = re.compile(r"\b(?:[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+|_?[a-z0-9]+(?:_[a-z0-9]+)+)\b")
_SPAN = re.compile(r"`([^`\n]+)`")
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DIAGRAM = re.compile(
    r"((?:^<!-- \w+: [\w/.]+ ?\w* -->\n)+)\n*```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_NOTE = re.compile(r"<!-- (\w+): ([\w/.]+) ?(\w*) -->")
_MOVE = re.compile(r"^\s*(\[\*\]|\w+) --> (\[\*\]|\w+)(?:: *(\w+))?", re.MULTILINE)


@dataclass(frozen=True)
class StateDiagram:
    """A diagram of states on a page.

    Attributes:
        notes: where the code has the same, by kind: path and name. `states` names an enum, `events` the class whose
            methods stand on the arrows, `table` a module with the transitions in its docstring, `transitions` a
            mapping of states.
        moves: state, next state, event; the event may be empty.
    """

    notes: dict[str, tuple[str, str]]
    moves: frozenset[tuple[str, str, str]]

    @property
    def states(self) -> set[str]:
        return {state for begin, end, _ in self.moves for state in (begin, end)} - {"[*]"}


def pointers(text: str) -> set[tuple[str, str]]:
    """Return the pairs of a path and a symbol that a page names beside it."""
    return {(path, name) for path, names in _POINTER.findall(text) for name in _SPAN.findall(names)}


def with_whole_paths(text: str) -> str:
    """Return a page with its paths from the package on; below a heading with a folder, they begin in that folder."""
    parts = re.split(r"^(#+ .*)$", text, flags=re.MULTILINE)
    for number in range(1, len(parts), 2):
        folder = re.search(r"`([\w/]+/)`", parts[number])
        if folder is not None:
            parts[number + 1] = re.sub(rf"`({_PATH})`", partial(_below, folder[1]), parts[number + 1])
    return "".join(parts)


def _below(folder: str, path: re.Match[str]) -> str:
    is_there = (REPO / "src" / "pyspark_kafka" / folder / path[1]).is_file()
    return f"`{folder}{path[1]}`" if is_there else path[0]


def locate(path: str) -> Path | None:
    """Return the file that a page's path means; None if there is none."""
    return next((root / path for root in ROOTS if (root / path).is_file()), None)


def program_below(heading: str, page: str) -> str:
    """Return the first Python program below a heading of a page in `docs/`."""
    _, _, below = (REPO / "docs" / page).read_text().partition(f"\n{heading}\n")
    found = re.search(r"```python\n(.*?)```", below, re.DOTALL)
    assert found is not None, f"{page} has no program below {heading!r}"
    return found[1]


def programs_with_output(page: str) -> list[tuple[str, str]]:
    """Return the Python programs of a page in `docs/`, each with the text that the page shows as its output."""
    text = (REPO / "docs" / page).read_text()
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("```python\n") > 0, f"{page} has programs without output"
    return found


@cache
def symbols(file: Path) -> frozenset[str]:
    """Return what a module defines: functions, classes, constants, and of classes also methods and attributes."""
    found: set[str] = set()
    _collect(ast.parse(file.read_text()).body, "", found)
    return frozenset(found)


def _collect(body: list[ast.stmt], prefix: str, found: set[str]) -> None:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(prefix + node.name)
            if prefix:
                owner = prefix.rpartition(".")[0]
                found.update(
                    f"{owner}.{target.attr}"
                    for target in ast.walk(node)
                    if isinstance(target, ast.Attribute)
                    and isinstance(target.ctx, ast.Store)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == "self"
                )
        elif isinstance(node, ast.ClassDef):
            found.add(prefix + node.name)
            _collect(node.body, f"{prefix}{node.name}.", found)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(prefix + target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, (ast.If, ast.Try)):
            _collect(node.body, prefix, found)


def has_symbol(path: str, name: str) -> bool:
    """Whether a file defines a name; a method may be named with its class or without."""
    file = locate(path)
    return file is not None and any(known == name or known.endswith(f".{name}") for known in symbols(file))


@cache
def words_of_the_code() -> frozenset[str]:
    """Return every word of the Python files of the repository, without those that are about the pages."""
    about_pages = {"pointers.py", "test_pointers.py", "test_architecture_page.py", "test_words.py"}
    files = [path for folder in FOLDERS for path in (REPO / folder).rglob("*.py")]
    read = [path for path in files if path.name not in about_pages]
    return frozenset(word for path in read for word in re.findall(r"\w+", path.read_text()))


def names(text: str) -> set[str]:
    """Return the names that look like code in a page's backquotes and diagrams."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    parts = [*_SPAN.findall(prose), *_MERMAID.findall(text)]
    return {name for part in parts for name in _NAME.findall(re.sub(r"\S*/\S*", "", part))}


def state_diagrams(text: str) -> list[StateDiagram]:
    """Return the diagrams of states that name their code in comments above them."""
    return [
        StateDiagram({kind: (path, name) for kind, path, name in _NOTE.findall(notes)}, frozenset(_MOVE.findall(body)))
        for notes, body in _DIAGRAM.findall(text)
    ]


def calls(text: str) -> set[tuple[str, str]]:
    """Return the calls in sequence diagrams: the class of the participant that is called, and the method."""
    found = set()
    for diagram in _MERMAID.findall(text):
        participants = dict(re.findall(r"^\s*participant (\w+) as (\w+)$", diagram, re.MULTILINE))
        for called, method in re.findall(r"^\s*\w+->>(\w+): (\w+)\(", diagram, re.MULTILINE):
            found.add((participants.get(called, called), method))
    return found


@cache
def files_of_classes() -> dict[str, set[Path]]:
    """Return the files that define each class of the package, by the name of the class."""
    found: dict[str, set[Path]] = {}
    for file in (REPO / "src" / "pyspark_kafka").rglob("*.py"):
        for cls in re.findall(r"^ *class (\w+)", file.read_text(), re.MULTILINE):
            found.setdefault(cls, set()).add(file)
    return found


def methods(cls: str) -> set[str]:
    """Return the names in the classes of this name."""
    found = {symbol.rpartition(".")[::2] for file in files_of_classes()[cls] for symbol in symbols(file)}
    return {name for owner, name in found if owner.rpartition(".")[2] == cls}


def table_of_transitions(docstring: str) -> set[tuple[str, str, str]]:
    """Return state, next state and event of each row of a table `from | event | to | method`; [*] is the beginning."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in docstring.splitlines() if "|" in line]
    rows = [["", *row] if len(row) == 3 else row for row in rows]
    return {
        (begin or "[*]", re.findall(r"[A-Z_]{2,}", end)[0], re.findall(r"`(\w+)`", methods)[0])
        for begin, _, end, methods in rows
        if "`" in methods
    }


def members(file: Path, enum: str) -> set[str]:
    """Return the members of an enum by its source."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ClassDef) and node.name == enum:
            return {
                target.id
                for line in node.body
                if isinstance(line, ast.Assign)
                for target in line.targets
                if isinstance(target, ast.Name)
            }
    return set()
