"""The place of downloads between runs. Only paths are decided here; what is stored is its user's business."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark_kafka.errors import SetupError

CACHE_VARIABLE = "PYSPARK_KAFKA_CACHE"


def cache_directory() -> Path:
    """Return the user's cache directory of this package, created when missing.

    `PYSPARK_KAFKA_CACHE` names it; without that it is `pyspark-kafka` below `XDG_CACHE_HOME` or `~/.cache`.

    Raises:
        SetupError: when it cannot be created.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        directory = Path(named).expanduser()
    else:
        base = os.environ.get("XDG_CACHE_HOME")
        directory = (Path(base) if base else Path("~/.cache").expanduser()) / "pyspark-kafka"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise SetupError(
            f"The cache directory {directory} cannot be created: {error}.",
            condition="CACHE_NOT_WRITABLE",
            hint=f"Set {CACHE_VARIABLE} to a directory that you may write to.",
            parameters={"directory": directory},
        ) from error
    return directory.resolve()
