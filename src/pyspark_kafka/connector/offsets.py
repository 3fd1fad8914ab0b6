"""The position of a source as an engine sees it: an opaque value with a JSON form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class Offset(Protocol):
    """A position in a stream that an engine logs, compares and passes back.

    A source may use any class that has `json()`: a value whose JSON is stable. The same position always has the same
    text, and two offsets are equal exactly if their texts are equal. A class that inherits from this one compares and
    hashes that way. One with `<` is held to it: an engine refuses an offset that goes backwards.

    Runs on: driver; from `initialOffset`, `latestOffset`, `deserializeOffset` and `mergeOffsets`. Must pickle if its
    input partitions hold it.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.Offset`.
    """

    __slots__ = ()

    @abstractmethod
    def json(self) -> str:
        """Return the text that goes into the checkpoint. Called often; must not block.

        PySpark takes text of a JSON object, `{...}`, only.
        """

    def __eq__(self, other: object) -> bool:
        return self.json() == other.json() if isinstance(other, Offset) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.json())

    def __str__(self) -> str:
        return self.json()


class PartitionOffset(ABC):
    """The position of one continuous reader, sent from an executor to the driver as JSON.

    `ContinuousStream.deserializePartitionOffset` reads it there. Two of them are equal exactly if their texts are,
    as offsets are; a class that compares otherwise, such as a dataclass by its fields, must agree with that.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.PartitionOffset`.
    """

    __slots__ = ()

    @abstractmethod
    def json(self) -> str:
        """Return the text that goes to the driver. Executor, once for each epoch; must not block."""

    def __eq__(self, other: object) -> bool:
        return self.json() == other.json() if isinstance(other, PartitionOffset) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.json())

    def __str__(self) -> str:
        return self.json()
