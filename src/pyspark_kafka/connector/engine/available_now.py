"""An engine's part for a stream that leaves admission control, or the available-now trigger, to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.connector.limits import ReadAllAvailable, ReadLimit
from pyspark_kafka.connector.read import MicroBatchStream, SupportsAdmissionControl, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    from pyspark_kafka.connector.offsets import Offset


class AvailableNowStream(SupportsTriggerAvailableNow):
    """Admission control and the available-now trigger for a stream that lacks one or both.

    A stream without admission control is read to its latest offset in each micro-batch. A stream without the trigger is
    read, in an available-now run, in one micro-batch up to the latest offset at its first look-up.

    Runs on: driver, with its stream.

    Source: Spark `AvailableNowMicroBatchStreamWrapper`.
    """

    def __init__(self, stream: MicroBatchStream) -> None:
        self._stream = stream
        self._ends_at_first = False
        self._end: Offset | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of the stream; all that is available if it has none."""
        if isinstance(self._stream, SupportsAdmissionControl):
            return self._stream.getDefaultReadLimit()
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return the end of the next micro-batch."""
        if not self._ends_at_first:
            return self._look_up(start, limit)
        if self._end is None:
            # At the first look-up, not at the preparation: Spark runs an uncommitted micro-batch again in between.
            self._end = self._look_up(start, ReadAllAvailable())
        return self._end

    def reportLatestOffset(self) -> Offset | None:
        """Return the newest offset that the stream knows."""
        return self._stream.reportLatestOffset() if isinstance(self._stream, SupportsAdmissionControl) else None

    def prepareForTriggerAvailableNow(self) -> None:
        """End this run at what is available at the first look-up."""
        self._ends_at_first = True

    def _look_up(self, start: Offset, limit: ReadLimit) -> Offset:
        if isinstance(self._stream, SupportsAdmissionControl):
            return self._stream.latestOffset(start, limit)
        return self._stream.latestOffset()


def admission_control_of(stream: MicroBatchStream) -> SupportsTriggerAvailableNow:
    """Return the admission control of a stream: its own, or what an engine does in its place."""
    return stream if isinstance(stream, SupportsTriggerAvailableNow) else AvailableNowStream(stream)
