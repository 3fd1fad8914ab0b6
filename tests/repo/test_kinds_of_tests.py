"""Kinds of tests: read from their code, and held by a guard while they run."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.fixtures import kinds
from kit.kinds import started_by
from kit.pointers import REPO
from kit.programs import run as programs
from kit.source_tree import python_files, text_of
from pyspark_kafka.testing import EmbeddedKafka


def own_broker() -> None:
    with EmbeddedKafka():
        pass


class Helper:
    @staticmethod
    def start() -> None:
        own_broker()


def by_a_helper() -> None:
    def within() -> None:
        Helper.start()

    within()


def by_a_module() -> None:
    programs.run_program("print(1)", place=Path())


def by_its_import() -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    SparkSession.builder.getOrCreate()


def by_a_fork() -> None:
    multiprocessing.get_context("fork")


def by_its_name(request: pytest.FixtureRequest) -> SparkSession:
    session: SparkSession = request.getfixturevalue("spark")
    return session


def test_reasons_to_leave_tests_out_are_the_table_of_contributing() -> None:
    text = text_of(REPO / "CONTRIBUTING.md").partition("### Tests that `make test` leaves out")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE)) - {"Reason", "---"}
    given = {
        reason
        for path in python_files(REPO / "tests")
        for reason in re.findall(r'mark\.full\("([^"]+)"\)', text_of(path))
    }
    assert given == told


def nothing() -> str:
    return "SparkSession, subprocess"


def test_kinds_of_a_function_are_read_from_all_that_it_reaches() -> None:
    expected: dict[Any, set[str]] = {
        own_broker: {"broker"},
        by_a_helper: {"broker"},
        by_a_module: {"process"},
        by_its_import: {"spark"},
        by_a_fork: {"process"},
        by_its_name: {"spark"},
        nothing: set(),
    }
    assert {function: started_by([function]) for function in expected} == expected


def run_as(kind: str, test: Any, profile: str = "quick") -> None:
    """Run a function as the guard runs a test of a kind."""
    config = SimpleNamespace(getoption=lambda name, default: profile)  # noqa: ARG005
    item: Any = SimpleNamespace(user_properties=[("kind", kind)], config=config)
    call = kinds.pytest_runtest_call(item)
    next(call)
    test()
    with pytest.raises(StopIteration):
        call.send(None)


def test_guard_fails_a_test_without_a_kind_that_starts_a_program() -> None:
    starts: tuple[Callable[[], object], ...] = (
        lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        lambda: os.system("true"),  # noqa: S605
        lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
        lambda: os.waitpid(os.fork() or os._exit(0), 0),
    )
    for start in starts:
        run_as("process", start)
        with pytest.raises(AssertionError, match=r"starts a process: .* Move it to tests/integration"):
            run_as("plain", start)


def test_guard_fails_a_long_test_without_a_kind() -> None:
    with pytest.MonkeyPatch.context() as guard:
        guard.setattr(kinds, "MAX_PLAIN_S", -1.0)
        for kind in ("broker", "spark", "process"):
            run_as(kind, nothing)
        for kind in ("plain", "property"):
            with pytest.raises(AssertionError, match=r"at most -1\.0 s are expected"):
                run_as(kind, nothing)
        run_as("property", nothing, profile="full")
        with pytest.raises(AssertionError, match="the test took"):
            run_as("plain", nothing, profile="full")


def test_time_in_which_a_busy_machine_held_a_test_back_does_not_count() -> None:
    held_back = iter([0.0, 1000.0])
    with pytest.MonkeyPatch.context() as guard:
        guard.setattr(kinds, "_held_back_s", lambda: next(held_back))
        guard.setattr(kinds, "MAX_PLAIN_S", -900.0)
        run_as("plain", nothing)


def test_time_in_which_threads_of_a_test_were_held_back_does_not_count() -> None:
    def in_a_thread() -> None:
        thread = threading.Thread(target=nothing)
        thread.start()
        thread.join()

    this_thread = threading.get_ident()
    with pytest.MonkeyPatch.context() as guard:
        guard.setattr(kinds, "_held_back_s", lambda: 0.0 if threading.get_ident() == this_thread else 1000.0)
        guard.setattr(kinds, "MAX_PLAIN_S", -900.0)
        run_as("plain", in_a_thread)
        with pytest.raises(AssertionError, match="the test took"):
            run_as("plain", nothing)


def test_half_of_the_cpu_time_of_a_test_counts() -> None:
    cpu = iter([0.0, 1000.0])
    with pytest.MonkeyPatch.context() as guard:
        guard.setattr(kinds, "thread_time", lambda: next(cpu))
        guard.setattr(kinds, "MAX_PLAIN_S", -490.0)
        run_as("plain", nothing)
