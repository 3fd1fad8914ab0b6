"""Lets kafka-python's protocol be imported without its clients.

`import kafka` imports a consumer, a producer and an admin client, also if only `kafka.protocol` is needed: more than
half of the import time of this package, in each of the Python processes that Spark starts for a query. So the package
is put into `sys.modules` without being executed. It is executed when a name is looked up that only its execution
defines: `KafkaConsumer`, for example, is available in the same process as usual.
"""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_NAME = "kafka"
# Names with underscores that Python and its tools read from any module, and that its execution defines.
_DEFINED_BY_RUN = {"__all__", "__version__", "__author__", "__license__", "__copyright__", "__title__"}


def defer_clients() -> None:
    """Put the package `kafka` in place, to be executed when it is needed; does nothing if it is there already."""
    if _NAME in sys.modules:
        return
    spec = find_spec(_NAME)
    if spec is None or spec.loader is None:
        # Not installed: the import that follows raises the error.
        return
    package = module_from_spec(spec)
    vars(package)["__getattr__"] = _Run(package)
    sys.modules[_NAME] = package


class _Run:
    """Executes the package when it lacks a name for the first time, and returns that name's value from then on."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        # The execution looks up names itself.
        self._lock = threading.RLock()
        self._begun = False

    def __call__(self, name: str) -> Any:
        found = vars(self._package)
        if not name.startswith("__") or name in _DEFINED_BY_RUN:
            with self._lock:
                if not self._begun:
                    self._begun = True
                    spec = self._package.__spec__
                    try:
                        if spec is not None and spec.loader is not None:
                            spec.loader.exec_module(self._package)
                    except BaseException:
                        # An interrupt, or a broken module: the next look-up tries again, as an import does.
                        self._begun = False
                        raise
                    found.pop("__getattr__", None)
        if name in found:
            return found[name]
        raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
