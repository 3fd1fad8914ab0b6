"""Code that exists twice: as extensions that Cython compiled, and as the same source in Python.

A package with a kernel has it in modules whose names begin with `_kernel`, mostly `_kernel_read` and `_kernel_write`,
and a module `_variant` with the one in use.
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

_LOG = logging.getLogger(__name__)
FORCE_PURE = "PYSPARK_KAFKA_PURE_PYTHON"
HINT = (
    "Install a wheel for this platform, or a C compiler and then "
    "`pip install --force-reinstall --no-deps --no-binary pyspark-kafka pyspark-kafka`."
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
    reading = importlib.import_module(f"{package}._kernel_read")
    writing = importlib.import_module(f"{package}._kernel_write")
    if any(str(module.__file__).endswith(".py") for module in (reading, writing)):
        return None
    return Kernel(reading, writing, compiled=True)


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
    if os.environ.get(FORCE_PURE) == "1":
        return load_source(package, name)
    return importlib.import_module(f"{package}.{name}")


def load_source(package: str, name: str) -> Any:
    """Load the source of one kernel module as Python, even where the compiled variant exists beside it."""
    full_name = f"{package}.{name}_uncompiled"
    if full_name in sys.modules:
        return sys.modules[full_name]
    # Compiled or not, the module lies where its source does.
    place = Path(str(importlib.import_module(package).__file__)).with_name(f"{name}.py")
    if not place.is_file():
        # In an archive, such as an archive of `--py-files`, nothing is compiled.
        return importlib.import_module(f"{package}.{name}")
    spec = importlib.util.spec_from_file_location(full_name, place)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the source {name}.py of {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    spec.loader.exec_module(module)
    return module
