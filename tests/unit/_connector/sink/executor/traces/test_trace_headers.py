"""The header `traceparent` of written rows, among the headers that rows have of their own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kit.spans import KeptTracer, links_of
from pyspark_kafka._base.traces.steps import inside
from pyspark_kafka._base.traces.trace_parent import TraceParent
from pyspark_kafka._connector.sink.executor.traces.trace_headers import TraceHeaders, with_trace_parent

TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
OURS = ("traceparent", b"ours")
OWN = ("traceparent", b"own")


def column(*rows: list[tuple[str, bytes | None]] | None) -> pa.Array:
    """Return a column of headers."""
    listed: list[Any] = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
    return pa.array(listed, TYPE)


def rows_of(headers: pa.Array | None) -> list[list[tuple[str, bytes | None]]]:
    """Return the headers of each row."""
    assert headers is not None
    return [[(each["key"], each["value"]) for each in row] for row in headers.to_pylist()]


ROWS: list[list[tuple[str, bytes | None]] | None] = [
    [("a", b"1")],
    None,
    [],
    [("a", None), OWN, ("tracestate", b"vendor"), ("b", b"2")],
    [OWN, OWN],
]


def test_rows_without_headers_get_one() -> None:
    assert rows_of(with_trace_parent(None, 3, b"ours", keeps=False)) == [[OURS]] * 3


def test_link_replaces_the_header_and_removes_the_state_of_the_other_span() -> None:
    assert rows_of(with_trace_parent(column(*ROWS), 5, b"ours", keeps=False)) == [
        [("a", b"1"), OURS],
        [OURS],
        [OURS],
        [("a", None), ("b", b"2"), OURS],
        [OURS],
    ]


def test_continue_keeps_rows_that_have_the_header_as_they_are() -> None:
    assert rows_of(with_trace_parent(column(*ROWS), 5, b"ours", keeps=True)) == [
        [("a", b"1"), OURS],
        [OURS],
        [OURS],
        *ROWS[3:],
    ]


@pytest.mark.parametrize("keeps", [True, False])
def test_rows_of_a_slice_are_those_of_the_slice(keeps: bool) -> None:
    sliced = column(*ROWS[3:], *ROWS).slice(2, 3)
    expected = with_trace_parent(column(*ROWS[:3]), 3, b"ours", keeps=keeps)
    assert rows_of(with_trace_parent(sliced, 3, b"ours", keeps=keeps)) == rows_of(expected)


@pytest.mark.parametrize("keeps", [True, False])
def test_columns_of_other_widths_keep_their_type(keeps: bool) -> None:
    large = pa.list_(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
    made = with_trace_parent(column(*ROWS).cast(large), 5, b"ours", keeps=keeps)
    assert made.type.value_type == large.value_type
    assert rows_of(made) == rows_of(with_trace_parent(column(*ROWS), 5, b"ours", keeps=keeps))


def test_headers_name_the_span_of_the_thread_and_link_those_of_the_rows() -> None:
    tracer, headers = KeptTracer(), TraceHeaders(keeps=True)
    producer = TraceParent(1, 2)
    span = tracer.start("send")
    given = column([("traceparent", str(producer).encode())], [("a", b"1")])
    with inside(span):
        made = rows_of(headers.of_rows(given, 2))
        assert rows_of(headers.of_rows(None, 1)) == [[("traceparent", span.traceparent.encode())]]
    span.end()
    assert made[0] == [("traceparent", str(producer).encode())]
    assert made[1] == [("a", b"1"), ("traceparent", span.traceparent.encode())]
    assert links_of(tracer.span("send")) == [(1, 2)]
    attributes = dict(tracer.span("send").attributes or {})
    assert attributes["pyspark_kafka.links.records"] == 2
    assert attributes["pyspark_kafka.links.found"] == 1


def test_next_epoch_of_a_lane_has_links_of_its_own() -> None:
    tracer, headers = KeptTracer(), TraceHeaders(keeps=False)
    given = column([("traceparent", str(TraceParent(1, 2)).encode())])
    for name in ("first", "second"):
        span = tracer.start(name)
        with inside(span):
            headers.of_rows(given, 1)
        span.end()
    assert [links_of(span) for span in tracer.spans] == [[(1, 2)], [(1, 2)]]


def test_rows_without_a_span_stay_as_they_are() -> None:
    headers, given = TraceHeaders(keeps=False), column(*ROWS)
    assert headers.of_rows(given, 5) is given
    assert headers.of_rows(None, 5) is None
