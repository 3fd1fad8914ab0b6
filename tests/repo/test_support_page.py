"""docs/support.md: its versions are those of the package, of its tests and of docs/install.md."""

from __future__ import annotations

import re

import yaml

from kit.pointers import REPO

INSTALL = (REPO / "docs" / "install.md").read_text()
SUPPORT = (REPO / "docs" / "support.md").read_text()
PYPROJECT = (REPO / "pyproject.toml").read_text()
NUMBER = re.compile(r"\d+\.\d+|\d+(?= or newer)")


def chapter(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def row(table: str, begin: str) -> list[str]:
    """Return the cells behind the first one, of the first row that begins so."""
    found = re.search(rf"^\| {begin} \|(.*)\|$", table, re.MULTILINE)
    assert found is not None, begin
    return [cell.strip() for cell in found[1].split("|")]


def test_supported_versions_are_those_of_the_page_of_installation() -> None:
    for name in ("Python", "PySpark", "Java", "Kafka"):
        (installed,) = row(chapter(INSTALL, "Versions"), name)
        supported, *_ = row(chapter(SUPPORT, "Versions"), name)
        assert NUMBER.findall(supported) == NUMBER.findall(re.sub(r"\(.*?\)|`[^`]*`", "", installed)), name


def test_supported_versions_are_those_of_the_package_and_of_its_tests() -> None:
    supported, tested, _ = row(chapter(SUPPORT, "Versions"), "Python")
    assert f'requires-python = ">={NUMBER.findall(supported)[0]}"' in PYPROJECT
    built = [f"{major}.{minor}" for major, minor in re.findall(r'"cp(\d)(\d+)-\*"', PYPROJECT)]
    jobs = yaml.safe_load((REPO / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    assert NUMBER.findall(tested) == [*jobs["test"]["strategy"]["matrix"]["python"], built[0], built[-1]]
    versions = NUMBER.findall(row(chapter(SUPPORT, "Versions"), "PySpark")[0])
    assert f'"pyspark[sql]>={min(versions)},<5"' in PYPROJECT
