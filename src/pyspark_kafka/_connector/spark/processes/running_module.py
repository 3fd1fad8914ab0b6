"""The program of this process."""

from __future__ import annotations

import sys


def module_of_spark() -> str:
    """Return the module of PySpark that this process runs, such as `pyspark.daemon`; empty in a user's program.

    Runs on: driver and executor.
    """
    specification = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = "" if specification is None else str(specification.name)
    return name if name.startswith("pyspark.") else ""
