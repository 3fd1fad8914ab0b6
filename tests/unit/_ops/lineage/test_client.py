"""The client of OpenLineage: its configuration, and what it must not add to events."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kit.texts import said
from pyspark_kafka._ops.lineage.client import open_client
from pyspark_kafka.errors import MissingDependencyError, OptionError, SetupError

FILE = "transport:\n  type: file\n  log_file_path: {}\n  append: true\n"


def write_file(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(FILE.format(path.parent / "events.json"))


def test_client_is_configured_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    client = open_client()
    assert not client.is_disabled
    assert (client._client.transport.kind, client._client.transport.url) == ("http", "http://127.0.0.1:1")


def test_client_is_configured_by_a_file_in_the_working_directory(tmp_path: Path) -> None:
    write_file(tmp_path / "openlineage.yml")
    assert open_client()._client.transport.kind == "file"


def test_client_is_disabled_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert open_client().is_disabled


def test_client_adds_no_address_of_a_clone_which_may_hold_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    assert open_client()._client.config.facets.source_code_location.disabled
    Path("openlineage.yml").write_text("facets:\n  environment_variables: [A]\n")
    facets = open_client()._client.config.facets
    assert facets.source_code_location.disabled
    assert facets.environment_variables == ["A"]


def test_file_is_refused_unless_the_administrator_allows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_file(tmp_path / ".openlineage" / "openlineage.yml")
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "file:/etc/kafka/")
    with pytest.raises(OptionError) as refused:
        open_client()
    assert refused.value.condition == "REFERENCE_NOT_ALLOWED"
    assert f"Option 'OPENLINEAGE_CONFIG' asks for the file '{tmp_path}/.openlineage/openlineage.yml'" in str(
        refused.value
    )
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", f"file:{os.path.realpath(tmp_path)}/")
    assert open_client()._client.transport.kind == "file"


def test_error_names_the_extra_if_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with pytest.raises(MissingDependencyError) as missing:
        open_client()
    assert said(missing.value).startswith(
        "[MISSING_DEPENDENCY] Lineage needs the Python package 'openlineage-python', which cannot be imported. Queries "
        "are not affected."
    )
    assert "pyspark-kafka[lineage]" in missing.value.hint


def test_error_of_a_configuration_that_is_wrong_says_that_queries_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "nowhere")
    with pytest.raises(SetupError) as wrong:
        open_client()
    assert wrong.value.condition == "LINEAGE_NOT_CONFIGURED"
    assert "queries are not affected" in str(wrong.value)
