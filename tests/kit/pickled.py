"""What another process gets of a value."""

from __future__ import annotations

import pickle
from typing import TypeVar

_T = TypeVar("_T")


def copied(value: _T) -> _T:
    """Return a value as it is after its way to an executor."""
    found: _T = pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes
    return found
