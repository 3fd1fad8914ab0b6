"""The table of conditions has exactly those that the code raises, under the classes that are raised with them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache

import pytest

from kit.pointers import REPO
from kit.source_tree import dotted, trees
from pyspark_kafka import errors
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._connector.planning.data_loss import DataLossKind
from pyspark_kafka._ops.reference.conditions import read_entries, render_page

PAGE = REPO / "src" / "pyspark_kafka" / "errors.md"
BROKER_CHAPTER = "## Error codes of brokers"

# Conditions that are passed on and not made: the brokers' (by the table of codes), or another error's.
PASSED_ON = {"kind.name", "cause.condition", "problem.condition", "self.condition", "kinds[0].condition"}

_ROW = re.compile(r"^\| `([A-Z][A-Z0-9_.]+)` \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_BROKER_ROW = re.compile(r"^\| `([A-Z][A-Z0-9_]+)` \| (-?\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


class Conditions:
    """The conditions in the code, each with the names of the classes that are raised with it.

    A condition is a literal at `condition=`, or a literal argument of a function that takes a parameter `condition`.
    """

    def __init__(self, modules: Iterable[tuple[str, ast.Module]]) -> None:
        self.classes: defaultdict[str, set[str]] = defaultdict(set)
        self.unknown: set[tuple[str, str]] = set()
        # Class attributes named `condition`, of which names are composed: f"{self.condition}_IO"; and their ends.
        self._prefixes: set[str] = set()
        self._suffixes: defaultdict[str, set[str]] = defaultdict(set)
        for module, tree in modules:
            self._scan(module, tree)
        for suffix, classes in self._suffixes.items():
            for prefix in self._prefixes:
                self.classes[prefix + suffix] |= classes

    def _scan(self, module: str, tree: ast.Module) -> None:
        self._prefixes |= {
            str(node.value.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id == "condition"
            and isinstance(node.value, ast.Constant)
        }
        takers = {
            function.name: ([argument.arg for argument in function.args.args], function)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef) and "condition" in [a.arg for a in function.args.args]
        }
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            for call in [node for node in ast.walk(function) if isinstance(node, ast.Call)]:
                for keyword in call.keywords:
                    if keyword.arg == "condition":
                        self._add(module, ast.unparse(call.func), keyword.value, function)
                name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
                if name == "report" and call.args:
                    self._add(module, "OptionError", call.args[0], function)
                elif name in takers and not isinstance(call.func, ast.Attribute):
                    parameters, taker = takers[name]
                    position = parameters.index("condition")
                    if position < len(call.args):
                        self._add(module, self._class_of(taker, takers), call.args[position], function)

    def _class_of(self, taker: ast.FunctionDef, takers: dict[str, tuple[list[str], ast.FunctionDef]]) -> str:
        """Return the class that a function raises, or makes, with the condition that it is given."""
        for call in [node for node in ast.walk(taker) if isinstance(node, ast.Call)]:
            if any(keyword.arg == "condition" for keyword in call.keywords):
                return ast.unparse(call.func)
        for call in [node for node in ast.walk(taker) if isinstance(node, ast.Call)]:
            name = dotted(call.func)
            if name in takers and takers[name][1] is not taker:
                return self._class_of(takers[name][1], takers)
        return ""

    def _add(self, module: str, cls: str, value: ast.expr, function: ast.FunctionDef) -> None:
        text = ast.unparse(value)
        if not cls:
            return  # handed to a function that makes no error of it
        if isinstance(value, ast.Constant):
            self.classes[str(value.value)].add(cls)
        elif isinstance(value, ast.IfExp):
            self._add(module, cls, value.body, function)
            self._add(module, cls, value.orelse, function)
        elif isinstance(value, ast.JoinedStr) and text.startswith("f'{self.condition}_"):
            self._suffixes[text.removeprefix("f'{self.condition}").removesuffix("'")].add(cls)
        elif text.startswith("DataLossKind."):
            self.classes[DataLossKind[text.split(".")[1]].condition].add(cls)
        elif isinstance(value, ast.Name):
            self._add_variable(module, cls, value.id, function)
        elif text not in PASSED_ON:
            self.unknown.add((module, text))
        if text == "kinds[0].condition":
            for kind in DataLossKind:
                self.classes[kind.condition].add(cls)

    def _add_variable(self, module: str, cls: str, variable: str, function: ast.FunctionDef) -> None:
        given = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
        assigned = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == variable
        ]
        if variable not in given and not assigned:
            self.unknown.add((module, variable))
        for value in assigned:
            self._add(module, cls, value, function)


# A user catches classes of `errors.py`; a class that is defined elsewhere goes by its base.
PUBLIC = {name for name, value in vars(errors).items() if isinstance(value, type)}


@cache
def code() -> Conditions:
    # A condition is reported, or named by a parameter, an argument or an attribute.
    return Conditions(trees(containing="condition|report"))


@cache
def bases() -> dict[str, str]:
    """Return the first base of each class, by names."""
    return {
        node.name: ast.unparse(node.bases[0])
        for _, tree in trees(containing=r"\bclass \w+\(")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.bases
    }


def public(cls: str) -> str:
    return cls if cls in PUBLIC else public(bases()[cls])


def chapters() -> tuple[str, str]:
    """Return the page before the chapter of brokers' codes, and that chapter."""
    before, heading, brokers = PAGE.read_text().partition(BROKER_CHAPTER)
    assert heading
    return before, brokers


