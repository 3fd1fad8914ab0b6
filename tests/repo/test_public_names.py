"""What is public is one list: pages, examples, the site and the modules themselves agree with it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from kit.pointers import REPO
from kit.source_tree import PACKAGE

# What users may import. Other modules change without notice.
PUBLIC = (
    "pyspark_kafka",
    "pyspark_kafka.checkpoint",
    "pyspark_kafka.connector",
    "pyspark_kafka.connector.filters",
    "pyspark_kafka.continuous",
    "pyspark_kafka.delegation_tokens",
    "pyspark_kafka.errors",
    "pyspark_kafka.formats",
    "pyspark_kafka.lineage",
    "pyspark_kafka.metrics",
    "pyspark_kafka.records",
    "pyspark_kafka.spark",
    "pyspark_kafka.testing",
    "pyspark_kafka.testing.conformance",
    "pyspark_kafka.toolkit",
    "pyspark_kafka.version",
)
# A logger, a setting of a batch, an archive, metrics, attributes of spans: pages call them `pyspark_kafka.…` as well.
NO_MODULES = {"wire", "moved", "zip", "batch_duration", "records_behind", "links"}
# Pages for contributors name private modules.
OF_CONTRIBUTORS = {"internals", "decisions", "how-it-works.md"}
PAGES = [
    REPO / "README.md",
    *(page for page in (REPO / "docs").rglob("*.md") if not OF_CONTRIBUTORS & {page.name, page.parent.name}),
]
_PYTHON = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^ *```.*?^ *```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_IMPORT = re.compile(r"^ *from (pyspark_kafka[\w.]*) import (\(.*?\)|[^\n]*)", re.MULTILINE | re.DOTALL)
_DOTTED = re.compile(r"(?<![\w./-])pyspark_kafka(?:\.[a-zA-Z_]\w*)+")


def code_of(page: Path) -> str:
    """Return the Python programs of a page, and its inline code."""
    text = page.read_text()
    return "\n".join([*_PYTHON.findall(text), *_INLINE.findall(_FENCED.sub("", text))])


def named_in(code: str) -> Iterator[str]:
    """Yield the dotted names below `pyspark_kafka` that code imports or uses."""
    yield from _DOTTED.findall(code)
    for module, names in _IMPORT.findall(code):
        yield from (f"{module}.{name}" for name in re.findall(r"(?<!as )\b\w+", re.sub(r"#.*|\bas \w+", "", names)))


def is_public(name: str) -> bool:
    """Whether a dotted name is a public module, or a public name of one, or an attribute of such a name."""
    if name in PUBLIC or name == "pyspark_kafka.spark.daemon":
        return True
    module = max((each for each in PUBLIC if name.startswith(f"{each}.")), key=len)
    attribute = name.removeprefix(f"{module}.").partition(".")[0]
    return attribute in import_module(module).__all__ or (module == "pyspark_kafka" and attribute in NO_MODULES)


def test_top_of_the_package_without_an_underscore_is_the_list() -> None:
    there = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    there |= {path.stem for path in PACKAGE.glob("*.py")}
    assert {name for name in there if not name.startswith("_")} == {name.split(".")[1] for name in PUBLIC[1:]}


def test_pages_and_examples_name_what_is_public_only() -> None:
    texts = {page: code_of(page) for page in PAGES}
    texts |= {path: path.read_text() for path in (REPO / "examples").rglob("*.py")}
    named = {(path, name) for path, text in texts.items() for name in named_in(text)}
    assert {name for _, name in named} > {"pyspark_kafka.checkpoint.OffsetSeqLog", "pyspark_kafka.continuous"}
    private = [f"{path.relative_to(REPO)}: {name}" for path, name in sorted(named) if not is_public(name)]
    assert not private, "\n".join(private)


def test_site_has_a_page_for_each_module_with_names() -> None:
    shown = re.findall(r'^    "(pyspark_kafka[\w.]*)": ', (REPO / "tools" / "build_site.py").read_text(), re.MULTILINE)
    assert {*shown, "pyspark_kafka.spark", "pyspark_kafka.version"} == set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_module_shows_its_names_and_no_others(name: str) -> None:
    module = import_module(name)
    names = module.__all__
    # Constants, classes, the others: as ruff sorts them.
    assert names == sorted(names, key=lambda each: (not each.isupper(), not each[0].isupper(), each))
    assert dir(module) == sorted(names)
    assert [each for each in names if not hasattr(module, each) and find_spec(f"{name}.{each}") is None] == []


def test_names_that_are_loaded_at_their_first_use_are_declared_for_types() -> None:
    lazy = [module for module in map(import_module, PUBLIC) if "__getattr__" in vars(module)]
    assert len(lazy) > 1
    for module in lazy:
        compare_with_types(module)


def compare_with_types(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text())
    types = [line for node in tree.body if isinstance(node, ast.If) for line in node.body]
    declared = {
        alias.asname or alias.name: (line.module, alias.name)
        for line in types
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    loaded = {alias.name for line in tree.body if isinstance(line, ast.ImportFrom) for alias in line.names}
    loaded |= {line.name for line in tree.body if isinstance(line, ast.FunctionDef)}
    assert set(module._PLACES) == set(module.__all__) - loaded
    for each in module._PLACES:
        place, attribute = declared[each]
        assert getattr(module, each) is getattr(import_module(str(place)), attribute), each


def test_names_are_shown_without_loading_what_they_name() -> None:
    program = """
import sys
from importlib import import_module
for name in sys.argv[1:]:
    module = import_module(name)
    before = set(sys.modules)
    dir(module)
    assert set(sys.modules) == before, name
    if name == "pyspark_kafka":
        assert not before & {"pyspark", "pyarrow", "kafka", "pandas"}
"""
    done = subprocess.run([sys.executable, "-c", program, *PUBLIC], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_are_found_in_code() -> None:
    code = "from pyspark_kafka.a import (\n    One,  # why\n    two as three,\n)\nimport pyspark_kafka.b\n"
    code += "pyspark_kafka.c.d()\n"
    found = {"pyspark_kafka.a", "pyspark_kafka.a.One", "pyspark_kafka.a.two", "pyspark_kafka.b", "pyspark_kafka.c.d"}
    assert set(named_in(code)) == found


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("pyspark_kafka.lag", True),
        ("pyspark_kafka.testing.EmbeddedKafka.start", True),
        ("pyspark_kafka.continuous.query.handle", False),
        ("pyspark_kafka._client", False),
        ("pyspark_kafka.errors.printable", False),
    ],
)
def test_a_name_is_public_if_its_module_says_so(name: str, public: bool) -> None:
    assert is_public(name) is public


def test_page_of_support_lists_the_public_modules() -> None:
    """But for the door, which the page names as a setting."""
    listed = re.findall(r"^\| `(pyspark_kafka[\w.]*)` \|", (REPO / "docs" / "support.md").read_text(), re.MULTILINE)
    # The toolkit is in the table of experimental things, too.
    assert sorted([*listed, "pyspark_kafka.spark"]) == sorted([*PUBLIC, "pyspark_kafka.toolkit"])
