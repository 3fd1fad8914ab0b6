"""When a stream warns that records may be deleted: with brokers that the test stands for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kit.reading import options_for
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.queries.logs import LogQueryResult, LogStatus
from pyspark_kafka._connector.source import positions
from pyspark_kafka._connector.source.driver.reporting import headroom_warnings
from pyspark_kafka._connector.source.driver.reporting.headroom_warnings import HeadroomWarnings
from pyspark_kafka.errors import ConnectorError, TransportError

_HOUR_MS = 3_600_000
_T0, _T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Cluster:
    """What brokers would tell."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0
        self.logs = {_T0: (0, 100, 10_000), _T1: (0, 100, 10_000)}
        self.times: dict[TopicPartition, int] = {}
        self.configs: dict[str, str | None] | ConnectorError = {"retention.ms": str(10 * _HOUR_MS)}
        self.failure: ConnectorError | None = None
        self.config_looks = 0

    @property
    def now_ms(self) -> int:
        return int(self.now_s * 1_000)

    def written_ago(self, topic_partition: TopicPartition, hours: float) -> None:
        self.times[topic_partition] = self.now_ms - int(hours * _HOUR_MS)

    def survey(self, _client: object, partitions: list[TopicPartition], *_: object, **__: object) -> Any:
        if self.failure is not None:
            raise self.failure
        log_status = {}
        for each in partitions:
            start, end, size = self.logs[each]
            log_status[each] = LogStatus(leader=SimpleNamespace(topic_partition=each), start=start, end=end, size=size)  # type: ignore[arg-type]
        return LogQueryResult(log_status, {})

    def configs_of(self, _client: object, topics: set[str], *_: object) -> Any:
        self.config_looks += 1
        return dict.fromkeys(topics, self.configs)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()

    @contextmanager
    def borrow(_options: object) -> Iterator[Any]:
        yield SimpleNamespace(deadline=lambda: None)

    monkeypatch.setattr(headroom_warnings, "borrow_client", borrow)
    monkeypatch.setattr(positions, "query_logs", found.survey)
    monkeypatch.setattr(positions, "fetch_record_times", lambda *_: SimpleNamespace(times=found.times))
    monkeypatch.setattr(positions, "fetch_topic_configs", found.configs_of)
    return found


@pytest.fixture
def watch(cluster: Cluster) -> HeadroomWarnings:
    return HeadroomWarnings(options_for("b:1"), 2 * _HOUR_MS, lambda: cluster.now_s, lambda: cluster.now_ms)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    caplog.clear()
    return found


def test_partition_with_little_time_left_is_named_with_what_to_do(
    cluster: Cluster, watch: HeadroomWarnings, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.written_ago(_T0, 3)
    cluster.written_ago(_T1, 9.5)
    watch.look({_T0: 10, _T1: 10})
    (line,) = said(caplog)
    assert "records of topic 't' that this query has not read: the next one of t-1 in 1800 s" in line
    assert "by retention.ms. Of the query's 2 partitions, 1 of this topic have less than 7200 s." in line
    assert "Hint: Let the query read faster" in line


def test_query_with_time_left_or_nothing_to_read_says_nothing(
    cluster: Cluster, watch: HeadroomWarnings, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.written_ago(_T0, 3)
    watch.look({_T0: 10, _T1: 100})
    assert said(caplog) == []


def test_records_that_are_gone_are_not_warned_of(
    cluster: Cluster, watch: HeadroomWarnings, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.logs[_T0] = (50, 100, 10_000)
    cluster.written_ago(_T0, 9.9)
    watch.look({_T0: 10})
    assert said(caplog) == []


def test_topic_is_warned_of_once_in_ten_minutes(
    cluster: Cluster, watch: HeadroomWarnings, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.written_ago(_T0, 9.5)
    counts = []
    for _ in range(3):
        watch.look({_T0: 10})
        counts.append(len(said(caplog)))
        cluster.now_s += 301
    assert counts == [1, 0, 1]


def test_size_of_the_log_counts_by_its_growth(
    cluster: Cluster, watch: HeadroomWarnings, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.configs = {"retention.bytes": "12000"}
    watch.look({_T0: 0})
    # Nothing is known of its growth yet.
    assert said(caplog) == []
    cluster.now_s += 60
    cluster.logs[_T0] = (0, 110, 11_000)
    watch.look({_T0: 0})
    (line,) = said(caplog)
    assert "t-0 in 60 s" in line
    assert "by retention.bytes" in line


def test_topic_that_is_compacted_only_is_not_looked_at(
    cluster: Cluster, watch: HeadroomWarnings, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.configs = {"cleanup.policy": "compact", "retention.ms": "1"}
    cluster.written_ago(_T0, 9)
    watch.look({_T0: 10})
    assert said(caplog) == []


def test_missing_right_and_brokers_that_are_away_are_lines_of_the_log(
    cluster: Cluster, watch: HeadroomWarnings, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.configs = TransportError("No right.", condition="X")
    watch.look({_T0: 10})
    (line,) = said(caplog)
    assert line.startswith("How long records stay is not known of 1 topics, such as 't'; the query continues.")
    cluster.configs = {"retention.ms": "1"}
    cluster.failure = TransportError("They are away.", condition="X")
    cluster.now_s += 301
    watch.look({_T0: 10})
    (line,) = said(caplog)
    assert "They are away." in line


def test_configurations_are_asked_for_every_few_minutes_only(cluster: Cluster, watch: HeadroomWarnings) -> None:
    for _ in range(6):
        watch.look({_T0: 100})
        cluster.now_s += 60
    assert cluster.config_looks == 2
