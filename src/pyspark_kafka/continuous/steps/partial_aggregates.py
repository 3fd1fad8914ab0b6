"""Aggregates in parts: of rows, of parts that belong together, and as the value of the end. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.errors import RecordError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FUNCTIONS = ("count", "sum", "min", "max", "avg", "mean")
ALL_ROWS = "*"
# The number of rows: a part of every aggregation, as all others can be null.
ROWS = "rows"
_MAX_BIGINT = 2**63 - 1
# Of decimals in Spark: the most digits, and how many a sum and an average have more than their column.
_MAX_DIGITS, _SUM_DIGITS, _AVERAGE_DIGITS = 38, 10, 4
_CONTEXT = Context(prec=2 * _MAX_DIGITS, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class Part:
    """One column of a state: what an aggregate keeps of the rows so far.

    Attributes:
        kind: count, sum, total (a sum as a double), min, max.
        column: the column of the rows.
        given: the type of the column.
    """

    kind: str
    column: str
    given: pa.DataType

    @property
    def name(self) -> str:
        """Return its name as a column."""
        return f"{self.kind}({self.column})"

    @cached_property
    def kept(self) -> pa.DataType:
        """Return its type as a column."""
        if self.kind == "sum" and pa.types.is_decimal(self.given):
            return pa.decimal128(min(self.given.precision + _SUM_DIGITS, _MAX_DIGITS), self.given.scale)
        if self.kind == "total" or (self.kind == "sum" and pa.types.is_floating(self.given)):
            return pa.float64()
        if self.kind in ("count", "sum") or pa.types.is_floating(self.given):
            return pa.int64()
        return pa.int8() if pa.types.is_boolean(self.given) else self.given

    def of_rows(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the part of each row."""
        column = rows.column(self.column)
        if self.kind == "count":
            return column.is_valid().cast(pa.int64())
        if self.kind in ("min", "max") and pa.types.is_floating(self.given):
            return _ordered(column.cast(pa.float64()))
        # A bigint that is no double is rounded, as in Spark.
        return column.cast(self.kept, safe=self.kind != "total")

    @property
    def merge(self) -> str:
        """Return the function of Arrow that merges parts."""
        return self.kind if self.kind in ("min", "max") else "sum"

    def is_replaced(self, kept: pa.Array) -> bool:
        """Return whether Arrow cannot merge the parts as they are: it compares no texts, and sums wrap around."""
        if self.merge != "sum":
            return bool(pa.types.is_string(self.kept) or pa.types.is_binary(self.kept))
        if pa.types.is_decimal(self.kept):
            return True
        return self.kind == "sum" and self.kept == pa.int64() and _is_large(kept)

    def replaced(self, kept: pa.Array) -> tuple[pa.Array, Callable[[pa.ChunkedArray], pa.Array]]:
        """Return the arrays to merge in the place of parts, and a function that returns the merged parts.

        Raises:
            RecordError: by the function: a sum is out of range.
        """
        if self.merge == "sum":
            wide = pa.decimal256(76, self.kept.scale) if pa.types.is_decimal(self.kept) else pa.decimal128(38, 0)
            return kept.cast(wide), self._narrowed
        ranks = pc.subtract(pc.rank(kept, tiebreaker="first").cast(pa.int64()), 1)
        in_order = kept.take(pc.sort_indices(kept))
        return pc.if_else(kept.is_valid(), ranks, pa.scalar(None, pa.int64())), in_order.take

    def _narrowed(self, sums: pa.ChunkedArray) -> pa.ChunkedArray:
        try:
            return sums.cast(self.kept)
        except pa.ArrowInvalid as error:
            raise RecordError(
                f"The sum of column {self.column!r} is outside the range of {self.kept}. Nothing of this epoch was "
                "committed.",
                condition="SUM_OUT_OF_RANGE",
                hint="Leave out the rows with wrong numbers by .where(…) before .groupBy, or cast the column to double "
                "or to a decimal with more digits.",
                parameters={"column": self.column},
            ) from error

    def value(self, kept: pa.Array) -> pa.Array:
        """Return a minimum or maximum as a value of the column; other parts as they are."""
        if self.kind not in ("min", "max"):
            return kept
        return (_ordered_back(kept) if pa.types.is_floating(self.given) else kept).cast(self.given)


