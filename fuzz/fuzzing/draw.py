"""Choices drawn from the bytes of an input, so that every input is reproducible and a fuzzer can change any choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Takes choices from the front of an input; behind its end everything is zero."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self._at >= len(self._data)

    def taken(self, size: int) -> bytes:
        """Return the next `size` bytes, or what is left of them."""
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int, *, signed: bool = False) -> int:
        """Return a big-endian integer of `size` bytes."""
        return int.from_bytes(self.taken(size).ljust(size, b"\0"), "big", signed=signed)

    def flag(self) -> bool:
        """Return a choice of two."""
        return bool(self.number(1) & 1)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of at most 256 choices."""
        return choices[self.number(1) % len(choices)]

    def peeked(self, size: int) -> bytes:
        """Return the next `size` bytes, zeros behind the end, and leave them there."""
        return self._data[self._at : self._at + size].ljust(size, b"\0")

    def rest(self) -> bytes:
        """Return everything that is left."""
        return self.taken(max(0, len(self._data) - self._at))
