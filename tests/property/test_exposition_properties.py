"""Whatever queries and topics are called, an exposition parses, and says of each series what it was given."""

from __future__ import annotations

import prometheus_client
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.metrics.export.exporter import Exporter
from pyspark_kafka._ops.metrics.export.families import query_families
from pyspark_kafka._ops.metrics.export.prometheus import KafkaCollector
from pyspark_kafka._ops.metrics.store import MetricsStore
from pyspark_kafka._ops.metrics.values import GroupTime, QueryMetrics, SourceMetrics, StateMetrics

# Any text but lone surrogates, which have no bytes; a carriage return alone ends no line of the format.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
behind = st.dictionaries(
    st.builds(TopicPartition, st.text("a.-_", min_size=1, max_size=3), st.integers(0, 2)),
    st.integers(-5, 1 << 62),
    min_size=1,
    max_size=8,
)


@st.composite
def sources(draw: st.DrawFn) -> SourceMetrics:
    lags = draw(behind)
    values = list(lags.values())
    return SourceMetrics(
        draw(st.integers(0, 2)), (), draw(st.integers(0, 1_000)), min(values), max(values), 0.0, behind=lags
    )


queries = st.builds(
    QueryMetrics,
    query_id=st.sampled_from(["one", "two", "three"]),
    run_id=st.just("r"),
    name=st.none() | texts,
    batch_id=st.integers(0, 9),
    timestamp=st.just(""),
    num_input_rows=st.integers(0, 9),
    sources=st.lists(sources(), min_size=1, max_size=2, unique_by=lambda each: each.index).map(tuple),
    duration_ms=st.floats(0, 1e9),
    phases_ms=st.dictionaries(st.sampled_from(["addBatch", "walCommit"]), st.floats(0, 1e6)),
    num_output_rows=st.none() | st.integers(0, 99),
    states=st.lists(
        st.builds(
            StateMetrics,
            index=st.integers(0, 3),
            operator=texts,
            rows=st.integers(0, 99),
            updated=st.integers(0, 99),
            removed=st.integers(0, 99),
            late=st.integers(0, 99),
            commit_ms=st.floats(0, 1e6),
            timers=st.none() | st.integers(0, 99),
            lowest=st.none() | st.builds(GroupTime, texts, texts, st.floats(-1e15, 1e15)),
        ),
        max_size=3,
        unique_by=lambda each: each.index,
    ).map(tuple),
    watermark_s=st.none() | st.floats(-1e15, 1e15),
)


@given(st.lists(queries, max_size=6), st.integers(0, 12))
def test_exposition_parses_and_has_each_series_once(given_queries: list[QueryMetrics], max_partitions: int) -> None:
    store = MetricsStore()
    for each in given_queries:
        store.put(each)
    registry = prometheus_client.CollectorRegistry()
    registry.register(KafkaCollector(Exporter(max_partitions, store)))
    text = prometheus_client.generate_latest(registry).decode()
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in found]
    assert len(set(series)) == len(series)
    newest = {each.query_id: each for each in given_queries}
    names = {sample.labels["query_id"]: sample.labels["query"] for sample in found if "query_id" in sample.labels}
    assert names == {query_id: each.name or "" for query_id, each in newest.items()}


@given(st.lists(queries, max_size=6), st.integers(0, 12))
def test_series_and_what_is_left_out_are_all_partitions(given_queries: list[QueryMetrics], max_partitions: int) -> None:
    store = MetricsStore()
    for each in given_queries:
        store.put(each)
    found = {each.name: each.samples for each in query_families(store.with_totals(), max_partitions)}
    told = [each for each in found["pyspark_kafka_records_behind"].values() if isinstance(each, (int, float))]
    everything = sorted(
        max(0, lag) for each in store.all() for one in each.sources for lag in one.known_behind.values()
    )
    left_out = found["pyspark_kafka_partitions_left_out"][()]
    assert isinstance(left_out, int)
    assert len(told) + left_out == len(everything)
    assert len(told) <= max_partitions
    # Those that are shown are the largest.
    assert sorted(told) == everything[len(everything) - len(told) :]
