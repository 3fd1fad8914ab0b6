"""Modules that only this process finds, in queries: their classes travel as those of a script do."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@contextmanager
def sent_by_value(module: ModuleType) -> Iterator[None]:
    """Have Spark's processes get what they need of a module, for as long as the block."""
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
