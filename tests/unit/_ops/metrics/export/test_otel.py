"""What OpenTelemetry's own SDK makes of the figures, with its reader in memory."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, InMemoryMetricReader, Sum

from kit.listened_session import StandInSession
from pyspark_kafka import metrics
from pyspark_kafka._base.counters import RETRIES, Counters
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.metrics.export.exporter import Exporter
from pyspark_kafka._ops.metrics.export.families import Family, Kind
from pyspark_kafka._ops.metrics.export.otel import instrument_name, observe
from pyspark_kafka._ops.metrics.store import MetricsStore
from pyspark_kafka._ops.metrics.values import GroupTime, QueryMetrics, SourceMetrics, StateMetrics
from pyspark_kafka.errors import MissingDependencyError
from pyspark_kafka.version import install_command


@pytest.fixture
def session() -> Iterator[Any]:
    made: Any = StandInSession()
    yield made
    metrics.listen(made).stop()


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    made = MeterProvider([reader])
    yield made
    made.shutdown()


def batch(behind: int = 3) -> QueryMetrics:
    source = SourceMetrics(0, ("t",), 5, behind, behind, float(behind), {TopicPartition("t", 4): behind})
    at = GroupTime("t", "4", 7.0)
    return QueryMetrics(
        "id", "r", "orders", 0, "", 5, (source,), duration_ms=200, phases_ms={"addBatch": 150}, num_output_rows=2,
        latency_p50_ms=1.0, latency_p99_ms=2.0, watermark_s=7.0,
        states=(StateMetrics(0, "dedupe", 1, 1, 1, 1, 2.0, 99, 1, at, at),),
    )  # fmt: skip


def collected(reader: InMemoryMetricReader) -> dict[str, Any]:
    data = reader.get_metrics_data()
    if data is None:
        return {}
    return {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_each_collection_has_the_figures_of_its_moment(
    session: Any, provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    store = MetricsStore()
    store.put(batch())
    counted = Counters()
    counted.add_count(RETRIES, 7)
    shown = observe(session, Exporter(store=store, counted=counted), provider)
    assert observe(session, Exporter(store=store, counted=counted), provider) is shown
    first = collected(reader)
    behind = first["pyspark_kafka.records_behind"]
    assert isinstance(behind.data, Gauge)
    (point,) = behind.data.data_points
    assert point.value == 3
    assert dict(point.attributes or {}) == {
        "query": "orders",
        "query_id": "id",
        "source": "0",
        "topic": "t",
        "partition": "4",
    }
    store.put(batch(behind=1))
    second = collected(reader)
    assert [each.value for each in second["pyspark_kafka.records_behind"].data.data_points] == [1]
    rows = second["pyspark_kafka.rows_read"].data
    assert isinstance(rows, Sum)
    assert rows.is_monotonic
    assert [each.value for each in rows.data_points] == [10]
    assert second["pyspark_kafka.batch_duration"].unit == "s"
    assert second["pyspark_kafka.state_size"].unit == "By"
    assert [each.value for each in second["pyspark_kafka.batch_duration"].data.data_points] == [pytest.approx(0.4)]
    # Every figure has come, none beside them.
    assert second.keys() == {instrument_name(each) for each in Exporter(store=store, counted=counted).known()}
    (retries,) = second["pyspark_kafka.retries"].data.data_points
    assert (retries.value, dict(retries.attributes or {})) == (7, {})
    shown.stop()
    shown.stop()
    assert collected(reader) == {}


def test_figures_go_to_the_provider_of_the_call(
    session: Any, provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    shown = metrics.opentelemetry(session, provider)
    assert metrics.opentelemetry(session, provider) is shown
    assert "pyspark_kafka.partitions_left_out" in collected(reader)
    shown.stop()


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("pyspark_kafka_batch_phase_seconds", "seconds", "pyspark_kafka.batch_phase"),
        ("pyspark_kafka_records_behind", "", "pyspark_kafka.records_behind"),
    ],
)
def test_name_of_an_instrument_has_no_unit(name: str, unit: str, expected: str) -> None:
    assert instrument_name(Family(name, Kind.GAUGE, unit, "", ())) == expected


def test_a_missing_library_is_named_with_its_extra(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "opentelemetry":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError) as caught:
        metrics.opentelemetry(session)
    assert caught.value.message == (
        "Exporter for OpenTelemetry need the Python package 'opentelemetry-api', which cannot be imported. Queries are "
        "not affected."
    )
    assert caught.value.hint == f"Install it where this program runs: {install_command('otel')}."
