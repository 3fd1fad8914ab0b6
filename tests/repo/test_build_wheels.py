"""tools/build_wheels.py: the lines that `make wheels` prints while it builds for minutes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest


def test_each_wheel_is_named_before_it_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # It looks for interpreters, of which this test names two; the environment of a release has it.
    monkeypatch.setitem(sys.modules, "findpython", ModuleType("findpython"))
    build_wheels = importlib.import_module("build_wheels")
    said_before: list[str] = []

    def build(*_: object) -> Path:
        said_before.append(capsys.readouterr().out)
        (tmp_path / f"{len(said_before)}.whl").touch()
        return tmp_path / f"{len(said_before)}.whl"

    for step in ("build_sdist", "build_pure_wheel", "build_compiled_wheel"):
        monkeypatch.setattr(build_wheels, step, build)
    for step in ("run", "check_file"):
        monkeypatch.setattr(build_wheels, step, lambda *_: None)
    monkeypatch.setattr(build_wheels, "minor_version", lambda python: python.removeprefix("python"))
    arguments = ["--to", str(tmp_path), "--python", "python3.10", "--python", "python3.11"]
    monkeypatch.setattr(sys, "argv", ["build_wheels.py", *arguments])
    build_wheels.main()

    assert said_before == [
        "sdist …\n",
        "Pure-Python wheel …\n",
        "CPython 3.10: compiling, 1 of 2 …\n",
        "CPython 3.11: compiling, 2 of 2 …\n",
    ]
    assert capsys.readouterr().out.startswith("Checking metadata, contents and sizes …\n")
