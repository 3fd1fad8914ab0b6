from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafka.checkpoint.default_file_system import configured_default, on_default_file_system

SETTINGS = "<configuration><property><name>{}</name><value> {} </value></property></configuration>"


def settings(place: Path, default: str, name: str = "fs.defaultFS") -> str:
    (place / "core-site.xml").write_text(SETTINGS.format(name, default))
    return str(place)


@pytest.mark.parametrize(
    ("location", "default", "expected"),
    [
        ("/data/cp", "hdfs://nn:8020", "hdfs://nn:8020/data/cp"),
        ("/data/cp", "hdfs://nn:8020/", "hdfs://nn:8020/data/cp"),
        ("/data/what? 1", "hdfs://nn", "hdfs://nn/data/what%3F%201"),
        ("/data/cp", "s3a://bucket", "s3a://bucket/data/cp"),
        ("/data/cp", "file:///", "/data/cp"),
        ("/data/cp", "", "/data/cp"),
        ("file:///data/cp", "hdfs://nn", "file:///data/cp"),
        ("hdfs://other/cp", "hdfs://nn", "hdfs://other/cp"),
        ("data/cp", "hdfs://nn", "data/cp"),
    ],
)
def test_path_without_a_scheme_is_on_the_default_file_system(location: str, default: str, expected: str) -> None:
    assert on_default_file_system(location, default) == expected


def test_default_is_in_the_settings_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    assert on_default_file_system("/cp") == "/cp"
    monkeypatch.setenv("HADOOP_CONF_DIR", settings(tmp_path, "hdfs://nn"))
    assert on_default_file_system("/cp") == "hdfs://nn/cp"


def test_settings_without_a_default_file_system_have_none(tmp_path: Path) -> None:
    folder = settings(tmp_path, "1", "dfs.replication")
    assert configured_default({"HADOOP_CONF_DIR": folder}) == ""
    (tmp_path / "core-site.xml").write_text("<configuration>")
    assert configured_default({"HADOOP_CONF_DIR": folder}) == ""
    assert configured_default({"HADOOP_CONF_DIR": "/no/such/folder", "YARN_CONF_DIR": "/no/such/folder"}) == ""


def test_settings_of_yarn_are_read_if_those_of_hadoop_have_none(tmp_path: Path) -> None:
    environment = {"HADOOP_CONF_DIR": "/no/such/folder", "YARN_CONF_DIR": settings(tmp_path, "hdfs://nn")}
    assert configured_default(environment) == "hdfs://nn"
