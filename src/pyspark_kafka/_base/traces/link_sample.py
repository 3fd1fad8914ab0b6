"""The sample of records whose `traceparent` becomes a link of a span. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._base.traces.trace_parent import TraceParent, parse_trace_parent

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LINKS = 32
"""The maximum number of links of one span."""

RECORDS_AT_A_TIME = 8
"""How many records of one response, or of one piece of written rows, are looked at."""

# The first responses of a span are all looked at, and of later ones each power of two.
_ALL_FIRST = 16


class LinkSample:
    """The distinct parents that a few records name, up to `MAX_LINKS`, and what was counted on the way.

    One thread at a time.

    Attributes:
        looks: how many responses were there to look at.
        records: how many records were looked at.
        found: how many of them name a span.
        malformed: how many have the header, and no span in it.
        dropped: how many distinct spans were left out, because the sample is full.
    """

    def __init__(self) -> None:
        self.looks = self.records = self.found = self.malformed = self.dropped = 0
        self._parents: dict[tuple[int, int], TraceParent] = {}
        self._taken = 0

    def is_due(self) -> bool:
        """Count a response, and return whether its first records are to be looked at."""
        self.looks += 1
        return self.looks <= _ALL_FIRST or self.looks & (self.looks - 1) == 0

    def add_headers(self, records: int, headers: Iterable[bytes | str | None]) -> None:
        """Add what records say.

        Args:
            records: how many records were looked at.
            headers: the value of each header `traceparent` among them.
        """
        self.records += records
        for value in headers:
            parent = parse_trace_parent(value)
            if parent is None:
                self.malformed += 1
                continue
            self.found += 1
            name = parent.trace_id, parent.span_id
            if name in self._parents:
                continue
            if len(self._parents) >= MAX_LINKS:
                self.dropped += 1
            else:
                self._parents[name] = parent

    def take_new(self) -> list[TraceParent]:
        """Return the parents that no earlier call has returned."""
        parents = list(self._parents.values())[self._taken :]
        self._taken += len(parents)
        return parents

    def counts(self) -> dict[str, int]:
        """Return the attributes that a span has for its sample; without records, none."""
        if not self.records:
            return {}
        counts = {"records": self.records, "found": self.found, "malformed": self.malformed, "dropped": self.dropped}
        return {f"pyspark_kafka.links.{name}": count for name, count in counts.items()}
