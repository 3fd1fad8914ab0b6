"""What Prometheus' own library makes of the figures: its registry, its exposition, its parser."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kit.listened_session import StandInSession
from pyspark_kafka import metrics
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.metrics.export.exporter import Exporter
from pyspark_kafka._ops.metrics.export.prometheus import KafkaCollector, PrometheusEndpoint
from pyspark_kafka._ops.metrics.store import MetricsStore
from pyspark_kafka._ops.metrics.values import QueryMetrics, SourceMetrics
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command


@pytest.fixture
def session() -> Iterator[Any]:
    made: Any = StandInSession()
    yield made
    metrics.listen(made).stop()


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


def exposed(store: MetricsStore) -> tuple[str, dict[str, dict[tuple[str, ...], float]]]:
    """Return the exposition, and its samples by name and by the values of their labels."""
    registry = prometheus_client.CollectorRegistry()
    registry.register(KafkaCollector(Exporter(store=store)))
    text = prometheus_client.generate_latest(registry).decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = tuple(sample.labels.values())
            assert key not in found.setdefault(sample.name, {}), "a series must be there once"
            found[sample.name][key] = sample.value
    return text, found


def batch(name: str | None, query_id: str, topic: str = "t", behind: int = 3) -> QueryMetrics:
    source = SourceMetrics(0, (topic,), 5, behind, behind, float(behind), {TopicPartition(topic, 4): behind})
    return QueryMetrics(query_id, "r", name, 0, "", 5, (source,), duration_ms=200, phases_ms={"addBatch": 150})


def test_exposition_follows_the_conventions_of_prometheus() -> None:
    store = MetricsStore()
    store.put(batch("orders", "id"))
    store.put(batch("orders", "id", behind=1))
    text, found = exposed(store)
    assert "# TYPE pyspark_kafka_rows_read_total counter" in text
    assert "# TYPE pyspark_kafka_records_behind gauge" in text
    assert 'pyspark_kafka_records_behind{partition="4",query="orders",query_id="id",source="0",topic="t"} 1.0' in text
    assert found["pyspark_kafka_rows_read_total"] == {("orders", "id", "0"): 10}
    assert found["pyspark_kafka_batches_total"] == {("orders", "id"): 2}
    assert found["pyspark_kafka_batch_phase_seconds_total"] == {("addBatch", "orders", "id"): 0.3}
    assert found["pyspark_kafka_batch_duration_seconds_count"] == {("orders", "id"): 2}
    assert found["pyspark_kafka_batch_duration_seconds_sum"] == {("orders", "id"): 0.4}
    buckets = {le: count for (le, *_), count in found["pyspark_kafka_batch_duration_seconds_bucket"].items()}
    assert (buckets["0.1"], buckets["0.25"], buckets["+Inf"]) == (0, 2, 2)
    assert text.count("# HELP ") == text.count("# TYPE ")


def test_queries_of_one_name_have_series_of_their_own() -> None:
    store = MetricsStore()
    store.put(batch("orders", "one"))
    store.put(batch("orders", "two"))
    _, found = exposed(store)
    assert found["pyspark_kafka_query_up"] == {("orders", "one"): 1, ("orders", "two"): 1}


def test_a_name_with_quotes_and_lines_is_a_label_and_no_line_of_its_own() -> None:
    name = 'a"} 1\npyspark_kafka_query_up{query="\\'
    store = MetricsStore()
    store.put(batch(name, "id"))
    _, found = exposed(store)
    assert found["pyspark_kafka_query_up"] == {(name, "id"): 1}


def test_figures_are_part_of_a_registry_of_the_program(
    session: Any, registry: prometheus_client.CollectorRegistry
) -> None:
    own = prometheus_client.Counter("own_events", "Of the program.", registry=registry)
    own.inc()
    endpoint = metrics.prometheus(session, registry=registry)
    assert (endpoint.port, endpoint.url) == (0, "")
    assert metrics.prometheus(session, registry=registry) is endpoint
    text = prometheus_client.generate_latest(registry).decode()
    assert "own_events_total 1.0" in text
    assert "pyspark_kafka_partitions_left_out" in text
    endpoint.stop()
    endpoint.stop()
    text = prometheus_client.generate_latest(registry).decode()
    assert "own_events_total 1.0" in text
    assert "pyspark_kafka" not in text
    metrics.prometheus(session, registry=registry).stop()


def test_registry_of_the_library_takes_the_figures_without_port_and_registry(session: Any) -> None:
    endpoint = metrics.prometheus(session)
    try:
        assert b"pyspark_kafka_partitions_left_out" in prometheus_client.generate_latest()
    finally:
        endpoint.stop()
    assert b"pyspark_kafka_partitions_left_out" not in prometheus_client.generate_latest()


def test_a_missing_library_is_named_with_its_extra(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "prometheus_client":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError) as caught:
        metrics.prometheus(session, 0)
    assert caught.value.condition == "MISSING_DEPENDENCY"
    assert caught.value.message == (
        "Metrics for Prometheus need the Python package 'prometheus-client', which cannot be imported. Queries are not "
        "affected."
    )
    assert caught.value.hint == f"Install it where this program runs: {install_command('prometheus')}."


@pytest.mark.parametrize(
    ("address", "url"), [("127.0.0.1", "http://127.0.0.1:9404/metrics"), ("::1", "http://[::1]:9404/metrics")]
)
def test_url_of_an_endpoint_can_be_opened(address: str, url: str) -> None:
    class Server:
        server_port = 9404

    collector = KafkaCollector(Exporter(store=MetricsStore()))
    assert PrometheusEndpoint(collector, None, Server(), address).url == url