@dataclass(frozen=True)
class Aggregate:
    """One column of the result.

    Attributes:
        name: of the column.
        function: one of `FUNCTIONS`.
        column: the column of the rows, or `ALL_ROWS`.
        given: the type of the column; of no meaning for `ALL_ROWS`.
    """

    name: str
    function: str
    column: str
    given: pa.DataType

    @property
    def is_average(self) -> bool:
        """Return whether it is a sum and a count."""
        return self.function in ("avg", "mean")

    @property
    def parts(self) -> Sequence[Part]:
        """The parts that are kept for it in addition to the number of rows."""
        if self.column == ALL_ROWS:
            return ()
        kinds: tuple[str, ...] = (self.function,)
        if self.is_average:
            # Spark adds whole numbers as doubles for an average: such a sum does not overflow.
            kinds = ("total" if pa.types.is_integer(self.given) else "sum", "count")
        return [Part(kind, self.column, self.given) for kind in kinds]

    @property
    def field(self) -> pa.Field:
        """Return the column of the result."""
        if self.is_average:
            return pa.field(self.name, self._average_type)
        if self.column == ALL_ROWS:
            return pa.field(self.name, pa.int64())
        (part,) = self.parts
        return pa.field(self.name, self.given if self.function in ("min", "max") else part.kept)

    def result(self, kept: pa.RecordBatch | pa.Table) -> pa.Array:
        """Return the column of the result."""
        if self.column == ALL_ROWS:
            return kept.column(ROWS)
        values = [part.value(kept.column(part.name)) for part in self.parts]
        if not self.is_average:
            return values[0]
        sums, counts = values
        if not pa.types.is_decimal(self.given):
            return pc.divide(sums, counts.cast(pa.float64()))
        return pa.array(map(self._decimal_average, sums.to_pylist(), counts.to_pylist()), self._average_type)

    @property
    def _average_type(self) -> pa.DataType:
        if not pa.types.is_decimal(self.given):
            return pa.float64()
        digits = (min(each + _AVERAGE_DIGITS, _MAX_DIGITS) for each in (self.given.precision, self.given.scale))
        return pa.decimal128(*digits)

    def _decimal_average(self, total: Decimal | None, count: int) -> Decimal | None:
        """Return an average, rounded as Spark rounds it."""
        if total is None:
            return None
        average = _CONTEXT.divide(total, Decimal(count))
        return average.quantize(Decimal(1).scaleb(-self._average_type.scale), context=_CONTEXT)


