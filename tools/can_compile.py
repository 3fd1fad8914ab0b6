"""Tell by the exit code whether C extensions can be built here: a compiler that runs, and Python's headers."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig

COMPILER = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def can_compile() -> bool:
    """Compile an empty program with Python's headers."""
    command = [*COMPILER, f"-I{sysconfig.get_path('include')}", "-fsyntax-only", "-x", "c", "-"]
    try:
        compiled = subprocess.run(command, input=b"#include <Python.h>\n", stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return False
    return compiled.returncode == 0


if __name__ == "__main__":
    sys.exit(not can_compile())
