"""Readers and writers for those who have rows, one at a time, and not Arrow batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

import pyarrow as pa

from pyspark_kafka.connector.read import ROWS_DROPPED, PartitionReader
from pyspark_kafka.connector.write import DataWriter
from pyspark_kafka.errors import CallError, ConnectorError, ContractError, described


def batch_of_rows(rows: list[Any], schema: pa.Schema, owner: object, method: str) -> pa.RecordBatch:
    """Return rows as one Arrow batch.

    Args:
        rows: dictionaries by column name, or tuples in the order of the columns. A column that a dictionary lacks is
            null.
        schema: the columns.
        owner: whose rows they are, for errors.
        method: the method that returned them, for errors.

    Raises:
        ContractError: a row is of another type, has other columns, or a value does not fit its column.
    """
    columns = _columns_of_equal_rows(rows, schema.names) or _columns_of_any_rows(rows, schema.names, owner, method)
    try:
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _wrong_value(columns, schema, owner, method) from None
    for array, field in zip(arrays, schema, strict=True):
        if array.null_count and not field.nullable:
            raise ContractError.violated(owner, method, f"returned a null in column {field.name!r}, which has none.")
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _columns_of_equal_rows(rows: list[Any], names: list[str]) -> list[Sequence[Any]] | None:
    """Return the columns of rows that are all tuples, or all dictionaries, and whole; None of any others.

    Nothing here is done in Python for each row: that takes as long as Arrow does. Nor does `zip` turn the rows, for it
    makes an object for each of them, which sets off collections of garbage.
    """
    kinds = set(map(type, rows))
    if kinds not in ({tuple}, {dict}) or set(map(len, rows)) != {len(names)}:
        return None
    places: Sequence[Any] = range(len(names)) if kinds == {tuple} else names
    try:
        # Dictionaries with as many keys as there are columns, and each column: none is unknown.
        return [list(map(itemgetter(place), rows)) for place in places]
    except KeyError:
        return None


def _columns_of_any_rows(rows: list[Any], names: list[str], owner: object, method: str) -> list[Sequence[Any]]:
    columns: list[list[Any]] = [[] for _ in names]
    for row in rows:
        if isinstance(row, dict):
            unknown = row.keys() - set(names)
            if unknown:
                raise ContractError.violated(
                    owner, method, f"returned a row with the columns {sorted(unknown)}, which the schema {names} lacks."
                )
            for column, name in zip(columns, names, strict=True):
                column.append(row.get(name))
        elif isinstance(row, (tuple, list)) and len(row) == len(names):
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        else:
            found = f"{len(row)} values" if isinstance(row, (tuple, list)) else described(row)
            raise ContractError.violated(
                owner, method, f"must return dictionaries, or tuples of {len(names)} values, and returned {found}."
            )
    return list(columns)


def _wrong_value(columns: list[Sequence[Any]], schema: pa.Schema, owner: object, method: str) -> ContractError:
    for column, field in zip(columns, schema, strict=True):
        for value in column:
            try:
                pa.array([value], field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                # Never the value itself: rows may hold what is secret.
                return ContractError.violated(
                    owner,
                    method,
                    f"returned {described(value)} for column {field.name!r} of type {field.type}: "
                    f"{type(error).__name__}.",
                )
    return ContractError.violated(owner, method, "returned values that do not fit together.")


class RowPartitionReader(PartitionReader):
    """Reads one input partition row by row; the rows become Arrow batches.

    Implement `rows`, and `close` if there is something to release. Slower than a reader that has columns already; fast
    enough for a REST API.

    Runs on: executor, as `PartitionReader`.

    Args:
        schema: the columns of the rows.
        rows_per_batch: at most this many rows in an Arrow batch.
    """

    def __init__(self, schema: pa.Schema, rows_per_batch: int = 1_000) -> None:
        self._schema = schema
        self._rows_per_batch = rows_per_batch
        self._iterator: Iterator[Any] | None = None
        self._batch: pa.RecordBatch | None = None

    @abstractmethod
    def rows(self) -> Iterator[Any]:
        """Return the rows: dictionaries by column name, or tuples in the order of the columns. May block."""

    def next(self) -> bool:
        """Move to the next rows."""
        if self._iterator is None:
            found = self.rows()
            try:
                self._iterator = iter(found)
            except TypeError:
                raise ContractError.violated(
                    self, "rows", f"must return an iterable of rows, and returned {described(found)}."
                ) from None
        try:
            taken = list(islice(self._iterator, self._rows_per_batch))
        except ConnectorError:
            raise
        except Exception as error:
            raise CallError.raised(self, "rows", error, ROWS_DROPPED) from error
        self._batch = batch_of_rows(taken, self._schema, self, "rows") if taken else None
        return bool(taken)

    def get(self) -> pa.RecordBatch:
        """Return the rows that the last `next()` moved to."""
        if self._batch is None:
            raise RuntimeError("get() was called without a next() that returned True")
        return self._batch

    def close(self) -> None:
        """Close the iterator of rows, so that a generator runs its `finally`."""
        close = getattr(self._iterator, "close", None)
        if close is not None:
            close()


class RowDataWriter(DataWriter):
    """Writes the rows of one task one by one. Implement `writeRow`, `commit` and `abort`.

    Runs on: executor, as `DataWriter`.
    """

    @abstractmethod
    def writeRow(self, row: Mapping[str, Any]) -> None:
        """Take one row, by column name."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one Arrow batch, row by row."""
        for row in batch.to_pylist():
            self.writeRow(row)

    def close(self) -> None:
        """Release nothing: a subclass that holds a connection overrides this."""
