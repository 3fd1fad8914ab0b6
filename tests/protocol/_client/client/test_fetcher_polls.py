"""Reading ranges without an end over sockets: what is left in flight between calls, and which silence is noticed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.logs import record_batch
from kit.fakes.scripts import Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import NO_END, OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch import fetcher as fetcher_module
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.fetch.session import lookups
from pyspark_kafka._client.client.wire.messages import FetchRequest, MetadataRequest
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka.errors import DeadlineError

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
NOT_LEADER = 6


class Broker:
    """Responds to fetches when it has records, as a broker does, or when a test lets it respond.

    Attributes:
        log: what there is.
        waits: whether a request without records waits until `release`.
    """

    def __init__(self, cluster: TcpCluster, *partitions: int) -> None:
        self.log = BrokerLog({("t", number): [] for number in partitions}, cluster.topic_ids)
        self.waits = True
        self._released = threading.Condition()

    def __call__(self, request: Any) -> Any:
        with self._released:
            while True:
                found = self.log(request)
                entries = [entry for topic in found.responses for entry in topic.partitions]
                if not self.waits or any(entry.records or entry.error_code for entry in entries):
                    return found
                self._released.wait(PATIENCE_S)

    def write(self, topic_partition: TopicPartition, count: int = 10) -> None:
        """Append one record batch."""
        with self._released:
            batches = self.log.batches[topic_partition.topic, topic_partition.partition]
            base = batches[-1][1] if batches else 0
            batches.append((base, base + count, record_batch(base, [b"v"] * count)))
            self._released.notify_all()

    def release(self) -> None:
        """Respond to the requests that wait, and to later ones at once: the end of the cluster waits for each."""
        with self._released:
            self.waits = False
            self._released.notify_all()


class Flow:
    """A broker that has a batch more at each request."""

    def __init__(self, broker: Broker, topic_partition: TopicPartition) -> None:
        self._broker = broker
        self._topic_partition = topic_partition

    def __call__(self, request: Any) -> Any:
        self._broker.write(self._topic_partition)
        return self._broker(request)


def endless(*partitions: TopicPartition) -> list[OffsetRange]:
    return [OffsetRange(topic_partition, 0, NO_END) for topic_partition in partitions]


def fetcher_of(client: KafkaClient, *partitions: TopicPartition, **changes: Any) -> Fetcher:
    fetch = FetchOptions(**({"max_wait_ms": 100} | changes))
    return Fetcher(client, endless(*partitions), fetch)


def poll_until(fetcher: Fetcher, wanted: Callable[[TopicPartition, int], bool]) -> None:
    """Poll until records come for which the condition holds; it gets the partition and where they start."""
    end = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < end, "the records did not come"
        found = fetcher.poll(100)
        if found is not None and wanted(found[0], found[1].start_offset):
            return


@pytest.fixture
def cluster() -> Any:
    with TcpCluster(3) as cluster:
        cluster.add_topic("t", partitions=3)
        yield cluster


def test_request_in_flight_stays_while_polls_end_and_brings_the_records(cluster: TcpCluster) -> None:
    broker = Broker(cluster, 0)
    cluster.script(FetchRequest, broker)
    with cluster.client() as client, fetcher_of(client, T0, max_wait_ms=60_000) as fetcher:
        for timeout_ms in (300, 0, 50, 0):
            assert fetcher.poll(timeout_ms) is None
        broker.write(T0)
        found = fetcher.poll(20_000)
        assert found is not None
        assert (found[0], found[1].start_offset, found[1].scanned_offset) == (T0, 0, 10)
        assert [fetcher.poll(0), fetcher.poll(200)] == [None, None]
        assert [seen.request.topics[0].partitions[0].fetch_offset for seen in cluster.requests(FetchRequest)] == [0, 10]
        broker.release()


def test_ranges_are_added_paused_and_removed_between_polls(cluster: TcpCluster) -> None:
    broker = Broker(cluster, 0, 1)
    broker.waits = False
    cluster.script(FetchRequest, broker)

    def asked_next() -> set[int]:
        # The first one may have been sent before.
        before = len(cluster.requests(FetchRequest)) + 1
        while len(cluster.requests(FetchRequest)) < before + 4:
            assert fetcher.poll(10) is None
        asked = cluster.requests(FetchRequest)[before:]
        return {entry.partition for seen in asked for entry in seen.request.topics[0].partitions}

    with cluster.client() as client, fetcher_of(client, T0) as fetcher:
        assert asked_next() == {0}
        fetcher.add_range(OffsetRange(T1, 0, NO_END), str(cluster.topic_ids["t"]))
        assert asked_next() == {0, 1}
        fetcher.pause(T0)
        assert asked_next() == {1}
        fetcher.unpause(T0)
        broker.write(T1)
        poll_until(fetcher, lambda topic_partition, _: topic_partition == T1)
        assert asked_next() == {0, 1}
        assert fetcher.remove(T1) == 10
        assert asked_next() == {0}
        assert fetcher.remove(T0) == 0
        began_at = time.monotonic()
        assert fetcher.poll(200) is None
        assert time.monotonic() - began_at >= 0.19
    with pytest.raises(RuntimeError, match="the fetcher is closed"):
        fetcher.poll(0)


def test_leader_that_fell_silent_is_left_although_another_broker_has_records_all_the_time(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "_LOOK_S", 0.3)
    monkeypatch.setattr(lookups, "_SILENT_S", 0.2)
    cluster.leaders["t", 1] = (1, 0)
    flowing, moved = Broker(cluster, 0), Broker(cluster, 1)
    moved.write(T1)
    cluster.script(FetchRequest, Flow(flowing, T0), broker_id=0)
    cluster.script(FetchRequest, Silence, broker_id=1)
    cluster.script(FetchRequest, moved, broker_id=2)
    with cluster.client() as client, fetcher_of(client, T0, T1) as fetcher:
        poll_until(fetcher, lambda topic_partition, start: topic_partition == T0 and start >= 100)
        cluster.leaders["t", 1] = (2, 1)
        # The request timeout is 30 s.
        poll_until(fetcher, lambda topic_partition, _: topic_partition == T1)
        moved.release()


def test_range_that_fails_is_an_error_in_the_end_although_another_one_has_records(cluster: TcpCluster) -> None:
    cluster.leaders["t", 1] = (1, 0)
    refusing = Broker(cluster, 1)
    refusing.log.errors = {("t", 1): (NOT_LEADER, -1, -1)}
    cluster.script(FetchRequest, Flow(Broker(cluster, 0), T0), broker_id=0)
    cluster.script(FetchRequest, refusing, broker_id=1)
    with (
        cluster.client() as client,
        fetcher_of(client, T0, T1, poll_timeout_ms=600) as fetcher,
        pytest.raises(DeadlineError, match=r"\[FETCH_NO_PROGRESS\] .*NOT_LEADER_OR_FOLLOWER"),
    ):
        poll_until(fetcher, lambda *_: False)


def test_failure_that_has_passed_is_no_error_however_long_nothing_comes(cluster: TcpCluster) -> None:
    broker = Broker(cluster, 0)
    broker.waits = False
    refusing = Broker(cluster, 0)
    refusing.log.errors = {("t", 0): (NOT_LEADER, -1, -1)}
    cluster.script(FetchRequest, refusing, broker)
    with cluster.client() as client, fetcher_of(client, T0, poll_timeout_ms=700) as fetcher:
        began_at = time.monotonic()
        while time.monotonic() - began_at < 1.4:
            assert fetcher.poll(50) is None
        broker.write(T0)
        poll_until(fetcher, lambda *_: True)


def test_response_that_came_while_the_caller_was_busy_is_taken_whenever_the_caller_comes(cluster: TcpCluster) -> None:
    broker = Broker(cluster, 0)
    cluster.script(FetchRequest, broker)
    now = [1_000.0]
    with cluster.client(request_timeout_ms=5_000) as client:
        fetcher = Fetcher(client, endless(T0), FetchOptions(max_wait_ms=100), clock=lambda: now[0])
        while not cluster.requests(FetchRequest):
            fetcher.poll(0)
        # Its time begins when it is waited for.
        assert fetcher.poll(0) is None
        broker.write(T0)
        (connection,) = fetcher.connections
        assert connection.readable(PATIENCE_S)
        now[0] += 3_600
        found = fetcher.poll(0)
        assert found is not None
        assert found[1].scanned_offset == 10
        # Nobody was silent, so nobody was asked who leads.
        assert len(cluster.requests(MetadataRequest)) == 1
        fetcher.close()
        broker.release()


def test_broker_that_is_silent_for_the_request_timeout_is_asked_again(cluster: TcpCluster) -> None:
    broker = Broker(cluster, 0)
    broker.write(T0)
    cluster.script(FetchRequest, Silence, broker)
    # Each poll is shorter than the timeout.
    with cluster.client(request_timeout_ms=500) as client, fetcher_of(client, T0) as fetcher:
        poll_until(fetcher, lambda *_: True)
        broker.release()


def test_look_up_that_gets_no_response_holds_a_poll_up_for_a_short_time_first(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher_module, "_FIRST_LOOKUP_MS", 100.0)
    broker = Broker(cluster, 0)
    broker.write(T0)
    cluster.script(FetchRequest, broker)
    with cluster.client(api_timeout_ms=60_000) as client, fetcher_of(client, T0) as fetcher:
        client.fetch_metadata(())
        answer = threading.Event()

        def late(request: Any) -> Any:
            return cluster.metadata(request) if answer.wait(PATIENCE_S) else Silence()

        cluster.script(MetadataRequest, late)
        began_at = time.monotonic()
        for _ in range(3):
            assert fetcher.poll(10) is None
        # 100, 200 and 400 ms at most; the time of a look-up is 60 s.
        assert time.monotonic() - began_at < 10
        answer.set()
        poll_until(fetcher, lambda *_: True)
        broker.release()


def test_records_of_several_ranges_in_one_response_are_returned_one_after_the_other(cluster: TcpCluster) -> None:
    broker = Broker(cluster, 0, 1, 2)
    for topic_partition in (T0, T1, T2):
        broker.write(topic_partition)
    cluster.script(FetchRequest, broker)
    with cluster.client() as client, fetcher_of(client, T0, T1, T2) as fetcher:
        found = [fetcher.poll(20_000), fetcher.poll(0), fetcher.poll(0)]
        assert sorted(each[0] for each in found if each is not None) == [T0, T1, T2]
        broker.release()
