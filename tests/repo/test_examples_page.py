"""The page of the examples lists all of them."""

from __future__ import annotations

import re

from kit.pointers import REPO


def test_page_lists_each_notebook_and_program_of_the_folder_once() -> None:
    page = (REPO / "docs" / "examples.md").read_text()
    listed = re.findall(r"^\| \[`([\w-]+\.\w+)`\]\(\.\./(examples/[\w/.-]+)\) \| .{20,}\|$", page, re.MULTILINE)
    files = {path for path in (REPO / "examples").rglob("*") if path.suffix in {".py", ".ipynb"}}
    assert len(files) > 10
    assert sorted(path for _, path in listed) == sorted(path.relative_to(REPO).as_posix() for path in files)
    assert all(path.endswith(f"/{name}") for name, path in listed)
