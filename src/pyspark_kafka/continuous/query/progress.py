"""What a continuous query tells about its epochs, in the form of Spark's `StreamingQueryProgress`."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.continuous.epochs.coordinator import LaneReport

# `spark.sql.streaming.numRecentProgressUpdates`.
_KEPT = 100


@dataclass(frozen=True, slots=True)
class QueryNames:
    """Who a query is, and what it reads and writes.

    Attributes:
        id: stays with the checkpoint.
        run_id: of this start.
        name: given by the user; None for none.
        source: what is read.
        sink: what is written.
    """

    id: str
    run_id: str
    name: str | None
    source: str
    sink: str


class ProgressLog:
    """The progress of the last epochs.

    Runs on: driver; the thread of the query adds, any thread reads.
    """

    def __init__(self, names: QueryNames) -> None:
        self._names = names
        self._recent: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._since: float | None = None

    @property
    def recent(self) -> list[dict[str, Any]]:
        """Return the last epochs, oldest first."""
        return list(self._recent)

    @property
    def last(self) -> dict[str, Any] | None:
        """Return the newest epoch; None before the first."""
        return self._recent[-1] if self._recent else None

    def begin(self, monotonic_s: float) -> None:
        """Take note of when the first epoch of a run begins."""
        self._since = monotonic_s

    def add(
        self,
        epoch: int,
        reports: Sequence[LaneReport],
        offsets: tuple[str | None, str],
        durations_ms: dict[str, int],
        times: tuple[float, float],
    ) -> None:
        """Add an epoch that is committed.

        Args:
            epoch: its number.
            reports: of its lanes.
            offsets: where it begins and ends, as JSON.
            durations_ms: of its steps on the driver.
            times: the seconds of the system's clock, and of the monotonic one.
        """
        clock_s, monotonic_s = times
        seconds = None if self._since is None else max(monotonic_s - self._since, 1e-3)
        self._since = monotonic_s
        rows = sum(report.rows_read for report in reports)
        rate = None if seconds is None else round(rows / seconds, 3)
        start, end = offsets
        moment = datetime.fromtimestamp(clock_s, timezone.utc).isoformat(timespec="milliseconds")
        self._recent.append(
            {
                "id": self._names.id,
                "runId": self._names.run_id,
                "name": self._names.name,
                "timestamp": moment.replace("+00:00", "Z"),
                "batchId": epoch,
                "numInputRows": rows,
                "inputRowsPerSecond": rate,
                "processedRowsPerSecond": rate,
                "durationMs": durations_ms,
                "sources": [
                    {
                        "description": self._names.source,
                        "startOffset": None if start is None else json.loads(start),
                        "endOffset": json.loads(end),
                        "numInputRows": rows,
                        "inputRowsPerSecond": rate,
                        "processedRowsPerSecond": rate,
                    }
                ],
                "sink": {
                    "description": self._names.sink,
                    "numOutputRows": sum(report.rows_written for report in reports),
                },
            }
        )
