"""The active variant of the Avro kernel: the compiled extensions, or the same source as Python.

`kernel` is the one in use; it is looked up at call time, so that tests can run both variants in one process.
"""

from __future__ import annotations

from pyspark_kafka._base import compiled
from pyspark_kafka._base.compiled import Kernel

__all__ = ["Kernel", "kernel", "load_compiled", "load_pure_python"]

_PACKAGE = "pyspark_kafka._typed.codecs.avro"


def load_pure_python() -> Kernel:
    """Load the kernel's source as Python, even where the compiled variant exists beside it."""
    return compiled.load_pure_python(_PACKAGE)


def load_compiled() -> Kernel | None:
    """Load the compiled kernel; None where it was not built."""
    return compiled.load_compiled(_PACKAGE)


kernel = compiled.load_kernel(_PACKAGE)
