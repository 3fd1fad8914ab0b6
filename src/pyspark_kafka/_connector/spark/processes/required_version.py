"""The installed PySpark version, found without an import: an old PySpark lacks names that the adapters import."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from pyspark_kafka.errors import MissingDependencyError, SetupError
from pyspark_kafka.version import install_command

_OLDEST = (4, 0)
_VERSION = re.compile(r"""__version__[^=\n]*=\s*["']((\d+)\.(\d+)[^"']*)["']""")


def pyspark_version() -> str | None:
    """Return the version of PySpark that an import would find; None without one, or if its file does not say it.

    Platforms have a PySpark without pip's metadata, so its own file is read.
    """
    found = _read_version()
    return None if found is None else found[1]


def require_pyspark() -> None:
    """Refuse a PySpark that has no Python data sources.

    Raises:
        MissingDependencyError: there is none.
        SetupError: it is older than 4.0.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise MissingDependencyError(
            "PySpark is not installed in this Python. Nothing was read or written.",
            condition="PYSPARK_MISSING",
            hint=f"Run {install_command('spark')}; on a platform, use the Python that has its own PySpark.",
        )
    found = _read_version()
    if found is None or (int(found[2]), int(found[3])) >= _OLDEST:
        return
    raise SetupError(
        f"PySpark {found[1]} is here, and PySpark 4.0 or newer is needed: Spark 3 has no Python sources for streams. "
        "Nothing was read or written.",
        condition="PYSPARK_TOO_OLD",
        hint="Move to a platform or an environment with Spark 4.0, 4.1, 4.2 or 4.3.",
        parameters={"version": found[1]},
    )


def _read_version() -> re.Match[str] | None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    try:
        text = (Path(spec.origin).parent / "version.py").read_text()
    except OSError:
        return None
    return _VERSION.search(text)
