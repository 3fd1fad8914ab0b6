"""What `make` says on a machine whose Python is too old, incomplete or not there, and which one it takes."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

FIND_PYTHON = Path(__file__).parents[2] / "tools" / "find-python"
OLD = "sys.version_info = (3, 9, 18)"
WITHOUT_VENV = "sys.version_info = (3, 11, 2); sys.modules['ensurepip'] = None"
GOOD = "pass"
INSTALL = "install one (such as 'apt install python3 python3-venv' or from python.org), or name one with PYTHON=."


def put_python(place: Path, name: str, change: str) -> None:
    """Put a program on the PATH of a test: this Python, with a change that makes it look like another."""
    program = place / name
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "import sys; {change}\n$2"\n')
    program.chmod(0o755)


def put_broken(place: Path, name: str) -> None:
    program = place / name
    program.write_text("#!/bin/sh\necho 'version `GLIBC_2.99 not found' >&2\nexit 127\n")
    program.chmod(0o755)


def find_python(place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FIND_PYTHON],
        env={"PATH": str(place)} | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def assert_refused(found: subprocess.CompletedProcess[str], because: str) -> None:
    assert found.returncode == 1
    assert found.stdout == ""
    assert found.stderr == f"pyspark-kafka needs Python 3.10 or newer with its venv module, but {because}: {INSTALL}\n"


def test_no_python_is_said_in_one_sentence(tmp_path: Path) -> None:
    assert_refused(find_python(tmp_path), "here is no Python 3")


def test_a_too_old_python_is_said_in_one_sentence(tmp_path: Path) -> None:
    put_python(tmp_path, "python3", OLD)
    assert_refused(find_python(tmp_path), "here python3 is Python 3.9")


def test_all_that_will_not_do_are_named(tmp_path: Path) -> None:
    put_python(tmp_path, "python3", OLD)
    put_python(tmp_path, "python3.11", WITHOUT_VENV)
    put_broken(tmp_path, "python3.10")
    assert_refused(
        find_python(tmp_path),
        "here python3 is Python 3.9, python3.11 is Python 3.11 without its venv module, python3.10 does not run",
    )


def test_a_newer_python_beside_a_too_old_one_is_found(tmp_path: Path) -> None:
    put_python(tmp_path, "python3", OLD)
    put_python(tmp_path, "python3.12", GOOD)
    found = find_python(tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert Path(found.stdout.strip()).samefile(sys.executable)


def test_the_python_that_is_named_is_taken_and_no_other(tmp_path: Path) -> None:
    put_python(tmp_path, "python3", GOOD)
    put_python(tmp_path, "mine", GOOD)
    assert find_python(tmp_path, PYTHON="mine").returncode == 0
    put_python(tmp_path, "mine", OLD)
    assert_refused(find_python(tmp_path, PYTHON="mine"), "PYTHON names mine, which is Python 3.9")
    assert_refused(find_python(tmp_path, PYTHON="gone"), "PYTHON names gone, which is not there")
