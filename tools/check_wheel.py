"""Build the wheel as `pip install .` does and use it: complete, importable from itself, kernel compiled if it can be.

With PYSPARK_KAFKA_PURE_PYTHON=1 the wheel is built without the kernels, in seconds. The dependencies come from the
environment that runs this; the wheel goes into a directory of its own in front.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from can_compile import can_compile

ROOT = Path(__file__).resolve().parent.parent
USE = """
import importlib, pathlib, sys
import pyspark_kafka
from pyspark_kafka import DefaultSource
from pyspark_kafka.testing.jars import DEFAULT_VERSION, pinned_checksums

place = pathlib.Path(sys.argv[1])
kernels = [
    importlib.import_module(".".join(path.relative_to(place).with_suffix("").parts))
    for path in place.glob("pyspark_kafka/**/_kernel*.py")
]
for module in (pyspark_kafka, *kernels):
    if place not in pathlib.Path(module.__file__).parents:
        sys.exit(f"{module.__name__} was imported from {module.__file__}, not from the wheel")
if sys.argv[2] == "compiled" and (not kernels or any(kernel.__file__.endswith(".py") for kernel in kernels)):
    sys.exit("the wheel's kernel is not compiled, though there is a compiler")
if DefaultSource.name() != "pyspark_kafka" or not pinned_checksums(DEFAULT_VERSION):
    sys.exit("the wheel lacks its data source or the list of the broker's jars")
"""


def main() -> None:
    """Build, install beside, compare with the sources, import."""
    os.chdir(ROOT)
    compiles = can_compile() and os.environ.get("PYSPARK_KAFKA_PURE_PYTHON") != "1"
    with tempfile.TemporaryDirectory() as place:
        install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--target",
            place,
            ".",
        ]
        subprocess.run([sys.executable, *install], check=True)
        source = ROOT / "src" / "pyspark_kafka"
        kept = [path for suffix in ("py", "typed", "sha256") for path in source.rglob(f"*.{suffix}")]
        missing = [path for path in kept if not (Path(place) / "pyspark_kafka" / path.relative_to(source)).is_file()]
        if missing:
            sys.exit(f"The wheel lacks {', '.join(str(path.relative_to(ROOT)) for path in missing)}")
        use = [sys.executable, "-c", USE, str(Path(place).resolve()), "compiled" if compiles else "any"]
        if subprocess.run(use, env={**os.environ, "PYTHONPATH": place}, cwd=place, check=False).returncode != 0:
            sys.exit("The wheel cannot be used")
    print("The wheel is complete and works")


if __name__ == "__main__":
    main()
