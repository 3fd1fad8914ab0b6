"""tools/results.py: records of long runs, and the parts of pages that show them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import results
from kit.fixtures import recorded
from kit.pointers import REPO

END = "<!-- end of the result -->"
PAGE = f"before\n<!-- result: one -->\nold\n{END}\n<!-- result: two -->\nkept\n{END}\nafter"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder into which runs of this test write."""
    monkeypatch.setattr(results, "WRITTEN", tmp_path)
    return tmp_path


def test_run_records_its_command_commit_versions_and_counts(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_BY", "make test-chaos JVM_JARS=/some/place/jars SEED=3 ARGS=--keep\\ /a/b\\ --longest\\ 3")
    results.Run("chaos").end(passed=True, counts={"lost": 0}, text="All is well.", seed=3)
    record = results.read_results(written)["chaos"]
    assert record["command"] == 'make test-chaos JVM_JARS=jars SEED=3 ARGS="--keep b --longest 3"'
    assert record["commit"] == results.git("rev-parse", "HEAD")
    assert (record["seed"], record["passed"], record["counts"]) == (3, True, {"lost": 0})
    assert all(record[what] for what in ("date", "version", "python", "spark", "broker"))


def test_command_without_make_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MADE_BY", raising=False)
    monkeypatch.setattr(sys, "orig_argv", ["/some/python3", "-m", "chaos.run", "--faults", "kill -9"])
    assert results.command() == 'python -m chaos.run --faults "kill -9"'


def test_part_of_a_page_gets_the_text_of_its_run_and_others_stay() -> None:
    record = {
        "command": "make soak", "date": "2026-01-02T03:04:05+00:00", "commit": "0123456789abcdef", "changed": False,
        "broker": "4.1.0", "spark": None, "python": "3.12.1", "text": "new\n\nlines",
    }  # fmt: skip
    page = results.with_texts(PAGE, {"one": record})
    lead = "`make soak`, 2026-01-02, commit `0123456789`, Kafka 4.1.0, Python 3.12.1:"
    assert page == PAGE.replace("old", f"{lead}\n\nnew\n\nlines")
    assert results.with_texts(page, {"one": record}) == page
    assert "commit unknown" in results.with_texts(PAGE, {"one": {**record, "commit": ""}})
    assert "`0123456789` with changes" in results.with_texts(PAGE, {"one": {**record, "changed": True}})


def test_pages_show_the_records_of_the_repository() -> None:
    for path, page in results.pages_with_parts():
        assert results.with_texts(page, results.read_results()) == page, f"{path.name}: run make results"


def test_records_have_no_folder_of_a_machine() -> None:
    for path in results.TAKEN.glob("*.json"):
        assert not re.search(r"(?<![\w.<])/(?:home|work|tmp|Users|root)/", path.read_text()), path.name


def test_each_mark_of_a_page_is_the_name_of_a_run() -> None:
    marks = {name for _, page in results.pages_with_parts() for name in re.findall(r"<!-- result: ([\w-]+) -->", page)}
    kills = {
        f"kills-{name}" for name in ("at-least-once", "exactly-once", "exactly-once-counts", "exactly-once-windows")
    }
    assert marks == {"chaos", "soak", "faults-driver", "faults-tasks", *kills}


def test_record_of_the_tests_names_those_that_failed_or_never_passed(written: Path) -> None:
    def reports(*names: str) -> list[Any]:
        return [SimpleNamespace(nodeid=name) for name in names]

    config: Any = SimpleNamespace(stash=pytest.Stash())
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RECORDED_AS", "tests")
        recorded.pytest_configure(config)
        recorded.pytest_configure(other := SimpleNamespace(stash=pytest.Stash()))  # type: ignore[arg-type]
        assert not len(other.stash)
    stats = {
        "passed": reports("a.py::good", "a.py::both[1]"),
        "failed": reports("a.py::bad[1]", "a.py::bad[2]"),
        "error": reports("a.py::broken"),
        "skipped": reports("a.py::both[2]", "a.py::none[1]"),
    }
    reporter: Any = SimpleNamespace(config=config, stats=stats)
    recorded.pytest_terminal_summary(reporter, pytest.ExitCode.TESTS_FAILED)
    record = json.loads((written / "tests.json").read_text())
    assert record["counts"] == {"passed": 2, "failed": 2, "error": 1, "skipped": 2}
    assert (record["failed"], record["skipped"]) == (["a.py::bad", "a.py::broken"], ["a.py::none"])
    assert not record["passed"]


def test_whole_runs_of_the_tests_are_recorded_and_parts_are_not() -> None:
    text = (REPO / "Makefile").read_text()
    assert re.search(r"^test-all:.*\n(?:\t.*\n)*\t@\$\(call recorded,tests\) ", text, re.MULTILINE)
    assert "recorded = $(if $(ARGS),," in text
