"""When the records of a query were there to read, and when they came through. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Timeline:
    """The times of a query's records, sorted once: there may be hundreds of thousands, and hundreds of faults.

    Args:
        times: of each record when the source had it and when the output had it, in seconds.
    """

    def __init__(self, times: Iterable[tuple[float, float]]) -> None:
        by_written = sorted(times, key=lambda each: each[1])
        self._written = [written for _, written in by_written]
        # Of each record in that order and all after it, when the first of them was there to read.
        self._readable = [*accumulate((read for read, _ in reversed(by_written)), min)][::-1]
        by_read = sorted(by_written)
        self._read = [read for read, _ in by_read]
        self._first_written = [*accumulate((written for _, written in reversed(by_read)), min)][::-1]
        self._by_read = by_read

    def longest_gap(self, begin: float, end: float) -> float:
        """Return the longest time without a record though there was one to read.

        Args:
            begin: gaps that end before it do not count.
            end: gaps that begin after it do not count.
        """
        first = max(1, bisect_right(self._written, begin))
        last = min(len(self._written), bisect_left(self._written, end) + 1)
        return max(
            (
                self._written[number] - max(self._written[number - 1], self._readable[number])
                for number in range(first, last)
            ),
            default=0.0,
        )

    def time_to_recover(self, moment: float) -> float | None:
        """Return how long after a moment the first record came through that was there later; None if none did."""
        number = bisect_left(self._read, moment)
        return self._first_written[number] - moment if number < len(self._read) else None

    def delays(self, begin: float) -> list[float]:
        """Return, sorted, how long each record took that was there after a moment."""
        return sorted(written - read for read, written in self._by_read[bisect_left(self._read, begin) :])
