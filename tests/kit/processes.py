"""Living processes by the environment of their start: processes that another process has started have it, too."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def processes_with(variable: str, is_wanted: Callable[[str], bool]) -> dict[int, str]:
    """Return the command lines of living processes with a variable whose value is wanted, by process id.

    Without this process; empty where there is no /proc.
    """
    name, found = f"{variable}=".encode(), {}
    for folder in Path("/proc").glob("[0-9]*"):
        # It may end meanwhile, or be another user's.
        with suppress(OSError):
            variables = (folder / "environ").read_bytes().split(b"\0")
            values = (os.fsdecode(each[len(name) :]) for each in variables if each.startswith(name))
            if any(map(is_wanted, values)) and int(folder.name) != os.getpid():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = command.decode(errors="replace").strip()
    return found
