"""Commands that install this package, on pages, in errors and in files for clusters: all are the one of version.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import licences
from kit.pointers import REPO
from pyspark_kafka import version

PLACES = (
    "*.md",
    "docs/**/*.md",
    "deploy/**/*",
    "examples/**/*",
    "monitoring/**/*",
    "src/**/*.md",
    "src/**/*.py",
    "tools/*.py",
)
COMMAND = re.compile(r"(?:\bpip install\b|\bARG PACKAGE=|\bInstall (?=pyspark-kafka\[))[^`\n]*")
# Not a part of an address, of a file's name, or of an option of pip.
NAME = re.compile(r"(?<![\w./-])(?<!--no-binary )pyspark-kafka(?![\w/-])(?:\[([\w,-]+)\])?")
# Bytecode, which runs of the examples leave, and pictures.
_NO_TEXTS = {".pyc", ".png"}
EXTRAS = {*licences.own_requirements()[1]}


def faults(text: str) -> Iterator[str]:
    """Yield the commands that install the package otherwise, each with its line and with what to write."""
    for command in COMMAND.finditer(text):
        line = text.count("\n", 0, command.start()) + 1
        for name in NAME.finditer(command[0]):
            wanted = version.install_command(name[1] or "").removeprefix("pip install ")
            if wanted not in command[0]:
                yield f"{line}: {command[0]}: write {wanted}"
            if not {*(name[1] or "avro").split(",")} <= EXTRAS:
                yield f"{line}: {command[0]}: the package has no such extra"


def test_package_is_installed_everywhere_by_the_same_command() -> None:
    files = [path for place in PLACES for path in sorted(REPO.glob(place)) if path.is_file()]
    files = [path for path in files if path.suffix not in _NO_TEXTS]
    found = {path: list(faults(path.read_text())) for path in files}
    assert not any(found.values()), "\n".join(
        f"{path.relative_to(REPO)}:{fault}" for path, several in found.items() for fault in several
    )
    first_lines = ("README.md", "docs/index.md", "docs/install.md")
    assert [name for name in first_lines if 'pip install "pyspark-kafka[' not in (REPO / name).read_text()] == []


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_page_says_that_there_is_no_release_until_an_index_has_the_package(page: str) -> None:
    assert ("There is no release yet" in (REPO / page).read_text()) is not version.ON_INDEX


def test_repository_is_that_of_the_metadata() -> None:
    assert f'\nSource = "{version.REPOSITORY}"\n' in (REPO / "pyproject.toml").read_text()


@pytest.mark.parametrize("on_index", [False, True])
def test_command_of_the_other_state_is_found(on_index: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "ON_INDEX", not on_index)
    commands = [version.install_command(extra) for extra in ("", "json", "spark,cli")]
    assert [list(faults(f"Run `{command}`.")) for command in commands] == [[], [], []]
    monkeypatch.setattr(version, "ON_INDEX", on_index)
    assert [len(list(faults(f"\n`env/bin/{command} polars`"))) for command in commands] == [1, 1, 1]


@pytest.mark.parametrize(
    "line",
    ["pip install pyspark-kafka", 'pip install -U "pyspark-kafka[sparc]"', 'ARG PACKAGE="pyspark-kafka[json]==1.0"'],
)
def test_other_command_is_found(line: str) -> None:
    assert list(faults(line))


@pytest.mark.parametrize(
    "line", ["pip install dist/pyspark_kafka-*-cp312-*.whl", 'pip install ".[spark]"', "pyspark-kafka lag"]
)
def test_command_without_the_name_of_the_package_is_left_alone(line: str) -> None:
    assert list(faults(line)) == []
