"""Managed platforms, imitated: the packages of deploy/platforms, our wheel beside them, the README's first programs.

Run by `make test-platforms`, which needs the platforms' Pythons.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import first_row

ROOT = Path(__file__).resolve().parents[4]
PLATFORMS = sorted((ROOT / "deploy" / "platforms").glob("*.txt"))
# Databricks Connect runs nothing without a workspace: the Spark that it is a client of runs the programs.
STANDS_FOR = {"databricks-connect==18.0.*": "pyspark==4.1.0"}
COUNT_COPY = """
print(read.option("subscribe", "fruits-copy").load().count(), "copied")
spark.stop()
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda path: path.stem)
def test_platform_keeps_its_packages_and_runs_the_first_programs(
    platform: Path, pure_wheel: Path, tmp_path: Path
) -> None:
    environment = first_row.stranger(tmp_path, use_caches=True)
    first_row.call([python_of(platform), "-m", "venv", str(tmp_path / "venv")], tmp_path, environment)
    python = str(tmp_path / "venv" / "bin" / "python")
    pins = [line for line in platform.read_text().splitlines() if not line.startswith("#")]
    # Python compiles what the programs import; the rest of these packages would take longer than all else.
    install = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    first_row.call([*install, *(STANDS_FOR.get(pin, pin) for pin in pins)], tmp_path, environment)
    before = packages(python, tmp_path, environment)

    first_row.call([*install, "--constraint", str(platform), str(pure_wheel)], tmp_path, environment)

    after = packages(python, tmp_path, environment)
    assert {name: after.get(name) for name in before} == before
    assert after.keys() - before.keys() >= {"pyspark-kafka"}
    program, table = programs()
    printed = first_row.call([python, "-c", program + COUNT_COPY], tmp_path, environment)
    assert printed == f"{table}\n3 copied\n"


def python_of(platform: Path) -> str:
    """Return a CPython of a version that the first line of the file names."""
    heading = platform.read_text().partition("\n")[0].partition(": Python ")[2]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in re.findall(r"3\.\d+", heading):
        known = sys.executable if version == f"{sys.version_info.major}.{sys.version_info.minor}" else None
        places = [known, shutil.which(f"python{version}"), *map(str, pyenv.glob(f"{version}.*/bin/python"))]
        for place in filter(None, places):
            # What stands on PATH may be a shim without a Python behind it.
            if (
                subprocess.run([place, "-m", "ensurepip", "--version"], capture_output=True, check=False).returncode
                == 0
            ):
                return place
    pytest.fail(f"no CPython {heading} is installed here")


def packages(python: str, place: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the versions of what pip finds installed."""
    listed = first_row.call([python, "-m", "pip", "list", "--format=freeze"], place, environment)
    return dict(line.split("==") for line in listed.splitlines())


def programs() -> tuple[str, str]:
    """Return the programs of "Read and show", and the table that they print."""
    section = (ROOT / "README.md").read_text().partition("\n## Read and show\n")[2].partition("\n## ")[0]
    blocks = first_row.FENCE.findall(section)
    (table,) = (text for language, text in blocks if language == "text")
    return "".join(text for language, text in blocks if language == "python"), table
