"""`pyspark-kafka topics` against scripted brokers: unreachable ones, large clusters."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kit.fakes.scripts import Close
from kit.fakes.tcp_cluster import TcpCluster
from kit.programs.cli import invoke
from kit.record_batches import plain_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer.testing import Result


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


def test_topics_with_problems_are_counted_in_the_list(cluster: TcpCluster) -> None:
    cluster.leaders["t", 0] = (-1, 0)
    done = run(cluster, "list")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split()[:2] == ["t", "3"]
    assert "1 without a leader" in done.stdout


@pytest.mark.parametrize("arguments", [("list",), ("create", "n")])
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


def test_thousands_of_topics_are_listed_with_one_request(cluster: TcpCluster) -> None:
    cluster.script(MetadataRequest, large(3, 3_000, 2, cluster))
    listed = run(cluster, "list")
    assert (listed.exit_code, len(listed.stdout.splitlines())) == (0, 3_001)
    assert len(cluster.requests(MetadataRequest)) == 1
