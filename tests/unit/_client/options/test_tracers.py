"""The tracer of a process: an administrator decides which exporters options may switch on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.texts import said
from pyspark_kafka._base.traces.process_tracer import close_tracer
from pyspark_kafka._client.options import option_tracer
from pyspark_kafka.errors import OptionError


@pytest.fixture(autouse=True)
def _own_tracer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    close_tracer()
    yield
    close_tracer()


@pytest.mark.parametrize("allowed", ["", "env:*,exporter:otlp"])
def test_exporter_that_is_not_allowed_is_refused(allowed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", allowed)
    for _ in range(2):
        with pytest.raises(OptionError) as caught:
            option_tracer()
        assert caught.value.condition == "REFERENCE_NOT_ALLOWED"
        assert said(caught.value).startswith(
            "[REFERENCE_NOT_ALLOWED] Option 'traceContext' asks for the exporter of spans 'console' "
        )
        assert "its administrator does not allow this reference. Nothing was read" in said(caught.value)


@pytest.mark.parametrize("allowed", ["exporter:console", "exporter:*"])
def test_exporter_that_is_allowed_is_used(allowed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", allowed)
    assert option_tracer() is option_tracer()


def test_process_without_exporters_needs_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    assert option_tracer().start("a").traceparent
