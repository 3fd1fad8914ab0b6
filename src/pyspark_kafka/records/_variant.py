"""The variant of the kernel that runs: the compiled extensions, or the same source as Python.

`kernel` is the one in use; codec functions look it up at call time, so that tests can run both variants in one
process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from pyspark_kafka._base import compiled
from pyspark_kafka._base.compiled import Kernel

__all__ = ["CodecInfo", "Kernel", "codec_info", "kernel", "load_compiled", "load_pure_python"]

_PACKAGE = "pyspark_kafka.records"


@dataclass(frozen=True, slots=True)
class CodecInfo:
    """The variant of the record codec in use.

    Attributes:
        compiled: whether the fast, compiled kernel runs.
        path: the file that the kernel was loaded from.
        hint: how to get the fast variant; empty when it runs.
    """

    compiled: bool
    path: str
    hint: str

    @property
    def notes(self) -> tuple[str, ...]:
        """The hint, for the notes of a read or write that the slow variant makes many times slower; else nothing."""
        return () if self.compiled else (self.hint,)


def load_pure_python() -> Kernel:
    """Load the kernel's source as Python, even where the compiled variant exists beside it."""
    return compiled.load_pure_python(_PACKAGE)


def load_compiled() -> Kernel | None:
    """Load the compiled kernel; None where it was not built."""
    return compiled.load_compiled(_PACKAGE)


kernel = compiled.load_kernel(_PACKAGE)


def codec_info() -> CodecInfo:
    """Return the variant of the codec that runs here, and the way to the fast one.

    Runs on: driver and executor; cheap.
    """
    if kernel.compiled:
        hint = ""
    elif os.environ.get(compiled.FORCE_PURE) == "1":
        hint = f"The slow pure-Python codec was asked for. Unset {compiled.FORCE_PURE} to use the compiled one."
    else:
        hint = f"The slow pure-Python codec is in use. {compiled.HINT}"
    return CodecInfo(kernel.compiled, str(kernel.reading.__file__), hint)
