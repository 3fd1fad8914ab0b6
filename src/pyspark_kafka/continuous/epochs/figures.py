"""What lanes tell about an epoch for the progress report: text that travels with their reports. Pure.

Nothing of the query depends on it: text that cannot be read is left out of the progress.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from pyspark_kafka.continuous.epochs.latencies import LatencyHistogram, finite


@dataclass(slots=True)
class LaneFigures:
    """The figures of one epoch of a lane, or of several lanes of a task.

    Attributes:
        latest: the JSON of the positions behind the last rows that readers have heard of; of those that know.
        sent: how long rows took until the sink had what became of them.
        ages: how long before `at_ms` the rows came into being, or were read.
        at_ms: when the last lane ended the epoch, in ms since 1970, by the clock of its machine.
        since_record: whether all times begin with those of the rows; if not, when their batch was read.
    """

    latest: tuple[str, ...] = ()
    sent: LatencyHistogram = field(default_factory=LatencyHistogram)
    ages: LatencyHistogram = field(default_factory=LatencyHistogram)
    at_ms: float = 0.0
    since_record: bool = True

    def merge(self, other: LaneFigures) -> None:
        """Take in the figures of another lane, of the same machine and epoch."""
        self.latest += other.latest
        self.sent.merge(other.sent)
        earlier, later = sorted((self, other), key=lambda figures: figures.at_ms)
        ages = LatencyHistogram()
        ages.merge(later.ages)
        ages.merge(earlier.ages, later_ms=later.at_ms - earlier.at_ms)
        self.ages, self.at_ms = ages, later.at_ms
        self.since_record = self.since_record and other.since_record

    def to_text(self) -> str:
        """Return the text that travels: beside the positions at most some 5 kB."""
        figures = [self.latest, self.sent.to_list(), self.ages.to_list(), round(self.at_ms, 3), int(self.since_record)]
        return json.dumps(figures, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> LaneFigures:
        """Return the figures of their text.

        Raises:
            ValueError: it is not that of `to_text`.
        """
        try:
            latest, sent, ages, at_ms, since_record = json.loads(text)
            if type(latest) is not list or not all(type(position) is str for position in latest):
                raise ValueError("positions are texts")  # noqa: TRY301 - one place says what is wrong
            return cls(
                tuple(latest),
                LatencyHistogram.from_list(sent),
                LatencyHistogram.from_list(ages),
                finite(at_ms),
                bool(since_record),
            )
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            raise ValueError(f"not the figures of a lane: {error}") from error
