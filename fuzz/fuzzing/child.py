"""Starts workers and watches them: what they executed, and the input that one of them ended at."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fuzzing.worker import SHARED_BYTES, SHARED_HEAD

HERE = Path(__file__).resolve().parents[1]
CRASHES = HERE / "crashes"
CORPUS = HERE / "corpus"
# One execution has two seconds of processor time; the rest is for a machine that is busy, and for the start.
_HANGS_AFTER_S = 60.0
_POLL_S = 0.2


@dataclass(frozen=True)
class Job:
    """What one worker is to do; see worker.py for the fields."""

    target: str
    engine: str
    seconds: float
    seed: int
    variants: str
    corpus: Path
    sanitized: bool = False


@dataclass(frozen=True)
class Report:
    """How a worker ended.

    Attributes:
        executions: how many inputs it ran.
        finding: what was found, in a line; empty when nothing was.
        saved: where the input is.
    """

    executions: int
    finding: str = ""
    saved: Path | None = None


def run(job: Job, environment: Mapping[str, str]) -> Report:
    """Run a worker to its end, or to its input that does not end; save the input of a finding."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        shared, log = Path(directory, "shared"), Path(directory, "log")
        shared.write_bytes(bytes(SHARED_BYTES))
        command = [sys.executable, str(HERE / "fuzzing" / "worker.py"), job.target]
        command += [f"--engine={job.engine}", f"--seconds={job.seconds}", f"--seed={job.seed}"]
        command += [f"--variants={job.variants}", f"--shared={shared}", f"--corpus={job.corpus}"]
        command += ["--sanitized"] if job.sanitized else []
        with log.open("wb") as output:
            # In a directory of its own: an engine may leave files where it stands.
            child = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=directory, env={**os.environ, **environment}
            )
            try:
                hung = not _wait(child, shared)
            finally:
                child.kill()
                child.wait()
        executions, data = _read(shared)
        text = log.read_text(errors="replace")
        if not hung and child.returncode == 0:
            return Report(executions)
        if executions == 0:
            sys.exit(f"The worker for {job.target} could not start:\n{text}")
        kind = f"no end after {_HANGS_AFTER_S:.0f} s" if hung else _headline(text, child.returncode)
        return Report(executions, kind, _save(job, data, f"{kind}\n\n{text}"))


def _wait(child: subprocess.Popen[bytes], shared: Path) -> bool:
    """Wait until the worker ends; False when it does not go on."""
    seen, since = -1, time.monotonic()
    while child.poll() is None:
        executions, _ = _read(shared)
        if executions != seen:
            seen, since = executions, time.monotonic()
        elif time.monotonic() - since > _HANGS_AFTER_S:
            return False
        time.sleep(_POLL_S)
    return True


def _read(shared: Path) -> tuple[int, bytes]:
    with shared.open("rb") as file:
        executions, length = SHARED_HEAD.unpack(file.read(SHARED_HEAD.size))
        return executions, file.read(length)


def _headline(text: str, code: int) -> str:
    marks = ("AddressSanitizer", "runtime error", "Error:", "Exception:", "ArrowInvalid:")
    lines = [line.strip() for line in text.splitlines() if any(mark in line for mark in marks)]
    return f"exit code {code}: {lines[0] if lines else 'no error text'}"[:400]


def _save(job: Job, data: bytes, text: str) -> Path:
    CRASHES.mkdir(exist_ok=True)
    path = CRASHES / f"{job.target}-{sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(text)
    return path
