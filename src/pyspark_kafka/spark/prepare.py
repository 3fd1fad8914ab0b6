"""What a program calls before it has a Spark session, so that the first query starts sooner. Layer: spark."""

from __future__ import annotations

import logging
import os
import sysconfig
from pathlib import Path

from pyspark_kafka.errors import SetupError

logger = logging.getLogger(__name__)

_PROGRAM = "pyspark-kafka-python"
_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def prepare() -> bool:
    """Have the Python processes that Spark starts from now on be up sooner; before the session is made.

    Sets the environment variable PYSPARK_PYTHON to the program `pyspark-kafka-python` of this environment, unless the
    user has set it, or PYSPARK_DRIVER_PYTHON. It is Spark's own variable: on a cluster, executors start the same path.

    Runs on: driver, or where `remote("local")` starts a server of Spark Connect. It concerns no server elsewhere: there
    the variable is set for the server itself.

    Returns:
        Whether Spark will start the program; false where the user has chosen a Python.

    Raises:
        SetupError: Spark runs already, with the environment that it was started with; or the program is not there.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - pyspark-kafka can be imported without it

    chosen = [name for name in _VARIABLES if os.environ.get(name)]
    program = Path(sysconfig.get_path("scripts")) / _PROGRAM
    if chosen:
        return any(Path(os.environ[name]).name == _PROGRAM for name in chosen)
    if getattr(SparkContext, "_gateway", None) is not None:
        raise SetupError(
            "prepare() was called with Spark running: it keeps the environment that it was started with. Nothing was "
            "changed.",
            condition="PREPARED_TOO_LATE",
            hint="Call it before the first session of the program is made.",
        )
    if not program.is_file():
        raise SetupError(
            f"There is no program {program}, which pip installs with pyspark-kafka. Nothing was changed.",
            condition="PROGRAM_MISSING",
            hint="Install pyspark-kafka into this environment, or leave prepare() out: it saves time only.",
            facts={"program": str(program)},
        )
    os.environ["PYSPARK_PYTHON"] = str(program)
    return True
