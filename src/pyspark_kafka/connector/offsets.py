"""The position of a source as an engine sees it: an opaque value with a JSON form. Layer: connector."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol


class Offset(Protocol):
    """A position in a stream that an engine logs, compares and hands back.

    A source may use any class that has `json()`: a value whose JSON is stable. The same position always has the same
    text, and two offsets are equal exactly if their texts are equal.

    Source: Spark `org.apache.spark.sql.connector.read.streaming.Offset`.
    """

    __slots__ = ()

    @abstractmethod
    def json(self) -> str:
        """Return the text that goes into the checkpoint."""
