"""Code that exists twice: as extensions that Cython compiled, and as the same source in Python.

A package with a kernel has it in modules whose names begin with `_kernel`, mostly `_kernel_read` and `_kernel_write`,
and a module `_variant` with the one in use. Only compiling needs Cython: a source has a stand-in for it.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import logging
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark_kafka.version import install_command

_LOG = logging.getLogger(__name__)
FORCE_PURE = "PYSPARK_KAFKA_PURE_PYTHON"
HINT = (
    "Install a wheel for this platform, or a C compiler and then "
    f"`{install_command()} --force-reinstall --no-deps --no-binary pyspark-kafka`."
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One variant of a kernel's two modules."""

    reading: Any
    writing: Any
    compiled: bool


def load_pure_python(package: str) -> Kernel:
    """Load the source of a package's kernel as Python, even where the compiled variant exists beside it."""
    return Kernel(load_source(package, "_kernel_read"), load_source(package, "_kernel_write"), compiled=False)


def load_compiled(package: str) -> Kernel | None:
    """Load the compiled kernel of a package; None where it was not built."""
    reading, writing = _load_extension(package, "_kernel_read"), _load_extension(package, "_kernel_write")
    return None if reading is None or writing is None else Kernel(reading, writing, compiled=True)


def load_kernel(package: str) -> Kernel:
    """Load the kernel of a package: compiled where it was built, unless `PYSPARK_KAFKA_PURE_PYTHON` is 1."""
    if os.environ.get(FORCE_PURE) == "1":
        return load_pure_python(package)
    compiled = load_compiled(package)
    if compiled is None:
        # Said aloud where a query is built, not here: every worker process loads it.
        _LOG.debug("The slow pure-Python kernel of %s is in use. %s", package, HINT)
        return load_pure_python(package)
    return compiled


def load_module(package: str, name: str) -> Any:
    """Load one kernel module of a package: compiled where it was built, unless `PYSPARK_KAFKA_PURE_PYTHON` is 1."""
    compiled = None if os.environ.get(FORCE_PURE) == "1" else _load_extension(package, name)
    return load_source(package, name) if compiled is None else compiled


def load_source(package: str, name: str) -> Any:
    """Load the source of one kernel module as Python, even where the compiled variant exists beside it."""
    full_name = f"{package}.{name}_uncompiled"
    if full_name in sys.modules:
        return sys.modules[full_name]
    # Compiled or not, the module lies where its source does; but in an archive, such as one of `--py-files`, where
    # nothing is compiled.
    place = Path(str(importlib.import_module(package).__file__)).with_name(f"{name}.py")
    found = f"{package}.{name}"
    spec = (
        importlib.util.spec_from_file_location(full_name, place) if place.is_file() else importlib.util.find_spec(found)
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the source {name}.py of {package}")
    module = importlib.util.module_from_spec(spec)
    # For this module alone: another one may check whether Cython is installed.
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
    sys.modules[full_name] = module
    spec.loader.exec_module(module)
    return module


def _load_extension(package: str, name: str) -> Any | None:
    """Return a compiled module; None where it was not built."""
    spec = importlib.util.find_spec(f"{package}.{name}")
    if spec is None or str(spec.origin).endswith((".py", ".pyc")):
        return None
    return importlib.import_module(spec.name)


class _NoGil(nullcontext[None]):
    """A stand-in for `cython.nogil`, a context and a decorator."""

    def __call__(self, function: Any) -> Any:
        return function


def _unchanged(item: Any) -> Any:
    return item


def _directive(*_: Any, **__: Any) -> Any:
    return _unchanged


_CYTHON = SimpleNamespace(
    NULL=None,
    compiled=False,
    declare=lambda _, value: value,
    cast=lambda _, value: value,
    nogil=_NoGil(),
    **dict.fromkeys(("ccall", "cclass", "cfunc", "final", "inline"), _unchanged),
    **dict.fromkeys(("boundscheck", "cdivision", "exceptval", "initializedcheck", "wraparound"), _directive),
    # Types that `declare` and `cast` take; types in annotations are never looked up.
    **dict.fromkeys(("Py_ssize_t", "int", "longlong", "uchar", "uint", "ulonglong"), int),
)


def _import(name: str, *rest: Any, **named: Any) -> Any:
    return _CYTHON if name == "cython" else builtins.__import__(name, *rest, **named)
