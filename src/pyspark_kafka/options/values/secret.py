"""A text that is never shown. Layer: options.values."""

from __future__ import annotations

import hmac


class Secret:
    """A text that no repr, log line or error message shows.

    Not a `str`: formatting it by accident prints stars; joining or serializing it fails. Pickling keeps the value,
    which executors need.

    Example:
        >>> print(Secret("hunter2"), repr(Secret("hunter2")))
        *** Secret('***')
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Keep the value out of sight."""
        self._value = value

    def reveal(self) -> str:
        """Return the value, to hand it to a security mechanism."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return (Secret, (self._value,))
