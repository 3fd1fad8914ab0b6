"""The first pages that a stranger reads: their size, their figures, and the extras that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator

import licences
from kit.pointers import REPO

README = (REPO / "README.md").read_text()
INSTALL = (REPO / "docs" / "install.md").read_text()


def chapter(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def ratios(kind: str) -> Iterator[float]:
    """Yield how many times as fast as Spark's JVM connector the runs of a kind are, from the page of performance."""
    page = (REPO / "docs" / "performance.md").read_text()
    for line in chapter(page, "Throughput, compared with Spark's JVM connector").splitlines():
        if line.startswith(f"| {kind}"):
            yield float(line.split("|")[4].split()[0])


def test_readme_is_read_in_minutes() -> None:
    assert len(README.encode()) <= 9_000


def test_section_of_a_version_in_the_changelog_is_one_screen() -> None:
    sections = re.split(r"^## ", (REPO / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections if len(section.encode()) > 6_000] == []


def test_speed_in_the_readme_is_that_of_the_page_of_performance() -> None:
    text = " ".join(README.split())
    for kind, phrase in (
        ("read", "reads are {} times as fast"),
        ("write", "writes {},"),
        ("Kafka to Kafka", "Kafka to Kafka {} ("),
    ):
        found = sorted(ratios(kind))
        assert len(found) >= 2
        assert phrase.format(f"{found[0]:.1f} to {found[-1]:.1f}") in text.replace("([", "("), kind


def test_extras_on_the_page_of_installation_are_all_extras() -> None:
    table = INSTALL.partition("| Extra | What it is for |")[2].partition("\n\n")[0]
    named = [name for line in table.splitlines()[2:] for name in re.findall(r"`([\w-]+)`", line.split("|")[1])]
    # The extra avro is empty.
    assert sorted([*named, "avro"]) == sorted(licences.own_requirements()[1])
