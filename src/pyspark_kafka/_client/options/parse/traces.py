"""The text of a `traceparent`."""

from __future__ import annotations

from pyspark_kafka._base.traces.trace_parent import parse_trace_parent


def trace_parent(text: str) -> str:
    """Return the `traceparent` in its canonical form.

    Raises:
        ValueError: it names no span.
    """
    found = parse_trace_parent(text.strip())
    if found is None:
        raise ValueError("must be a traceparent, such as '00-<32 hexadecimal digits>-<16 hexadecimal digits>-01'")
    return str(found)
