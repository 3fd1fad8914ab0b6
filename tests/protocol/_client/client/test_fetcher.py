"""Reading a range over sockets; what is decided without them: tests/unit/_client/client/fetch."""

from __future__ import annotations

from typing import Any

import pytest

from kit.fakes.handlers.fetch import FetchScript, LogScript
from kit.fakes.logs import batches_of
from kit.fakes.scripts import Close, Raw, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.fixtures.wire import WireTrace
from kit.reading import FAST_FETCH, read_range
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.fetch.response import NEWEST_VERSION, OLDEST_VERSION
from pyspark_kafka._client.client.wire.messages import FetchRequest, MetadataRequest
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka.errors import (
    CorruptRecordsError,
    ProtocolError,
)

T0 = TopicPartition("t", 0)


class Reading:
    """A cluster with topic t of one partition, and what a reader of it gets."""

    def __init__(self, cluster: TcpCluster, **fetch: Any) -> None:
        self.cluster = cluster
        self.fetch = FetchOptions(**(FAST_FETCH | fetch))
        self.connection: dict[str, Any] = {"request_timeout_ms": 2_000}

    def client(self) -> KafkaClient:
        return self.cluster.client(**self.connection)

    def values(self, start: int, end: int) -> list[int]:
        """Read and decode a range as a source does; values are the offsets."""
        with self.client() as client:
            found = read_range(client, OffsetRange(T0, start, end), self.fetch)
            return [int(row["value"] or b"") for rows in found for row in rows]


@pytest.fixture
def cluster() -> Any:
    with TcpCluster(2) as cluster:
        cluster.add_topic("t")
        yield cluster


def offsets_asked(cluster: TcpCluster) -> list[int]:
    return [seen.request.topics[0].partitions[0].fetch_offset for seen in cluster.requests(FetchRequest)]


@pytest.mark.parametrize("per_response", [1, 3, 100])
def test_a_range_is_read_completely_and_once(cluster: TcpCluster, per_response: int) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(10), per_response))
    assert Reading(cluster).values(0, 100) == list(range(100))


def test_an_empty_range_needs_no_broker() -> None:
    client = KafkaClient(ConnectionOptions((("127.0.0.1", 1),)))
    assert list(Fetcher(client, [OffsetRange(T0, 7, 7)], FetchOptions())) == []


def test_the_next_request_is_on_its_way_while_a_response_is_decoded(cluster: TcpCluster, wire: WireTrace) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(3)))
    reading = Reading(cluster)
    with reading.client() as client, Fetcher(client, [OffsetRange(T0, 0, 30)], reading.fetch) as fetcher:
        next(fetcher)
        # The response is in the caller's hands, and the request after it was sent.
        assert wire.steps("Fetch") == ["sent Fetch", "received Fetch", "sent Fetch"]
        (connection,) = fetcher.connections
        assert connection.in_flight == 1
        assert connection.readable(PATIENCE_S)
    assert offsets_asked(cluster) == [0, 10]


def test_a_fetcher_closed_early_leaves_no_response_behind(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(3)))
    reading = Reading(cluster)
    with reading.client() as client:
        fetcher = Fetcher(client, [OffsetRange(T0, 0, 30)], reading.fetch)
        next(fetcher)
        fetcher.close()
        fetcher.close()
        assert reading.values(0, 30) == list(range(30))


def test_two_fetchers_of_one_client_do_not_mix_their_responses(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(4)))
    reading = Reading(cluster)
    with reading.client() as client:
        first = Fetcher(client, [OffsetRange(T0, 0, 40)], reading.fetch)
        second = Fetcher(client, [OffsetRange(T0, 0, 40)], reading.fetch)
        pairs = [(a.start_offset, b.start_offset) for (_, a), (_, b) in zip(first, second, strict=True)]
    assert pairs == [(0, 0), (10, 10), (20, 20), (30, 30)]


