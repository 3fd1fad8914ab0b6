"""What every input is judged by: the errors that may be raised, and that both variants of the kernel agree.

Time and memory are judged by the worker, which sees a whole execution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.records import _variant

T = TypeVar("T")


class OracleError(AssertionError):
    """Something that must hold for every input did not."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What a call gave: a value, or the error that it is allowed to raise."""

    value: T | None
    error: ConnectorError | None

    @property
    def told(self) -> tuple[Any, ...]:
        """What two variants must have in common when they refuse an input."""
        return () if self.error is None else (type(self.error), str(self.error), self.error.parameters)


def outcome_of(call: Callable[[], T]) -> Outcome[T]:
    """Run a call; any error but a ConnectorError passes through and is a finding."""
    try:
        return Outcome(call(), None)
    except ConnectorError as error:
        return Outcome(None, error)


def both_variants(call: Callable[[], T], variants: Sequence[_variant.Kernel], same: Callable[[T, T], bool]) -> T | None:
    """Run a call on every variant of the kernel, check that they agree, and return the value, if it is one."""
    outcomes: list[Outcome[T]] = []
    before = _variant.kernel
    try:
        for variant in variants:
            _variant.kernel = variant
            outcomes.append(outcome_of(call))
    finally:
        _variant.kernel = before
    first = outcomes[0]
    for other in outcomes[1:]:
        require(first.told == other.told, f"the variants differ: {first.told} and {other.told}")
        if first.value is not None and other.value is not None:
            require(same(first.value, other.value), f"the variants differ: {first.value!r} and {other.value!r}")
    return first.value


def require(holds: bool, message: str) -> None:
    """Report a finding unless the condition holds."""
    if not holds:
        raise OracleError(message)


def load_variants(which: str) -> list[_variant.Kernel]:
    """Return the variants named `compiled`, `uncompiled` or `both`; where none is compiled, the uncompiled one."""
    compiled = _variant.load_compiled() if which != "uncompiled" else None
    uncompiled = _variant.load_pure_python() if which != "compiled" or compiled is None else None
    return [variant for variant in (compiled, uncompiled) if variant is not None]
