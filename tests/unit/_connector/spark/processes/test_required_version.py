"""Which PySpark is here, without an import of it."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from pyspark_kafka._connector.spark.processes.required_version import pyspark_version, require_pyspark
from pyspark_kafka.errors import MissingDependencyError, SetupError
from pyspark_kafka.version import install_command


@pytest.fixture
def pyspark_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an empty pyspark before all others."""
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.delitem(__import__("sys").modules, "pyspark")
    monkeypatch.syspath_prepend(tmp_path)
    return package / "version.py"


def test_version_is_read_from_the_file_of_pyspark() -> None:
    assert pyspark_version() == pyspark.__version__
    require_pyspark()


@pytest.mark.parametrize("line", ["__version__ = '3.5.1'", '__version__: str = "3.4.0.dev0"'])
def test_pyspark_without_python_sources_of_streams_is_refused(pyspark_of: Path, line: str) -> None:
    pyspark_of.write_text(f"#\n{line}\n")
    with pytest.raises(SetupError, match=r"PySpark 3\.\S+ is here, and PySpark 4.0 or newer is needed") as raised:
        require_pyspark()
    assert raised.value.condition == "PYSPARK_TOO_OLD"


@pytest.mark.parametrize("version", ["4.0.2-amzn-0", "4.1.1", "5.0.0.dev1"])
def test_versions_of_platforms_are_taken(pyspark_of: Path, version: str) -> None:
    pyspark_of.write_text(f"__version__ = '{version}'\n")
    require_pyspark()
    assert pyspark_version() == version


def test_version_that_no_file_has_is_left_to_the_import(pyspark_of: Path) -> None:
    assert not pyspark_of.exists()
    require_pyspark()
    assert pyspark_version() is None


def test_missing_pyspark_is_one_sentence_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match="PySpark is not installed") as raised:
        require_pyspark()
    assert install_command("spark") in raised.value.hint
    assert pyspark_version() is None
