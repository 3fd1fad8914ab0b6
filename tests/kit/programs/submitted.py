"""Environments for programs that `spark-submit` starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

from kit.pointers import REPO
from kit.programs.run import kill_program

SPARK = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
# The Python of an archive that is submitted as `…#environment`.
IN_ARCHIVE = "./environment/bin/python"
_CHOICES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
# An application of YARN starts its driver and two executors one after the other: half a minute on a quiet machine.
_MAX_S = 400.0


class Submitted:
    """A program that `spark-submit` runs.

    Args:
        process: spark-submit.
        log: what it and a driver in client mode print.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    @property
    def log(self) -> str:
        """What has been printed so far."""
        return self._log.read_text(errors="replace")

    def until(self, condition: Callable[[], bool], seconds: float = _MAX_S) -> None:
        """Wait until something holds; fails at once if the program has ended without it."""
        end = time.monotonic() + seconds
        while not condition():
            running = self._process.poll() is None
            assert running or condition(), f"the program has ended\n{self.log[-6000:]}"
            assert time.monotonic() < end, f"not within {seconds:g} s\n{self.log[-6000:]}"
            time.sleep(0.05)

    def succeed(self) -> None:
        """Wait for the end of the program, which must be without an error."""
        self.until(lambda: self._process.poll() is not None)
        assert self._process.returncode == 0, self.log[-6000:]


@contextmanager
def submitted(*arguments: str, place: Path, environment: Mapping[str, str]) -> Iterator[Submitted]:
    """Run spark-submit in a folder; killed, if it still runs, at the end of the block.

    Args:
        arguments: of spark-submit.
        place: the folder, also for the log.
        environment: added to the variables of this process, which choose no Python.
    """
    variables = {name: value for name, value in os.environ.items() if name not in _CHOICES}
    log = place / "submitted.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK / "bin" / "spark-submit"), *arguments],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd=place,
            env={**variables, "SPARK_HOME": str(SPARK), **environment},
        )  # fmt: skip
    try:
        yield Submitted(process, log)
    finally:
        kill_program(process)


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


def pack_environment(place: Path) -> Path:
    """Pack an environment with the package, its extras cli, hdfs and spark, and their packages, as docs/deploy.md does.

    They are what is installed here. The environment has Spark's jars, as pip installs them; the archive has not.
    """
    environment, archive = place / "env", place / "env.tar.gz"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (own,) = environment.glob("lib/python*/site-packages")
    for name in _requirements("pyspark-kafka[cli,hdfs,spark]"):
        for file in metadata.distribution(name).files or ():
            # The package itself is installed in place: a line of a .pth file. Scripts are outside of the folder.
            if file.suffix != ".pth" and ".." not in file.parts and "tests" not in file.parts:
                _link(Path(str(file.locate())), own / file)
    root = REPO / "src"
    for path in (root / "pyspark_kafka").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            _link(path, own / path.relative_to(root))
    command = [sys.executable, "-m", "venv_pack", "--quiet", "--prefix", str(environment), "--compress-level", "1"]
    command += ["--exclude", "*/pyspark/jars/*", "--output", str(archive)]
    subprocess.run(command, check=True)
    shutil.rmtree(environment)
    return archive


def unpack_environment(archive: Path, place: Path) -> str:
    """Unpack an environment in the folder where a driver starts; return its Python, as driver and executors name it."""
    (place / "environment").mkdir()
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(place / "environment")], check=True)
    return IN_ARCHIVE


def _requirements(text: str) -> set[str]:
    """Return the names of a distribution, of what it requires here, and of what those require."""
    found: dict[str, set[str]] = {}
    left = [Requirement(text)]
    while left:
        wanted = left.pop()
        known = found.setdefault(wanted.name, set())
        extras = {"", *wanted.extras} - known
        known |= extras
        required = map(Requirement, metadata.requires(wanted.name) or ()) if extras else ()
        left += [
            each for each in required if each.marker is None or any(each.marker.evaluate({"extra": x}) for x in extras)
        ]
    return set(found)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
