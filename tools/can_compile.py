"""Tell by the exit code whether C extensions can be built here: a compiler that runs, and Python's headers."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig

compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
headers = sysconfig.get_path("include")
try:
    compiled = subprocess.run(
        [*compiler, f"-I{headers}", "-fsyntax-only", "-x", "c", "-"],
        input=b"#include <Python.h>\n",
        stderr=subprocess.DEVNULL,
        check=False,
    )
except OSError:
    sys.exit(1)
sys.exit(compiled.returncode != 0)
