"""The position of a source as an engine sees it: an opaque value with a JSON form."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Offset(ABC):
    """A position in a stream that an engine logs, compares and hands back.

    Two offsets are equal when their JSON is equal, so `json()` must be stable: the same position always gives the same
    text, whatever the order in which it was put together.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.Offset`.
    """

    __slots__ = ()

    @abstractmethod
    def json(self) -> str:
        """Give the text that goes into the checkpoint."""

    def __eq__(self, other: object) -> bool:
        return self.json() == other.json() if isinstance(other, Offset) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.json())

    def __str__(self) -> str:
        return self.json()
