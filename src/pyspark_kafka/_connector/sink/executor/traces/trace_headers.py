"""Adds the header `traceparent` of the span that writes rows to their headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._base.traces.link_sample import RECORDS_AT_A_TIME, LinkSample
from pyspark_kafka._base.traces.steps import current_span
from pyspark_kafka._base.traces.trace_parent import NAME, STATE_NAME
from pyspark_kafka._connector.sink.executor.header_columns import append_constant_headers
from pyspark_kafka.records import PreparedHeaders

if TYPE_CHECKING:
    from pyspark_kafka._base.traces.roles import Span

_BYTES_PER_ROW = 55 + len(NAME) + 12
# Most pieces of rows in a lane are smaller.
_MIN_PREPARED = 256


class TraceHeaders:
    """Adds a header to the rows of one task, and links the spans that its rows name.

    Runs on: executor, on the thread of the writer, in the span of the task or epoch; does not block.

    Args:
        keeps: whether a row that has a `traceparent` keeps it.

    Attributes:
        bytes_per_row: about how much memory the header of one row takes.
    """

    bytes_per_row = _BYTES_PER_ROW

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self._sample = LinkSample()
        self._span: Span | None = None
        # The headers of rows that have none of their own, of this text.
        self._text = ""
        self._prepared: PreparedHeaders | None = None

    def prepared(self, rows: int) -> PreparedHeaders | None:
        """Return the headers of rows that have none of their own; None if there is no span."""
        span = current_span()
        if span is None or not (text := span.traceparent):
            return None
        prepared = self._prepared
        if prepared is None or text != self._text or prepared.num_rows < rows:
            # Batches of all sizes share few of them.
            made = with_trace_parent(None, 1 << (max(rows, _MIN_PREPARED) - 1).bit_length(), text.encode(), keeps=False)
            self._text, self._prepared = text, (prepared := PreparedHeaders(made))
        return prepared

    def of_rows(self, headers: pa.Array[Any] | None, rows: int) -> pa.Array[Any] | None:
        """Return the headers of rows, with a `traceparent` in each; as they are, if there is no span.

        Args:
            headers: the rows' own: list<struct<key, value>>, null for none; None if no row has any.
            rows: how many rows there are.
        """
        span = current_span()
        if span is None or not span.traceparent or not rows:
            return headers
        if headers is not None:
            self._link(span, headers)
        return with_trace_parent(headers, rows, span.traceparent.encode(), keeps=self._keeps)

    def _link(self, span: Span, headers: pa.Array[Any]) -> None:
        if self._span is not span:
            # Of the next epoch of a lane.
            self._span, self._sample = span, LinkSample()
        if self._sample.is_due():
            first = headers.slice(0, RECORDS_AT_A_TIME)
            flat = pc.list_flatten(first)
            keys, values = flat.field(0).to_pylist(), flat.field(1)
            self._sample.add_headers(
                len(first), [values[place].as_py() for place, key in enumerate(keys) if key == NAME]
            )
            span.add_links(self._sample.take_new())
            span.set_attributes(self._sample.counts())


def with_trace_parent(headers: pa.Array[Any] | None, rows: int, text: bytes, *, keeps: bool) -> pa.Array[Any]:
    """Return headers with one `traceparent` in each row, behind the others. Pure.

    Shape: list<struct<key, value>> without nulls, `rows` long.

    Args:
        headers: as in `TraceHeaders.of_rows`.
        rows: how many rows there are.
        text: the value of the header.
        keeps: whether a row that has the header keeps it; otherwise it is replaced, and its `tracestate` removed.
    """
    if headers is None:
        values = pa.StructArray.from_arrays(
            [pa.repeat(pa.scalar(NAME), rows), pa.repeat(pa.scalar(text), rows)],
            fields=[pa.field("key", pa.string()), pa.field("value", pa.binary())],
        )
        ends = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int32()), rows + 1)), pa.scalar(1, pa.int32()))
        return pa.ListArray.from_arrays(ends, values)
    wanted = pa.repeat(pa.scalar(True), rows)
    if keeps:
        has = pc.is_in(_row_numbers(rows), value_set=_rows_with(headers, (NAME,)))
        return append_constant_headers(headers, [(NAME, text, pc.and_(wanted, pc.invert(has)))])
    return append_constant_headers(_without(headers, (NAME, STATE_NAME)), [(NAME, text, wanted)])


def _rows_with(headers: pa.Array[Any], names: tuple[str, ...]) -> Any:
    return pc.list_parent_indices(headers).cast(pa.int64()).filter(_named(headers, names))


def _named(headers: pa.Array[Any], names: tuple[str, ...]) -> Any:
    keys = pc.struct_field(pc.list_flatten(headers), [0])
    return pc.is_in(keys, value_set=pa.array(names).cast(keys.type))


def _row_numbers(rows: int) -> Any:
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), rows)), 1)


def _without(headers: pa.Array[Any], names: tuple[str, ...]) -> pa.Array[Any]:
    named = _named(headers, names)
    if not pc.any(named).as_py():
        return headers
    left = pc.list_flatten(headers).filter(pc.invert(named))
    removed = pc.value_counts(pc.list_parent_indices(headers).cast(pa.int64()).filter(named))
    lengths = pc.fill_null(pc.list_value_length(headers), 0).cast(pa.int64())
    # Of each row, how many of its headers go.
    rows = _row_numbers(len(headers))
    places = pc.index_in(rows, value_set=removed.field(0))
    gone = pc.fill_null(removed.field(1).take(places), 0)
    kept = pc.subtract(lengths, gone).cast(pa.int32())
    return pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(kept)]), left)
