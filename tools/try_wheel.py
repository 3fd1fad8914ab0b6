"""Install a wheel as a stranger does, and run the README's first snippets with it, until their table is printed.

usage: try_wheel.py WHEEL|DIRECTORY [--no-cache]

A new virtual environment, PATH without compilers, a folder outside of this repository. Of a directory pip chooses the
wheel. --no-cache takes packages and the broker's jars from the network. Prints how long each step took.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILERS = re.compile(r"(.+-)?(cc|c\+\+|c89|c99|gcc|g\+\+|clang|clang\+\+|cpp|ld|as|tcc)(-[\d.]+)?")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 900


def main() -> None:
    """Install, run, compare the output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--no-cache", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        try_wheel(arguments.wheel.resolve(), Path(place), use_caches=not arguments.no_cache)


def try_wheel(wheel: Path, place: Path, *, use_caches: bool) -> None:
    """Do what the README's "Install" and "Read and show" tell, in a folder of its own."""
    began = time.monotonic()
    environment = stranger(place, use_caches=use_caches)
    venv.create(place / "venv", with_pip=True)
    python = str(place / "venv" / "bin" / "python")
    made = time.monotonic()
    cache = [] if use_caches else ["--no-cache-dir"]
    source = ["--find-links", str(wheel), "--only-binary", "pyspark-kafka"] if wheel.is_dir() else []
    name = "pyspark-kafka[spark,json]" if wheel.is_dir() else f"{wheel}[spark,json]"
    call([python, "-m", "pip", "install", "--quiet", *cache, *source, name], place, environment)
    installed = time.monotonic()
    snippet, table = first_snippet()
    output = call([python, "-c", snippet], place, environment)
    if table not in output:
        sys.exit(f"The README's first snippet printed another table.\nExpected:\n{table}\nFound:\n{output}")
    shown = time.monotonic()
    codec = "from pyspark_kafka.records import codec_info; print(codec_info())"
    print(call([python, "-c", codec], place, environment).strip())
    print(
        f"environment {made - began:.0f} s, pip install {installed - made:.0f} s, "
        f"first rows {shown - installed:.0f} s, together {shown - began:.0f} s"
    )


def stranger(place: Path, *, use_caches: bool) -> dict[str, str]:
    """Return the variables of a person without compilers, and without caches if they are not wanted."""
    programs = place / "programs"
    programs.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(directory).glob("*")):
            if not COMPILERS.fullmatch(program.name) and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "CC", "CXX", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment["PATH"] = str(programs)
    if not use_caches:
        environment["XDG_CACHE_HOME"] = str(place / "cache")
    return environment


def first_snippet() -> tuple[str, str]:
    """Return the program of "Read and show" up to the table that it prints, and the table."""
    section = (ROOT / "README.md").read_text().partition("## Read and show\n")[2]
    program = ""
    for language, text in FENCE.findall(section):
        if language == "text":
            return program, text
        program += text
    sys.exit("README.md has no table below 'Read and show'")


def call(command: list[str], place: Path, environment: dict[str, str]) -> str:
    """Run a command and return its output; its failure ends the trial with all that it printed."""
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