@dataclass(frozen=True)
class Aggregates:
    """The aggregates of a step.

    Args:
        aggregates: at least one.

    Source: Spark `Count`, `Sum`, `Min`, `Max`, `Average`.
    """

    aggregates: Sequence[Aggregate]

    @cached_property
    def parts(self) -> Sequence[Part]:
        """The parts of all aggregates, each once."""
        return list(dict.fromkeys(part for each in self.aggregates for part in each.parts))

    @property
    def fields(self) -> Sequence[pa.Field]:
        """The columns of the parts."""
        return [pa.field(ROWS, pa.int64()), *(pa.field(part.name, part.kept) for part in self.parts)]

    @property
    def names(self) -> Sequence[str]:
        """The names of the parts' columns."""
        return [field.name for field in self.fields]

    def of_rows(self, rows: pa.RecordBatch) -> Sequence[pa.Array]:
        """Return the parts of each row, by the columns of `fields`."""
        ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
        return [ones, *(part.of_rows(rows) for part in self.parts)]

    def merged(self, table: pa.Table, by: Sequence[str], more: Sequence[tuple[str, str]] = ()) -> pa.Table:
        """Return the parts of rows that agree in some columns, in the order of the first row of each.

        Args:
            table: columns of `fields`, and others.
            by: the columns in which rows agree; nulls are equal.
            more: other columns, each with the function of Arrow that merges it.

        Raises:
            RecordError: a sum is outside the range of a bigint.
        """
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        restored = {}
        for part in self.parts:
            if part.is_replaced(columns[part.name]):
                columns[part.name], restored[part.name] = part.replaced(columns[part.name])
        wanted = [*more, (ROWS, "sum"), *((part.name, part.merge) for part in self.parts)]
        merged = pa.table(columns).group_by(list(by), use_threads=False).aggregate(wanted)
        names = [*by, *(name for name, _ in wanted)]
        found = [merged.column(name) for name in by] + [merged.column(f"{name}_{how}") for name, how in wanted]
        return pa.table(
            {
                name: restored[name](column) if name in restored else column
                for name, column in zip(names, found, strict=True)
            }
        )

    def results(self, kept: pa.RecordBatch | pa.Table) -> Sequence[pa.Array]:
        """Return the columns of the result, of columns of `fields`."""
        return [each.result(kept) for each in self.aggregates]


def aggregate(name: str, function: str, column: str, schema: pa.Schema) -> Aggregate:
    """Return an aggregate of rows.

    Args:
        name: of the result's column.
        function: one of `FUNCTIONS`.
        column: a column of the rows, or `ALL_ROWS` for a count.
        schema: of the rows.

    Raises:
        SchemaError: there is no such function or column, or the column has a type that the function does not take.
    """
    problem = ""
    given = schema.field(column).type if column in schema.names else None
    if function not in FUNCTIONS:
        problem = f"there is no aggregate {function!r}; the aggregates are {', '.join(FUNCTIONS)}"
    elif column == ALL_ROWS and given is None:
        given = pa.null()
        problem = "" if function == "count" else f"{function} needs a column"
    elif given is None:
        problem = f"there is no column {column!r}; the columns are {', '.join(schema.names)}"
    elif function != "count" and not _is_taken(given, is_number=function not in ("min", "max")):
        problem = f"{function} does not take column {column!r}, which has type {given}"
    if problem or given is None:
        raise aggregate_refused(f"{name!r}: {problem}")
    return Aggregate(name, function, column, given)


def aggregate_refused(reason: str) -> SchemaError:
    """Return the error for unsupported aggregates."""
    return SchemaError(
        f"An aggregation cannot be computed: {reason}.",
        condition="AGGREGATE_INVALID",
        hint='Pass a column and a function for each column of the result: .agg(n=("*", "count"), '
        'total=("amount", "sum"), …).',
    )


def _is_taken(kind: pa.DataType, *, is_number: bool) -> bool:
    if pa.types.is_signed_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return True
    if pa.types.is_decimal128(kind):
        return True
    return not is_number and (
        pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
    )


def _is_large(numbers: pa.Array) -> bool:
    """Return whether the sum of numbers may be outside the range of a bigint."""
    found = pc.min_max(numbers).as_py()
    return found["max"] is not None and max(-found["min"], found["max"]) * len(numbers) > _MAX_BIGINT


def _ordered(numbers: pa.Array) -> pa.Array:
    """Return doubles as whole numbers in the order of Spark, in which NaN is the greatest double."""
    bits = pc.if_else(pc.is_nan(numbers), float("nan"), numbers).view(pa.int64())
    return pc.if_else(pc.less(bits, 0), pc.bit_wise_xor(bits, _MAX_BIGINT), bits)


def _ordered_back(kept: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(kept, pa.ChunkedArray):
        kept = kept.combine_chunks()
    return pc.if_else(pc.less(kept, 0), pc.bit_wise_xor(kept, _MAX_BIGINT), kept).view(pa.float64())
