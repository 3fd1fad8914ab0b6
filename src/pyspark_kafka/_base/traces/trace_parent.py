"""The header `traceparent`, by which a record names the span that has written it. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

NAME = "traceparent"
# The vendor's part of the same context; without its `traceparent` it has no meaning.
STATE_NAME = "tracestate"
SAMPLED = 1

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_MAX_LENGTH = 512


class TraceParent(NamedTuple):
    """One span, named as W3C does.

    Attributes:
        trace_id: 128 bits, not 0.
        span_id: 64 bits, not 0.
        flags: 8 bits; the lowest one says that the span is recorded.
    """

    trace_id: int
    span_id: int
    flags: int = SAMPLED

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"


def parse_trace_parent(text: str | bytes | None) -> TraceParent | None:
    """Return the span that a header names; None if the text is not a `traceparent`.

    A version after 00 may have further parts, which are not read.

    Source: W3C Trace Context, 3.2 and 4.
    """
    if text is None or len(text) > _MAX_LENGTH:
        return None
    if isinstance(text, bytes):
        if not text.isascii():
            return None
        text = text.decode("ascii")
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest is not None):
        return None
    parent = TraceParent(int(trace, 16), int(span, 16), int(flags, 16))
    return parent if parent.trace_id and parent.span_id else None
