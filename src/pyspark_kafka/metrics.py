"""How far streaming queries are behind the ends of their topics, and how they fare, for logs and monitoring.

    from pyspark_kafka import metrics

    metrics.listen(spark)

From then on every micro-batch of a query that reads with this package writes a line to the log `pyspark_kafka.metrics`,
and `latest` and `snapshot` return the newest figures. `prometheus` and `opentelemetry` show them where operators look.
`live` draws those of one query in a notebook, `lag` asks the brokers how far all of them are behind now. See
docs/monitoring.md. Layer: below cli.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_kafka.spark.metrics.export.exporter import Exporter
from pyspark_kafka.spark.metrics.export.families import MAX_PARTITIONS
from pyspark_kafka.spark.metrics.export.otel import OpenTelemetryMetrics, observe
from pyspark_kafka.spark.metrics.export.prometheus import LOOPBACK, PrometheusEndpoint, serve
from pyspark_kafka.spark.metrics.listener import MetricsListener, latest, listen, snapshot
from pyspark_kafka.spark.metrics.values import QueryMetrics, SourceMetrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import MeterProvider
    from prometheus_client import CollectorRegistry
    from pyspark.sql import SparkSession

    from pyspark_kafka.operations.lag.values import LagReport
    from pyspark_kafka.operations.reports.live import LiveView

__all__ = [
    "MetricsListener",
    "OpenTelemetryMetrics",
    "PrometheusEndpoint",
    "QueryMetrics",
    "SourceMetrics",
    "lag",
    "latest",
    "listen",
    "live",
    "opentelemetry",
    "prometheus",
    "snapshot",
]


def prometheus(
    session: SparkSession,
    port: int | None = None,
    *,
    address: str = LOOPBACK,
    registry: CollectorRegistry | None = None,
    max_partitions: int = MAX_PARTITIONS,
    connection: Mapping[str, Any] | None = None,
) -> PrometheusEndpoint:
    """Show the figures of the queries of a session to Prometheus, and listen to them (`listen`).

    With `port` an HTTP server serves them, to this machine alone unless `address` says otherwise; it asks nobody for
    a password. Without it they become part of a registry that the program serves itself. A second call with the same
    port and registry returns the same endpoint. Its figures are those of all sessions that are listened to.

    Runs on: driver, or the client with Spark Connect; the server is a daemon thread there. Needs the extra
    `prometheus`.

    Args:
        session: classic or Spark Connect.
        port: where to serve them; 0 for any that is free; None to serve nothing.
        address: where the server listens; "0.0.0.0" for everybody who reaches this machine.
        registry: takes them; by default one of their own with `port`, and the library's own without.
        max_partitions: how many partitions, of all queries together, have a series of their own: those that are most
            behind. Sums and maxima are of all.
        connection: options of the cluster, as a query has them; with them its brokers are asked once a minute how far
            queries are behind, and how long the records that are read next will stay, in a thread of its own.

    Returns:
        Where they are; `stop()` ends it.

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
    """Show the figures of the queries of a session to OpenTelemetry, and listen to them (`listen`).

    Each figure is an observable instrument of the meter `pyspark_kafka`, named as Prometheus' exporter of OpenTelemetry
    expects it: `pyspark_kafka.records_behind`, `pyspark_kafka.batch_phase` in s. The histogram of `prometheus` is a
    sum here, for instruments that are observed have none. A second call with the same provider returns the same.

    Runs on: driver, or the client with Spark Connect; computed in the thread of the provider's reader. Needs the extra
    `otel`.

    Args:
        session: classic or Spark Connect.
        meter_provider: by default that of the program, as OpenTelemetry's API knows it.
        max_partitions: as of `prometheus`.
        connection: as of `prometheus`.

    Returns:
        What is observed; `stop()` ends it.

    Raises:
        MissingDependencyError: the package `opentelemetry-api` is not installed.
        OptionError: `max_partitions` is negative, or the options of the connection are not valid.
    """
    return observe(session, Exporter(max_partitions, connection=connection), meter_provider)


def lag(
    session: SparkSession, options: Mapping[str, Any], *, timeout_s: float = 15.0, times: bool = True
) -> dict[str, LagReport]:
    """Return how far each active query of a session is behind its topics now.

    A query is where its last micro-batch ended. Queries that have not ended one yet, or read nothing of Kafka, are left
    out. Topics that are not in this cluster have the state `gone`.

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
    from pyspark_kafka.operations.lag.api import isolation_of, look  # noqa: PLC0415 - not for listeners
    from pyspark_kafka.operations.settings import resolve_settings  # noqa: PLC0415
    from pyspark_kafka.spark.metrics.query_lag import query_positions  # noqa: PLC0415

    settings = resolve_settings(options).with_time(timeout_s * 1000)
    return {
        name: look(
            settings.connection,
            positions,
            None,
            timeout_s=timeout_s,
            isolation_level=isolation_of(settings),
            times=times,
        )
        for name, positions in query_positions(session).items()
    }


def live(query: Any, interval_s: float = 2.0) -> LiveView:
    """Draw rows per second and the phases of batches in the output of a notebook's cell, until the query ends.

    Runs on: the program of the notebook, in a thread of its own; returns at once.

    Args:
        query: of Spark, classic or Connect, or a continuous one.
        interval_s: seconds between two drawings.

    Returns:
        What draws; `stop()` ends it before the query does.

    Raises:
        CapabilityError: the program is not a notebook.
        MissingDependencyError: a package of the extra `report` is missing.
    """
    from pyspark_kafka.operations.reports.live import LiveView, notebook_display  # noqa: PLC0415 - not for listeners

    return LiveView(query, interval_s, notebook_display())
