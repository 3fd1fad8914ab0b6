"""Environments for programs that `spark-submit` starts."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

from kit.pointers import REPO

SPARK = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]


def python_without_the_package(place: Path) -> Path:
    """Make an environment with everything of the one of the tests, but for packages that are installed in place."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (own,) = place.glob("lib/python*/site-packages")
    # As a line of a .pth file: the .pth files in that folder are not read.
    (own / "dependencies.pth").write_text(str(Path(str(find_spec("pyarrow").origin)).parents[1]))  # type: ignore[union-attr]
    return place / "bin" / "python"


def build_archive_of_package(place: Path) -> Path:
    """Make an archive of the sources, as the wheel in Python only is one."""
    path = place / "pyspark_kafka.zip"
    root = REPO / "src"
    with zipfile.ZipFile(path, "w") as file:
        for each in sorted((root / "pyspark_kafka").rglob("*.py")):
            file.write(each, each.relative_to(root))
    return path
