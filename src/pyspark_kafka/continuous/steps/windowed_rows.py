"""The functions of an aggregation in windows of one length: open windows are state, each with a timer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.continuous.steps.partial_aggregates import ROWS
from pyspark_kafka.continuous.steps.window_times import TimeWindow, closing_ms, microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.continuous.state.by_key import StateByKey
    from pyspark_kafka.continuous.steps.partial_aggregates import Aggregates
    from pyspark_kafka.continuous.steps.row_groups import Grouping

_START, _IS_IN_FIRST, _OPEN, _NUMBER = "start", "is in first", "open", "number"
# Windows of rows that are in memory before they are merged.
_MAX_PARTS = 1_000_000


@dataclass(frozen=True)
class WindowedRows:
    """Aggregates rows by window and other columns, and returns a window once the watermark has reached its end.

    The key of the state is the start of the window with the other columns. The timer is set with the first row.

    Runs on: executor; pickles until the first call.

    Attributes:
        window: the window.
        grouping: the columns of the groups.
        aggregates: the aggregates.

    Source: Spark `TimeWindowing`, `StateStoreSaveExec` in append mode.
    """

    operator: ClassVar[str] = "stateStoreSave"

    window: TimeWindow
    grouping: Grouping
    aggregates: Aggregates

    @property
    def key_text(self) -> str:
        """Return the key columns as text."""
        return self.grouping.text

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of a value."""
        return pa.schema(self.aggregates.fields)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema([*self.grouping.fields, *(each.field for each in self.aggregates.aggregates)])

    def __call__(self, rows: pa.RecordBatch, state: StateByKey) -> None:
        """Add rows to their open windows. Each row has at least one."""
        table = self._by_window(self._by_last_window(rows, state))
        starts, *keys = (table.column(name).combine_chunks() for name in [_START, *self._names])
        encoded = pa.array(self.grouping.codec.encode([starts, *keys]), pa.binary())
        known = state.get(encoded)
        is_new = known.column(ROWS).is_null()
        names = self.aggregates.names
        merged = pa.table([pa.array(range(len(encoded)), pa.int64()), *(table.column(name) for name in names)],
                          [_NUMBER, *names])  # fmt: skip
        if is_new.true_count < len(encoded):
            numbered = pa.table([merged.column(_NUMBER), *known.columns], [_NUMBER, *names]).filter(pc.invert(is_new))
            merged = self.aggregates.merged(pa.concat_tables([merged, numbered]), [_NUMBER])
        state.update(encoded, **{name: merged.column(name) for name in names})
        closing = closing_ms(pc.add(starts, self.window.duration_us))
        state.registerTimer(encoded.filter(is_new), closing.filter(is_new))

    def close(self, timers: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch:
        """Return windows whose end the watermark has reached, and forget them."""
        encoded = timers.column("key")
        kept = state.get(encoded)
        state.remove(encoded)
        starts, *keys = self.grouping.codec.decode(encoded.to_pylist()).columns
        ends = pc.add(starts, self.window.duration_us)
        columns = [*self.grouping.columns(starts, ends, keys), *self.aggregates.results(kept)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @property
    def _names(self) -> Sequence[str]:
        """Names of the other columns that are no names of parts."""
        return [f"key {number}" for number in range(len(self.grouping.keys))]

    def _by_last_window(self, rows: pa.RecordBatch, state: StateByKey) -> pa.Table:
        """Return the parts of rows that belong to the same windows, with the start of the last one of these."""
        window, times = self.window, rows.column(self.window.column)
        starts = window.last_starts(times)
        names, columns = [_START, *self._names], [starts, *self.grouping.keys_of(rows)]
        if window.duration_us % window.slide_us:
            # The first of the windows ends within a slide.
            first_end = pc.add(starts, window.duration_us % window.slide_us)
            names.append(_IS_IN_FIRST)
            columns.append(pc.less(microseconds(times), first_end))
        if window.overlapping > 1:
            watermarks = state.watermark_ms if state.row_watermarks is None else state.row_watermarks
            names.append(_OPEN)
            columns.append(self._open_windows(starts.to_numpy(), watermarks))
        table = pa.table([*columns, *self.aggregates.of_rows(rows)], [*names, *self.aggregates.names])
        return self.aggregates.merged(table, names)

    def _open_windows(self, last_starts: Any, watermarks_ms: Any) -> pa.Array:
        """Return the number of open windows of each row by its watermark; the last ones are open longest."""
        window = self.window
        if watermarks_ms is None:
            return pa.array(np.full(len(last_starts), window.overlapping))
        ends = last_starts + window.duration_us
        # Watermarks that are further away would not fit in microseconds.
        near = np.clip(watermarks_ms, (ends - window.overlapping * window.slide_us) // 1000 - 1, ends // 1000 + 1)
        return pa.array(np.clip(-((near * 1000 - ends) // window.slide_us), 0, window.overlapping))

    def _by_window(self, table: pa.Table) -> pa.Table:
        """Return the parts of open windows."""
        window = self.window
        if window.overlapping == 1:
            return table
        rows_at_once = max(1, _MAX_PARTS // window.overlapping)
        by = [_START, *self._names]
        merged: list[pa.Table] = []
        for first in range(0, table.num_rows, rows_at_once):
            parts = self._of_open_windows(table.slice(first, rows_at_once))
            # Each block alone first, so that memory is bounded by the open windows of a batch.
            merged.append(self.aggregates.merged(parts.select([*by, *self.aggregates.names]), by))
        return merged[0] if len(merged) == 1 else self.aggregates.merged(pa.concat_tables(merged), by)

    def _of_open_windows(self, table: pa.Table) -> pa.Table:
        """Return a row for each open window of each row."""
        window = self.window
        numbers = np.arange(window.overlapping)
        starts = table.column(_START).to_numpy()[:, None] - numbers * window.slide_us
        is_open = numbers < table.column(_OPEN).to_numpy()[:, None]
        if window.duration_us % window.slide_us:
            is_open[:, -1] &= table.column(_IS_IN_FIRST).to_numpy()
        found = table.take(pa.array(np.nonzero(is_open)[0]))
        return found.set_column(found.column_names.index(_START), _START, pa.array(starts[is_open]))
