"""The figures for Prometheus, with its own client library: a collector, and an endpoint that serves it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.metrics.export.families import Family, Histogram, Kind
from pyspark_kafka._ops.metrics.listener import listen
from pyspark_kafka.errors import MissingDependencyError, SetupError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from pyspark_kafka._ops.metrics.export.exporter import Exporter

LOOPBACK = "127.0.0.1"


class KafkaCollector:
    """A collector of Prometheus' client library over the figures of this process: they are computed at each scrape.

    It takes part in any registry: `registry.register(collector)`. Queries that have ended, and topics that are not read
    any more, are not in the next scrape.

    Runs on: driver, or the client of Spark Connect; any thread; no requests to brokers or Spark.

    Args:
        exporter: what is shown.

    Attributes:
        exporter: the same.
    """

    def __init__(self, exporter: Exporter) -> None:
        self.exporter = exporter

    def describe(self) -> Iterator[Any]:
        """Yield the metrics without samples, by which a registry finds names that are there already."""
        for family in self.exporter.known():
            yield _metric(family)

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of now."""
        for family in self.exporter.now():
            metric = _metric(family)
            for labels, value in family.samples.items():
                if isinstance(value, Histogram):
                    metric.add_metric(labels, buckets=_cumulative(family.bounds, value), sum_value=value.total)
                else:
                    metric.add_metric(labels, value)
            yield metric


class PrometheusEndpoint:
    """The figures where Prometheus finds them, until `stop()`.

    Attributes:
        collector: takes part in a registry.
        port: where it is served, 0 if it is not.
        url: the same as an address; empty if it is not served.
    """

    def __init__(self, collector: KafkaCollector, registry: Any, server: Any = None, address: str = "") -> None:
        self.collector = collector
        collector.exporter.start()
        self._registry = registry
        self._server = server
        self.port: int = 0 if server is None else server.server_port
        host = f"[{address}]" if ":" in address else address
        self.url = "" if server is None else f"http://{host}:{self.port}/metrics"

    def stop(self) -> None:
        """Serve no more, and leave the registry; the listener and its log lines stay. Safe to repeat."""
        with _LOCK:
            for key, endpoint in list(_ENDPOINTS.items()):
                if endpoint is self:
                    del _ENDPOINTS[key]
            registry, self._registry = self._registry, None
            server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        if registry is not None:
            registry.unregister(self.collector)
            self.collector.exporter.stop()


_LOCK = threading.Lock()
# By where they are served and by registry; the entry of one keeps both.
_ENDPOINTS: dict[tuple[str, int | None, int | None], PrometheusEndpoint] = {}


def serve(
    session: SparkSession, exporter: Exporter, port: int | None, address: str, registry: Any = None
) -> PrometheusEndpoint:
    """Show the figures to Prometheus; see `pyspark_kafka.metrics.prometheus`."""
    client = _client_library()
    listen(session)
    if port is None and registry is None:
        registry = client.REGISTRY
    key = (address, port, None if registry is None else id(registry))
    with _LOCK:
        # A cell of a notebook runs again.
        if port != 0 and key in _ENDPOINTS:
            return _ENDPOINTS[key]
        collector = KafkaCollector(exporter)
        chosen = client.CollectorRegistry() if registry is None else registry
        chosen.register(collector)
        try:
            server = None if port is None else _start(client, port, address, chosen)
        except BaseException:
            chosen.unregister(collector)
            raise
        endpoint = PrometheusEndpoint(collector, chosen, server, address)
        _ENDPOINTS[(address, endpoint.port, key[2]) if port == 0 else key] = endpoint
        return endpoint


def _client_library() -> Any:
    try:
        import prometheus_client  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingDependencyError(
            "Metrics for Prometheus need the Python package 'prometheus-client', which cannot be imported. Queries are "
            "not affected.",
            condition="MISSING_DEPENDENCY",
            hint=f"Install it where this program runs: {install_command('prometheus')}.",
            parameters={"package": "prometheus-client"},
        ) from error
    return prometheus_client


def _start(client: Any, port: int, address: str, registry: Any) -> Any:
    try:
        server, _ = client.start_http_server(port, addr=address, registry=registry)
    except (OSError, OverflowError) as error:
        raise SetupError(
            f"Metrics for Prometheus cannot be served at {address}, port {port}: {error}. Nothing is served; queries "
            "are not affected.",
            condition="METRICS_PORT_UNAVAILABLE",
            hint="Set another port, 0 for any that is free; and an address of this machine.",
            parameters={"address": address, "port": port},
        ) from error
    return server


def _metric(family: Family) -> Any:
    from prometheus_client import core  # noqa: PLC0415 - optional

    # Without `unit`, which the library would append again for names that do not end in it.
    if family.kind is Kind.COUNTER:
        return core.CounterMetricFamily(family.name, family.help, labels=family.labels)
    if family.kind is Kind.HISTOGRAM:
        return core.HistogramMetricFamily(family.name, family.help, labels=family.labels)
    return core.GaugeMetricFamily(family.name, family.help, labels=family.labels)


def _cumulative(bounds: tuple[float, ...], histogram: Histogram) -> list[tuple[str, float]]:
    buckets, count = [], 0
    for bound, here in zip((*map(str, bounds), "+Inf"), histogram.counts, strict=True):
        count += here
        buckets.append((bound, float(count)))
    return buckets
