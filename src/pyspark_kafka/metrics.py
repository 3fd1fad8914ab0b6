"""Metrics of streaming queries for logs and monitoring: lag, rates, durations, state.

    from pyspark_kafka import metrics

    metrics.listen(spark)

From then on every micro-batch of a query that reads with this package writes a line to the log `pyspark_kafka.metrics`,
and `latest` and `snapshot` return the newest metrics. `prometheus` and `opentelemetry` export them. `live` draws the
metrics of one query in a notebook, `lag` measures the current lag of all queries at the brokers. See
<https://pyspark-kafka.github.io/pyspark-kafka/monitoring/>.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.metrics.export.exporter import Exporter
from pyspark_kafka._ops.metrics.export.families import MAX_PARTITIONS
from pyspark_kafka._ops.metrics.export.otel import OpenTelemetryMetrics, observe
from pyspark_kafka._ops.metrics.export.prometheus import LOOPBACK, PrometheusEndpoint, serve
from pyspark_kafka._ops.metrics.listener import MetricsListener, latest, listen, snapshot
from pyspark_kafka._ops.metrics.values import QueryMetrics, SourceMetrics, StateMetrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import MeterProvider
    from prometheus_client import CollectorRegistry
    from pyspark.sql import SparkSession

    from pyspark_kafka._ops.operations.lag.values import LagReport
    from pyspark_kafka._ops.operations.reports.live import LiveView

__all__ = [
    "MetricsListener",
    "OpenTelemetryMetrics",
    "PrometheusEndpoint",
    "QueryMetrics",
    "SourceMetrics",
    "StateMetrics",
    "lag",
    "latest",
    "listen",
    "live",
    "opentelemetry",
    "prometheus",
    "snapshot",
]
__dir__ = __all__.copy


def prometheus(
    session: SparkSession,
    port: int | None = None,
    *,
    address: str = LOOPBACK,
    registry: CollectorRegistry | None = None,
    max_partitions: int = MAX_PARTITIONS,
    connection: Mapping[str, Any] | None = None,
) -> PrometheusEndpoint:
    """Export the metrics of a session's queries to Prometheus, and listen to the queries (`listen`).

    With `port` an HTTP server serves the metrics, to this machine alone unless `address` is set; it does not require a
    password. Without `port` they are added to a registry that the program serves itself. A second call with the same
    port and registry returns the same endpoint. It has the metrics of all sessions with a listener.

    Runs on: driver, or the client with Spark Connect; the server is a daemon thread there. Needs the extra
    `prometheus`.

    Args:
        session: classic or Spark Connect.
        port: the port of the server; 0 for any free port; None for no server.
        address: the address of the server; "0.0.0.0" for every machine that reaches this one.
        registry: the registry of the metrics; by default a new one with `port`, and the library's own without.
        max_partitions: the maximum number of partitions, of all queries together, with a series each: the partitions
            with the largest lag. Sums and maxima are of all.
        connection: options of the cluster, as a query has them; with them, a separate thread measures at its brokers
            once a minute the lag of queries, and the remaining retention of the records that are read next.

    Returns:
        The endpoint; `stop()` ends it.

    Raises:
        MissingDependencyError: the package `prometheus-client` is not installed.
        SetupError: nothing can be served at that address and port.
        OptionError: `max_partitions` is negative, or the options of the connection are not valid.
    """
    return serve(session, Exporter(max_partitions, connection=connection), port, address, registry)


def opentelemetry(
    session: SparkSession,
    meter_provider: MeterProvider | None = None,
    *,
    max_partitions: int = MAX_PARTITIONS,
    connection: Mapping[str, Any] | None = None,
) -> OpenTelemetryMetrics:
    """Export the metrics of a session's queries to OpenTelemetry, and listen to the queries (`listen`).

    Each metric is an observable instrument of the meter `pyspark_kafka`, named as Prometheus' exporter of OpenTelemetry
    expects it: `pyspark_kafka.records_behind`, `pyspark_kafka.batch_phase` in s. The histogram of `prometheus` is a
    sum here, because there are no observable histograms. A second call with the same provider returns the same object.

    Runs on: driver, or the client with Spark Connect; computed in the thread of the provider's reader. Needs the extra
    `otel`.

    Args:
        session: classic or Spark Connect.
        meter_provider: by default the global provider of OpenTelemetry's API.
        max_partitions: see `prometheus`.
        connection: see `prometheus`.

    Returns:
        The instruments; `stop()` removes them.

    Raises:
        MissingDependencyError: the package `opentelemetry-api` is not installed.
        OptionError: `max_partitions` is negative, or the options of the connection are not valid.
    """
    return observe(session, Exporter(max_partitions, connection=connection), meter_provider)


def lag(
    session: SparkSession, options: Mapping[str, Any], *, timeout_s: float = 15.0, times: bool = True
) -> dict[str, LagReport]:
    """Return the current lag of each active query of a session.

    The position of a query is the end of its last micro-batch. Queries without a finished micro-batch, or without a
    Kafka source, are left out. Topics that are not in this cluster have the state `gone`.

    Runs on: driver, or the client with Spark Connect; blocks, for about `timeout_s` for each query at most.

    Args:
        session: classic or Spark Connect.
        options: of a connection to the cluster, as for `pyspark_kafka.lag`.
        timeout_s: seconds for each query.
        times: as for `pyspark_kafka.lag`.

    Returns:
        Reports by the name of the query, or by its id.

    Raises:
        OptionError: the options are not valid.
        AccessError: the login is refused.
        TransportError, DeadlineError: no broker can be reached.
    """
    from pyspark_kafka._ops.metrics.query_lag import query_positions  # noqa: PLC0415
    from pyspark_kafka._ops.operations.lag.api import look  # noqa: PLC0415 - not for listeners
    from pyspark_kafka._ops.operations.settings import resolve_settings  # noqa: PLC0415

    settings = resolve_settings(options).with_time(timeout_s * 1000)
    return {
        name: look(
            settings.connection,
            positions,
            None,
            timeout_s=timeout_s,
            isolation_level=settings.isolation_level,
            times=times,
        )
        for name, positions in query_positions(session).items()
    }


def live(query: Any, interval_s: float = 2.0) -> LiveView:
    """Draw rows per second and the phases of batches in the output of a notebook's cell, until the query ends.

    Runs on: the program of the notebook, in a separate thread; returns immediately.

    Args:
        query: of Spark, classic or Connect, or a continuous one.
        interval_s: seconds between two drawings.

    Returns:
        The view; `stop()` ends it before the query ends.

    Raises:
        CapabilityError: the program is not a notebook.
        MissingDependencyError: a package of the extra `report` is missing.
    """
    from pyspark_kafka._ops.operations.reports.live import LiveView, notebook_display  # noqa: PLC0415 - not for listeners

    return LiveView(query, interval_s, notebook_display())
