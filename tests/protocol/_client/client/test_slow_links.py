"""Responses that arrive in pieces: time is counted by bytes, and no other broker waits for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kit.fakes.handlers.fetch import BrokerLog, LogScript
from kit.fakes.logs import batches_of, record_batch
from kit.fakes.scripts import Drip
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import FAST_FETCH, read_range
from pyspark_kafka._base.model import NO_END, OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import FetchRequest, ListOffsetsRequest, MetadataRequest
from pyspark_kafka._client.options import FetchOptions
from pyspark_kafka.errors import DeadlineError

T0, T1 = (TopicPartition("t", number) for number in range(2))
# 100 and 25 kB/s: much more than what is worth waiting for, and less than whole responses need within a timeout.
STEADY = {"piece_bytes": 4_000, "pause_s": 0.04}
SLOW = {"piece_bytes": 1_000, "pause_s": 0.04}
TRICKLE = {"piece_bytes": 1, "pause_s": 0.02}


@pytest.fixture
def cluster() -> Any:
    with TcpCluster(2) as cluster:
        cluster.add_topic("t", partitions=2)
        yield cluster


def dripping(script: Callable[[Any], Any], **how: Any) -> Callable[[Any], Any]:
    return lambda request: Drip(script(request), **how)


def one_large_batch() -> LogScript:
    return LogScript([(0, 10, record_batch(0, [b"v" * 15_000] * 10))])


def test_response_is_received_whole_although_it_takes_longer_than_all_timeouts(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, dripping(one_large_batch(), **STEADY))
    fetch = FetchOptions(**(FAST_FETCH | {"poll_timeout_ms": 1_100}))
    with cluster.client(request_timeout_ms=750) as client:
        rows = [row for rows in read_range(client, OffsetRange(T0, 0, 10), fetch) for row in rows]
    assert len(rows) == 10
    # It was not begun again.
    assert len(cluster.requests(FetchRequest)) == 1


def test_trickle_ends_with_the_request_timeout_and_the_error_names_the_option(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, dripping(one_large_batch(), **TRICKLE))
    fetch = FetchOptions(**(FAST_FETCH | {"poll_timeout_ms": 1_500}))
    with cluster.client(request_timeout_ms=500) as client, pytest.raises(DeadlineError) as caught:
        list(read_range(client, OffsetRange(T0, 0, 10), fetch))
    assert caught.value.condition == "FETCH_NO_PROGRESS"
    assert "of 150" in str(caught.value)
    assert "bytes had arrived" in str(caught.value)
    assert "kafka.max.partition.fetch.bytes" in caught.value.hint
    assert str(caught.value).count("Hint:") == 1
    assert len(cluster.requests(FetchRequest)) > 1


def test_responses_that_are_always_cut_off_are_no_progress(cluster: TcpCluster) -> None:
    cluster.script(FetchRequest, dripping(one_large_batch(), **(STEADY | {"most_bytes": 16_000})))
    fetch = FetchOptions(**(FAST_FETCH | {"poll_timeout_ms": 800}))
    began_at = time.monotonic()
    with (
        cluster.client(request_timeout_ms=4_000) as client,
        pytest.raises(DeadlineError, match=r"FETCH_NO_PROGRESS.*Last failure: \[CONNECTION_LOST\]"),
    ):
        list(read_range(client, OffsetRange(T0, 0, 10), fetch))
    assert time.monotonic() - began_at < 10


@pytest.mark.parametrize("how", [STEADY, TRICKLE], ids=["steady", "trickle"])
def test_poll_ends_with_its_time_and_returns_what_other_brokers_have(cluster: TcpCluster, how: dict[str, Any]) -> None:
    cluster.leaders["t", 1] = (1, 0)
    cluster.script(FetchRequest, dripping(one_large_batch(), **how), broker_id=0)
    cluster.script(FetchRequest, BrokerLog({("t", 1): batches_of(1)}, cluster.topic_ids), broker_id=1)
    ranges = [OffsetRange(each, 0, NO_END) for each in (T0, T1)]
    took_s, found = [], None
    with cluster.client() as client, Fetcher(client, ranges, FetchOptions(max_wait_ms=100)) as fetcher:
        while found is None:
            began_at = time.monotonic()
            found = fetcher.poll(50)
            took_s.append(time.monotonic() - began_at)
            assert len(took_s) < 100
    assert found[0] == T1
    # The response of broker 0 takes 1.5 s or almost an hour; to find the leaders takes a moment, too.
    assert max(took_s) < 1


def test_metadata_that_arrives_steadily_may_take_longer_than_one_answer(cluster: TcpCluster) -> None:
    for number in range(250):
        cluster.add_topic(f"topic-{number}-{'x' * 100}")
    cluster.script(MetadataRequest, dripping(cluster.metadata, **SLOW))
    with cluster.client(request_timeout_ms=650, api_timeout_ms=20_000) as client:
        found = client.fetch_metadata(None)
    assert len(found.topics) == 251
    assert len(cluster.requests(MetadataRequest)) == 1


def test_broker_whose_response_trickles_is_not_waited_for_alone(cluster: TcpCluster) -> None:
    with cluster.client(request_timeout_ms=20_000, api_timeout_ms=40_000) as client:
        client.fetch_metadata(())
        cluster.script(MetadataRequest, dripping(cluster.metadata, **TRICKLE), cluster.metadata)
        began_at = time.monotonic()
        response, _ = client.any_broker.call(MetadataRequest(topics=[]), Deadline(20_000), hedge_after_s=0.1)
    assert len(response.brokers) == 2
    # All of the first response takes some seconds.
    assert time.monotonic() - began_at < 2
    assert len(cluster.requests(MetadataRequest)) == 3


def test_call_of_one_broker_goes_on_while_bytes_arrive_and_ends_with_its_deadline(cluster: TcpCluster) -> None:
    for number in range(160):
        cluster.add_topic(f"topic-{number}-{'x' * 100}")
    cluster.script(MetadataRequest, dripping(cluster.metadata, **SLOW))
    request = MetadataRequest(topics=None)
    with cluster.client(request_timeout_ms=600) as client:
        connection = client.any_broker.connect(Deadline(5_000))
        assert len(connection.call(request, Deadline(20_000)).topics) == 161
        with pytest.raises(DeadlineError, match=r"within [67]\d\d ms.*bytes had arrived Hint:.*default.api.timeout.ms"):
            connection.call(request, Deadline(700))
        assert connection.closed


def test_offsets_that_arrive_steadily_may_take_longer_than_one_answer(cluster: TcpCluster) -> None:
    cluster.add_topic("wide", partitions=1_000)
    cluster.script(ListOffsetsRequest, dripping(cluster.list_offsets, **SLOW))
    partitions = [TopicPartition("wide", number) for number in range(1_000)]
    with cluster.client(request_timeout_ms=650, api_timeout_ms=20_000) as client:
        assert len(list_offsets(client, dict.fromkeys(partitions, Latest()))) == 1_000
    assert len(cluster.requests(ListOffsetsRequest)) == 1
