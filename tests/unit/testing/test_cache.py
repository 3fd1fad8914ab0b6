from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.cache import cache_directory


def test_the_variable_of_the_package_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "a" / "b"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_directory() == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()


def test_cache_of_the_user_is_used_without_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_KAFKA_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_directory() == tmp_path / "x" / "pyspark-kafka"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "home" / ".cache" / "pyspark-kafka"


def test_a_cache_that_cannot_be_made_names_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PYSPARK_KAFKA_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(SetupError, match=r"\[CACHE_NOT_WRITABLE\].*Hint: Set PYSPARK_KAFKA_CACHE"):
        cache_directory()
