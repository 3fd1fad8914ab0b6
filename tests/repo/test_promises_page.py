"""docs/promises.md: each promise names tests and runs that exist, and each outcome is that of its record."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

import promises
import results
from kit.pointers import REPO, has_symbol
from kit.source_tree import text_of
from promises import PROMISES, RUNS, Promise, states
from pyspark_kafka.version import __version__

ROWS = [row for rows in PROMISES.values() for row in rows]
ROW = Promise("It holds.", ("unit/test_a.py::test_b",), "", ("chaos",))


def record(**changes: Any) -> dict[str, Any]:
    return {
        "run": "chaos", "command": "make test-chaos", "date": "2026-01-02T03:04:05+00:00", "commit": "0123456789abcdef",
        "changed": False, "version": __version__, "broker": "4.1.0", "spark": "4.2.0", "python": "3.12.1",
        "passed": True, "counts": {"lost": 0, "records out": 12345},
        **changes,
    }  # fmt: skip


@pytest.fixture
def newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all records be of the newest commit."""
    monkeypatch.setattr(promises, "commits_since", lambda _: 0)


def shown(**records: dict[str, Any]) -> list[str]:
    return list(states(ROW, records))


def test_page_is_that_of_the_table_and_the_records() -> None:
    page = (REPO / "docs" / "promises.md").read_text()
    assert page == promises.page(results.read_results()), "run: .venv/bin/python tools/promises.py > docs/promises.md"


@pytest.mark.parametrize("row", ROWS, ids=[row.text[:50] for row in ROWS])
def test_promise_names_tests_that_its_suite_runs_and_recorded_runs(row: Promise) -> None:
    assert row.tests or row.runs
    assert {row.suite, *row.runs} <= RUNS.keys()
    assert f"\n## {row.since} " in text_of(REPO / "CHANGELOG.md")
    for test in row.tests:
        path, _, name = test.partition("::")
        assert has_symbol(path, name), test
        tree = ast.parse(text_of(REPO / "tests" / path))
        marks = [
            ast.unparse(each) for node in tree.body for each in getattr(node, "decorator_list", ()) if _is(node, name)
        ]
        everywhere = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)]
        assert not [mark for mark in (*marks, *everywhere) if "mark.long" in mark], (
            f"{test}: make test-all leaves it out"
        )


def _is(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


def test_each_run_is_recorded_by_a_target() -> None:
    makefile = text_of(REPO / "Makefile")
    programs = [REPO / "tests" / name / "run.py" for name in ("chaos", "soak")]
    programs += [REPO / "bench" / "run.py", REPO / "fuzz" / "run_fuzz.py"]
    names = {name for path in programs for name in re.findall(r'"([\w-]+)"', text_of(path))}
    names |= {
        name.replace("$(SPARK)", spark)
        for name in re.findall(r"recorded,([^)]+\)?[\w-]*)\)", makefile)
        for spark in ("4.0", "4.1")
    }
    families = ("kills-", "faults-")
    assert [name for name in RUNS if name not in names and not name.startswith(families)] == []
    for command in RUNS.values():
        assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE), command


@pytest.mark.usefixtures("newest")
def test_outcome_of_a_run_is_shown_with_date_and_commit() -> None:
    when, missing = "2026-01-02 at `0123456789`", "not run at this version"
    assert shown(tests=record(), chaos=record()) == [f"tests, chaos: {when}"]
    assert shown(tests=record(changed=True)) == [f"tests: {when} with changes", f"chaos: {missing}"]
    failed = ["tests/unit/test_a.py::test_b"]
    assert shown(tests=record(passed=False, failed=failed), chaos=record(passed=False)) == [
        f"tests, chaos: **failed** {when}"
    ]


@pytest.mark.usefixtures("newest")
def test_failure_of_another_test_is_no_failure_of_a_promise_and_a_skipped_test_shows_none() -> None:
    other, own = "tests/unit/test_a.py::test_c", "tests/unit/test_a.py::test_b"
    tests = record(passed=False, failed=[other], skipped=[other])
    assert shown(tests=tests) == ["tests: 2026-01-02 at `0123456789`", "chaos: not run at this version"]
    assert shown(tests=record(skipped=[own])) == ["tests, chaos: not run at this version"]


@pytest.mark.parametrize(("since", "version"), [(None, ""), (promises.MAX_COMMITS + 1, ""), (0, "0.0.1")])
def test_run_of_an_old_commit_another_history_or_another_version_is_shown_as_the_last(
    monkeypatch: pytest.MonkeyPatch, since: int | None, version: str
) -> None:
    monkeypatch.setattr(promises, "commits_since", lambda _: since)
    old = record(version=version or __version__)
    last = "not run at this version; last shown 2026-01-02 at `0123456789`"
    assert shown(tests=old, chaos=old) == [f"tests, chaos: {last}"]
    assert "| passed, but not at this version |" in promises.page({"chaos": old})


@pytest.mark.usefixtures("newest")
def test_record_is_a_row_with_command_conditions_and_counts() -> None:
    page = promises.page({"chaos": record(seed=7), "other": record(passed=False, counts={})})
    when = "2026-01-02, commit `0123456789`, Kafka 4.1.0, PySpark 4.2.0, Python 3.12.1"
    assert f"| chaos | `make test-chaos` | {when}, seed 7 | passed | lost 0, records out 12,345 |" in page
    assert f"| other | `make test-chaos` | {when} | **failed** |  |" in page
    assert page.count("not run at this version |") >= len(RUNS) - 1


def test_commits_are_counted_in_this_history_only() -> None:
    head = results.git("rev-parse", "HEAD")
    assert promises.commits_since(head) == 0
    assert promises.commits_since("0" * 40) is None
    assert promises.commits_since("") is None
