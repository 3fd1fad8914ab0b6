"""The spans of a query, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The spans of one read or write.

    Attributes:
        mode: off, link or continue.
        parent: the `traceparent` of the span that runs the query; empty: none is known.
    """

    mode: str = "off"
    parent: str = ""

    @property
    def keeps_headers(self) -> bool:
        """Whether a row that has a `traceparent` keeps it."""
        return self.mode == "continue"
