"""The functions of an aggregation in sessions: the open sessions of a group are state, and merge. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import compress, count
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.continuous.steps.window_times import SessionWindow, closing_ms, microseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_kafka.continuous.state.by_key import StateByKey
    from pyspark_kafka.continuous.steps.partial_aggregates import Aggregates
    from pyspark_kafka.continuous.steps.row_groups import Grouping

_NUMBER, _SLOT, _START, _END, _SESSIONS, _ID = "number", "slot", "start", "end", "sessions", "id"
_PIECES, _IS_CHANGED = "pieces", "is changed"


@dataclass(frozen=True)
class SessionRows:
    """Aggregates rows by session and other columns, and returns a session once the watermark has reached its end.

    A group has its open sessions in slots: the key of the state is the number of the slot with the other columns. A
    session stays in its slot, so that only sessions that change are written; slots between others can be empty. Slot 0
    has the number of slots as well, also if it is empty itself. Sessions whose end the watermark has reached do not
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

    operator: ClassVar[str] = "sessionWindowStateStoreSaveExec"

    window: SessionWindow
    grouping: Grouping
    aggregates: Aggregates

    @property
    def key_text(self) -> str:
        """Return the key columns as text."""
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
        kept, sizes = self._kept(keys, len(lists), state)
        is_closed = self._is_closed(kept, state)
        pieces = pa.concat_tables([added.append_column(_SLOT, pa.nulls(len(added), pa.int64())), kept.filter(
            pc.invert(is_closed)).select([*self._columns, _SLOT])])  # fmt: skip
        merged = self._merged(pieces.append_column(_PIECES, pa.repeat(pa.scalar(1, pa.int64()), len(pieces))))
        is_changed = pc.or_(pc.greater(merged.column(_PIECES), 1), merged.column(_SLOT).is_null())
        merged = merged.drop_columns([_PIECES]).append_column(_IS_CHANGED, is_changed)
        closed = _unchanged(kept.filter(is_closed), merged.column_names)
        self._replace(keys, (kept, sizes), pa.concat_tables([merged, closed]), state)

    def close(self, timers: pa.RecordBatch, state: StateByKey) -> pa.RecordBatch | None:
        """Return sessions whose end the watermark has reached, and forget them."""
        groups = pc.unique(timers.column("key"))
        _, *keys = self.grouping.codec.decode(groups.to_pylist()).columns
        kept, sizes = self._kept(keys, len(groups), state)
        is_closed = self._is_closed(kept, state)
        left = _unchanged(kept.filter(pc.invert(is_closed)), [*self._columns, _SLOT, _IS_CHANGED])
        self._replace(keys, (kept, sizes), left, state, expired=True)
        closed = kept.filter(is_closed).sort_by([(_NUMBER, "ascending"), (_START, "ascending")]).combine_chunks()
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
        """Return the state keys of groups' slots."""
        return pa.array(self.grouping.codec.encode([slots, *(key.take(numbers) for key in keys)]), pa.binary())

    def _kept(self, keys: Sequence[pa.Array], groups: int, state: StateByKey) -> tuple[pa.Table, Sequence[int]]:
        """Return the sessions of groups, each with the number of its group and of its slot, and the slots of groups."""
        numbers, slots = list(range(groups)), [0] * groups
        first = state.get(self._keys(keys, pa.array(numbers), pa.array(slots, pa.int64())))
        sizes = [size or 0 for size in first.column(_SESSIONS).to_pylist()]
        more = [(number, slot) for number, size in enumerate(sizes) for slot in range(1, size)]
        found = [first]
        if more:
            numbers += [number for number, _ in more]
            slots += [slot for _, slot in more]
            found.append(state.get(self._keys(keys, *_columns_of(more))))
        table = pa.Table.from_batches(found).append_column(_NUMBER, pa.array(numbers, pa.int64()))
        table = table.append_column(_SLOT, pa.array(slots, pa.int64()))
        return table.filter(table.column(_START).is_valid()), sizes

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
        more = [(_NUMBER, "min"), (_START, "min"), (_END, "max"), (_SLOT, "min"), (_PIECES, "sum")]
        merged = self.aggregates.merged(table.append_column(_ID, ids), [_ID], more)
        return merged.select([*self._columns, _SLOT, _PIECES])

    def _replace(
        self,
        keys: Sequence[pa.Array],
        before: tuple[pa.Table, Sequence[int]],
        after: pa.Table,
        state: StateByKey,
        *,
        expired: bool = False,
    ) -> None:
        """Put other sessions into the state, and set timers for them if there are none.

        Args:
            keys: the columns of the groups.
            before: the sessions in the state, and each group's number of slots.
            after: the sessions that are to be there, each with its slot, null for a new one, and whether it is changed.
            state: of the step.
            expired: whether the timers of all groups have expired.
        """
        kept, sizes_before = before
        slots = _Slots(kept, after, sizes_before)
        is_written = [
            is_changed or (slot == 0 and number in slots.resized)
            for (number, slot), is_changed in zip(slots.places, after.column(_IS_CHANGED).to_pylist(), strict=True)
        ]
        written = after.filter(pa.array(is_written, pa.bool_())).select(self._columns)
        places = [*compress(slots.places, is_written), *((number, 0) for number in slots.headless)]
        if slots.headless:
            without = pa.table({_NUMBER: pa.array(slots.headless, pa.int64())})
            written = pa.concat_tables([written, without], promote_options="default")
        if places:
            sessions = pa.array([None if slot else slots.sizes[number] for number, slot in places], pa.int64())
            columns = {name: written.column(name) for name in self._columns if name != _NUMBER}
            state.update(self._keys(keys, *_columns_of(places)), sessions=sessions, **columns)
        if slots.gone:
            state.remove(self._keys(keys, *_columns_of(slots.gone)))
        ends, ends_before = _least_ends(after), _least_ends(kept)
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


