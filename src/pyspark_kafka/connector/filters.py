"""Filters that an engine pushes down to a source: a query's conditions on one column, as plain data.

An engine passes a list of them, all of which a row must pass. A comparison with null is neither true nor false, as in
SQL, and a row passes a filter only if it is true. `Filter.evaluate` says what each filter means. Pure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ColumnFilter",
    "EqualNullSafe",
    "EqualTo",
    "Filter",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNotNull",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "Not",
    "StringContains",
    "StringEndsWith",
    "StringStartsWith",
    "ValueFilter",
]
__dir__ = __all__.copy


@dataclass(frozen=True, slots=True)
class Filter(ABC):
    """A condition on the rows that a query needs. Filters are values: they compare, and they pickle.

    An engine may have kinds that a source does not know; a source leaves those to the engine.

    Source: Spark `org.apache.spark.sql.sources.Filter`.
    """

    @abstractmethod
    def evaluate(self, row: Mapping[str, Any]) -> bool | None:
        """Return whether the filter is true of a row; None if it is neither true nor false, because of a null.

        Args:
            row: values by the name of the column; a column of several values has a mapping.
        """


@dataclass(frozen=True, slots=True)
class ColumnFilter(Filter):
    """A condition on one column.

    Attributes:
        attribute: the names that lead to the column: one, or the names of nested columns from the outermost on.
    """

    attribute: tuple[str, ...]

    def value_in(self, row: Mapping[str, Any]) -> Any:
        """Return the value of the column in a row; null if it is in a null."""
        found: Any = row
        for name in self.attribute:
            if found is None:
                return None
            found = found[name]
        return found


@dataclass(frozen=True, slots=True)
class IsNull(ColumnFilter):
    """The column is null."""

    def evaluate(self, row: Mapping[str, Any]) -> bool:
        """Return whether the column is null."""
        return self.value_in(row) is None


@dataclass(frozen=True, slots=True)
class IsNotNull(ColumnFilter):
    """The column is not null."""

    def evaluate(self, row: Mapping[str, Any]) -> bool:
        """Return whether the column is not null."""
        return self.value_in(row) is not None


@dataclass(frozen=True, slots=True)
class ValueFilter(ColumnFilter):
    """A comparison of a column with a value.

    Attributes:
        value: of the Python type of the column: int, float, str, bytes, bool, `decimal.Decimal`, `datetime.date`, or
            `datetime.datetime`, which has a zone if the column is a point in time; None for null.
    """

    value: Any

    def evaluate(self, row: Mapping[str, Any]) -> bool | None:
        """Return whether the comparison is true; None if one of the two is null."""
        found = self.value_in(row)
        return None if found is None or self.value is None else self.compare(found)

    @abstractmethod
    def compare(self, found: Any) -> bool:
        """Return whether the comparison is true of a value that is not null."""


@dataclass(frozen=True, slots=True)
class EqualTo(ValueFilter):
    """The column is equal to the value; never true if one of them is null."""

    def compare(self, found: Any) -> bool:
        """Return whether it is equal."""
        return bool(found == self.value)


@dataclass(frozen=True, slots=True)
class EqualNullSafe(ValueFilter):
    """The column is equal to the value, or both are null."""

    def evaluate(self, row: Mapping[str, Any]) -> bool:
        """Return whether both are equal, or null; it is never neither."""
        found = self.value_in(row)
        return found is self.value if found is None or self.value is None else self.compare(found)

    def compare(self, found: Any) -> bool:
        """Return whether it is equal."""
        return bool(found == self.value)


@dataclass(frozen=True, slots=True)
class GreaterThan(ValueFilter):
    """The column is greater than the value."""

    def compare(self, found: Any) -> bool:
        """Return whether it is greater."""
        return bool(found > self.value)


@dataclass(frozen=True, slots=True)
class GreaterThanOrEqual(ValueFilter):
    """The column is greater than or equal to the value."""

    def compare(self, found: Any) -> bool:
        """Return whether it is greater or equal."""
        return bool(found >= self.value)


@dataclass(frozen=True, slots=True)
class LessThan(ValueFilter):
    """The column is less than the value."""

    def compare(self, found: Any) -> bool:
        """Return whether it is less."""
        return bool(found < self.value)


@dataclass(frozen=True, slots=True)
class LessThanOrEqual(ValueFilter):
    """The column is less than or equal to the value."""

    def compare(self, found: Any) -> bool:
        """Return whether it is less or equal."""
        return bool(found <= self.value)


@dataclass(frozen=True, slots=True)
class StringStartsWith(ValueFilter):
    """The text begins with the value."""

    def compare(self, found: Any) -> bool:
        """Return whether it begins so."""
        return bool(found.startswith(self.value))


@dataclass(frozen=True, slots=True)
class StringEndsWith(ValueFilter):
    """The text ends with the value."""

    def compare(self, found: Any) -> bool:
        """Return whether it ends so."""
        return bool(found.endswith(self.value))


@dataclass(frozen=True, slots=True)
class StringContains(ValueFilter):
    """The text has the value in it."""

    def compare(self, found: Any) -> bool:
        """Return whether it has it."""
        return self.value in found


@dataclass(frozen=True, slots=True)
class In(ColumnFilter):
    """The column is equal to one of several values.

    Attributes:
        value: the values; null in them is equal to nothing.
    """

    value: tuple[Any, ...]

    def evaluate(self, row: Mapping[str, Any]) -> bool | None:
        """Return whether it is one of them; None if it is null, or if only a null is left to be equal to."""
        found = self.value_in(row)
        if found is None:
            return None
        return True if found in self.value else (None if None in self.value else False)


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """The opposite of another filter; neither true nor false where that one is neither.

    Attributes:
        child: the other filter.
    """

    child: Filter

    def evaluate(self, row: Mapping[str, Any]) -> bool | None:
        """Return the opposite."""
        inner = self.child.evaluate(row)
        return None if inner is None else not inner
