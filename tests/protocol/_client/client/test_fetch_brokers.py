"""Fetching from many brokers: what one of them does costs the ranges of the others no time."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from kit.fakes.black_hole import BlackHole
from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.logs import batches_of
from kit.fakes.scripts import Meeting, Raw, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import PATIENT
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.fetch.session import lookups
from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest, FetchRequest, MetadataRequest
from pyspark_kafka._client.options import FetchOptions

pytestmark = pytest.mark.usefixtures("no_dial_is_left")


@pytest.fixture
def silence_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the cluster asked who leads after a short silence: a slow machine has it asked more often."""
    monkeypatch.setattr(lookups, "_LOOK_S", 0.3)
    monkeypatch.setattr(lookups, "_SILENT_S", 0.2)


def led_by_each(cluster: TcpCluster) -> list[OffsetRange]:
    """Make a topic with a partition led by each broker, ten records in each; return the ranges of all."""
    cluster.add_topic("t", partitions=cluster.count)
    for number in range(cluster.count):
        cluster.leaders["t", number] = (number, 0)
    log = BrokerLog({("t", number): batches_of(1) for number in range(cluster.count)}, cluster.topic_ids)
    cluster.script(FetchRequest, log)
    return [OffsetRange(TopicPartition("t", number), 0, 10) for number in range(cluster.count)]


def fetcher_of(client: KafkaClient, ranges: list[OffsetRange], **changes: Any) -> Fetcher:
    return Fetcher(client, ranges, FetchOptions(**({"max_wait_ms": 100} | changes)))


def test_leaders_are_connected_to_side_by_side() -> None:
    with TcpCluster(20) as cluster, cluster.client() as client:
        ranges = led_by_each(cluster)

        client.fetch_metadata(())
        meeting = Meeting(8, cluster.api_versions)
        cluster.script(ApiVersionsRequest, meeting)
        with fetcher_of(client, ranges) as fetcher:
            assert len({topic_partition for topic_partition, _ in fetcher}) == 20
        assert meeting.took_place


@pytest.mark.usefixtures("silence_is_short")
def test_a_leader_that_swallows_packets_holds_up_no_other_and_is_left_when_another_one_leads() -> None:
    with BlackHole() as hole, TcpCluster(3) as cluster, cluster.client(**PATIENT) as client:
        ranges = led_by_each(cluster)
        cluster.elsewhere[1] = hole.address
        with fetcher_of(client, ranges) as fetcher:
            began_at = time.monotonic()
            assert {next(fetcher)[0].partition, next(fetcher)[0].partition} == {0, 2}
            assert time.monotonic() - began_at < 20
            cluster.leaders["t", 1] = (2, 1)
            assert [topic_partition.partition for topic_partition, _ in fetcher] == [1]
        # The connect timeout is 60 s.
        assert time.monotonic() - began_at < 40


@pytest.mark.usefixtures("silence_is_short")
def test_a_leader_that_fell_silent_is_left_when_another_one_leads() -> None:
    with TcpCluster(3) as cluster, cluster.client(**PATIENT) as client:
        ranges = led_by_each(cluster)
        cluster.script(FetchRequest, Silence, broker_id=1)
        with fetcher_of(client, ranges) as fetcher:
            began_at = time.monotonic()
            assert {next(fetcher)[0].partition, next(fetcher)[0].partition} == {0, 2}
            cluster.leaders["t", 1] = (2, 1)
            assert [topic_partition.partition for topic_partition, _ in fetcher] == [1]
        # The request timeout is 60 s.
        assert time.monotonic() - began_at < 30


@pytest.mark.usefixtures("silence_is_short")
def test_a_leader_that_is_silent_and_still_leads_is_waited_for() -> None:
    released = threading.Event()
    with TcpCluster(2) as cluster, cluster.client() as client:
        ranges = led_by_each(cluster)
        log = BrokerLog({("t", number): batches_of(1) for number in range(2)}, cluster.topic_ids)

        def late(request: Any) -> Any:
            released.wait(PATIENCE_S)
            return log(request)

        cluster.script(FetchRequest, late, broker_id=1)
        asked: list[Any] = []

        def still_led(request: Any) -> Any:
            # At the beginning, and then because of the silence.
            asked.append(request)
            if len(asked) > 1:
                released.set()
            return cluster.metadata(request)

        cluster.script(MetadataRequest, still_led)
        with fetcher_of(client, ranges) as fetcher:
            assert sorted(topic_partition.partition for topic_partition, _ in fetcher) == [0, 1]
        assert [seen.broker_id for seen in cluster.requests(FetchRequest)].count(1) == 1


def test_a_response_that_stops_in_the_middle_holds_up_no_other_for_long() -> None:
    with TcpCluster(2) as cluster, cluster.client(**PATIENT) as client:
        ranges = led_by_each(cluster)
        log = BrokerLog({("t", 1): batches_of(1)}, cluster.topic_ids)

        def behind(request: Any) -> Any:
            time.sleep(0.3)
            return log(request)

        cluster.script(FetchRequest, Raw(b"\x00\x00\x10\x00\x00"), broker_id=0)
        cluster.script(FetchRequest, behind, broker_id=1)
        with fetcher_of(client, ranges) as fetcher:
            began_at = time.monotonic()
            assert next(fetcher)[0].partition == 1
        assert time.monotonic() - began_at < 20
