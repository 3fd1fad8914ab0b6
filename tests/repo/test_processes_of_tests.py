"""A unit test that starts a process fails, whichever way it does, and also where the tested code hides it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kit.fixtures.processes import WATCH
from kit.pointers import REPO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TESTS = """
import contextlib
import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("no_process_is_started")


def test_one():
    with contextlib.suppress(BaseException):
        subprocess.Popen(["true"])


def test_two():
    pass
"""


@pytest.mark.parametrize(
    ("start", "arguments"),
    [
        (subprocess.run, (["true"],)),
        (os.fork, ()),
        (os.system, ("true",)),
        (os.posix_spawn, ("/bin/true", ["true"], {})),
        (os.spawnv, (os.P_WAIT, "/bin/true", ["true"])),
    ],
)
def test_start_of_a_process_is_refused_while_it_is_watched(
    start: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    WATCH.begin()
    try:
        with pytest.raises(AssertionError, match=r"A unit test starts a process: .* Move it to tests/integration\."):
            start(*arguments)
    finally:
        started = WATCH.end()
    assert len(started) == 1
    assert WATCH.end() == []
    subprocess.run([sys.executable, "-c", ""], check=True)


def test_start_that_the_tested_code_hides_fails_its_test_alone(tmp_path: Path) -> None:
    (tmp_path / "test_starts.py").write_text(_TESTS)
    options = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "kit.fixtures.processes")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(REPO / "tests")},
    )  # fmt: skip
    assert "2 passed, 1 error" in run.stdout, run.stdout + run.stderr
    assert "A unit test starts a process: subprocess.Popen true. Move it to tests/integration." in run.stdout
