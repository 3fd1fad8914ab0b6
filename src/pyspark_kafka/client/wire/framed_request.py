"""Requests that build their own bytes, where kafka-python's encoder would copy too much. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    Bytes = bytes | bytearray | memoryview


class FramedRequest(ABC):
    """A request that `Connection.send` takes in place of an object of kafka-python's request classes.

    Attributes:
        API_KEY: the number of the API.
        name: its name, for errors.
        valid_versions: the lowest and the highest version that it can be built in.
    """

    API_KEY: ClassVar[int]
    name: ClassVar[str]
    valid_versions: ClassVar[tuple[int, int]]

    @property
    @abstractmethod
    def has_response(self) -> bool:
        """Whether the broker sends a response."""

    @property
    @abstractmethod
    def partition_count(self) -> int:
        """How many topic-partitions the request names; for the wire trace."""

    @staticmethod
    @abstractmethod
    def is_flexible(version: int) -> bool:
        """Whether the headers of this version have tagged fields."""

    @staticmethod
    @abstractmethod
    def response_class(version: int) -> Any:
        """Return kafka-python's class that decodes the response."""

    @abstractmethod
    def build(self, version: int, correlation_id: int, client_id: str) -> Sequence[Bytes]:
        """Return the whole frame, its size included, in pieces that are sent one after the other."""