def test_fetches_stay_at_version_12_without_topic_ids() -> None:
    with TcpCluster(versions={3: (0, 9)}) as cluster:
        cluster.add_topic("t")
        cluster.script(FetchRequest, LogScript(batches_of(2)))
        assert Reading(cluster).values(0, 20) == list(range(20))
        assert {seen.version for seen in cluster.requests(FetchRequest)} == {12}


@pytest.mark.parametrize("version", range(OLDEST_VERSION, NEWEST_VERSION + 1))
def test_every_fetch_version_reads_the_same(version: int) -> None:
    with TcpCluster(versions={1: (4, version)}) as cluster:
        cluster.add_topic("t")
        cluster.script(FetchRequest, LogScript(batches_of(2)))
        assert Reading(cluster).values(0, 20) == list(range(20))
        assert {seen.version for seen in cluster.requests(FetchRequest)} == {version}


def test_a_frame_cut_off_in_the_middle_is_fetched_again(cluster: TcpCluster) -> None:
    log = LogScript(batches_of(3))

    def cut(_: Any) -> Any:
        cluster._open[-1].sendall(b"\x00\x00\x10\x00" + b"half of it")
        return Close()

    cluster.script(FetchRequest, log, cut, log)
    assert Reading(cluster).values(0, 30) == list(range(30))


def test_a_broker_that_hangs_is_left_after_the_request_timeout(cluster: TcpCluster) -> None:
    log = LogScript(batches_of(3))
    cluster.script(FetchRequest, log, Silence, log)
    reading = Reading(cluster)
    reading.connection["request_timeout_ms"] = 100
    assert reading.values(0, 30) == list(range(30))


def test_a_moved_leader_is_followed(cluster: TcpCluster) -> None:
    log = LogScript(batches_of(3))

    def moved(request: Any) -> Any:
        cluster.leaders["t", 0] = (1, 1)
        return FetchScript(error_code=6)(request)

    cluster.script(FetchRequest, log, moved, broker_id=0)
    cluster.script(FetchRequest, log, broker_id=1)
    assert Reading(cluster).values(0, 30) == list(range(30))
    assert [seen.broker_id for seen in cluster.requests(FetchRequest)] == [0, 0, 1, 1]
    assert cluster.requests(FetchRequest)[-1].request.topics[0].partitions[0].current_leader_epoch == 1


def test_time_the_caller_takes_does_not_count_as_waiting(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(2)))
    now = [0.0]
    reading = Reading(cluster, poll_timeout_ms=1_000)
    with reading.client() as client:
        fetcher = Fetcher(client, [OffsetRange(T0, 0, 20)], reading.fetch, clock=lambda: now[0])
        next(fetcher)
        now[0] += 3600
        assert next(fetcher)[1].start_offset == 10
        fetcher.close()


def test_a_position_that_decoding_does_not_confirm_is_an_error(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(3)))
    reading = Reading(cluster)
    with reading.client() as client, Fetcher(client, [OffsetRange(T0, 0, 30)], reading.fetch) as fetcher:
        next(fetcher)
        fetcher.confirm(T0, 10)
        next(fetcher)
        with pytest.raises(CorruptRecordsError, match=r"\[POSITION_MISMATCH\].*end at 20 by their headers, but at 19"):
            fetcher.confirm(T0, 19)


def test_a_malformed_response_is_a_protocol_error_not_a_retry(cluster: TcpCluster) -> None:
    # Correlation id 2 on the fetcher's own connection: ApiVersions was 1.
    cluster.script(FetchRequest, Raw(b"\x00\x00\x00\x07" + b"\x00\x00\x00\x02" + b"\x00" + b"\x00\x00"))
    with pytest.raises(ProtocolError, match="FETCH_RESPONSE_INVALID"):
        Reading(cluster).values(0, 10)


def test_metadata_is_asked_for_once_a_range(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, LogScript(batches_of(10)))
    Reading(cluster).values(0, 100)
    assert len(cluster.requests(MetadataRequest)) == 1
