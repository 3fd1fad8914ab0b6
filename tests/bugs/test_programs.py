"""Small programs that have shown a defect are run again: each raises while the defect is there.

A program is a file in `programs/` with a docstring, what went wrong, and a function `run` without arguments. It begins
no process, takes seconds, and needs nothing but the package, `tests/kit` and the loopback.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_finds_no_defect_again(program: Path) -> None:
    found = runpy.run_path(str(program))
    assert found["__doc__"]
    found["run"]()
