"""Which Python Spark starts, and the warning before Spark reports that it does not find the format."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kit.programs.run import python_without_packages
from pyspark_kafka._connector.spark.processes.python_choice import (
    describe_pythons,
    hint,
    lacks_package,
    warn_without_package,
)


class ConnectSession:
    """A session of Spark Connect: without a session of the JVM."""


class ClassicSession:
    """A session of classic Spark."""

    _jsparkSession = object()  # noqa: N815 - PySpark's name


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_REMOTE"):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return python_without_packages(tmp_path)


def test_python3_of_path_is_asked_if_no_variable_is_set(environment: pytest.MonkeyPatch, other: Path) -> None:
    environment.setenv("PATH", f"{other.parent}{os.pathsep}{os.environ['PATH']}")
    # Named by its folder, since results are kept by name.
    other.rename(other.with_name("python3.x"))
    environment.setattr("pyspark_kafka._connector.spark.processes.python_choice._DEFAULT", "python3.x")
    assert lacks_package()
    assert describe_pythons() == (
        f"PYSPARK_PYTHON is not set, so it runs the python3 of PATH; this program runs {sys.executable}, which has it"
    )
    assert hint().startswith("Call pyspark_kafka.prepare() before the session is created, in a new process")


def test_variable_of_the_driver_takes_precedence(environment: pytest.MonkeyPatch, other: Path) -> None:
    environment.setenv("PYSPARK_PYTHON", sys.executable)
    assert not lacks_package()
    environment.setenv("PYSPARK_DRIVER_PYTHON", str(other))
    assert lacks_package()
    assert describe_pythons().startswith(f"PYSPARK_DRIVER_PYTHON is '{other}'; ")
    assert hint().startswith('Put os.environ["PYSPARK_DRIVER_PYTHON"] = ')


@pytest.mark.parametrize("script", [None, "#!/bin/sh\nexit 1\n"], ids=["not there", "no Python"])
def test_program_that_cannot_be_asked_is_no_reason_to_warn(
    environment: pytest.MonkeyPatch, tmp_path: Path, script: str | None
) -> None:
    program = tmp_path / "jupyter"
    if script is not None:
        program.write_text(script)
        program.chmod(0o755)
    environment.setenv("PYSPARK_DRIVER_PYTHON", str(program))
    assert not lacks_package()


@pytest.mark.parametrize(
    ("session", "local", "warned"),
    [
        pytest.param(None, "", True, id="no session yet"),
        pytest.param(ClassicSession(), "", True, id="classic"),
        pytest.param(ConnectSession(), "1", True, id="server started here"),
        pytest.param(ConnectSession(), "", False, id="server elsewhere"),
    ],
)
def test_warning_names_both_pythons_where_the_environment_is_sparks(
    environment: pytest.MonkeyPatch,
    other: Path,
    caplog: pytest.LogCaptureFixture,
    session: object,
    local: str,
    warned: bool,
) -> None:
    environment.setenv("PYSPARK_PYTHON", str(other))
    environment.setenv("SPARK_LOCAL_REMOTE", local)
    warn_without_package(session)
    text = (
        "Spark will report DATA_SOURCE_NOT_FOUND for the format 'pyspark_kafka': the Python that it starts does not "
        f"have this package. PYSPARK_PYTHON is '{other}'; this program runs {sys.executable}, which has it. {hint()}"
    )
    assert caplog.messages == ([text] if warned else [])


def test_python_with_the_package_is_no_warning(
    environment: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    same = tmp_path / "python"
    same.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    same.chmod(0o755)
    environment.setenv("PYSPARK_PYTHON", str(same))
    warn_without_package()
    assert caplog.messages == []


def test_warning_of_a_table_names_its_format(
    environment: pytest.MonkeyPatch, other: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environment.setenv("PYSPARK_PYTHON", str(other))
    warn_without_package(ClassicSession(), table="readings")
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(
        "Spark will report No module named 'pyspark_kafka' for the format 'readings': "
    )
