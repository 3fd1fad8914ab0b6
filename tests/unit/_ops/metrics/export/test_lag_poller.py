"""How long records are certain to stay, of the queries that run, with reports instead of brokers."""

from __future__ import annotations

import logging
import math
import threading

import pytest

from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._connector.planning.lag import Log
from pyspark_kafka._connector.planning.retention import RetentionPolicy
from pyspark_kafka._ops.metrics.export.exporter import Exporter
from pyspark_kafka._ops.metrics.export.lag_poller import LagPoller
from pyspark_kafka._ops.metrics.store import MetricsStore
from pyspark_kafka._ops.metrics.values import QueryMetrics, SourceMetrics
from pyspark_kafka._ops.operations.lag.compute import partition_lag
from pyspark_kafka._ops.operations.lag.positions import LagPositions
from pyspark_kafka._ops.operations.lag.values import LagReport, PartitionLag
from pyspark_kafka.errors import OptionError, TransportError

CONNECTION = {"kafka.bootstrap.servers": "localhost:9092"}
AWAY = TransportError("No broker can be reached.", condition="BOOTSTRAP_FAILED", hint="Look.")


class Reports:
    """Stands for the brokers: a partition has as many seconds of headroom as its number says."""

    def __init__(self) -> None:
        self.asked: list[dict[TopicPartition, int]] = []
        self.failure: Exception | None = None
        self.looked = threading.Event()

    def __call__(self, positions: LagPositions) -> LagReport:
        self.asked.append(dict(positions.partitions))
        self.looked.set()
        if self.failure is not None:
            raise self.failure
        seconds: dict[int, float | None] = {0: math.inf, 9: None}
        lags = [
            PartitionLag(
                *each,
                headroom_s=seconds.get(each.partition, float(each.partition)),
                seconds_behind=None if each.partition == 1 else 5.0,
            )
            for each in positions.partitions
        ]
        return LagReport("", 0, None, tuple(lags), (), 0)


@pytest.fixture
def store() -> MetricsStore:
    made = MetricsStore()
    positions = {TopicPartition("t", number): 7 for number in (0, 1, 5, 9)}
    source = SourceMetrics(0, ("t",), 0, 0, 0, 0.0, positions, positions)
    made.put(QueryMetrics("id", "r", "orders", 0, "", 0, (source,)))
    return made


@pytest.fixture
def reports() -> Reports:
    return Reports()


def shown(watch: LagPoller) -> dict[str, dict[str, object]]:
    return {each.name: {labels[-1]: value for labels, value in each.samples.items()} for each in watch.families()}


def test_partitions_with_the_least_are_shown_and_unknown_ones_are_not(store: MetricsStore, reports: Reports) -> None:
    watch = LagPoller(CONNECTION, store, 9, measure=reports)
    watch.look()
    assert reports.asked == [{TopicPartition("t", number): 7 for number in (0, 1, 5, 9)}]
    assert shown(watch) == {
        "pyspark_kafka_headroom_seconds": {"0": math.inf, "1": 1.0, "5": 5.0},
        "pyspark_kafka_time_behind_seconds": {"0": 5.0, "5": 5.0, "9": 5.0},
    }
    bounded = LagPoller(CONNECTION, store, 1, measure=reports)
    bounded.look()
    assert shown(bounded)["pyspark_kafka_headroom_seconds"] == {"1": 1.0}


def test_oldest_records_and_lag_are_told_whatever_the_head_room_is(store: MetricsStore) -> None:
    ages = {0: 5.0, 1: 9.0, 5: None, 9: 0.0}

    def measure(positions: LagPositions) -> LagReport:
        lags = [
            PartitionLag(*each, seconds_behind=ages[each.partition], records_behind=each.partition or None)
            for each in positions.partitions
        ]
        return LagReport("", 0, None, tuple(lags), (), 0)

    watch = LagPoller(CONNECTION, store, 2, measure=measure)
    watch.look()
    assert shown(watch) == {
        "pyspark_kafka_headroom_seconds": {},
        "pyspark_kafka_time_behind_seconds": {"0": 5.0, "1": 9.0},
    }
    assert watch.behind() == {("id", 0): {TopicPartition("t", number): number for number in (1, 5, 9)}}


