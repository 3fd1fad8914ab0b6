"""The header `traceparent`: W3C's form, and nothing else."""

from __future__ import annotations

import pytest

from pyspark_kafka._base.traces.trace_parent import TraceParent, parse_trace_parent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = TraceParent(int(TRACE, 16), int(SPAN, 16), 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", PARENT),
        (f"00-{TRACE}-{SPAN}-01".encode(), PARENT),
        (f"00-{TRACE}-{SPAN}-00", PARENT._replace(flags=0)),
        (f"cc-{TRACE}-{SPAN}-01", PARENT),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", PARENT),
    ],
)
def test_header_of_any_version_names_its_span(text: str | bytes, expected: TraceParent) -> None:
    assert parse_trace_parent(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        b"",
        "some text",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f"ff-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01.more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        b"00-\xff" + bytes(60),
        f"cc-{TRACE}-{SPAN}-01-" + "x" * 1000,
    ],
)
def test_other_text_names_no_span(text: str | bytes | None) -> None:
    assert parse_trace_parent(text) is None


def test_text_of_a_parent_is_read_back() -> None:
    assert str(PARENT) == f"00-{TRACE}-{SPAN}-01"
    assert parse_trace_parent(str(PARENT)) == PARENT
