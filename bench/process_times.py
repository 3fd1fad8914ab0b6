"""What each Python process below Spark's JVM is for, when it began, and the CPU time it has used. Linux only."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_EVERY_S = 0.03
# A process is at work when it has used this much CPU since the sample before.
_AT_WORK_S = 0.005


@dataclass
class Process:
    """One process below the JVM.

    Attributes:
        command: its arguments, of a forked child those of its parent.
        began: seconds since the system's start.
        cpu: seconds it has used, when it was last seen.
        worked_until: when it was last seen at work, in seconds since the system's start.
    """

    pid: int
    parent: int
    command: str
    began: float
    cpu: float = 0.0
    worked_until: float = 0.0

    @property
    def purpose(self) -> str:
        """The step of the query that it is started for."""
        modules = [word for word in self.command.split() if word.startswith("pyspark.") and word != "pyspark.daemon"]
        return modules[-1].rpartition(".")[2] if modules else self.command[:60]


class ProcessTimes:
    """Looks at all descendants of a process, again and again, until it is stopped."""

    def __init__(self, ancestor: int) -> None:
        self._ancestor = ancestor
        self._found: dict[int, Process] = {}
        self._ignored: set[int] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> list[Process]:
        """Return all that were seen, the first one first."""
        self._stopped.set()
        self._thread.join()
        self._look()
        return sorted(self._found.values(), key=lambda process: process.began)

    def _run(self) -> None:
        while not self._stopped.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        for entry in Path("/proc").glob("[0-9]*"):
            pid = int(entry.name)
            if pid in self._ignored:
                continue
            process = self._found.get(pid)
            try:
                if process is None:
                    process = _new(pid)
                    if process.parent != self._ancestor and process.parent not in self._found:
                        self._ignored.add(pid)
                        continue
                    self._found[pid] = process
                _update(process)
            except OSError:
                continue  # ended meanwhile


def _fields(pid: int) -> list[str]:
    # The command name may hold spaces and brackets.
    return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _new(pid: int) -> Process:
    fields = _fields(pid)
    command = (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return Process(pid, int(fields[1]), command.strip(), int(fields[19]) / _TICKS_PER_S)


def _update(process: Process) -> None:
    cpu = 0.0
    for task in (Path("/proc") / str(process.pid) / "task").iterdir():
        # Nanoseconds on a core: a tick of `stat` is as long as some processes take.
        cpu += int((task / "schedstat").read_text().split()[0]) / 1e9
    if cpu - process.cpu > _AT_WORK_S:
        process.worked_until = time.clock_gettime(time.CLOCK_BOOTTIME)
    process.cpu = max(cpu, process.cpu)
    if not process.purpose.startswith(("lookup", "create", "plan", "write", "python_", "commit", "worker")):
        # A child that has not yet become another program.
        process.command = _new(process.pid).command
