"""version.py: the command that installs the package, before and after an index has it."""

from __future__ import annotations

import pytest

from pyspark_kafka import version
from pyspark_kafka._base.compiled import HINT


def test_command_installs_from_the_repository_until_an_index_has_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "ON_INDEX", False)
    source = "git+https://github.com/pyspark-kafka/pyspark-kafka"
    assert version.install_command() == f'pip install "pyspark-kafka @ {source}"'
    assert version.install_command("json,cli", "1.0") == f'pip install "pyspark-kafka[json,cli] @ {source}"'


def test_command_names_the_version_if_an_index_has_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "ON_INDEX", True)
    assert version.install_command() == 'pip install "pyspark-kafka"'
    assert version.install_command("json") == 'pip install "pyspark-kafka[json]"'
    assert version.install_command("json", "1.0") == 'pip install "pyspark-kafka[json]==1.0"'


def test_hint_about_the_slow_codec_has_the_command() -> None:
    assert f"`{version.install_command()} --force-reinstall --no-deps --no-binary pyspark-kafka`" in HINT
