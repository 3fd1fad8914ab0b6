"""The Python that Spark starts its processes with: which PySpark they run, and that anything else is left as it is."""

from __future__ import annotations

import pkgutil
import zipfile
import zipimport
from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka._connector.spark.worker_python import list_read_archives, prefer_installed

_ROOT = Path(__file__).parents[4]


@pytest.fixture
def spark_path(tmp_path: Path) -> list[str]:
    """What Spark puts in front of the path: its two archives, PySpark of release 9.1 in the first, and its jar."""
    library = tmp_path / "spark/python/lib"
    library.mkdir(parents=True)
    with zipfile.ZipFile(library / "pyspark.zip", "w") as archive:
        archive.writestr("pyspark/__init__.py", "")
        archive.writestr("pyspark/version.py", '__version__ = "9.1"\n')
    (library / "py4j-0.10.9.9-src.zip").touch()
    return [
        str(library / "pyspark.zip"),
        str(library / "py4j-0.10.9.9-src.zip"),
        f"{tmp_path}/jars/spark-core_2.13.jar",
    ]


def installed(place: Path, version: str, *, daemon: bool = True, py4j: bool = True) -> str:
    """Install packages by these names into a folder."""
    package = place / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "version.py").write_text(f'__version__ = "{version}"\n')
    if daemon:
        (package / "daemon.py").touch()
    if py4j:
        (place / "py4j").mkdir()
        (place / "py4j/__init__.py").touch()
    return str(place)


def test_archives_of_the_installed_release_go_last(tmp_path: Path, spark_path: list[str]) -> None:
    site, users = installed(tmp_path / "site", "9.1"), str(tmp_path / "users")
    assert prefer_installed(["/work", *spark_path, users, site]) == ["/work", users, site, *spark_path]


@pytest.mark.parametrize(
    "other",
    [{"version": "9.0"}, {"version": "9.1", "daemon": False}, {"version": "9.1", "py4j": False}],
    ids=["another release", "only the client", "without py4j"],
)
def test_archives_stay_first_where_what_is_installed_cannot_take_their_place(
    tmp_path: Path, spark_path: list[str], other: dict[str, object]
) -> None:
    path = [*spark_path, installed(tmp_path / "site", **other)]  # type: ignore[arg-type]
    assert prefer_installed(path) == path


@pytest.mark.parametrize("missing", ["pyspark", "archive"])
def test_a_path_without_one_of_the_two_stays_as_it_is(tmp_path: Path, spark_path: list[str], missing: str) -> None:
    site = installed(tmp_path / "site", "9.1")
    path = [*spark_path, str(tmp_path)] if missing == "pyspark" else [*spark_path[1:], site]
    assert prefer_installed(path) == path


def test_a_damaged_archive_is_left_to_python(tmp_path: Path, spark_path: list[str]) -> None:
    Path(spark_path[0]).write_bytes(b"no archive")
    path = [*spark_path, installed(tmp_path / "site", "9.1")]
    assert prefer_installed(path) == path


def test_the_program_is_installed_with_the_package() -> None:
    lines = (_ROOT / "pyproject.toml").read_text().splitlines()
    assert 'pyspark-kafka-python = "pyspark_kafka._connector.spark.worker_python:main"' in lines


class ArchiveOfPython313(zipimport.zipimporter):
    """An archive that reads its directory again at the next look for a module, as from Python 3.13 on."""

    def find_spec(self, fullname: str, target: Any = None) -> Any:
        files = zipimport.zipimporter(self.archive)
        return files.find_spec(fullname, target)


def test_modules_of_an_archive_are_listed_after_its_caches_were_dropped(spark_path: list[str]) -> None:
    listed: Any = vars(pkgutil)["iter_importer_modules"]
    before = listed.dispatch(zipimport.zipimporter)
    archive = ArchiveOfPython313(spark_path[0])
    directories: dict[str, Any] = zipimport._zip_directory_cache  # type: ignore[attr-defined]
    directories.pop(archive.archive)
    with pytest.raises(KeyError):
        list(listed(archive))
    try:
        list_read_archives()
        assert [name for name, _ in listed(archive)] == ["pyspark"]
    finally:
        listed.register(zipimport.zipimporter, before)
