"""What a lane tells about an epoch for the progress report: text that travels with its report. Pure.

Nothing of the query depends on it: text that cannot be read is left out of the progress.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from pyspark_kafka.continuous.epochs.latencies import LatencyHistogram, finite


@dataclass(slots=True)
class LaneFigures:
    """The figures of one lane and epoch.

    Attributes:
        latest: the JSON of the position behind the last row that the reader has heard of; None if it does not know.
        sent: how long rows took until the sink had what became of them.
        ages: how long before `at_ms` the rows came into being, or were read.
        at_ms: when the lane ended the epoch, in ms since 1970, by the clock of its machine.
        since_record: whether times begin with those of the rows; if not, when their batch was read.
    """

    latest: str | None = None
    sent: LatencyHistogram = field(default_factory=LatencyHistogram)
    ages: LatencyHistogram = field(default_factory=LatencyHistogram)
    at_ms: float = 0.0
    since_record: bool = True

    def to_text(self) -> str:
        """Return the text that travels: beside the position at most some 5 kB."""
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
            if latest is not None and not isinstance(latest, str):
                raise ValueError("a position is text")  # noqa: TRY301 - one place says what is wrong
            return cls(
                latest,
                LatencyHistogram.from_list(sent),
                LatencyHistogram.from_list(ages),
                finite(at_ms),
                bool(since_record),
            )
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            raise ValueError(f"not the figures of a lane: {error}") from error
