"""What documents and code point to exists: linked pages and their headings, paths of files, pages named in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
PAGES = [*sorted(REPO.glob("*.md")), *sorted((REPO / "docs").rglob("*.md"))]
# Where a path that a page names in backquotes may begin.
ROOTS = (REPO, REPO / "src" / "pyspark_kafka", REPO / "tests")
FOLDERS = ("src", "tests", "bench", "tools", "fuzz", "examples")
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
