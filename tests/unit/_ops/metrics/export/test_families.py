"""The figures of queries as families of series, without Spark: which there are, which are left out, which disappear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.metrics import values
from pyspark_kafka._ops.metrics.export import families
from pyspark_kafka._ops.metrics.export.exporter import Exporter
from pyspark_kafka._ops.metrics.export.families import QUERY_FAMILIES, Histogram, query_families
from pyspark_kafka._ops.metrics.store import MetricsStore
from pyspark_kafka._ops.metrics.totals import DURATION_BUCKETS, QueryTotals
from pyspark_kafka._ops.metrics.values import GroupTime, QueryMetrics, SourceMetrics, StateMetrics
from pyspark_kafka.errors import OptionError

RUN = "r"


def source(index: int, behind: Mapping[tuple[str, int], int], rows: int = 0) -> SourceMetrics:
    by_partition = {TopicPartition(*each): lag for each, lag in behind.items()}
    lags = list(by_partition.values())
    topics = tuple(dict.fromkeys(each.topic for each in by_partition))
    return SourceMetrics(index, topics, rows, min(lags), max(lags), sum(lags) / len(lags), by_partition)


def query(
    *sources: SourceMetrics, query_id: str = "q", name: str | None = "orders", **parameters: object
) -> QueryMetrics:
    rows = sum(each.num_input_rows for each in sources)
    made = QueryMetrics(query_id, RUN, name, 0, "", rows, sources, heard_at=values.now())
    return replace(made, **parameters)  # type: ignore[arg-type]


def told(store: MetricsStore, max_partitions: int = 1_000) -> dict[str, dict[tuple[str, ...], float | Histogram]]:
    return {each.name: each.samples for each in query_families(store.with_totals(), max_partitions)}


@pytest.fixture
def store() -> MetricsStore:
    return MetricsStore()


def test_sums_grow_over_batches_and_runs(store: MetricsStore) -> None:
    first = query(
        source(0, {("a", 0): 3}, rows=5), source(2, {("b", 0): 1}, rows=2), duration_ms=100,
        phases_ms={"addBatch": 60, "walCommit": 40}, num_output_rows=7,
    )  # fmt: skip
    store.put(first)
    store.terminate("q", RUN)
    again = replace(first, run_id="later", duration_ms=400_000, phases_ms={"addBatch": 400_000}, num_output_rows=None)
    store.put(again)
    found = told(store)
    key = ("orders", "q")
    assert found["pyspark_kafka_batches"] == {key: 2}
    assert found["pyspark_kafka_rows_read"] == {(*key, "0"): 10, (*key, "2"): 4}
    assert found["pyspark_kafka_rows_written"] == {key: 7}
    assert found["pyspark_kafka_batch_phase_seconds"] == {
        (*key, "addBatch"): pytest.approx(400.06),
        (*key, "walCommit"): pytest.approx(0.04),
    }
    histogram = found["pyspark_kafka_batch_duration_seconds"][key]
    assert isinstance(histogram, Histogram)
    assert histogram.total == pytest.approx(400.1)
    # A bound belongs to its bucket.
    assert {index: count for index, count in enumerate(histogram.counts) if count} == {
        DURATION_BUCKETS.index(0.1): 1,
        DURATION_BUCKETS.index(900.0): 1,
    }
    assert len(histogram.counts) == len(DURATION_BUCKETS) + 1


STEP = StateMetrics(1, "stateStoreSave", 5, 3, 2, 1, 250.0, 99, 4, GroupTime("a", "7", 60.0), GroupTime("a", "3", 90.5))


def test_states_of_steps_are_values_and_their_changes_are_sums(store: MetricsStore) -> None:
    spark = StateMetrics(0, "dedupe", 8, 1, 0, 2, 20.0)
    first = query(source(0, {("a", 0): 3}), states=(spark, STEP), watermark_s=60.0)
    store.put(first)
    store.put(replace(first, run_id="later", states=(replace(spark, rows=9, late=5), STEP)))
    found = told(store)
    dedupe, windows = (("orders", "q", *each) for each in (("0", "dedupe"), ("1", "stateStoreSave")))
    assert found["pyspark_kafka_watermark_timestamp_seconds"] == {("orders", "q"): 60.0}
    assert found["pyspark_kafka_step_watermark_timestamp_seconds"] == {
        (*windows, "lowest", "a", "7"): 60.0,
        (*windows, "highest", "a", "3"): 90.5,
    }
    assert found["pyspark_kafka_state_rows"] == {dedupe: 9, windows: 5}
    # What is not known is not 0.
    assert found["pyspark_kafka_state_size_bytes"] == {windows: 99}
    assert found["pyspark_kafka_state_timers"] == {windows: 4}
    assert found["pyspark_kafka_state_rows_updated"] == {dedupe: 2, windows: 6}
    assert found["pyspark_kafka_state_rows_removed"] == {dedupe: 0, windows: 4}
    assert found["pyspark_kafka_late_rows"] == {dedupe: 7, windows: 2}
    assert found["pyspark_kafka_state_commit_seconds"] == {dedupe: 0.02, windows: 0.25}
    store.terminate("q", "later")
    assert all(not samples for name, samples in told(store).items() if "state" in name or "watermark" in name)


def test_a_duration_above_all_bounds_is_in_the_last_bucket() -> None:
    totals = QueryTotals().plus(query(duration_ms=10_000_000))
    assert totals.buckets == (*(0 for _ in DURATION_BUCKETS), 1)


def test_rows_written_are_left_out_while_spark_does_not_count_them(store: MetricsStore) -> None:
    store.put(query(source(0, {("a", 0): 3})))
    assert told(store)["pyspark_kafka_rows_written"] == {}


def test_partitions_that_are_most_behind_have_series_and_sums_are_of_all(store: MetricsStore) -> None:
    store.put(query(source(0, {("a", 0): 5, ("a", 1): 1, ("b", 7): 9}), query_id="one"))
    store.put(query(source(1, {("a", 0): 7, ("a", 1): 5}), query_id="two", name=None))
    found = told(store, 3)
    assert found["pyspark_kafka_records_behind"] == {
        ("orders", "one", "0", "b", "7"): 9,
        ("", "two", "1", "a", "0"): 7,
        # Of two that are 5 behind, the first by name.
        ("", "two", "1", "a", "1"): 5,
    }
    assert found["pyspark_kafka_partitions_left_out"] == {(): 2}
    one, two = ("orders", "one", "0"), ("", "two", "1")
    assert found["pyspark_kafka_source_records_behind"] == {one: 15, two: 12}
    assert found["pyspark_kafka_source_records_behind_max"] == {one: 9, two: 7}
    assert found["pyspark_kafka_source_partitions"] == {one: 3, two: 2}


@pytest.mark.parametrize(("max_partitions", "series", "left_out"), [(0, 0, 3), (2, 2, 1), (3, 3, 0), (9, 3, 0)])
def test_number_of_partitions_with_series_is_bounded(
    store: MetricsStore, max_partitions: int, series: int, left_out: int
) -> None:
    store.put(query(source(0, {("a", number): number + 1 for number in range(3)})))
    found = told(store, max_partitions)
    assert len(found["pyspark_kafka_records_behind"]) == series
    assert found["pyspark_kafka_partitions_left_out"] == {(): left_out}


def test_a_log_that_is_known_up_to_before_the_position_is_not_behind(store: MetricsStore) -> None:
    store.put(query(source(0, {("a", 0): -4, ("a", 1): 3})))
    found = told(store)
    assert list(found["pyspark_kafka_records_behind"].values()) == [3]
    assert list(found["pyspark_kafka_source_records_behind"].values()) == [3]


def test_micro_batch_that_read_all_it_saw_has_no_lag_instead_of_none(store: MetricsStore) -> None:
    store.put(query(source(0, {("a", 0): 0, ("a", 1): 0})))
    found = told(store)
    for name in ("records_behind", "source_records_behind", "source_records_behind_max"):
        assert found[f"pyspark_kafka_{name}"] == {}
    assert found["pyspark_kafka_source_partitions"] == {("orders", "q", "0"): 2}


def test_continuous_query_at_the_end_of_its_logs_is_0_behind(store: MetricsStore) -> None:
    store.put(query(replace(source(0, {("a", 0): 0, ("a", 1): -1}), is_continuous=True)))
    assert set(told(store)["pyspark_kafka_records_behind"].values()) == {0}


def test_lag_that_brokers_told_takes_precedence_over_that_of_a_micro_batch(store: MetricsStore) -> None:
    store.put(query(source(0, {("a", 0): 0}), source(1, {("b", 0): 7}), source(2, {("c", 0): 7})))
    asked: dict[tuple[str, int], Mapping[TopicPartition, int]] = {
        ("q", 0): {TopicPartition("a", 0): 20_000},
        ("q", 1): {TopicPartition("b", 0): 0},
    }
    found = {each.name: each.samples for each in query_families(store.with_totals(), asked=asked)}
    key = ("orders", "q")
    assert found["pyspark_kafka_source_records_behind"] == {(*key, "0"): 20_000, (*key, "1"): 0, (*key, "2"): 7}
    partition = (*key, "0", "a", "0")
    assert found["pyspark_kafka_records_behind"][partition] == 20_000


def test_query_has_series_from_its_start_to_its_end_without_a_micro_batch(store: MetricsStore) -> None:
    key = ("orders", "q")
    store.start("q", RUN, "orders", "2026-01-01T00:00:00Z")
    found = told(store)
    assert found["pyspark_kafka_query_up"] == {key: 1}
    assert found["pyspark_kafka_batches"] == {key: 0}
    assert key in found["pyspark_kafka_time_since_progress_seconds"]
    store.terminate("q", RUN, failed=True)
    found = told(store)
    assert found["pyspark_kafka_query_up"] == {key: 0}
    assert found["pyspark_kafka_query_failed"] == {key: 1}
    store.start("q", "second", "orders", "2026-01-01T00:00:01Z")
    found = told(store)
    assert found["pyspark_kafka_query_failed"] == {key: 0}
    # A supervisor in the program may start it again before the next scrape.
    assert found["pyspark_kafka_query_failures"] == {key: 1}


def test_end_that_is_heard_before_the_start_ends_the_run(store: MetricsStore) -> None:
    for number in range(200):
        store.terminate("q", f"{RUN}{number}", failed=True)
    store.start("q", f"{RUN}199", "orders", "")
    assert told(store)["pyspark_kafka_query_failed"] == {("orders", "q"): 1}
    store.start("q", f"{RUN}0", "orders", "")
    assert told(store)["pyspark_kafka_query_up"] == {("orders", "q"): 1}


def test_topics_that_are_not_read_any_more_disappear(store: MetricsStore) -> None:
    store.put(query(source(0, {("gone", 0): 5, ("stays", 0): 1})))
    store.put(query(source(0, {("stays", 0): 1})))
    assert [labels[3] for labels in told(store)["pyspark_kafka_records_behind"]] == ["stays"]


@pytest.mark.parametrize("failed", [False, True])
def test_an_ended_query_tells_its_end_for_a_while_and_nothing_else(
    store: MetricsStore, monkeypatch: pytest.MonkeyPatch, failed: bool
) -> None:
    now = [50.0]
    monkeypatch.setattr(values, "now", lambda: now[0])
    store.put(query(source(0, {("a", 0): 5}), latency_p50_ms=1.0, latency_p99_ms=2.0, num_output_rows=3))
    key = ("orders", "q")
    assert told(store)["pyspark_kafka_query_up"] == {key: 1}
    assert told(store)["pyspark_kafka_query_failed"] == {key: 0}
    store.terminate("q", RUN, failed=failed)
    now[0] += families.ENDED_SECONDS - 1
    found = {name: samples for name, samples in told(store).items() if samples}
    assert found == {
        "pyspark_kafka_query_up": {key: 0},
        "pyspark_kafka_query_failed": {key: float(failed)},
        "pyspark_kafka_query_failures": {key: int(failed)},
        "pyspark_kafka_partitions_left_out": {(): 0},
    }
    now[0] += 1
    assert {name for name, samples in told(store).items() if samples} == {"pyspark_kafka_partitions_left_out"}


def test_an_ended_query_keeps_no_partitions_in_memory(store: MetricsStore) -> None:
    store.put(query(source(0, {("a", 0): 5})))
    store.terminate("q", RUN)
    (ended,) = store.all()
    assert ended.sources[0].behind == {}
    assert ended.sources[0].max_offsets_behind_latest == 5


def test_sums_go_with_the_queries_that_are_kept_no_more() -> None:
    store = MetricsStore(capacity=2)
    for number in range(5):
        store.put(query(source(0, {("a", 0): 1}), query_id=str(number)))
    assert [metrics.query_id for metrics, _ in store.with_totals()] == ["3", "4"]
    assert len(store._totals) == 2


def test_latencies_and_time_since_progress_are_in_seconds(store: MetricsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "now", lambda: 107.5)
    store.put(query(source(0, {("a", 0): 5}), latency_p50_ms=1.5, latency_p99_ms=2500.0, heard_at=100.0))
    found, key = told(store), ("orders", "q")
    assert found["pyspark_kafka_latency_seconds"] == {(*key, "50"): 0.0015, (*key, "99"): 2.5}
    assert found["pyspark_kafka_time_since_progress_seconds"] == {key: 7.5}


def test_families_are_those_that_are_announced_and_end_in_their_units(store: MetricsStore) -> None:
    store.put(query(source(0, {("a", 0): 5})))
    found = query_families(store.with_totals())
    assert {each.name for each in found} == {each.name for each in QUERY_FAMILIES}
    for family in found:
        assert family.name.startswith("pyspark_kafka_")
        assert family.name.endswith(family.unit)
        assert not family.name.endswith("_total")
        assert family.help.endswith(".")
        for labels in family.samples:
            assert len(labels) == len(family.labels), family.name


def test_a_negative_number_of_partitions_is_refused() -> None:
    with pytest.raises(OptionError, match="max_partitions is -1") as caught:
        Exporter(-1)
    assert caught.value.condition == "OPTION_INVALID"
