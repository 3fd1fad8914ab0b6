"""Values of secrets in use: texts and bytes that no repr shows."""

from __future__ import annotations

from typing import NoReturn


class Revealed(str):
    """The value of a secret: a `str`, but one whose repr tools do not show with the locals of a frame."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} characters>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a revealed secret does not travel")


class HiddenBytes(bytes):
    """Bytes with a secret in them, whose repr shows only their number."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"

    __str__ = __repr__
