"""Which variant of the kernel runs: the compiled extensions, or the same source as Python.

`kernel` is the one in use; codec functions look it up at call time, so that tests can run both variants in one
process. Layer: records; imports nothing of this package but the kernel.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PACKAGE = "pyspark_kafka.records"
_LOG = logging.getLogger(__name__)
_FORCE_PURE = "PYSPARK_KAFKA_PURE_PYTHON"
_HINT = (
    "Install a wheel for this platform, or a C compiler and then "
    "`pip install --force-reinstall --no-deps --no-binary pyspark-kafka pyspark-kafka`."
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


@dataclass(frozen=True, slots=True)
class Kernel:
    """One variant of the kernel's two modules."""

    reading: Any
    writing: Any
    compiled: bool


def load_pure_python() -> Kernel:
    """Load the kernel's source as Python, even where the compiled variant exists beside it."""
    return Kernel(_load_source("_kernel_read"), _load_source("_kernel_write"), compiled=False)


def load_compiled() -> Kernel | None:
    """Load the compiled kernel; None where it was not built."""
    reading = importlib.import_module(f"{_PACKAGE}._kernel_read")
    writing = importlib.import_module(f"{_PACKAGE}._kernel_write")
    if any(str(module.__file__).endswith(".py") for module in (reading, writing)):
        return None
    return Kernel(reading, writing, compiled=True)


def _load_source(name: str) -> Any:
    full_name = f"{_PACKAGE}.{name}_uncompiled"
    if full_name in sys.modules:
        return sys.modules[full_name]
    spec = importlib.util.spec_from_file_location(full_name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the record codec's source {name}.py beside {__file__}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    spec.loader.exec_module(module)
    return module


def _load() -> Kernel:
    if os.environ.get(_FORCE_PURE) == "1":
        return load_pure_python()
    compiled = load_compiled()
    if compiled is None:
        # Said aloud where a query is built, not here: every worker process loads the codec.
        _LOG.debug("The slow pure-Python record codec is in use. %s", _HINT)
        return load_pure_python()
    return compiled


kernel = _load()


def codec_info() -> CodecInfo:
    """Tell which variant of the codec runs here, and how to get the fast one.

    Runs on: driver and executor; cheap.
    """
    if kernel.compiled:
        hint = ""
    elif os.environ.get(_FORCE_PURE) == "1":
        hint = f"The slow pure-Python codec was asked for. Unset {_FORCE_PURE} to use the compiled one."
    else:
        hint = f"The slow pure-Python codec is in use. {_HINT}"
    return CodecInfo(kernel.compiled, str(kernel.reading.__file__), hint)
