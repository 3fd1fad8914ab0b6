"""The functions of `dropDuplicatesWithinWatermark`: the first row of each key passes, duplicates do not. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.continuous.state.row_codec import RowCodec
from pyspark_kafka.continuous.state.times import MAX_TIME_MS, milliseconds
from pyspark_kafka.continuous.state.versions import columns_text
from pyspark_kafka.continuous.steps.row_groups import normalized

if TYPE_CHECKING:
    from pyspark_kafka.continuous.state.by_key import StateByKey


@dataclass(frozen=True)
class FirstRows:
    """Returns rows whose key has no value, and sets one until the watermark reaches their time plus the delay.

    Runs on: executor; pickles until the first call.

    Attributes:
        key: the columns that duplicates have in common.
        event_time: the column with the time of a row.
        delay_ms: of the watermark.

    Source: Spark `StreamingDeduplicateWithinWatermarkExec`.
    """

    operator: ClassVar[str] = "dedupeWithinWatermark"
    state_schema: ClassVar[pa.Schema] = pa.schema([pa.field("expiresAtMs", pa.int64())])

    key: pa.Schema
    event_time: str
    delay_ms: int

    def __call__(self, rows: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch | None:
        """Return the first row of each key that has no value; None if all rows are duplicates."""
        keys = self._codec.encode([normalized(rows.column(name)) for name in self.key.names])
        known = state.get(pa.array(keys, pa.binary())).column("expiresAtMs").is_valid().to_pylist()
        first: dict[bytes, int] = {}
        for number, (key, is_known) in enumerate(zip(keys, known, strict=True)):
            if not is_known:
                first.setdefault(key, number)
        if not first:
            return None
        made = rows.take(pa.array(list(first.values()), pa.int64()))
        new = pa.array(list(first), pa.binary())
        # A sum above the last time would wrap around to a past time.
        delay_ms = min(self.delay_ms, MAX_TIME_MS)
        times = milliseconds(made.column(self.event_time))
        expires = pc.add(pc.min_element_wise(times, MAX_TIME_MS - delay_ms), delay_ms)
        state.update(new, expiresAtMs=expires)
        state.registerTimer(new, expires)
        return made

    def forget(self, timers: pa.RecordBatch, state: StateByKey) -> None:
        """Remove the values of keys: the next row of each passes."""
        state.remove(timers.column("key"))

    @property
    def key_text(self) -> str:
        """Return the key columns as text."""
        return columns_text(self.key)

    @cached_property
    def _codec(self) -> RowCodec:
        return RowCodec(self.key)
