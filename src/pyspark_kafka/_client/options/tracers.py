"""The tracer of this process, as far as its administrator allows the exporters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.options.references import check_reference

if TYPE_CHECKING:
    from pyspark_kafka._base.traces.roles import Tracer


def option_tracer() -> Tracer:
    """Return the tracer that option `traceContext` asks for.

    Runs on: driver and executor, wherever spans begin.

    Raises:
        OptionError: `REFERENCE_NOT_ALLOWED`: an exporter that this process would use is not allowed.
        MissingDependencyError: OpenTelemetry is not installed here.
    """
    # Queries without spans load nothing of it.
    from pyspark_kafka._base.traces.process_tracer import process_tracer  # noqa: PLC0415

    return process_tracer(lambda name: check_reference("exporter", name, "traceContext"))
