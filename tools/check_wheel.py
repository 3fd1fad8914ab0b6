"""Use a wheel: complete, importable from itself, kernels compiled if they can be, as large as docs/install.md tells.

usage: check_wheel.py [WHEEL | --installed]

Without an argument the wheel is built as `pip install .` does; with PYSPARK_KAFKA_PURE_PYTHON=1 without the kernels, in
seconds. The dependencies come from the environment that runs this, and without PySpark the data source is not loaded; a
wheel for another Python is only read.
--installed: only whether the package that this Python has works, with compiled kernels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from can_compile import can_compile

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "pyspark_kafka"
SUFFIXES = ("py", "typed", "sha256", "html")
# The sizes in docs/install.md, with a fifth of room.
MAX_BYTES = {"pure": 1_800_000, "compiled": 2_700_000}
USE = """
import importlib.util, pathlib, sys
import pyspark_kafka
from pyspark_kafka._base import compiled
from pyspark_kafka.testing.jars import DEFAULT_VERSION, pinned_checksums

place = pathlib.Path(sys.argv[1])
kernels = [
    compiled.load_module(".".join(path.parent.relative_to(place).parts), path.stem)
    for path in place.glob("pyspark_kafka/**/_kernel*.py")
]
for module in (pyspark_kafka, *kernels):
    if place not in pathlib.Path(module.__file__).parents:
        sys.exit(f"{module.__name__} was imported from {module.__file__}, not from the wheel")
if sys.argv[2] == "compiled" and (not kernels or any(kernel.__file__.endswith(".py") for kernel in kernels)):
    sys.exit("the wheel's kernel is not compiled, though there is a compiler")
if not pinned_checksums(DEFAULT_VERSION):
    sys.exit("the wheel lacks the list of the broker's jars")
if importlib.util.find_spec("pyspark") and pyspark_kafka.DefaultSource.name() != "pyspark_kafka":
    sys.exit("the wheel lacks its data source")
"""


def main() -> None:
    """Build the wheel unless one is named, and check it."""
    if sys.argv[1:] == ["--installed"]:
        place = Path(str(metadata.distribution("pyspark-kafka").locate_file(""))).resolve()
        sys.exit(subprocess.run([sys.executable, "-c", USE, str(place), "compiled"], cwd=place, check=False).returncode)
    if sys.argv[1:]:
        check_file(Path(sys.argv[1]).resolve())
        return
    with tempfile.TemporaryDirectory() as built:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--wheel-dir", built, "."], check=True, cwd=ROOT)
        (wheel,) = Path(built).glob("*.whl")
        compiles = can_compile() and os.environ.get("PYSPARK_KAFKA_PURE_PYTHON") != "1"
        if compiles and is_pure(wheel):
            sys.exit("The wheel's kernels are not compiled, though there is a compiler")
        check_file(wheel)
    print("The wheel is complete and works")


def check_file(wheel: Path) -> None:
    """Compare a wheel with the sources and its size with the bound; use it if it fits this Python."""
    kind = "pure" if is_pure(wheel) else "compiled"
    if wheel.stat().st_size > MAX_BYTES[kind]:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size} bytes: more than {MAX_BYTES[kind]}, see docs/install.md")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    missing = [path for suffix in SUFFIXES for path in SOURCE.rglob(f"*.{suffix}") if in_wheel(path) not in names]
    if missing:
        sys.exit(f"{wheel.name} lacks {', '.join(str(path.relative_to(ROOT)) for path in missing)}")
    sources = [name for name in names if name.endswith((".c", ".pyx"))]
    if sources:
        sys.exit(f"{wheel.name} has files of the build: {', '.join(sources)}")
    tags = parse_wheel_filename(wheel.name)[3]
    if tags.isdisjoint(sys_tags()):
        return
    with tempfile.TemporaryDirectory() as place:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*install, "--target", place, str(wheel)], check=True)
        use = [sys.executable, "-c", USE, str(Path(place).resolve()), kind]
        if subprocess.run(use, env={**os.environ, "PYTHONPATH": place}, cwd=place, check=False).returncode != 0:
            sys.exit(f"{wheel.name} cannot be used")


def is_pure(wheel: Path) -> bool:
    """Tell whether a wheel has no kernels and fits every platform."""
    return wheel.name.endswith("-py3-none-any.whl")


def in_wheel(path: Path) -> str:
    """Return the name in the wheel of a file of the package."""
    return path.relative_to(SOURCE.parent).as_posix()


if __name__ == "__main__":
    main()
