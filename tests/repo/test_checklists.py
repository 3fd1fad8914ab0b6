"""The checklists of CONTRIBUTING.md: each step names a file, and the test that fails if the step is forgotten, or that
none does."""

from __future__ import annotations

import re

import pytest

from kit.pointers import REPO

CHAPTERS = ["Add an option", "Add a request", "Add an error"]
_PATH = re.compile(r"`((?:src|tests|docs)/[\w./-]+|[A-Z]+\.md)`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)`,?[^`.]* fails?\b")
_NO_TEST = "no test fails"


def steps(chapter: str) -> list[str]:
    """Return the numbered steps of a chapter, each as one line."""
    text = (REPO / "CONTRIBUTING.md").read_text().partition(f"\n## {chapter}\n")[2].partition("\n## ")[0]
    return [
        " ".join(step.split()) for step in re.findall(r"^\d\. (.*?)(?=^\d\. |\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_step_names_a_file_and_what_notices_that_it_was_forgotten(chapter: str) -> None:
    assert len(steps(chapter)) >= 3
    for step in steps(chapter):
        assert _PATH.findall(step), step
        assert _TEST.findall(step) or _NO_TEST in step, step


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_files_of_a_checklist_exist(chapter: str) -> None:
    named = {path for step in steps(chapter) for path in _PATH.findall(step)}
    assert {path for path in named if not (REPO / path).exists()} == set()


def test_names_of_the_checklist_for_a_request_are_those_of_the_code() -> None:
    """The examples of the steps are found where the steps say."""
    text = " ".join(steps("Add a request"))
    for name, path in (
        ("TYPE_CHECKING", "src/pyspark_kafka/_client/client/wire/messages.py"),
        ("fetch_log_sizes", "src/pyspark_kafka/_client/client/queries/log_sizes.py"),
        ("REQUESTS", "tests/kit/fakes/tcp_cluster.py"),
    ):
        assert f"`{name}`" in text
        assert path in text
        assert re.search(rf"\b{name}\b", (REPO / path).read_text())
