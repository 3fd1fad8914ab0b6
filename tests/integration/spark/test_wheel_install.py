"""A stranger's installation: a wheel, an empty environment, no compiler, the README's first programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import try_wheel

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.full("Installation from a wheel"), pytest.mark.timeout(900)]


def test_pure_wheel_runs_the_first_programs_in_an_environment_without_a_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path / "dist"), "."]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "PYSPARK_KAFKA_PURE_PYTHON": "1"})
    place = tmp_path / "stranger"
    place.mkdir()

    try_wheel.try_wheel(tmp_path / "dist", place, use_caches=True)

    codec, times = capsys.readouterr().out.splitlines()
    assert "compiled=False" in codec
    assert "first rows" in times
    assert not (place / "programs" / "gcc").exists()
