"""The registry of some options: one for a process."""

from __future__ import annotations

import os
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark_kafka._typed.registry.confluent import ConfluentRegistry
from pyspark_kafka._typed.registry.failures import missing_package
from pyspark_kafka._typed.registry.glue import GlueRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.options import RegistryOptions
    from pyspark_kafka._typed.codecs.schemas import SchemaRegistry

# A process has few; with each come its schemas.
_MAX_REGISTRIES = 16


class OpenRegistries:
    """The registries of this process by their options. A forked child starts with none. Safe to use from threads.

    Args:
        process_id: the id of the calling process; tests pass their own, in place of a fork.
    """

    def __init__(self, process_id: Callable[[], int] = os.getpid) -> None:
        self._current_process = process_id
        self._start_empty()

    def _start_empty(self) -> None:
        self._process_id = self._current_process()
        # Replaced as well: if another thread of the parent held it, it would stay locked here for ever.
        self._lock = threading.Lock()
        self._registries: dict[RegistryOptions, SchemaRegistry] = {}

    def get(self, options: RegistryOptions) -> SchemaRegistry:
        """Return the registry of the options, the same one for equal ones."""
        if self._process_id != self._current_process():
            self._start_empty()
        with self._lock:
            registry = self._registries.pop(options, None) or _build(options)
            # Ordered by the last use; the first one is removed.
            self._registries[options] = registry
            if len(self._registries) > _MAX_REGISTRIES:
                del self._registries[next(iter(self._registries))]
        return registry


def _build(options: RegistryOptions) -> SchemaRegistry:
    if options.urls:
        package, name, extra = "confluent_kafka", "confluent-kafka[schemaregistry]", "registry"
        need = "A schema registry"
    else:
        package, name, extra = "boto3", "boto3", "glue"
        need = "The schema registry of AWS Glue"
    for module, wanted in ((package, name), ("cachetools", "cachetools")):
        if find_spec(module) is None:
            raise missing_package(wanted, extra, need)
    from pyspark_kafka._typed.registry.cached import CachedRegistry  # noqa: PLC0415 - needs the extra

    if not options.urls:
        return CachedRegistry(GlueRegistry(options))
    return CachedRegistry(ConfluentRegistry(options))


_OPEN = OpenRegistries()


def open_registry(options: RegistryOptions) -> SchemaRegistry:
    """Return a schema registry with a cache.

    Runs on: driver and executor, as often as you like: the same one for equal options of one process. Opens nothing:
    the first question does. Safe to use from threads; do not pickle it.

    Args:
        options: how the registry is reached. Without addresses it is AWS Glue's, else one with Confluent's API.

    Raises:
        MissingDependencyError: the extra `registry`, or `glue`, is not installed; names it.
    """
    return _OPEN.get(options)
