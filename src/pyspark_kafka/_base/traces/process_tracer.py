"""The tracer of this process, opened when the first query of it has spans."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._base.traces.roles import Tracer

_LOCK = threading.Lock()
# By process: a fork leaves the threads of exporters behind.
_OPENED: dict[int, Tracer] = {}


def process_tracer(allow: Callable[[str], None]) -> Tracer:
    """Return the tracer of this process.

    Runs on: driver and executor; loads OpenTelemetry at the first call.

    Args:
        allow: raises if an administrator does not allow the exporter of a name; called once for each.

    Raises:
        MissingDependencyError: OpenTelemetry is not installed here.
    """
    with _LOCK:
        opened = _OPENED.get(os.getpid())
        if opened is not None:
            return opened
        try:
            from pyspark_kafka._base.traces.otel.provider import find_provider  # noqa: PLC0415 - optional
            from pyspark_kafka._base.traces.otel.spans import OtelTracer  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingDependencyError(
                "Spans (option 'traceContext') need the Python package 'opentelemetry-api', which cannot be imported. "
                "Nothing was read or written.",
                condition="MISSING_DEPENDENCY",
                hint=f"Install it on the driver and on all executors: {install_command('otel')}.",
                parameters={"package": "opentelemetry-api"},
            ) from error
        _OPENED.clear()
        _OPENED[os.getpid()] = tracer = OtelTracer(find_provider(allow))
        return tracer


def program_span() -> str:
    """Return the `traceparent` of the span in which this thread's program is; empty without one."""
    from pyspark_kafka._base.traces.otel.spans import current_trace_parent  # noqa: PLC0415 - after a tracer was opened

    return current_trace_parent()


def close_tracer() -> None:
    """Forget the tracer of this process; for tests, which configure another provider."""
    with _LOCK:
        _OPENED.clear()