class _Slots:
    """The slots of groups' sessions: a new session gets the first free slot.

    Args:
        before: the sessions in the state.
        after: the sessions that are to be there; a new one has no slot.
        sizes: each group's number of slots so far.

    Attributes:
        places: group and slot of each session.
        sizes: each group's number of slots; 0 without sessions.
        resized: the groups with another number of slots.
        headless: groups with sessions, of which slot 0 is empty and to be written.
        gone: slots that have no session any more, each with its group.
    """

    def __init__(self, before: pa.Table, after: pa.Table, sizes: Sequence[int]) -> None:
        self.places: list[tuple[int, int]] = []
        self.sizes = dict(enumerate(sizes))
        self.headless: list[int] = []
        self.gone: list[tuple[int, int]] = []
        numbers, slots = (after.column(name).to_pylist() for name in (_NUMBER, _SLOT))
        former = list(zip(*(before.column(name).to_pylist() for name in (_NUMBER, _SLOT)), strict=True))
        # In most groups sessions only get longer.
        stayed = Counter(number for number, slot in zip(numbers, slots, strict=True) if slot is not None)
        moved = {number for number, slot in zip(numbers, slots, strict=True) if slot is None}
        moved |= {
            number for number, sessions in Counter(number for number, _ in former).items() if sessions != stayed[number]
        }
        used: dict[int, set[int]] = {number: set() for number in moved}
        for number, slot in zip(numbers, slots, strict=True):
            if number in moved and slot is not None:
                used[number].add(slot)
        free = {number: _free(found) for number, found in used.items()}
        for number, slot in zip(numbers, slots, strict=True):
            place = next(free[number]) if slot is None else slot
            if slot is None:
                used[number].add(place)
            self.places.append((number, place))
        self.sizes |= {number: max(found, default=-1) + 1 for number, found in used.items()}
        self.resized = {number for number in moved if self.sizes[number] != sizes[number]}
        had_first = {number for number, slot in former if slot == 0}
        for number in sorted(moved):
            if self.sizes[number] and 0 not in used[number] and (number in self.resized or number in had_first):
                self.headless.append(number)
            elif not self.sizes[number] and number not in had_first:
                self.gone.append((number, 0))
        self.gone += [
            (number, slot)
            for number, slot in former
            if number in moved and slot not in used[number] and (slot or not self.sizes[number])
        ]


def _free(used: set[int]) -> Iterator[int]:
    return (slot for slot in count() if slot not in used)


def _unchanged(sessions: pa.Table, columns: Sequence[str]) -> pa.Table:
    is_changed = pa.repeat(pa.scalar(False), sessions.num_rows)
    return sessions.append_column(_IS_CHANGED, is_changed).select(columns)


def _columns_of(places: Sequence[tuple[int, int]]) -> Iterator[pa.Array]:
    """Return groups and slots as columns."""
    return (pa.array(each, pa.int64()) for each in zip(*places, strict=True))


def _least_ends(sessions: pa.Table) -> dict[int, int]:
    """Return the least session end of each group."""
    found = sessions.group_by(_NUMBER, use_threads=False).aggregate([(_END, "min")])
    return dict(zip(found.column(_NUMBER).to_pylist(), found.column(f"{_END}_min").to_pylist(), strict=True))
