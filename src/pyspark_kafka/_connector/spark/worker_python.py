"""The program `pyspark-kafka-python`: a Python for the processes that Spark starts, which is up sooner.

Spark puts its own `pyspark.zip` first on the path of every Python process that it starts. The archive has no bytecode:
each process compiles about a hundred modules again, which takes three to four times as long as to import the same
release with the bytecode that pip has installed. So this program puts the archives last, if the installed release is
the same, and leaves everything else as it is.

Nothing here may import pyspark: it would come from the archive.
"""

from __future__ import annotations

import os
import pkgutil
import runpy
import sys
import zipimport
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_ARCHIVE = "pyspark.zip"
# Parts of the path that Spark puts in front, in every process: its archives of Python, and its own jar.
_OF_SPARK = (_ARCHIVE, "py4j-", "spark-core_")
_VERSION = "pyspark/version.py"
_SPARKS_OWN = "pyspark."


def prefer_installed(path: list[str]) -> list[str]:
    """Return a module path with Spark's archives last, if the same release of PySpark is installed; else unchanged.

    Runs on: driver and executor, when a process starts.

    Args:
        path: `sys.path` of a process that Spark has started.
    """
    rest = [entry for entry in path if not os.path.basename(entry).startswith(_OF_SPARK)]  # noqa: PTH119 - mostly no path
    archive = next((entry for entry in path if os.path.basename(entry) == _ARCHIVE), None)  # noqa: PTH119
    if archive is None or PathFinder.find_spec("py4j", rest) is None:
        return path
    installed = PathFinder.find_spec("pyspark", rest)
    if installed is None or installed.origin is None:
        return path
    place = Path(installed.origin).parent
    try:
        same = zipimport.zipimporter(archive).get_data(_VERSION) == (place / "version.py").read_bytes()
    except (OSError, ImportError):
        return path
    # PySpark's client for Spark Connect has the release and no daemon.
    if not same or not (place / "daemon.py").is_file():
        return path
    return [*rest, *(entry for entry in path if entry not in rest)]


def list_read_archives() -> None:
    """Have `pkgutil` read the directory of an archive again before it lists the modules in it.

    From Python 3.13 on, archives lose their directory when Spark invalidates the caches of imports, and get it back
    with the next import that looks into them. `pkgutil`, by which Spark looks for formats, fails in between
    (python/cpython#121342). Archives at the end of the path are always in between.
    """
    listing: Any = vars(pkgutil)["iter_importer_modules"]
    list_modules = listing.dispatch(zipimport.zipimporter)

    def list_after_reading(importer: zipimport.zipimporter, prefix: str = "") -> Iterator[tuple[str, bool]]:
        importer.find_spec("pyspark")
        yield from list_modules(importer, prefix)

    listing.register(zipimport.zipimporter, list_after_reading)


def run(module: str, arguments: list[str]) -> None:
    """Run a module of PySpark as `python -m` does, with the installed PySpark if it is the same release."""
    sys.path[:] = prefer_installed(sys.path)
    list_read_archives()
    sys.argv = [sys.argv[0], *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main() -> None:
    """Run as Python: the processes of Spark with the installed PySpark, anything else by the plain interpreter."""
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] != "-m" or not arguments[1].startswith(_SPARKS_OWN):
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - the arguments are the caller's own
    if not getattr(sys.flags, "safe_path", False):
        # Where `python -m` has the working directory, a program has its own.
        sys.path[0] = os.getcwd()  # noqa: PTH109 - a string
    run(arguments[1], arguments[2:])


if __name__ == "__main__":
    main()
