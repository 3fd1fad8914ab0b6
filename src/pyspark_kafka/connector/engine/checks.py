"""Contracts, held while an engine runs: what a source or a sink returns is looked at, and said plainly if it is wrong.

Python has no compiler that finds a forgotten `return`. Without these checks such a mistake shows as an error of Spark,
about something else, or as rows that are missing.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka.connector.offsets import Offset, PartitionOffset
from pyspark_kafka.connector.read import InputPartition
from pyspark_kafka.connector.write import WriterCommitMessage
from pyspark_kafka.errors import CallError, ConnectorError, ContractError, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from pyspark_kafka.connector.filters import Filter

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


def check_offset(value: Any, owner: object, method: str) -> Offset:
    """Return the value if it is an offset.

    Raises:
        ContractError: it is none, or its `json()` is no text.
    """
    offset = check_read_offset(value, owner, method)
    text = offset.json()
    if not isinstance(text, str):
        raise ContractError.violated(offset, "json", f"must return text, and {found(text)}.")
    return offset


def check_read_offset(value: Any, owner: object, method: str) -> Offset:
    """Return the value if it is an offset, which was read from its text: that is not written again to look at it.

    Raises:
        ContractError: it is none.
    """
    if isinstance(value, type) or not isinstance(value, Offset):
        raise ContractError.violated(owner, method, f"must return an Offset, and {found(value)}.")
    return value


def check_position(value: Any, owner: object, method: str) -> PartitionOffset:
    """Return the value if it is the position of a continuous reader.

    Raises:
        ContractError: it is none, or its `json()` is no text.
    """
    position: PartitionOffset = check_instance(value, PartitionOffset, owner, method)
    text = position.json()
    if not isinstance(text, str):
        raise ContractError.violated(position, "json", f"must return text, and {found(text)}.")
    return position


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


def check_partitions(value: Any, owner: object) -> Sequence[InputPartition]:
    """Return the value if it is a sequence of input partitions.

    Raises:
        ContractError: it is not.
    """
    method = "planInputPartitions"
    if not isinstance(value, Sequence):
        raise ContractError.violated(owner, method, f"must return a list of InputPartition, and {found(value)}.")
    for each in value:
        if not isinstance(each, InputPartition):
            raise ContractError.violated(
                owner, method, f"must return a list of InputPartition, and there is {described(each)} in it."
            )
    return value


def check_filters(value: Any, wanted: Sequence[Filter], owner: object) -> Sequence[Filter]:
    """Return the filters that a read leaves to the engine if they are of those that it was given.

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


def check_message(value: Any, owner: object, dumps: Callable[[Any], bytes] = pickle.dumps) -> WriterCommitMessage:
    """Return the value if it is a commit message that reaches the driver.

    Args:
        value: what `commit` returned.
        owner: the writer.
        dumps: how the engine pickles it.

    Raises:
        ContractError: it is none, or cannot be pickled.
    """
    if not isinstance(value, WriterCommitMessage):
        raise ContractError.violated(owner, "commit", f"must return a WriterCommitMessage, and {found(value)}.")
    try:
        dumps(value)
    except Exception as error:
        raise ContractError.violated(
            owner,
            "commit",
            f"returned a {type(value).__qualname__} that cannot be pickled: {error}.",
            hint="Make the message a dataclass of plain data: no connection, file or lock.",
        ) from error
    return value


def check_instance(value: _T, kind: type[Any], owner: object, method: str) -> _T:
    """Return the value if it is of a kind.

    Raises:
        ContractError: it is not.
    """
    if not isinstance(value, kind):
        raise ContractError.violated(owner, method, f"must return a {kind.__name__}, and {found(value)}.")
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
