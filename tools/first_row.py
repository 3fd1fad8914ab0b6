"""Run the first lines of a page as they are printed, in an empty environment, until the table below them is printed.

usage: first_row.py [--wheel WHEEL] [--no-cache] [PAGE...]

The pages are README.md and the entry page of the site unless some are named. PATH has no compilers, and the folder is
outside of this repository. The address of the repository leads git to the last commit of this checkout. --wheel takes
the package from a wheel instead, as from an index. --no-cache takes packages and the broker's jars from the network.
Prints the variant of the codec and how long each step took.
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
from typing import IO, NamedTuple, cast

from pyspark_kafka.version import REPOSITORY

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md")
COMPILERS = re.compile(r"(.+-)?(cc|c\+\+|c89|c99|gcc|g\+\+|clang|clang\+\+|cpp|ld|as|tcc)(-[\d.]+)?")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Tabs behind the first one: other ways to do the same.
OTHER_TABS = re.compile(r"(?<=^///\n)(?:^/// tab \|.*?^///\n)+", re.MULTILINE | re.DOTALL)
CODEC = 'python -c "from pyspark_kafka.records import codec_info; print(codec_info())"\n'


class FirstLines(NamedTuple):
    """What a page begins with.

    Attributes:
        install: the commands of a shell.
        program: the program in Python.
        table: what it prints last.
    """

    install: str
    program: str
    table: str


def main() -> None:
    """Run the first lines of each page in an environment of their own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--no-cache", action="store_true")
    arguments = parser.parse_args()
    for page in arguments.pages:
        with tempfile.TemporaryDirectory() as place:
            show_first_row(page, Path(place), wheel=arguments.wheel, use_caches=not arguments.no_cache)


def show_first_row(page: Path, place: Path, *, wheel: Path | None = None, use_caches: bool = True) -> None:
    """Run the first lines of a page in an empty folder, and compare their table."""
    began = time.time()
    lines = first_lines(page)
    environment = stranger(place, use_caches=use_caches)
    venv.create(place / "empty", with_pip=True)
    environment["PATH"] = f"{place / 'empty' / 'bin'}{os.pathsep}{environment['PATH']}"
    if wheel is None:
        environment |= leading_to(ROOT)
        install = lines.install
    else:
        # Not --find-links: pip would prefer a newer package of this name from an index.
        (place / "wheel.txt").write_text(f"pyspark-kafka @ {wheel.resolve().as_uri()}\n")
        environment["PIP_CONSTRAINT"] = str(place / "wheel.txt")
        install = lines.install.replace(f" @ git+{REPOSITORY}", "")
    (place / "first.py").write_text(lines.program)
    (place / "first.sh").write_text(f"{install}touch installed\npython first.py\ntouch shown\n{CODEC}")
    output = call(["sh", "-e", "first.sh"], place, environment)
    if lines.table not in output:
        sys.exit(f"{page}: the first lines printed another table.\nExpected:\n{lines.table}\nFound:\n{output}")
    installed, shown = ((place / name).stat().st_mtime - began for name in ("installed", "shown"))
    print(f"{page.name}: installed after {installed:.0f} s, first row after {shown:.0f} s", flush=True)


def first_lines(page: Path) -> FirstLines:
    """Return the blocks of a page up to the first table; of tabs, those of the first tab."""
    found = {"sh": "", "python": ""}
    for language, text in FENCE.findall(OTHER_TABS.sub("", page.read_text())):
        if language == "text":
            return FirstLines(found["sh"], found["python"], text)
        if language in found:
            found[language] += text
    sys.exit(f"{page} has no table")


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
        environment |= {"XDG_CACHE_HOME": str(place / "cache"), "PIP_NO_CACHE_DIR": "1"}
    return environment


def leading_to(checkout: Path) -> dict[str, str]:
    """Return the variables with which git clones a checkout in place of the repository."""
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{checkout.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": REPOSITORY,
    }


def call(command: list[str], place: Path, environment: dict[str, str]) -> str:
    """Run a command, show its output and return it; its failure ends the run."""
    with subprocess.Popen(command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in cast("IO[str]", process.stdout):
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} ended with {process.returncode}; the lines above say why.")
    return "".join(lines)


if __name__ == "__main__":
    main()
