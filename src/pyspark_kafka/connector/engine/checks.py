"""Checks while an engine runs: return values that would lose or double rows silently, and errors with their method.

Python has no compiler that finds a forgotten `return`. A reader whose `next()` returns None would end its read early,
and an offset that goes backwards would read rows twice. Other mistakes end the query with an error of Python; the
suites of `pyspark_kafka.testing.conformance` name them earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka.errors import CallError, ConnectorError, ContractError, described

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pyspark_kafka.connector.filters import Filter
    from pyspark_kafka.connector.offsets import Offset

_T = TypeVar("_T")


@contextmanager
def named(owner: object, method: str, outcome: str) -> Iterator[None]:
    """Name class and method in an error of the block that is none of this package.

    Args:
        owner: the object whose method is called.
        method: the method.
        outcome: what happens to the data if it fails, as a sentence.

    Raises:
        CallError: the block raised an error of another package; that is the cause.
    """
    try:
        yield
    except ConnectorError:
        raise
    except Exception as error:
        raise CallError.raised(owner, method, error, outcome) from error


def found(value: object) -> str:
    """Return what an object is, for the end of a sentence: "returned None", "returned a list"."""
    return f"returned {described(value)}"


def check_not_backwards(end: Offset, start: Offset, owner: object, method: str, outcome: str) -> None:
    """Check that one offset is not before another, as far as the offsets of the source compare.

    Only a source knows the order of its offsets: one whose offsets have `<` is held to it.

    Args:
        end: what the method returned.
        start: where the query was.
        owner: the stream.
        method: its method.
        outcome: what happened to the data, as a sentence.

    Raises:
        ContractError: `end` is before `start`.
    """
    if end != start and _is_before(end, start):
        raise ContractError.violated(
            owner,
            method,
            f"must not go backwards: it returned {_shown(end)} after {_shown(start)}. {outcome}",
            hint="Return the start again if there is nothing new, also if the target was emptied.",
        )


def check_filters(value: Any, wanted: Sequence[Filter], owner: object) -> Sequence[Filter]:
    """Return the filters that a read leaves to the engine if they are some of the filters that it was given.

    Raises:
        ContractError: they are not.
    """
    method = "pushFilters"
    if not isinstance(value, Sequence):
        raise ContractError.violated(
            owner, method, f"must return the filters that the engine evaluates as well, and {found(value)}."
        )
    for each in value:
        if each not in wanted:
            raise ContractError.violated(
                owner, method, f"must return some of the filters it was given, and there is {described(each)} in it."
            )
    return value


def check_instance(value: _T, kind: type[Any], owner: object, method: str) -> _T:
    """Return the value if it is of a kind.

    Raises:
        ContractError: it is not.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ContractError.violated(owner, method, f"must return {article} {kind.__name__}, and {found(value)}.")
    return value


def difference(expected: pa.Schema, actual: pa.Schema) -> str:
    """Return the first difference of two schemas, for errors."""
    if expected.names != actual.names:
        return f"expected the columns {expected.names}, found {actual.names}"
    for wanted, given in zip(expected, actual, strict=True):
        if wanted.type != given.type:
            return f"column {wanted.name!r} is {given.type}, expected {wanted.type}"
        if wanted.nullable != given.nullable:
            return f"column {wanted.name!r} is {'' if given.nullable else 'not '}nullable, expected the opposite"
    return "their metadata differ"


def _is_before(left: Any, right: Any) -> bool:
    try:
        return bool(left < right)
    except TypeError:
        return False


def _shown(offset: Offset) -> str:
    text = offset.json()
    return text if len(text) <= 200 else f"{text[:200]}…"