def broker_codes() -> dict[str, int]:
    """Return the codes that the code treats by name."""
    return {code.name: code.value for code in ErrorCode if code is not ErrorCode.NONE}


def test_every_condition_is_a_literal_or_is_passed_on() -> None:
    assert code().unknown == set()


def test_every_condition_of_the_code_has_a_row_and_every_row_a_condition() -> None:
    rows = [row[0] for row in _ROW.findall(chapters()[0])]
    assert sorted(rows) == sorted(code().classes)


def test_a_row_names_the_classes_that_are_raised() -> None:
    for condition, classes, *_ in _ROW.findall(chapters()[0]):
        raised = {public(cls) for cls in code().classes.get(condition, ())}
        assert set(re.findall(r"`(\w+)`", classes)) == raised, condition


def test_every_broker_code_that_is_treated_by_name_has_a_row() -> None:
    rows = [(name, int(number)) for name, number, *_ in _BROKER_ROW.findall(chapters()[1])]
    assert rows == sorted(broker_codes().items(), key=lambda item: item[1])


def test_every_row_of_the_page_is_read() -> None:
    """A row with a column too few would not be read, and not be compared."""
    before, brokers = chapters()
    for text, pattern in ((before, _ROW), (brokers, _BROKER_ROW)):
        assert len(re.findall(r"^\| `", text, re.MULTILINE)) == len(pattern.findall(text))


def test_page_is_rendered_from_the_table_with_an_entry_for_each_row() -> None:
    page = (REPO / "docs" / "errors.md").read_text()
    assert page == render_page(), "run: python -m pyspark_kafka._ops.reference.conditions > docs/errors.md"
    before, brokers = chapters()
    rows = [*_ROW.findall(before), *_BROKER_ROW.findall(brokers)]
    assert [name for name, *_ in rows] == re.findall(r"^### `(.+)`$", page, re.MULTILINE)
    assert [entry.condition for entry in read_entries()] == [name for name, *_ in rows]


def test_a_row_stands_alone() -> None:
    """A reader comes from a search for one condition, and does not read the row before."""
    before, brokers = chapters()
    for condition, *cells in [*_ROW.findall(before), *_BROKER_ROW.findall(brokers)]:
        sentences = cells[1:]
        assert all(cell.endswith(".") for cell in sentences), condition
        assert not any(re.search(r"\b[Aa]s above\b|\b[Tt]he same,|^As for\b", cell) for cell in sentences), condition


def test_conditions_that_the_text_names_exist() -> None:
    known = code().classes.keys() | broker_codes().keys()
    text = "".join(chapters())
    named = {word for word in re.findall(r"see `([A-Z_.]+)`", text, re.IGNORECASE) if word.isupper()}
    assert named
    assert named <= known


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n raise E("x", condition="A_B")', {"A_B": {"E"}}),
        ('def f(x):\n raise E("x", condition="A" if x else "B")', {"A": {"E"}, "B": {"E"}}),
        ('def f():\n c = "A"\n return E("x", condition=c)', {"A": {"E"}}),
        ('def f(condition):\n return E("x", condition=condition)\ndef g():\n raise f("A")', {"A": {"E"}}),
        ('def f(o):\n o.report("A", "text")', {"A": {"OptionError"}}),
    ],
)
def test_conditions_are_found_in_every_form(source: str, expected: dict[str, set[str]]) -> None:
    found = Conditions([("module.py", ast.parse(source))])
    assert (found.classes, found.unknown) == (expected, set())


def test_a_condition_that_is_computed_is_noticed() -> None:
    found = Conditions([("module.py", ast.parse('def f(x):\n raise E("x", condition=x.name.upper())'))])
    assert found.unknown == {("module.py", "x.name.upper()")}
