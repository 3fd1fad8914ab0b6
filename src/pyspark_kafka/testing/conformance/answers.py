"""Answers of a source that have the type that their contract names, else an error that names class and method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_kafka.connector.engine.checks import check_instance, found
from pyspark_kafka.connector.offsets import Offset, PartitionOffset
from pyspark_kafka.connector.read import InputPartition
from pyspark_kafka.errors import ContractError, described

if TYPE_CHECKING:
    from pyspark_kafka.connector.continuous import ContinuousStream
    from pyspark_kafka.connector.read import Batch, MicroBatchStream

_At = TypeVar("_At", bound=Offset | PartitionOffset)


def check_offset(value: Offset, owner: object, method: str) -> Offset:
    """Return an offset if it is one, and its JSON is text.

    Raises:
        ContractError: it is not.
    """
    return _check_json(check_instance(value, Offset, owner, method))


def check_position(value: PartitionOffset, owner: object, method: str) -> PartitionOffset:
    """Return the position of a continuous reader if it is one, and its JSON is text.

    Raises:
        ContractError: it is not.
    """
    return _check_json(check_instance(value, PartitionOffset, owner, method))


def check_partitions(value: Any, owner: Batch | MicroBatchStream | ContinuousStream) -> Sequence[InputPartition]:
    """Return a plan if it is a sequence of input partitions.

    Raises:
        ContractError: it is not.
    """
    expected = "must return a list of InputPartition, and"
    if not isinstance(value, Sequence):
        raise ContractError.violated(owner, "planInputPartitions", f"{expected} {found(value)}.")
    for each in value:
        if not isinstance(each, InputPartition):
            raise ContractError.violated(owner, "planInputPartitions", f"{expected} there is {described(each)} in it.")
    return value


def _check_json(value: _At) -> _At:
    check_instance(value.json(), str, value, "json")
    return value
