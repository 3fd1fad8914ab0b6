"""Lets kafka-python's protocol be imported without its clients. Layer: client.

`import kafka` imports a consumer, a producer and an admin client, also where only `kafka.protocol` is wanted: more than
half of what this package takes to import, in each of the Python processes that Spark starts for a query. So the package
is put in place without having run, and runs when something is asked of it that only its run gives: `KafkaConsumer` can
be had from it in the same process as ever.
"""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

_NAME = "kafka"
# What Python and its tools ask any module for. Other such names a module has from the start, or never.
_GIVEN_BY_RUN = {"__all__", "__version__", "__author__", "__license__", "__copyright__", "__title__"}


def defer_clients() -> None:
    """Put the package `kafka` in place, to be run when it is needed; does nothing where it is there already."""
    if _NAME in sys.modules:
        return
    spec = find_spec(_NAME)
    if spec is None or spec.loader is None:
        # Not installed: the import that follows says so.
        return
    package = module_from_spec(spec)
    vars(package)["__getattr__"] = _Run(package)
    sys.modules[_NAME] = package


class _Run:
    """Runs the package at the first name that it has not, and gives what it then has."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        # The run asks for names itself.
        self._lock = threading.RLock()
        self._begun = False

    def __call__(self, name: str) -> Any:
        found = vars(self._package)
        if not name.startswith("__") or name in _GIVEN_BY_RUN:
            with self._lock:
                if not self._begun:
                    self._begun = True
                    spec = self._package.__spec__
                    if spec is not None and spec.loader is not None:
                        spec.loader.exec_module(self._package)
                    found.pop("__getattr__", None)
        if name in found:
            return found[name]
        raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
