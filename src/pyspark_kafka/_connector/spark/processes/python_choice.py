"""The Python that Spark starts its processes with, and whether this package is installed in it.

Spark looks for Python data sources in that Python. If it lacks this package, Spark reports `DATA_SOURCE_NOT_FOUND` and
names no Python; the functions here do. Nothing here imports PySpark, so that programs without a session can call them.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from functools import cache

from pyspark_kafka.errors import SetupError

_LOG = logging.getLogger(__name__)

# In the order in which Spark's driver reads them.
_VARIABLES = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
_DEFAULT = "python3"
# PySpark sets it in a program whose server of Spark Connect it starts itself, with `remote("local")`.
_LOCAL_SERVER = "SPARK_LOCAL_REMOTE"

_PROBE = "import importlib.util, sys; sys.exit(3 if importlib.util.find_spec('pyspark_kafka') is None else 0)"
_LACKS_PACKAGE = 3
_PROBE_TIMEOUT_S = 10.0


def lacks_package() -> bool:
    """Return whether the Python that Spark would start from this environment lacks this package.

    False also if that Python cannot be run or does not respond within 10 s: then nothing is known about it.

    Runs on: driver. Starts that Python once for each program that the environment names, about 50 ms; later calls
    read memory.
    """
    return _program_lacks_package(_chosen()[1])


def describe_pythons() -> str:
    """Return the Python that Spark starts and this program's, as a sentence without its full stop."""
    variable, program = _chosen()
    runs = f"{variable} is '{program}'" if variable else "PYSPARK_PYTHON is not set, so it runs the python3 of PATH"
    return f"{runs}; this program runs {sys.executable}, which has it"


def hint() -> str:
    """Return the remedy if Spark's Python lacks this package."""
    variable = _chosen()[0]
    # prepare() keeps a variable that is set.
    remedy = f'Put os.environ["{variable}"] = sys.executable' if variable else "Call pyspark_kafka.prepare()"
    return (
        f"{remedy} before the session is created, in a new process (restart the kernel of a notebook). On a cluster, "
        "install the package on every node."
    )


def without_package() -> SetupError:
    """Build the error for a read that found a Python without this package."""
    return SetupError(
        "Spark does not find the format 'pyspark_kafka': the Python that it starts does not have this package. "
        f"{describe_pythons()}. Nothing was read.",
        condition="PYTHON_WITHOUT_PACKAGE",
        hint=hint(),
    )


def warn_without_package(session: object = None, *, table: str | None = None) -> None:
    """Log a warning if Spark's Python lacks this package, before Spark reports that it does not find the format.

    Runs on: driver, in the user's program. See `lacks_package`.

    Args:
        session: the Spark session, if there is one. A server of Spark Connect elsewhere has an environment of its own,
            so nothing is known about its Python.
        table: the format of a user's own table, which Spark finds and cannot unpickle; None: this package's.
    """
    elsewhere = session is not None and not hasattr(session, "_jsparkSession") and not os.environ.get(_LOCAL_SERVER)
    if not elsewhere and lacks_package():
        _LOG.warning(
            "Spark will report %s for the format %r: the Python that it starts does not have this package. %s. %s",
            "DATA_SOURCE_NOT_FOUND" if table is None else "No module named 'pyspark_kafka'",
            table or "pyspark_kafka",
            describe_pythons(),
            hint(),
        )


def _chosen() -> tuple[str | None, str]:
    """Return the variable that names Spark's Python, None without one, and the program."""
    for variable in _VARIABLES:
        if program := os.environ.get(variable):
            return variable, program
    return None, _DEFAULT


@cache
def _program_lacks_package(program: str) -> bool:
    if program == sys.executable:
        return False
    try:
        done = subprocess.run(  # noqa: S603 - the program that Spark runs
            [program, "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == _LACKS_PACKAGE
