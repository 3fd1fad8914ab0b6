"""`prepare()`, which a program calls before its first Spark session: the right Python, started sooner."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from pyspark_kafka._connector.spark.processes.python_choice import warn_without_package
from pyspark_kafka.errors import SetupError
from pyspark_kafka.version import install_command

_PROGRAM = "pyspark-kafka-python"
_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def worker_program() -> Path:
    """Return the path of this environment's `pyspark-kafka-python`, a Python that Spark's processes start sooner with.

    The file does not exist if pip has not installed this package.
    """
    return Path(sysconfig.get_path("scripts")) / _PROGRAM


def prepare() -> bool:
    """Make Spark start this Python, and start it sooner. Call it before the session is created.

    Sets the environment variable PYSPARK_PYTHON to the program `pyspark-kafka-python` of this environment. Without the
    variable Spark starts the `python3` of PATH, and if that lacks this package, Spark reports DATA_SOURCE_NOT_FOUND.
    If PYSPARK_PYTHON or PYSPARK_DRIVER_PYTHON is set, it stays; if the Python that it names lacks this package, that is
    logged as a warning. On a cluster, executors start the same path.

    Runs on: driver, also if `remote("local")` starts a server of Spark Connect there. For a server elsewhere, set the
    variable in the environment of the server.

    Returns:
        True if Spark will start the program, False if the user has chosen another Python.

    Raises:
        SetupError: Spark is running and keeps the environment that it was started with, or the program does not exist.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - pyspark-kafka can be imported without it

    chosen = [name for name in _VARIABLES if os.environ.get(name)]
    program = worker_program()
    if chosen:
        warn_without_package()
        return any(Path(os.environ[name]).name == _PROGRAM for name in chosen)
    if getattr(SparkContext, "_gateway", None) is not None:
        raise SetupError(
            "prepare() was called with Spark running: it keeps the environment that it was started with. Nothing was "
            "changed.",
            condition="PREPARED_TOO_LATE",
            hint="Call it before the first session of the program is created.",
        )
    if not program.is_file():
        raise SetupError(
            f"There is no program {program}, which pip installs with pyspark-kafka. Nothing was changed.",
            condition="PROGRAM_MISSING",
            hint=f"Run {install_command()} in this environment, or replace prepare() with "
            'os.environ["PYSPARK_PYTHON"] = sys.executable.',
            parameters={"program": str(program)},
        )
    os.environ["PYSPARK_PYTHON"] = str(program)
    return True
