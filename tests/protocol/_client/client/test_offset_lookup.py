"""Look-ups over many brokers: side by side, whatever one of them does."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kit.fakes.black_hole import BlackHole
from kit.fakes.clock import ResponseClock
from kit.fakes.scripts import Meeting, Raw, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import PATIENT
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata
from pyspark_kafka._client.client.queries import offsets
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest, ListOffsetsRequest, MetadataRequest
from pyspark_kafka.errors import DeadlineError

pytestmark = pytest.mark.usefixtures("no_dial_is_left")


@pytest.fixture
def others_are_asked_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the cluster asked who leads after a short silence: a slow machine has it asked more often."""
    monkeypatch.setattr(offsets, "_SILENT_S", 0.3)


def moved(cluster: TcpCluster, topic: str, *, leader: int) -> Any:
    """Return a script for metadata: from now on another broker leads."""

    def respond(request: Any) -> Any:
        cluster.leaders[topic, 0] = (leader, 1)
        return cluster.metadata(request)

    return respond


def one_topic_each(cluster: TcpCluster) -> dict[TopicPartition, Any]:
    for number in range(cluster.count):
        cluster.add_topic(f"t{number}", leader=number)
        cluster.ends[f"t{number}", 0] = (0, number)
    return {TopicPartition(f"t{number}", 0): Latest() for number in range(cluster.count)}


def ends_of(cluster: TcpCluster) -> dict[TopicPartition, int]:
    return {TopicPartition(f"t{number}", 0): number for number in range(cluster.count)}


def test_brokers_that_are_slow_to_connect_to_are_connected_to_side_by_side() -> None:
    with TcpCluster(40) as cluster, cluster.client() as client:
        specs = one_topic_each(cluster)
        client.fetch_metadata(())
        meeting = Meeting(30, cluster.api_versions)
        cluster.script(ApiVersionsRequest, meeting)
        assert list_offsets(client, specs) == ends_of(cluster)
        assert meeting.took_place
        opened = cluster.connections
        assert list_offsets(client, specs) == ends_of(cluster)
        assert cluster.connections == opened


@pytest.mark.usefixtures("others_are_asked_soon")
def test_broker_that_cannot_be_connected_to_costs_its_own_partitions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # The connect timeout is as long as the whole step.
    with BlackHole() as hole, TcpCluster(40) as cluster, cluster.client(**PATIENT) as client:
        specs = one_topic_each(cluster)
        cluster.elsewhere[7] = hole.address
        clock = ResponseClock(client)
        fetch_metadata = client.fetch_metadata

        def fetch_to_the_end(*arguments: Any) -> ClusterMetadata:
            """Let the time be over after the first question who leads that comes after all other responses."""
            found = fetch_metadata(*arguments)
            if clock.responses == 39:
                clock.sleep(60)
            return found

        monkeypatch.setattr(client, "fetch_metadata", fetch_to_the_end)
        with pytest.raises(DeadlineError) as caught:
            list_offsets(client, specs, deadline=Deadline(60_000, clock=clock, sleep=clock.sleep))
        assert "Looking up the offset of t7-0 (1 of 40 left)" in str(caught.value)
        # What was connected to is kept, and nobody was asked twice.
        asked = [seen.broker_id for seen in cluster.requests(ListOffsetsRequest)]
        assert sorted(asked) == [number for number in range(40) if number != 7]
        opened = cluster.connections
        del specs[TopicPartition("t7", 0)]
        began_at = time.monotonic()
        assert len(list_offsets(client, specs)) == 39
        assert cluster.connections == opened
        assert time.monotonic() - began_at < 5


@pytest.mark.usefixtures("others_are_asked_soon")
def test_partitions_of_a_broker_that_died_are_asked_of_their_new_leader() -> None:
    with BlackHole() as hole, TcpCluster(3) as cluster, cluster.client(**PATIENT) as client:
        specs = one_topic_each(cluster)
        cluster.elsewhere[1] = hole.address
        cluster.script(MetadataRequest, cluster.metadata, moved(cluster, "t1", leader=2))
        began_at = time.monotonic()
        assert list_offsets(client, specs) == ends_of(cluster)
        # The connect timeout is 60 s.
        assert time.monotonic() - began_at < 30
        assert len(cluster.requests(ListOffsetsRequest)) == 3


@pytest.mark.usefixtures("others_are_asked_soon")
def test_partitions_of_a_broker_that_fell_silent_are_asked_of_their_new_leader() -> None:
    with TcpCluster(3) as cluster, cluster.client(**PATIENT) as client:
        specs = one_topic_each(cluster)
        assert list_offsets(client, specs) == ends_of(cluster)
        cluster.script(ListOffsetsRequest, Silence, broker_id=1)
        cluster.script(MetadataRequest, moved(cluster, "t1", leader=2))
        began_at = time.monotonic()
        assert list_offsets(client, specs) == ends_of(cluster)
        # One answer may take 60 s.
        assert time.monotonic() - began_at < 30


def test_broker_that_stops_in_the_middle_of_a_response_holds_up_no_other() -> None:
    with TcpCluster(3) as cluster, cluster.client() as client:
        specs = one_topic_each(cluster)
        cluster.script(ListOffsetsRequest, Raw(b"\x00\x00\x00\x40\x00"), broker_id=0)
        with pytest.raises(DeadlineError, match=r"offset of t0-0 \(1 of 3 left\).*1 of 64 bytes had arrived"):
            list_offsets(client, specs, deadline=Deadline(1_500))
        asked = [seen.broker_id for seen in cluster.requests(ListOffsetsRequest)]
        assert asked.count(1) == asked.count(2) == 1


def test_response_that_comes_in_pieces_is_put_together() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        specs = one_topic_each(cluster)
        list_offsets(client, specs)
        real = cluster.list_offsets

        def in_pieces(request: Any) -> Any:
            cluster._open[-1].sendall(b"\x00")
            time.sleep(0.05)
            answer = real(request)
            body = bytes(answer.encode(version=request.API_VERSION))
            data = request.header.correlation_id.to_bytes(4, "big") + b"\x00" + body
            whole = len(data).to_bytes(4, "big") + data
            for position in range(1, len(whole) - 1):
                cluster._open[-1].sendall(whole[position : position + 1])
            return Raw(whole[-1:])

        cluster.script(ListOffsetsRequest, in_pieces)
        assert list_offsets(client, specs) == ends_of(cluster)


def test_partition_without_a_leader_holds_up_no_other() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        specs = one_topic_each(cluster)
        cluster.add_topic("u", leader=-1)
        specs[TopicPartition("u", 0)] = Latest()
        with pytest.raises(DeadlineError, match=r"offset of u-0 \(1 of 2 left\).*LEADER_NOT_AVAILABLE"):
            list_offsets(client, specs, deadline=Deadline(1_500))
        assert len(cluster.requests(ListOffsetsRequest)) == 1


def test_interrupted_look_up_leaves_neither_thread_nor_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with BlackHole() as hole, TcpCluster(3) as cluster, cluster.client() as client:
        specs = one_topic_each(cluster)
        cluster.elsewhere[1] = hole.address
        cluster.script(ListOffsetsRequest, Silence, broker_id=2)

        def interrupted(_: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(
            "pyspark_kafka._client.client.queries.offsets._LookUp._receive", lambda *_: interrupted(None)
        )
        with pytest.raises(KeyboardInterrupt):
            list_offsets(client, specs)
        assert all(not connection.in_flight for connection in client.connections.all())
