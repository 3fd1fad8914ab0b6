"""A test that fails fails alone: what it left open is not reported in the tests after it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from kit.pointers import REPO

if TYPE_CHECKING:
    from pathlib import Path

_TESTS = """
import gc
import socket


class Cycle:
    def __init__(self, held):
        self.held, self.itself = held, self


def test_one():
    held = socket.socket()
    in_a_cycle = Cycle(socket.socket())
    raise AssertionError


def test_two():
    gc.collect()
"""


def test_only_the_test_that_leaves_a_socket_fails(tmp_path: Path) -> None:
    (tmp_path / "test_them.py").write_text(_TESTS)
    plugins = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "kit.fixtures.leftovers")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", *plugins, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(REPO / "tests")},
    )  # fmt: skip
    assert re.findall(r"^(.*) in [\d.]+s$", done.stdout, re.MULTILINE) == ["1 failed, 1 passed"], done.stdout
