"""Runs programs of users: scripts in a process and a folder of their own."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MAX_S = 450
_TESTS = Path(__file__).resolve().parents[2]
# Of the machine, not of this run: looked up before the run has a folder for temporary files of its own.
_CONNECT_PORT_LOCK = Path(tempfile.gettempdir()) / "pyspark-kafka-tests-connect.lock"


def python_without_packages(place: Path, *, name: str = "python3") -> Path:
    """Make a Python that has no packages, as that of a system, alone in a folder, and return its path."""
    script = place / "other" / name
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return script


def run_program(text: str, *arguments: str, place: Path, flags: tuple[str, ...] = ()) -> str:
    """Run a script and return what it printed; fails with its last error output where it fails."""
    return run_logging_program(text, *arguments, place=place, flags=flags)[0]


def run_logging_program(
    text: str,
    *arguments: str,
    place: Path,
    flags: tuple[str, ...] = (),
    environment: Mapping[str, str | None] | None = None,
) -> tuple[str, str]:
    """Run a script and return what it printed, and what it and the processes that it started logged.

    `environment` adds to the variables of this process; None takes one away.
    """
    script = place / "program.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, *flags, str(script), *arguments],
        cwd=place, capture_output=True, text=True, timeout=_MAX_S, check=False,
        env={name: value for name, value in {**os.environ, **(environment or {})}.items() if value is not None},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout, done.stderr


def start_program(*arguments: str, log: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start Python in a process group of its own; what it prints is added to a file.

    It and the workers of its Spark find what tests import.
    """
    own = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(_TESTS), os.environ.get("PYTHONPATH", "")])),
        **(environment or {}),
    }
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, **own},
        )  # fmt: skip


def kill_program(process: subprocess.Popen[bytes]) -> None:
    """Kill such a program with its process group, if it still runs."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_connect_program(
    text: str,
    *arguments: str,
    place: Path,
    flags: tuple[str, ...] = (),
    environment: Mapping[str, str | None] | None = None,
) -> str:
    """Run a script that makes its session with `remote("local[2]")`; see `run_logging_program`."""
    with connect_server_port():
        return run_logging_program(text, *arguments, place=place, flags=flags, environment=environment)[0]


@contextmanager
def connect_server_port() -> Iterator[None]:
    """Wait for the port on which the server of a `remote("local[2]")` listens, or of a pipeline: always the same one.

    Tests may run side by side.
    """
    with _CONNECT_PORT_LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
