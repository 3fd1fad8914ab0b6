"""`pyspark-kafka topics` against scripted brokers: silent ones, refusals, large clusters."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse, DescribeLogDirsRequest
from kafka.protocol.admin import DescribeLogDirsResponse as LogDirs
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kit.fakes.handlers.admin import log_dirs
from kit.fakes.scripts import Close, Meeting, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.programs.cli import invoke
from kit.record_batches import plain_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer.testing import Result

# A broker that is silent is given up soon.
_SOON = ("-o", "default.api.timeout.ms=20000", "-o", "request.timeout.ms=1000")


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """Three brokers; topic `t` has a partition led by each, with 10 records in all of them."""
    with TcpCluster(count=3) as cluster:
        cluster.add_topic("t", partitions=3)
        for number in range(3):
            cluster.leaders["t", number] = (number, 0)
            cluster.logs["t", number].append(plain_batch(0, 10))
        yield cluster


def run(cluster: TcpCluster, *arguments: str) -> Result:
    host, port = cluster.address(0)
    return invoke("topics", *arguments, "--bootstrap-servers", f"{host}:{port}")


def test_silent_broker_costs_only_its_sizes(cluster: TcpCluster) -> None:
    cluster.script(DescribeLogDirsRequest, Silence(), broker_id=2)
    done = run(cluster, "sizes", "--by", "broker", "--json", *_SOON)
    assert done.exit_code == 3, done.output
    told = json.loads(done.stdout)
    size = len(plain_batch(0, 10))
    assert [(row["bytes"], row["unknown_partitions"]) for row in told["sizes"]] == [(size, 0), (size, 0), (None, 1)]
    (missing,) = told["missing"]
    assert missing.startswith("The sizes of 1 partitions that broker 2 leads were not found out: [")
    assert missing in done.stderr


def test_brokers_are_asked_for_sizes_side_by_side(cluster: TcpCluster) -> None:
    meeting = Meeting(3, lambda request: log_dirs(cluster, request))
    cluster.script(DescribeLogDirsRequest, meeting)
    done = run(cluster, "sizes")
    assert (done.exit_code, meeting.waited) == (0, 3), done.output
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["topic", "size", "bytes", "partitions", "led", "by"]
    assert lines[1].split()[:1] == ["t"]
    assert lines[1].split()[-2:] != []
    assert lines[-1].endswith("in 3 partitions, as their leaders store them.")


def test_sizes_that_no_broker_tells_are_an_error(cluster: TcpCluster) -> None:
    cluster.script(DescribeLogDirsRequest, LogDirs(throttle_time_ms=0, error_code=31, results=[]))
    done = run(cluster, "sizes")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "[CLUSTER_AUTHORIZATION_FAILED]" in done.stderr
    assert "--operation Describe --cluster" in done.stderr
    assert "maxBytesPerTrigger" not in done.stderr


def test_partitions_without_a_leader_and_those_left_out_are_counted(cluster: TcpCluster) -> None:
    cluster.leaders["t", 0] = (-1, 0)
    empty = LogDirs.DescribeLogDirsResult(error_code=0, log_dir="/d", topics=[])
    cluster.script(DescribeLogDirsRequest, LogDirs(throttle_time_ms=0, error_code=0, results=[empty]), broker_id=1)
    done = run(cluster, "sizes", "--by", "partition", "--json")
    assert done.exit_code == 3
    told = json.loads(done.stdout)
    assert [(row["partition"], row["bytes"]) for row in told["sizes"]] == [
        ("t-2", len(plain_batch(0, 10))),
        ("t-0", None),
        ("t-1", None),
    ]
    assert told["missing"] == [
        "1 partitions have no leader, which could tell their sizes.",
        "Brokers have left out 1 partitions that they lead: they move, or a disk is broken.",
    ]


def test_description_has_what_a_silent_broker_does_not_hide(cluster: TcpCluster) -> None:
    cluster.script(ListOffsetsRequest, Silence(), broker_id=1)
    done = run(cluster, "describe", "t", "--json", *_SOON)
    assert done.exit_code == 3, done.output
    told = json.loads(done.stdout)
    assert [(each["begin"], each["end"]) for each in told["partitions"]] == [(0, 10), (None, None), (0, 10)]
    (missing,) = told["missing"]
    assert missing.startswith("The offsets of partition 1 were not found out: [")
    # The first look-up has shown that it is silent; the second one leaves it alone.
    assert len([seen for seen in cluster.requests(ListOffsetsRequest) if seen.broker_id == 1]) == 1


def test_description_without_the_right_to_see_the_configuration_says_so(cluster: TcpCluster) -> None:
    refused = DescribeConfigsResponse.DescribeConfigsResult(
        error_code=29, error_message=None, resource_type=2, resource_name="t", configs=[]
    )
    cluster.script(DescribeConfigsRequest, DescribeConfigsResponse(throttle_time_ms=0, results=[refused]))
    done = run(cluster, "describe", "t")
    assert done.exit_code == 3
    assert "at most 30 records" in done.stdout
    assert "The configuration was not found out: [TOPIC_AUTHORIZATION_FAILED]" in done.stderr


def test_topic_that_is_gone_is_an_error_that_names_the_likely_one(cluster: TcpCluster) -> None:
    cluster.add_topic("orders")
    for command in ("describe", "sizes"):
        done = run(cluster, command, "order")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "[UNKNOWN_TOPIC]" in done.stderr
        assert "orders" in done.stderr


@pytest.mark.parametrize("arguments", [("list",), ("sizes",), ("describe", "t"), ("create", "n")])
def test_cluster_that_is_away_is_an_error(arguments: tuple[str, ...], cluster: TcpCluster) -> None:
    cluster.script(MetadataRequest, Close())
    done = run(cluster, *arguments, "-o", "default.api.timeout.ms=1000", "-o", "request.timeout.ms=500")
    assert (done.exit_code, done.stdout) == (4, "")
    assert "Hint:" in done.stderr


def large(brokers: int, topics: int, partitions: int, cluster: TcpCluster) -> Any:
    """Return metadata of many topics; the fake's own way to make them takes too long."""
    topic_class = MetadataResponse.MetadataResponseTopic
    found = cluster.metadata(MetadataRequest(topics=[]))
    found.topics = [
        topic_class(
            error_code=0,
            name=f"topic-{number:05}",
            topic_id=uuid.UUID(int=number + 1),
            is_internal=False,
            partitions=[
                topic_class.MetadataResponsePartition(
                    error_code=0,
                    partition_index=index,
                    leader_id=(number + index) % brokers,
                    leader_epoch=0,
                    replica_nodes=[(number + index) % brokers],
                    isr_nodes=[(number + index) % brokers],
                    offline_replicas=[],
                )
                for index in range(partitions)
            ],
            authorized_operations=set(),
        )
        for number in range(topics)
    ]
    return found


def test_thousands_of_topics_are_listed_and_measured_with_one_request_to_each_broker(cluster: TcpCluster) -> None:
    cluster.script(MetadataRequest, large(3, 3_000, 2, cluster))

    def sizes(request: Any) -> Any:
        result = LogDirs.DescribeLogDirsResult
        topics = [
            result.DescribeLogDirsTopic(
                name=topic.topic,
                partitions=[
                    result.DescribeLogDirsTopic.DescribeLogDirsPartition(
                        partition_index=number, partition_size=1_000, offset_lag=0, is_future_key=False
                    )
                    for number in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return LogDirs(throttle_time_ms=0, error_code=0, results=[result(error_code=0, log_dir="/d", topics=topics)])

    cluster.script(DescribeLogDirsRequest, sizes)
    listed = run(cluster, "list")
    assert (listed.exit_code, len(listed.stdout.splitlines())) == (0, 3_001)
    done = run(cluster, "sizes", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["bytes"], told["partitions"], len(told["sizes"])) == (6_000_000, 6_000, 3_000)
    assert len(cluster.requests(DescribeLogDirsRequest)) == 3
    assert len(cluster.requests(MetadataRequest)) == 2
