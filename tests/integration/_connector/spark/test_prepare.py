"""prepare(): which Python Spark starts, and when the choice is left alone."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest
from pyspark import SparkContext

import pyspark_kafka
from kit.programs.run import python_without_packages
from kit.texts import said
from pyspark_kafka.errors import SetupError
from pyspark_kafka.version import install_command


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program, in an environment whose user has chosen no Python and that has no Spark yet."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / name))
    monkeypatch.setattr(SparkContext, "_gateway", None)
    path = tmp_path / "scripts/pyspark-kafka-python"
    path.parent.mkdir()
    path.touch()
    return path


def test_spark_is_told_to_start_the_program(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert pyspark_kafka.prepare()
    assert os.environ["PYSPARK_PYTHON"] == str(program)
    # Again: it is what is chosen now.
    assert pyspark_kafka.prepare()


@pytest.mark.parametrize("variable", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
@pytest.mark.usefixtures("program")
def test_the_python_that_a_user_has_chosen_is_kept(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "/opt/python")
    before = dict(os.environ)
    assert not pyspark_kafka.prepare()
    assert dict(os.environ) == before


@pytest.mark.usefixtures("program")
def test_chosen_python_without_the_package_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = python_without_packages(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    assert not pyspark_kafka.prepare()
    (warning,) = caplog.messages
    assert f"PYSPARK_PYTHON is '{other}'" in warning


@pytest.mark.usefixtures("program")
def test_prepare_is_an_error_after_spark_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", object())
    with pytest.raises(SetupError) as raised:
        pyspark_kafka.prepare()
    assert said(raised.value) == (
        "[PREPARED_TOO_LATE] prepare() was called with Spark running: it keeps the environment that it was started "
        "with. Nothing was changed. Hint: Call it before the first session of the program is created."
    )


def test_a_missing_program_is_named(program: Path) -> None:
    program.unlink()
    with pytest.raises(SetupError) as raised:
        pyspark_kafka.prepare()
    assert said(raised.value) == (
        f"[PROGRAM_MISSING] There is no program {program}, which pip installs with pyspark-kafka. Nothing was changed. "
        f"Hint: Run {install_command()} in this environment, or replace prepare() with "
        'os.environ["PYSPARK_PYTHON"] = sys.executable.'
    )
