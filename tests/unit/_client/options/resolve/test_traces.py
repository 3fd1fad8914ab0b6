"""The options of spans: off unless they are asked for, with a parent that an option or a variable names."""

from __future__ import annotations

import pytest

from kit.raw_options import refused
from kit.texts import said
from pyspark_kafka._base.traces.trace_parent import TraceParent
from pyspark_kafka._client.options import (
    TraceOptions,
    parse_batch_read_options,
    parse_stream_read_options,
    parse_write_options,
)

READ = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
WRITE = {"kafka.bootstrap.servers": "b:9092"}
PARENT, OTHER = str(TraceParent(5, 6)), str(TraceParent(7, 8))


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEPARENT", raising=False)


def test_query_has_no_spans_unless_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    assert parse_batch_read_options(READ).trace is None
    assert parse_stream_read_options(READ | {"traceContext": "off"}).trace is None
    assert parse_write_options(WRITE, streaming=True).trace is None


@pytest.mark.parametrize("mode", ["link", "continue"])
def test_spans_have_their_mode_in_every_kind_of_query(mode: str) -> None:
    more = {"traceContext": mode.upper(), "traceParent": f" {PARENT} "}
    expected = TraceOptions(mode, PARENT)
    assert parse_batch_read_options(READ | more).trace == expected
    assert parse_stream_read_options(READ | more).trace == expected
    assert parse_write_options(WRITE | more, streaming=True).trace == expected
    assert parse_write_options(WRITE | more, streaming=False).trace == expected
    assert expected.keeps_headers is (mode == "continue")


@pytest.mark.parametrize(("variable", "expected"), [(OTHER, OTHER), ("nonsense", "")])
def test_parent_is_that_of_the_process_without_an_option(
    variable: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", variable)
    assert parse_stream_read_options(READ | {"traceContext": "link"}).trace == TraceOptions("link", expected)
    given = parse_stream_read_options(READ | {"traceContext": "link", "traceParent": PARENT})
    assert given.trace == TraceOptions("link", PARENT)


def test_parent_without_spans_is_noted() -> None:
    assert parse_stream_read_options(READ | {"traceParent": PARENT}).notes == (
        "Option 'traceParent' has no effect: 'traceContext' is off.",
    )


def test_parent_that_names_no_span_is_refused_and_not_repeated() -> None:
    error = refused(parse_stream_read_options, READ | {"traceContext": "link", "traceParent": "S3cret"})
    assert said(error) == (
        "[OPTION_INVALID] Option 'traceParent' must be a traceparent, such as '00-<32 hexadecimal digits>-<16 "
        "hexadecimal digits>-01'."
    )
