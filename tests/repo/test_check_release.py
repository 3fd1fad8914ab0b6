"""What keeps a version from being released is one sentence each."""

from __future__ import annotations

import pytest

import check_release

CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-11-24\n\n- Faster.\n\n## 0.1.0 - 2026-01-01\n\n- First.\n"


def test_version_with_its_tag_and_a_dated_section_may_be_released() -> None:
    assert check_release.problems("v0.2.0", "0.2.0", CHANGELOG) == []


@pytest.mark.parametrize(
    ("tag", "changelog", "problem"),
    [
        ("v0.2.1", CHANGELOG, "the tag is v0.2.1"),
        ("v0.2.0", CHANGELOG.replace("0.2.0 - 2026-11-24", "0.2.0"), "has no section '## 0.2.0 - YYYY-MM-DD'"),
        ("v0.2.0", CHANGELOG.replace("- Faster.\n", ""), "section 0.2.0 of CHANGELOG.md is empty"),
        ("v0.2.0", CHANGELOG.replace("Unreleased\n", "Unreleased\n\n- New.\n"), "section Unreleased of CHANGELOG.md"),
    ],
    ids=["another tag", "no date", "no text", "unreleased lines"],
)
def test_difference_keeps_a_version_from_being_released(tag: str, changelog: str, problem: str) -> None:
    (found,) = check_release.problems(tag, "0.2.0", changelog)
    assert problem in found
