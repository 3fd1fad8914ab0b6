"""The tracer of a process: opened once, and again after a fork."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from kit.texts import said
from pyspark_kafka._base.traces.process_tracer import close_tracer, process_tracer
from pyspark_kafka.errors import MissingDependencyError


@pytest.fixture(autouse=True)
def _own_tracer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    close_tracer()
    yield
    close_tracer()


def test_tracer_is_opened_once_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = process_tracer(lambda _: None)
    assert process_tracer(lambda _: None) is opened
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert process_tracer(lambda _: None) is not opened


def test_tracer_without_the_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pyspark_kafka._base.traces.otel")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingDependencyError) as caught:
        process_tracer(lambda _: None)
    assert said(caught.value).startswith(
        "[MISSING_DEPENDENCY] Spans (option 'traceContext') need the Python package 'opentelemetry-api', which cannot "
        "be imported. Nothing was read or written. Hint: Install it on the driver and on all executors: "
    )
