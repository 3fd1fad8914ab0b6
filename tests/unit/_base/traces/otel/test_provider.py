"""The provider of a process: its program's, or one that variables of the environment describe."""

from __future__ import annotations

import threading
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.trace import TracerProvider

from kit.waiting import PATIENCE_S
from pyspark_kafka._base.traces.otel import provider as of_process
from pyspark_kafka._base.traces.otel.provider import exporter_names, find_provider
from pyspark_kafka._base.traces.otel.trace_ids import ChosenTraceIds

MADE: list[str] = []


class KeepingExporter:
    def __init__(self) -> None:
        MADE.append("made")

    def export(self, spans: Any) -> Any:
        MADE.extend(span.name for span in spans)
        return SimpleNamespace(name="SUCCESS")


class RefusingExporter:
    def __init__(self) -> None:
        raise RuntimeError("no endpoint")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ["otlp"]),
        ({"OTEL_TRACES_EXPORTER": " console, otlp ,console"}, ["console", "otlp"]),
        ({"OTEL_TRACES_EXPORTER": "none"}, []),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "TRUE"}, []),
    ],
)
def test_exporters_are_named_by_the_variables(variables: dict[str, str], expected: list[str]) -> None:
    assert exporter_names(variables) == expected


@pytest.fixture
def exporters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have exporters of this module, in a process without a provider."""
    MADE.clear()
    monkeypatch.setattr(api, "get_tracer_provider", api.ProxyTracerProvider)
    known = {"keeping": "KeepingExporter", "refusing": "RefusingExporter", "otlp_proto_http": "KeepingExporter"}
    found = [EntryPoint(name, f"{__name__}:{value}", of_process._GROUP) for name, value in known.items()]
    monkeypatch.setattr(of_process, "entry_points", lambda group: found if group == of_process._GROUP else [])
    for name in ("OTEL_TRACES_EXPORTER", *of_process._PROTOCOLS):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("exporters")
def test_process_without_a_provider_gets_one_of_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "keeping")
    asked: list[str] = []
    found = find_provider(asked.append)
    found.tracers.get_tracer("test").start_span("a").end()
    found.flush(int(PATIENCE_S * 1000))
    assert asked == ["keeping"]
    assert MADE == ["made", "a"]
    assert isinstance(found.ids, ChosenTraceIds)


@pytest.mark.parametrize(("text", "expected"), [(None, 5.0), ("200", 0.2), ("-1", 0.0), ("soon", 5.0)])
def test_delay_is_the_one_of_the_variables(text: str | None, expected: float) -> None:
    assert of_process._seconds(text, 5.0) == expected


@pytest.mark.usefixtures("exporters")
def test_exporter_of_otlp_is_the_one_that_is_installed() -> None:
    find_provider(lambda _: None)
    assert MADE == ["made"]


@pytest.mark.usefixtures("exporters")
def test_exporter_that_is_not_allowed_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "keeping")

    def refuse(name: str) -> None:
        raise PermissionError(name)

    with pytest.raises(PermissionError, match="keeping"):
        find_provider(refuse)
    assert MADE == []


@pytest.mark.usefixtures("exporters")
@pytest.mark.parametrize(
    ("name", "reason"), [("unknown", "it is not installed"), ("refusing", "it fails: RuntimeError")]
)
def test_exporter_that_cannot_be_made_is_a_warning(
    name: str, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", name)
    find_provider(lambda _: None).tracers.get_tracer("test").start_span("a").end()
    (line,) = caplog.records
    assert line.getMessage() == (
        f"Spans of this process do not reach the exporter '{name}': {reason}. The query is not affected. Set "
        "OTEL_TRACES_EXPORTER to an exporter that is installed here, such as the one of "
        "opentelemetry-exporter-otlp-proto-http."
    )


def test_provider_of_the_program_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    given = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(api, "get_tracer_provider", lambda: given)
    asked: list[str] = []
    found = find_provider(asked.append)
    assert found.tracers is given
    assert found.ids is None
    assert asked == []


def test_flush_of_the_program_that_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, go_on = [], threading.Event()

    def hang(_: int) -> None:
        calls.append(1)
        go_on.wait(PATIENCE_S)

    monkeypatch.setattr(api, "get_tracer_provider", lambda: SimpleNamespace(force_flush=hang))
    found = find_provider(lambda _: None)
    found.flush(1)
    found.flush(10**9)
    assert calls == [1]
    go_on.set()
