"""The counters of the processes of one application on one machine, as files: each writes its own, one reads them all.

PySpark runs planning, commits and tasks in Python processes of their own, and has no way to send numbers from them to
the program. But all of them know the folder of `SparkContext.addFile`, which belongs to the application, which only its
user can open, and which Spark deletes in the end. On a local Spark it is one folder; on a cluster the driver's
processes share one, and the executors, on other machines, have none in common with them.

Who reads makes a folder in it. Without one nobody writes. A file is written in place, in one call: a line of JSON and
one with its checksum, so that who reads it meanwhile notices.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.util import is_remote_only

from pyspark_kafka._base.counters import COUNTERS, GAUGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._base.counters import Counters

FOLDER = "pyspark-kafka-counters"
TASK, DRIVER = "task", "driver"

_SUFFIX = ".json"
_MAX_BYTES = 64 * 1024
_MAX_FILES = 10_000
# A file that is written at this moment is whole a moment later.
_READ_TIMES = 3


class CounterFile:
    """Writes the counters of this process when they have changed. Safe to use from several threads.

    Runs on: driver and executor, in the processes that Spark starts. Writing takes some 20 microseconds, once for each
    task or second at most in which something has changed; the file stays open.

    Args:
        counters: of this process.
    """

    def __init__(self, counters: Counters = COUNTERS) -> None:
        self._counters = counters
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._process_id = os.getpid()
        self._name = f"{self._process_id}-{os.urandom(4).hex()}{_SUFFIX}"
        self._role = DRIVER
        self._started: str | None = None
        # The application's folder for files, and the file in it.
        self._root: str | None = None
        self._descriptor = -1
        self._written = 0

    def write(self) -> None:
        """Write the counters, if there is a folder for them and they have changed. Never raises."""
        try:
            if self._process_id != os.getpid():
                # The parent's is its own.
                self._close()
                self._reset()
            root = _files_folder()
            if root is None or (self._root == root and self._written == self._counters.version):
                return
            with self._lock:
                self._write(root)
        except Exception:  # noqa: BLE001, S110 - a figure that is missing must not end a task
            pass

    def _write(self, root: str) -> None:
        path = f"{root}/{FOLDER}/{self._name}"
        if self._root != root or not os.access(path, os.F_OK):
            self._close()
            if not os.access(f"{root}/{FOLDER}", os.F_OK):
                return
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._root, self._started = root, _start_of(self._process_id)
        # Not at the top: a PySpark for Spark Connect alone has neither, nor files of its own to count.
        from pyspark import TaskContext  # noqa: PLC0415

        if TaskContext.get() is not None:
            self._role = TASK
        version = self._counters.version
        content = {
            "pid": self._process_id,
            "started": self._started,
            "role": self._role,
            "values": self._counters.values(),
        }
        os.pwrite(self._descriptor, to_lines(content), 0)
        self._written = version

    def _close(self) -> None:
        self._root, descriptor, self._descriptor = None, self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


@dataclass(slots=True)
class ProcessTotals:
    """The counters of the processes of one role.

    Attributes:
        processes: how many of them are alive.
        values: sums; of gauges, over live processes.
    """

    processes: int = 0
    values: dict[str, float] = field(default_factory=dict)

    def add(self, values: Mapping[str, float], *, alive: bool) -> None:
        """Add the counters of a process."""
        self.processes += alive
        for name, value in values.items():
            if alive or name not in GAUGES:
                self.values[name] = self.values.get(name, 0) + value


class CounterFiles:
    """Reads the counters of all processes of an application on this machine.

    What ended processes have counted stays counted. Safe to use from several threads.

    Runs on: driver. The work grows with the number of processes that are alive: about 0.1 ms for each.

    Args:
        root: the application's folder for files; the folder for counters is made in it.
    """

    def __init__(self, root: str) -> None:
        self._folder = Path(root) / FOLDER
        self._lock = threading.Lock()
        # By name of the file: role and values, as they were last.
        self._last: dict[str, tuple[str, dict[str, float]]] = {}
        self._ended: dict[str, ProcessTotals] = {}
        # Files of processes that have ended, and that could not be removed: their counters count once.
        self._counted: set[str] = set()
        with contextlib.suppress(FileExistsError):
            self._folder.mkdir(mode=0o700)

    def read(self) -> dict[str, ProcessTotals]:
        """Return the counters by role, `task` or `driver`; a role of which no process was heard of is absent."""
        with self._lock:
            alive = self._look()
            for name in self._last.keys() - alive:
                role, values = self._last.pop(name)
                self._counted.add(name)
                self._ended.setdefault(role, ProcessTotals()).add(values, alive=False)
            found: dict[str, ProcessTotals] = {}
            for role, ended in self._ended.items():
                found.setdefault(role, ProcessTotals()).add(ended.values, alive=False)
            for role, values in self._last.values():
                found.setdefault(role, ProcessTotals()).add(values, alive=True)
            return found

    def _look(self) -> set[str]:
        """Read all files, remove the files of processes that have ended, and return the names of the others."""
        alive: set[str] = set()
        try:
            names = self._names()
        except (FileNotFoundError, NotADirectoryError):
            # The application has ended, and Spark has removed it.
            return alive
        except OSError:
            # Such as too many open files: it says nothing about processes, and a file of one that lives must stay.
            return set(self._last)
        for name in names:
            path = self._folder / name
            if name in self._counted:
                with contextlib.suppress(OSError):
                    path.unlink()
                continue
            content = _read(path)
            if content is None:
                # Of a process that is known, what it wrote last counts until the file can be read again.
                if name in self._last:
                    alive.add(name)
                continue
            self._last[name] = content["role"], content["values"]
            if _is_alive(content["pid"], content["started"]):
                alive.add(name)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
        return alive

    def _names(self) -> list[str]:
        """Return the names of the files to read: all known files, and new files up to the limit."""
        found = sorted(path.name for path in self._folder.iterdir() if path.name.endswith(_SUFFIX))
        self._counted &= set(found)
        known = [name for name in found if name in self._last or name in self._counted]
        new = [name for name in found if name not in self._last and name not in self._counted]
        return known + new[: max(0, _MAX_FILES - len(known))]


def to_lines(content: Mapping[str, Any]) -> bytes:
    """Return what a file begins with: a line of JSON, and its checksum. What a longer text has left may follow."""
    line = json.dumps(content).encode()
    return b"%s\n%08x\n" % (line, zlib.crc32(line))


def _read(path: Path) -> dict[str, Any] | None:
    """Return what a process has written; None if that is not what it should be."""
    try:
        content = json.loads(_whole_line(path))
        values = {str(name): float(value) for name, value in content["values"].items()}
        role = TASK if content["role"] == TASK else DRIVER
        return {"pid": int(content["pid"]), "started": content["started"], "role": role, "values": values}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _whole_line(path: Path) -> bytes:
    for _ in range(_READ_TIMES):
        with path.open("rb") as file:
            line, _, rest = file.read(_MAX_BYTES).partition(b"\n")
        if rest.startswith(b"%08x\n" % zlib.crc32(line)):
            return line
    raise ValueError("the file is not whole")


def _start_of(process_id: int) -> str | None:
    """Return when a process began, in a form to compare: ids are used again. None where the system does not say."""
    try:
        with open(f"/proc/{process_id}/stat", "rb") as file:  # noqa: PTH123 - hot, and a file of the kernel
            # The name in parentheses may contain anything; the 22nd field is the 20th behind it.
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return None


def _is_alive(process_id: int, started: str | None) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return started is None or _start_of(process_id) in (started, None)


def _files_folder() -> str | None:
    """Return the application's folder for files, in a process that Spark has started; None elsewhere."""
    if is_remote_only():
        return None
    from pyspark import SparkFiles  # noqa: PLC0415 - as above

    return SparkFiles._root_directory if SparkFiles._is_running_on_worker else None  # noqa: SLF001 - its method asks the JVM of a program


_FILE = CounterFile()


def write_counters() -> None:
    """Write the counters of this process to its application's folder; see `CounterFile.write`."""
    _FILE.write()
