"""The Makefile: a short list of targets, a long one, and the parts whose tests `WING=` selects."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from kit.pointers import REPO
from kit.source_tree import PACKAGE

TEXT = (REPO / "Makefile").read_text()
PARTS = {name: folders.split() for name, folders in re.findall(r"^wing_(\w+) := (.+)$", TEXT, re.MULTILINE)}
DESCRIBED = set(re.findall(r"^([a-z0-9-]+):.*  ##\*? ", TEXT, re.MULTILINE))
# Ground and doors of all parts.
SHARED = {"_base", "spark"}


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make without the variables of a make that runs this test."""
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKEOVERRIDES"}}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=REPO, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def listed(target: str) -> list[str]:
    return re.findall(r"^  make ([a-z0-9-]+) +[A-Z]", make(target).stdout, re.MULTILINE)


def test_help_shows_ten_targets_and_help_all_each_described_one() -> None:
    shown = listed("help")
    assert len(shown) == 10
    assert "help-all" in shown
    every = listed("help-all")
    assert set(every) == DESCRIBED
    assert len(every) == len(DESCRIBED) > len(shown)


def test_each_folder_of_the_package_is_in_one_part() -> None:
    named = [folder for folders in PARTS.values() for folder in folders]
    assert len(named) == len(set(named))
    assert [folder for folder in named if not (PACKAGE / folder / "__init__.py").exists()] == []
    rooms = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("__init__.py")} - {"."}
    # A folder belongs to a part if it, a folder around it, or each folder in it is named.
    split = {folder.rpartition("/")[0] for folder in named}
    for room in rooms - split:
        parts = [folder for folder in named if f"{room}/".startswith(f"{folder}/")]
        assert len(parts) == (0 if room.partition("/")[0] in SHARED else 1), room


def test_parts_are_those_of_the_architecture_page() -> None:
    page = (REPO / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| [^|`]+: ((?:`[^`]+`(?:, )?)+) \| [\d,]+ \|", page, re.MULTILINE)
    told = {frozenset(name.rstrip("/") for name in re.findall(r"`([^`]+)`", row)) for row in rows}
    assert {frozenset(folders) for folders in PARTS.values()} == told


@pytest.mark.parametrize("part", PARTS)
def test_part_selects_folders_of_its_tests_only(part: str) -> None:
    command = next(line for line in make("-n", "test", f"WING={part}").stdout.splitlines() if "-m pytest -n" in line)
    places = re.findall(r"tests/\w+/([\w/]+)", command)
    assert set(places) <= set(PARTS[part])
    assert {place for place in PARTS[part] if (REPO / "tests" / "unit" / place).is_dir()} <= set(places)
    assert len(places) >= len(PARTS[part])


def test_unknown_part_is_refused_with_the_list() -> None:
    done = make("-n", "test", "WING=tpyed")
    assert done.returncode == 2
    assert f"WING is one of: {' '.join(PARTS)}." in done.stderr
