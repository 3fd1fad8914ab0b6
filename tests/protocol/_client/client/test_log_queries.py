"""Questions about many partitions: what one broker does costs its own part only, and bytes are bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kafka.protocol.admin import DescribeLogDirsResponse
from kafka.protocol.consumer import ListOffsetsResponse

from kit.fakes.clock import ResponseClock
from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.logs import record_batch
from kit.fakes.scripts import Close, Meeting, Silence
from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.leaders import find_leaders
from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
from pyspark_kafka._client.client.fetch.record_times import fetch_record_times
from pyspark_kafka._client.client.queries.logs import query_logs
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import DescribeLogDirsRequest, FetchRequest, ListOffsetsRequest
from pyspark_kafka.errors import AccessError, BrokerError, DeadlineError

NOT_LEADER, TOPIC_REFUSED, CLUSTER_REFUSED = 6, 29, 31
SILENT = 1
pytestmark = pytest.mark.usefixtures("no_dial_is_left")


def one_topic_each(cluster: TcpCluster) -> list[TopicPartition]:
    for number in range(cluster.count):
        cluster.add_topic(f"t{number}", leader=number)
        cluster.ends[f"t{number}", 0] = (number, 10 + number)
    return [TopicPartition(f"t{number}", 0) for number in range(cluster.count)]


def times_of(
    client: KafkaClient, cluster: TcpCluster, batches: Mapping[int, bytes], **arguments: Any
) -> tuple[Any, list[PartitionMetadata]]:
    """Look up the times at offset 0 of partitions of one topic that begin with these batches."""
    cluster.add_topic("t", partitions=len(batches))
    cluster.script(
        FetchRequest, BrokerLog({("t", number): [(0, 1, data)] for number, data in batches.items()}, cluster.topic_ids)
    )
    partitions = [TopicPartition("t", number) for number in batches]
    leaders = list(find_leaders(client, partitions).values())
    return fetch_record_times(client, [(each, 0) for each in leaders], Deadline(20_000), **arguments), leaders


def test_silent_broker_is_waited_for_once_and_costs_its_own_partitions_only() -> None:
    with TcpCluster(3) as cluster, cluster.client(request_timeout_ms=3_000) as client:
        partitions = one_topic_each(cluster)
        # The others respond when the silent broker has been asked: its time begins there.
        meeting = Meeting(3, cluster.list_offsets)
        cluster.script(ListOffsetsRequest, meeting)
        cluster.script(ListOffsetsRequest, lambda request: (meeting(request), Silence())[1], broker_id=SILENT)
        # The time of the first question is over when the two others have responded to it.
        clock = ResponseClock(client, 2, 3.1)
        found = query_logs(client, partitions, Deadline(20_000, clock=clock, sleep=clock.sleep))
        asked = [seen for seen in cluster.requests(ListOffsetsRequest) if seen.broker_id == SILENT]
        # Of four questions.
        assert len(asked) == 1
        for number, topic_partition in enumerate(partitions):
            log_status = found.logs[topic_partition]
            if number == SILENT:
                assert isinstance(log_status.error, DeadlineError)
                assert log_status.end is None
            else:
                assert (log_status.start, log_status.end, log_status.error) == (number, 10 + number, None)


def test_leader_that_moved_is_followed() -> None:
    with TcpCluster(2) as cluster, cluster.client() as client:
        cluster.add_topic("t", leader=0)
        cluster.ends["t", 0] = (0, 5)
        client.fetch_metadata(["t"])

        def moved(request: Any) -> Any:
            cluster.leaders["t", 0] = (1, 1)
            return refusal(request, NOT_LEADER)

        cluster.script(ListOffsetsRequest, moved, broker_id=0)
        log_status = query_logs(client, [TopicPartition("t", 0)], Deadline(20_000)).logs[TopicPartition("t", 0)]
        assert (log_status.end, log_status.error) == (5, None)


def refusal(request: Any, code: int) -> Any:
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    return ListOffsetsResponse(
        throttle_time_ms=0,
        topics=[
            topic_class(
                name=topic.name,
                partitions=[
                    topic_class.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, error_code=code, timestamp=-1, offset=-1, leader_epoch=-1
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def test_partition_without_a_leader_or_without_existence_has_its_own_error() -> None:
    with TcpCluster(1) as cluster, cluster.client() as client:
        cluster.add_topic("led")
        cluster.ends["led", 0] = (0, 5)
        cluster.add_topic("leaderless", leader=-1)
        wanted = [TopicPartition("led", 0), TopicPartition("led", 7), TopicPartition("leaderless", 0)]
        logs = query_logs(client, [*wanted, TopicPartition("none", 0)], Deadline(20_000)).logs
        assert (logs[wanted[0]].end, logs[wanted[0]].error) == (5, None)
        assert "Topic 'led' has no partition 7" in str(logs[wanted[1]].error)
        assert "leaderless-0 has no leader" in str(logs[wanted[2]].error)
        assert "Topic 'none' does not exist" in str(logs[TopicPartition("none", 0)].error)


def test_sizes_that_the_user_may_not_see_leave_the_ends_known() -> None:
    with TcpCluster(1) as cluster, cluster.client() as client:
        (topic_partition,) = one_topic_each(cluster)
        refused = DescribeLogDirsResponse(throttle_time_ms=0, error_code=CLUSTER_REFUSED, results=[])
        cluster.script(DescribeLogDirsRequest, lambda _: refused)
        log_status = query_logs(client, [topic_partition], Deadline(20_000)).logs[topic_partition]
        assert (log_status.end, log_status.size, log_status.error) == (10, None, None)
        assert isinstance(log_status.size_error, AccessError)
        assert "--operation Describe --cluster" in log_status.size_error.grant


def test_times_of_small_batches_take_one_request_and_larger_ones_more_room() -> None:
    sizes = {0: 10, 1: 10_000, 2: 200_000, 3: 2_000_000, 4: 3_000_000}
    batches = {number: record_batch(0, [b"v" * size]) for number, size in sizes.items()}
    with TcpCluster(1) as cluster, cluster.client() as client:
        found, _ = times_of(client, cluster, batches)
        assert sorted(tp.partition for tp in found.times) == [0, 1, 2, 3, 4]
        assert (found.errors, found.too_large) == ({}, frozenset())
        asked = [len(seen.request.topics[0].partitions) for seen in cluster.requests(FetchRequest)]
        # The first one in a response is whole whatever its size, so each round is at least one shorter.
        assert asked[0] == 5
        assert asked == sorted(asked, reverse=True)
        assert len(asked) <= 5


def test_times_stop_when_enough_bytes_were_read_and_say_of_which_partitions() -> None:
    batches = {number: record_batch(0, [b"v" * 100_000]) for number in range(4)}
    with TcpCluster(1) as cluster, cluster.client() as client:
        found, _ = times_of(client, cluster, batches, max_bytes=50_000)
        assert len(found.times) == 1
        assert len(found.too_large) == 3
        assert len(cluster.requests(FetchRequest)) == 1


def test_times_of_a_broker_that_closes_the_connection_are_errors_and_it_is_not_asked_again() -> None:
    with TcpCluster(1) as cluster, cluster.client() as client:
        cluster.add_topic("t", partitions=2)
        leaders = find_leaders(client, [TopicPartition("t", 0), TopicPartition("t", 1)])
        cluster.script(FetchRequest, Close)
        found = fetch_record_times(client, [(each, 0) for each in leaders.values()], Deadline(20_000))
        assert found.times == {}
        assert sorted(found.errors) == [TopicPartition("t", 0), TopicPartition("t", 1)]
        assert len(cluster.requests(FetchRequest)) == 1


def test_times_that_the_user_may_not_read_name_the_right() -> None:
    with TcpCluster(1) as cluster, cluster.client() as client:
        cluster.add_topic("t")
        log = BrokerLog({("t", 0): []}, cluster.topic_ids, errors={("t", 0): (TOPIC_REFUSED, -1, -1)})
        cluster.script(FetchRequest, log)
        (leader,) = find_leaders(client, [TopicPartition("t", 0)]).values()
        (error,) = fetch_record_times(client, [(leader, 0)], Deadline(20_000)).errors.values()
        assert isinstance(error, BrokerError)
        assert "Missing right: READ on topic 't'" in str(error)
