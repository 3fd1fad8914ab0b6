"""The grouping columns of a windowed aggregation: rows of a group have equal columns, as in Spark. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.continuous.state.row_codec import RowCodec
from pyspark_kafka.continuous.state.versions import columns_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.continuous.steps.window_times import SessionWindow, TimeWindow


@dataclass(frozen=True)
class Grouping:
    """The columns after `groupBy`.

    Attributes:
        window: the window.
        keys: the other columns.
        position: of the window among them.
        time: the type of window bounds.
    """

    window: TimeWindow | SessionWindow
    keys: pa.Schema
    position: int
    time: pa.DataType

    @property
    def text(self) -> str:
        """Return the text that must be the same in the next run."""
        return ", ".join((self.window.text, *([columns_text(self.keys)] if len(self.keys) else [])))

    @property
    def fields(self) -> Sequence[pa.Field]:
        """Return the columns of the result."""
        bounds = pa.field(self.window.name, pa.struct([("start", self.time), ("end", self.time)]))
        return [*list(self.keys)[: self.position], bounds, *list(self.keys)[self.position :]]

    def columns(self, starts: pa.Array, ends: pa.Array, keys: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """Return the columns of the result.

        Args:
            starts: of the windows, in microseconds since 1970.
            ends: likewise.
            keys: the other columns.
        """
        bounds = pa.StructArray.from_arrays([each.cast(self.time) for each in (starts, ends)], ["start", "end"])
        return [*keys[: self.position], bounds, *keys[self.position :]]

    def keys_of(self, rows: pa.RecordBatch) -> Sequence[pa.Array]:
        """Return the other columns. NaN is equal to NaN, and 0.0 to -0.0."""
        return [normalized(rows.column(name)) for name in self.keys.names]

    @property
    def key_schema(self) -> pa.Schema:
        """Return the columns of a state key: a number, and the other columns."""
        return pa.schema([pa.field("", pa.int64()), *self.keys])

    @cached_property
    def codec(self) -> RowCodec:
        """The encoder of state keys; in a task only, because it does not pickle."""
        return RowCodec(self.key_schema)


def normalized(column: pa.Array) -> pa.Array:
    """Return a column of a key: each NaN as one, and -0.0 as 0.0; other types as they are."""
    if not pa.types.is_floating(column.type):
        return column
    zero, nan = (pa.scalar(number, column.type) for number in (0.0, float("nan")))
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
