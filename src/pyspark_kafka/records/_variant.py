"""Which variant of the kernel runs: the compiled extension, or the same source as Python.

`kernel` is the module in use; codec functions look it up at call time, so that tests can run both variants in one
process. Layer: records; imports nothing of this package but the kernel.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NAME = "pyspark_kafka.records._kernel"
_FORCE_PURE = "PYSPARK_KAFKA_PURE_PYTHON"
_HINT = (
    "install a wheel for this platform, or a C compiler and then "
    "`pip install --force-reinstall --no-deps --no-binary pyspark-kafka pyspark-kafka`"
)


@dataclass(frozen=True, slots=True)
class CodecInfo:
    """Which variant of the record codec is in use.

    Attributes:
        compiled: whether the fast, compiled kernel runs.
        path: the file that the kernel was loaded from.
        hint: how to get the fast variant; empty when it runs.
    """

    compiled: bool
    path: str
    hint: str


def load_pure_python() -> Any:
    """Load the kernel's source as Python, even where the compiled variant exists beside it."""
    name = f"{_NAME}_uncompiled"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("_kernel.py"))
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the record codec's source beside {__file__}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_compiled() -> Any | None:
    """Load the compiled kernel; None where it was not built."""
    module = importlib.import_module(_NAME)
    return module if is_compiled(module) else None


def is_compiled(module: Any) -> bool:
    """Tell whether a kernel module is the extension."""
    return not str(module.__file__).endswith(".py")


def _load() -> Any:
    if os.environ.get(_FORCE_PURE) == "1":
        return load_pure_python()
    return load_compiled() or load_pure_python()


kernel: Any = _load()


def codec_info() -> CodecInfo:
    """Tell which variant of the codec runs here, and how to get the fast one.

    Runs on: driver and executor; cheap.
    """
    compiled = is_compiled(kernel)
    if compiled:
        hint = ""
    elif os.environ.get(_FORCE_PURE) == "1":
        hint = f"the slow pure-Python codec was asked for: unset {_FORCE_PURE} to use the compiled one"
    else:
        hint = f"the slow pure-Python codec is in use; for the fast one {_HINT}"
    return CodecInfo(compiled, str(kernel.__file__), hint)
