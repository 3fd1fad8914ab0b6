"""Event time of a stream: how far it has come, and which rows are late.

Pure: no sockets; the clock is an argument. Times are ms since the epoch, as integers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Rows of one Arrow batch, apart.

    Attributes:
        on_time: rows at or above the watermark, in their order.
        late: rows below it: for a side output, never dropped silently.
    """

    on_time: pa.RecordBatch
    late: pa.RecordBatch


@dataclass(slots=True)
class _Partition:
    max_event_ms: int | None
    seen_at_ms: int
    idle: bool = False


class WatermarkTracker:
    """The watermark of a stream: the lowest event time that rows may still have.

    It is the smallest over the partitions of each one's largest event time, less the allowed lateness. It never moves
    backwards. A partition without rows for `idle_after_ms` does not hold it back; when rows arrive there again, those
    below the watermark are late. A row at the watermark is on time; in Spark it is late.

    Runs on: wherever the rows are; one object for each reader or driver; not thread-safe. Its state is small, and goes
    into the offset of the source with `to_json`, so that a restart continues with the same watermark, and a batch that
    runs again has the same late rows. Idle partitions stay idle over a restart. The time without rows begins again with
    it, because rows may have come meanwhile; so in runs that are all shorter than `idle_after_ms` none becomes idle.

    Args:
        partitions: all partitions of the stream, by name. One that has no row yet holds the watermark until it is idle.
        allowed_lateness_ms: how far a row may be behind the newest one of its partition.
        idle_after_ms: after this time without rows a partition is idle; None: never.
        now_ms: the present time, of the clock that `observe` gets.

    Source: the watermark of Spark's `withWatermark`; idleness as in Flink's `WatermarkStrategy.withIdleness`.
    """

    def __init__(
        self, partitions: Iterable[str], *, allowed_lateness_ms: int, idle_after_ms: int | None, now_ms: int
    ) -> None:
        if allowed_lateness_ms < 0 or (idle_after_ms is not None and idle_after_ms <= 0):
            raise ValueError("allowed_lateness_ms must not be negative, and idle_after_ms must be positive or None")
        self._lateness_ms = allowed_lateness_ms
        self._idle_after_ms = idle_after_ms
        self._partitions = {name: _Partition(None, now_ms) for name in partitions}
        self._watermark_ms: int | None = None

    @property
    def watermark_ms(self) -> int | None:
        """The watermark; None before there is one."""
        return self._watermark_ms

    def observe(self, partition: str, max_event_ms: int, now_ms: int) -> None:
        """Record rows of one partition; a new partition joins.

        Args:
            partition: its name.
            max_event_ms: the largest event time among the rows.
            now_ms: the present time.
        """
        seen = self._partitions.setdefault(partition, _Partition(None, now_ms))
        seen.seen_at_ms, seen.idle = now_ms, False
        seen.max_event_ms = max_event_ms if seen.max_event_ms is None else max(seen.max_event_ms, max_event_ms)

    def remove(self, partition: str) -> None:
        """Forget a partition that is gone: it holds the watermark no longer."""
        self._partitions.pop(partition, None)

    def advance(self, now_ms: int) -> int | None:
        """Move the watermark as far as the rows allow, and return it. Never backwards.

        Call it between batches, not within one: rows of one batch are judged by one watermark.
        """
        for seen in self._partitions.values():
            if self._idle_after_ms is not None and now_ms - seen.seen_at_ms >= self._idle_after_ms:
                seen.idle = True
        active = [seen for seen in self._partitions.values() if not seen.idle]
        newest = [seen.max_event_ms for seen in active]
        if newest and None not in newest:
            reached = min(value for value in newest if value is not None) - self._lateness_ms
            self._watermark_ms = reached if self._watermark_ms is None else max(self._watermark_ms, reached)
        elif not active:
            # All are idle: nothing is in flight that could be late, so the newest row of all counts.
            seen_ever = [seen.max_event_ms for seen in self._partitions.values() if seen.max_event_ms is not None]
            if seen_ever:
                reached = max(seen_ever) - self._lateness_ms
                self._watermark_ms = reached if self._watermark_ms is None else max(self._watermark_ms, reached)
        return self._watermark_ms

    def split(self, batch: pa.RecordBatch, event_time: str) -> SplitRows:
        """Split rows by the present watermark.

        Args:
            batch: any columns.
            event_time: the name of an int64 column in ms, or of a timestamp column of any unit. A row without an event
                time is late, because the opposite cannot be proved.

        Raises:
            KeyError: there is no such column.
        """
        if self._watermark_ms is None:
            return SplitRows(batch, batch.slice(0, 0))
        column = batch.column(event_time)
        if pa.types.is_timestamp(column.type):
            column = pc.cast(column, pa.timestamp("ms", tz=column.type.tz), safe=False).cast(pa.int64())
        on_time = pc.fill_null(pc.greater_equal(column, self._watermark_ms), False)
        return SplitRows(batch.filter(on_time), batch.filter(pc.invert(on_time)))

    def to_json(self) -> str:
        """Return the state as JSON; the same state is always the same text."""
        ordered = sorted(self._partitions.items())
        state = {
            "watermark_ms": self._watermark_ms,
            "partitions": {name: seen.max_event_ms for name, seen in ordered},
            "idle": [name for name, seen in ordered if seen.idle],
        }
        return json.dumps(state, separators=(",", ":"))

    def restore(self, text: str, now_ms: int) -> None:
        """Continue from the state of an earlier run. The watermark does not move backwards by it.

        Raises:
            CheckpointError: the text is no such state.
        """
        try:
            state = json.loads(text)
            watermark, partitions, idle = state["watermark_ms"], state["partitions"], state["idle"]
            if type(idle) is not list or not partitions.keys() >= set(idle):
                raise TypeError("an idle partition is not one of the partitions")  # noqa: TRY301 - as below
            numbers = [watermark, *partitions.values()]
            if not all(value is None or type(value) is int for value in numbers):
                raise TypeError("a time is not a whole number")  # noqa: TRY301 - one place says what is wrong
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(
                f"The state of a watermark is not readable: {error}. Nothing was restored.",
                condition="WATERMARK_STATE_INVALID",
                hint="Restore the text that to_json() returned; it may have been cut short.",
            ) from error
        for name, newest in partitions.items():
            # Without a limit nothing is idle, whatever it was before.
            self._partitions[name] = _Partition(newest, now_ms, name in idle and self._idle_after_ms is not None)
        if watermark is not None:
            self._watermark_ms = watermark if self._watermark_ms is None else max(self._watermark_ms, watermark)
