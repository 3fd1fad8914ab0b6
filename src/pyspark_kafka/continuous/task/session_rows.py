"""The functions of an aggregation in sessions: the open sessions of a group are state, and merge. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.continuous.task.window_times import SessionWindow, closing_ms, microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.continuous.state.by_key import StateByKey
    from pyspark_kafka.continuous.task.partial_aggregates import Aggregates
    from pyspark_kafka.continuous.task.row_groups import Grouping

_NUMBER, _SLOT, _START, _END, _SESSIONS, _ID = "number", "slot", "start", "end", "sessions", "id"


@dataclass(frozen=True)
class SessionRows:
    """Aggregates rows by session and other columns, and returns a session once the watermark has reached its end.

    A group has its open sessions in slots, in the order of their starts: the key of the state is the number of the slot
    with the other columns, and slot 0 has the number of sessions. Sessions whose end the watermark has reached do not
    grow, though they may still be in the state.

    A group with sessions has a timer at their least end or before it. An expired timer whose session has grown is set
    again: so rows that make a session longer, as most do, set no timer.

    Runs on: executor; pickles until the first call.

    Attributes:
        window: the sessions.
        grouping: the columns of the groups.
        aggregates: the aggregates.

    Source: Spark `SessionWindowing`, `MergingSessionsIterator`, `SessionWindowStateStoreSaveExec` in append mode.
    """

    window: SessionWindow
    grouping: Grouping
    aggregates: Aggregates

    @property
    def key_text(self) -> str:
        """Return what keys are made of."""
        return self.grouping.text

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of a value."""
        bounds = [pa.field(name, pa.int64()) for name in (_SESSIONS, _START, _END)]
        return pa.schema([*bounds, *self.aggregates.fields])

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema([*self.grouping.fields, *(each.field for each in self.aggregates.aggregates)])

    def __call__(self, rows: pa.RecordBatch, state: StateByKey) -> None:
        """Add rows to open sessions, and begin and merge sessions."""
        names = [f"key {number}" for number in range(len(self.grouping.keys))]
        slots = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
        table = pa.table([slots, *self.grouping.keys_of(rows), range(rows.num_rows)], [_SLOT, *names, _ID])
        groups = table.group_by([_SLOT, *names], use_threads=False).aggregate([(_ID, "list")])
        lists = groups.column(f"{_ID}_list").combine_chunks()
        starts = microseconds(rows.column(self.window.column))
        ends = pc.add(starts, self.window.gap_us)
        by_group = [each.take(lists.flatten()) for each in (starts, ends, *self.aggregates.of_rows(rows))]
        added = pa.table([pc.list_parent_indices(lists), *by_group], self._columns)
        keys = [groups.column(name).combine_chunks() for name in names]
        kept = self._kept(keys, len(lists), state)
        is_closed = self._is_closed(kept, state)
        grown = kept.filter(pc.invert(is_closed)).select(self._columns)
        merged = self._merged(pa.concat_tables([added, grown]))
        self._replace(keys, kept, pa.concat_tables([merged, kept.filter(is_closed).select(self._columns)]), state)

    def close(self, timers: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch | None:
        """Return sessions whose end the watermark has reached, and forget them."""
        groups = pc.unique(timers.column("key"))
        _, *keys = self.grouping.codec.decode(groups.to_pylist()).columns
        kept = self._kept(keys, len(groups), state)
        is_closed = self._is_closed(kept, state)
        self._replace(keys, kept, kept.filter(pc.invert(is_closed)).select(self._columns), state, expired=True)
        closed = kept.filter(is_closed).combine_chunks()
        if not closed.num_rows:
            return None
        starts, ends = (closed.column(name).combine_chunks() for name in (_START, _END))
        of_sessions = [key.take(closed.column(_NUMBER)).combine_chunks() for key in keys]
        columns = [*self.grouping.columns(starts, ends, of_sessions), *self.aggregates.results(closed)]
        return pa.table(columns, schema=self.schema).combine_chunks().to_batches()[0]

    @property
    def _columns(self) -> Sequence[str]:
        return [_NUMBER, _START, _END, *self.aggregates.names]

    def _keys(self, keys: Sequence[pa.Array], numbers: pa.Array, slots: pa.Array) -> pa.Array:
        """Return the keys of the state, of slots of groups."""
        return pa.array(self.grouping.codec.encode([slots, *(key.take(numbers) for key in keys)]), pa.binary())

    def _kept(self, keys: Sequence[pa.Array], groups: int, state: StateByKey) -> pa.Table:
        """Return the sessions of groups, each with the number of its group and of its slot."""
        numbers, slots = list(range(groups)), [0] * groups
        first = state.get(self._keys(keys, pa.array(numbers), pa.array(slots, pa.int64())))
        more = [
            (number, slot)
            for number, sessions in enumerate(first.column(_SESSIONS).to_pylist())
            for slot in range(1, sessions or 0)
        ]
        found = [first]
        if more:
            numbers += [number for number, _ in more]
            slots += [slot for _, slot in more]
            found.append(state.get(self._keys(keys, *(pa.array(each, pa.int64()) for each in zip(*more, strict=True)))))
        table = pa.Table.from_batches(found).append_column(_NUMBER, pa.array(numbers, pa.int64()))
        table = table.append_column(_SLOT, pa.array(slots, pa.int64()))
        return table.filter(table.column(_START).is_valid())

    def _is_closed(self, kept: pa.Table, state: StateByKey) -> pa.ChunkedArray:
        watermark_ms = state.watermark_ms
        ends = kept.column(_END)
        return pc.less(ends, ends) if watermark_ms is None else pc.less_equal(closing_ms(ends), watermark_ms)

    def _merged(self, table: pa.Table) -> pa.Table:
        """Return the sessions that remain if sessions that overlap or touch one another are one."""
        table = table.sort_by([(_NUMBER, "ascending"), (_START, "ascending")]).combine_chunks()
        size = table.num_rows
        bounds = pa.chunked_array([*table.column(_START).chunks, *table.column(_END).chunks]).combine_chunks()
        # Ranks, so that the bounds of a group are above all bounds of the groups before it.
        ranks = pc.rank(bounds, tiebreaker="dense").cast(pa.int64())
        base = pc.multiply(table.column(_NUMBER).combine_chunks(), 2 * size + 1)
        starts, ends = pc.add(base, ranks.slice(0, size)), pc.add(base, ranks.slice(size))
        reached = pc.cumulative_max(ends)
        begins = pc.greater(starts.slice(1), reached.slice(0, size - 1)).cast(pa.int64())
        ids = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), begins]))
        more = [(_NUMBER, "min"), (_START, "min"), (_END, "max")]
        return self.aggregates.merged(table.append_column(_ID, ids), [_ID], more).select(self._columns)

    def _replace(
        self, keys: Sequence[pa.Array], before: pa.Table, after: pa.Table, state: StateByKey, *, expired: bool = False
    ) -> None:
        """Put other sessions into the state, and set timers for them if there are none.

        Args:
            keys: the columns of the groups.
            before: the sessions in the state.
            after: the other sessions.
            state: of the step.
            expired: whether the timers of all groups have expired.
        """
        after = after.sort_by([(_NUMBER, "ascending"), (_START, "ascending")]).combine_chunks()
        counts, ends = _by_group(after)
        _, ends_before = _by_group(before)
        numbers = after.column(_NUMBER).combine_chunks()
        if len(numbers):
            slots = pa.array([slot for count in counts.values() for slot in range(count)], pa.int64())
            sessions = pa.array([count for count in counts.values() for _ in range(count)], pa.int64())
            columns = {name: after.column(name) for name in self._columns if name != _NUMBER}
            state.update(self._keys(keys, numbers, slots), sessions=sessions, **columns)
        surplus = [
            each
            for each in zip(before.column(_NUMBER).to_pylist(), before.column(_SLOT).to_pylist(), strict=True)
            if each[1] >= counts.get(each[0], 0)
        ]
        if surplus:
            state.remove(self._keys(keys, *(pa.array(each, pa.int64()) for each in zip(*surplus, strict=True))))
        timed = {
            number: end
            for number, end in ends.items()
            if expired or number not in ends_before or end < ends_before[number]
        }
        if timed:
            found = pa.array(list(timed), pa.int64())
            first_slots = pa.repeat(pa.scalar(0, pa.int64()), len(timed))
            times = closing_ms(pa.array(list(timed.values()), pa.int64()))
            state.registerTimer(self._keys(keys, found, first_slots), times)


def _by_group(sessions: pa.Table) -> tuple[dict[int, int], dict[int, int]]:
    """Return how many sessions each group has, and the least of their ends, in the order of the groups."""
    found = sessions.group_by(_NUMBER, use_threads=False).aggregate([([], "count_all"), (_END, "min")])
    numbers, counts, ends = (found.column(name).to_pylist() for name in (_NUMBER, "count_all", f"{_END}_min"))
    return dict(zip(numbers, counts, strict=True)), dict(zip(numbers, ends, strict=True))