def test_an_outage_leaves_nothing_and_is_logged_once(
    store: MetricsStore, reports: Reports, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    watch = LagPoller(CONNECTION, store, 9, measure=reports)
    watch.look()
    reports.failure = AWAY
    for _ in range(3):
        watch.look()
    assert watch.behind() == {}
    assert shown(watch) == {"pyspark_kafka_headroom_seconds": {}, "pyspark_kafka_time_behind_seconds": {}}
    (line,) = caplog.messages
    assert line.startswith("Lag and headroom of queries are not known, and are looked for again: ")
    reports.failure = None
    watch.look()
    assert len(shown(watch)["pyspark_kafka_headroom_seconds"]) == 3


def test_headroom_by_size_is_told_by_two_looks(store: MetricsStore) -> None:
    looks: list[LagReport] = []
    here, policy = TopicPartition("t", 0), RetentionPolicy(retention_bytes=1_000)

    def grown(_: LagPositions) -> LagReport:
        size = 100 + 50 * len(looks)
        # 1 record of 10 bytes a second; their timestamps are those of a backfill.
        log = Log(0, size // 10, size=size, policy=policy, position_time_ms=1_000)
        now_ms = 5_000 * len(looks)
        looks.append(LagReport("", now_ms, None, (partition_lag(here, 0, log, now_ms=now_ms),)))
        return looks[-1]

    watch = LagPoller(CONNECTION, store, 9, measure=grown)
    watch.look()
    assert shown(watch)["pyspark_kafka_headroom_seconds"] == {}
    watch.look()
    assert shown(watch)["pyspark_kafka_headroom_seconds"] == {"0": 85.0}
    watch.look()
    assert shown(watch)["pyspark_kafka_headroom_seconds"] == {"0": 80.0}


def test_a_failure_of_our_own_ends_no_thread(
    store: MetricsStore, reports: Reports, caplog: pytest.LogCaptureFixture
) -> None:
    reports.failure = KeyError("x")
    LagPoller(CONNECTION, store, 9, measure=reports).look()
    assert caplog.records[0].exc_info is not None


def test_a_query_that_has_ended_is_neither_shown_nor_asked_for(store: MetricsStore, reports: Reports) -> None:
    watch = LagPoller(CONNECTION, store, 9, measure=reports)
    watch.look()
    store.terminate("id", "r")
    assert shown(watch)["pyspark_kafka_headroom_seconds"] == {}
    watch.look()
    assert len(reports.asked) == 1


def test_query_that_is_unheard_is_neither_shown_nor_asked_for(store: MetricsStore, reports: Reports) -> None:
    class Ear:
        is_stopped = False

    watch, ear = LagPoller(CONNECTION, store, 9, measure=reports), Ear()
    store.touch("id", "r", by=ear)
    watch.look()
    assert shown(watch)["pyspark_kafka_headroom_seconds"] != {}
    ear.is_stopped = True
    assert shown(watch)["pyspark_kafka_headroom_seconds"] == {}
    watch.look()
    assert len(reports.asked) == 1


def test_thread_looks_until_it_is_stopped(store: MetricsStore, reports: Reports) -> None:
    watch = LagPoller(CONNECTION, store, 9, interval_s=0.01, measure=reports)
    watch.start()
    assert reports.looked.wait(PATIENCE_S)
    watch.stop()
    watch.stop()
    before = len(reports.asked)
    reports.looked.clear()
    assert not reports.looked.wait(0.1)
    assert len(reports.asked) == before


def test_wrong_options_are_refused_before_anything_is_shown(store: MetricsStore) -> None:
    with pytest.raises(OptionError):
        Exporter(store=store, connection={"kafka.bootstrap.servers": ""})


def test_head_room_is_absent_without_options_of_a_connection(store: MetricsStore) -> None:
    assert "pyspark_kafka_headroom_seconds" not in {each.name for each in Exporter(store=store).now()}
    figures = Exporter(store=store, connection=CONNECTION)
    assert "pyspark_kafka_headroom_seconds" in {each.name for each in figures.known()}
    figures.stop()
