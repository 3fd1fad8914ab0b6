"""What stands for objects of the JVM, such as nodes of plans: methods that return what a test sets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class ScalaSeq:
    """A sequence of Scala."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def size(self) -> int:
        return len(self._values)

    def apply(self, place: int) -> Any:
        return self._values[place]


class ScalaOption:
    """An option of Scala."""

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def isDefined(self) -> bool:  # noqa: N802 - Scala's name
        return self._value is not None

    def get(self) -> Any:
        return self._value


class JvmNode:
    """An object of the JVM: methods without arguments."""

    def __init__(self, kind: str, **values: Any) -> None:
        self._kind = kind
        for name, value in values.items():
            setattr(self, name, lambda value=value: value)

    def getClass(self) -> Any:  # noqa: N802 - Java's name
        return SimpleNamespace(getSimpleName=lambda: self._kind)
