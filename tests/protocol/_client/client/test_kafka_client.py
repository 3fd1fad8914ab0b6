"""Bootstrap, metadata, leaders, connections and offset look-ups against scripted brokers."""

from __future__ import annotations

import socket
import uuid
from typing import Any

import pytest

from kit.fakes.scripts import Close, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.fixtures.wire import WireTrace
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import IsolationLevel, TopicPartition
from pyspark_kafka._base.offsets import AtTimestamp, Earliest, Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.leaders import find_leaders
from pyspark_kafka._client.client.cluster.metadata import PartitionMetadata
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting import retry
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest, ListOffsetsRequest, MetadataRequest
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.errors import AccessError, BrokerError, DeadlineError, TransportError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def leader_of(
    client: KafkaClient, topic_partition: TopicPartition, deadline: Deadline | None = None
) -> PartitionMetadata:
    return find_leaders(client, [topic_partition], deadline)[topic_partition]


def list_with_errors(cluster: TcpCluster, errors: dict[int, int]) -> Any:
    return lambda request: cluster.list_offsets(request, errors)


def test_bootstrap_server_that_responds_is_enough() -> None:
    with TcpCluster() as cluster:
        servers = (("127.0.0.1", free_port()), *cluster.bootstrap_servers)
        with KafkaClient(ConnectionOptions(servers, api_timeout_ms=20_000)) as client:
            assert client.fetch_metadata(()).cluster_id == "fake"


def test_unreachable_cluster_names_every_server_and_why_and_the_option() -> None:
    first, second = free_port(), free_port()
    options = ConnectionOptions((("127.0.0.1", first), ("127.0.0.1", second)), api_timeout_ms=1_500)
    with KafkaClient(options) as client, pytest.raises(TransportError) as caught:
        client.fetch_metadata(())
    text = str(caught.value)
    assert text.startswith("[BOOTSTRAP_FAILED] No server of option 'kafka.bootstrap.servers' could be used")
    for port in (first, second):
        assert f"127.0.0.1:{port}: [CONNECTION_FAILED]" in text
    assert "refused" in text
    assert "within 1500 ms" in text


def test_server_that_swallows_everything_leaves_time_for_the_next() -> None:
    with TcpCluster() as silent, TcpCluster() as cluster:
        silent.script(ApiVersionsRequest, Silence)
        servers = (*silent.bootstrap_servers, *cluster.bootstrap_servers)
        with KafkaClient(ConnectionOptions(servers, api_timeout_ms=5_000)) as client:
            assert client.fetch_metadata(()).cluster_id == "fake"


def test_listener_confusion_is_reported_before_the_whole_deadline_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "CLOSED_AT_ONCE_MS", 300)
    with TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, Close)
        with cluster.client(api_timeout_ms=60_000) as client, pytest.raises(TransportError) as caught:
            client.fetch_metadata(())
    assert caught.value.condition == "BOOTSTRAP_FAILED"
    assert "plaintext client on a TLS listener" in str(caught.value)
    assert not caught.value.retriable


def test_metadata_describes_brokers_topics_and_missing_topics() -> None:
    topic_id = uuid.uuid4()
    with TcpCluster(2, racks={1: "r1"}) as cluster, cluster.client() as client:
        cluster.add_topic("t", partitions=2, leader=1, topic_id=topic_id)
        found = client.fetch_metadata(["t", "missing"])
    assert {node.broker_id: node.rack for node in found.brokers.values()} == {0: None, 1: "r1"}
    assert found.topics["t"].topic_id == topic_id
    assert [(p.topic_partition, p.leader_id, p.leader_epoch) for p in found.topics["t"].partitions] == [
        (T0, 1, 0),
        (T1, 1, 0),
    ]
    assert found.topics["t"].error is None
    missing = found.topics["missing"].error
    assert missing is not None
    assert missing.condition == "UNKNOWN_TOPIC"
    assert "'missing'" in str(missing)


def test_metadata_of_all_topics_is_asked_for_with_none() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("a")
        cluster.add_topic("b")
        assert sorted(client.fetch_metadata().topics) == ["a", "b"]
        assert cluster.requests(MetadataRequest)[-1].request.topics is None


def test_topic_is_never_created_by_asking() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        client.fetch_metadata(["t"])
        assert cluster.requests(MetadataRequest)[-1].request.allow_auto_topic_creation is False


def test_metadata_is_asked_for_again_when_the_response_is_lost() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        client.fetch_metadata(())
        cluster.script(MetadataRequest, Close, cluster.metadata)
        assert client.fetch_metadata(()).cluster_id == "fake"


def test_step_without_a_response_ends_with_its_deadline_and_its_name() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        client.fetch_metadata(())
        cluster.script(MetadataRequest, Silence)
        with pytest.raises(DeadlineError, match="MetadataRequest did not finish within"):
            client.fetch_metadata((), Deadline(500))


def wire_addresses(cluster: TcpCluster) -> list[str]:
    return [f"{host}:{port}" for host, port in map(cluster.address, range(2))]


def test_leaders_come_from_memory_until_they_are_old() -> None:
    with TcpCluster() as cluster:
        cluster.add_topic("t")
        with cluster.client() as client:
            leader_of(client, T0)
            leader_of(client, T0)
            assert len(cluster.requests(MetadataRequest)) == 1
            client.forget_topic("t")
            leader_of(client, T0)
            assert len(cluster.requests(MetadataRequest)) == 2


def test_metadata_that_may_not_be_kept_is_used_once_it_was_asked_for() -> None:
    with TcpCluster() as cluster, cluster.client(metadata_max_age_ms=0) as client:
        cluster.add_topic("t")
        cluster.ends["t", 0] = (0, 10)
        assert list_offsets(client, {T0: Latest()}) == {T0: 10}


def test_election_is_waited_for() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t", leader=-1)

        def elected(request: Any) -> Any:
            cluster.leaders["t", 0] = (0, 5)
            return cluster.metadata(request)

        cluster.script(MetadataRequest, cluster.metadata, cluster.metadata, elected)
        leader = leader_of(client, T0)
        assert (leader.leader_id, leader.leader_epoch) == (0, 5)


def test_partition_that_stays_without_a_leader_is_named() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t", leader=-1)
        with pytest.raises(DeadlineError, match=r"Looking up the leader of t-0 .*LEADER_NOT_AVAILABLE \(5\)"):
            leader_of(client, T0, Deadline(1_500))


def test_topic_is_looked_for_again_when_it_was_created_a_moment_ago() -> None:
    with TcpCluster() as cluster, cluster.client() as client:

        def created(request: Any) -> Any:
            cluster.add_topic("t")
            return cluster.metadata(request)

        cluster.script(MetadataRequest, cluster.metadata, created)
        assert leader_of(client, T0).leader_id == 0


@pytest.mark.parametrize("partition", [0, 7])
def test_missing_topic_or_partition_is_an_error_after_some_looks(partition: int) -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        if partition:
            cluster.add_topic("t")
        with pytest.raises(BrokerError) as caught:
            leader_of(client, TopicPartition("t", partition))
    expected = "Topic 't' has no partition 7" if partition else "Topic 't' does not exist"
    assert str(caught.value).startswith(f"[UNKNOWN_TOPIC] {expected}, or this user may not describe it")
    assert caught.value.code == 3


def test_advertised_address_that_cannot_be_reached_is_guessed() -> None:
    dead = free_port()
    with TcpCluster() as cluster, cluster.client() as client:

        def advertise(request: Any) -> Any:
            answer = cluster.metadata(request)
            answer.brokers[0].port = dead
            return answer

        host, port = cluster.address(0)

        cluster.script(MetadataRequest, advertise)
        with pytest.raises(TransportError) as caught:
            client.connection_to(0)
    text = str(caught.value)
    assert text.startswith(
        f"[ADVERTISED_ADDRESS_UNREACHABLE] Broker 0 advertises the address 127.0.0.1:{dead}, which this machine cannot "
        f"reach, although {host}:{port} was reached and has named it. Broker 127.0.0.1:{dead} cannot be reached: "
    )
    assert "advertised.listeners" in text
    assert "(a guess)" in text


def test_broker_that_is_not_a_member_is_named_with_those_that_are() -> None:
    with (
        TcpCluster() as cluster,
        cluster.client() as client,
        pytest.raises(TransportError, match=r"\[BROKER_UNKNOWN\] Broker 9 .* members are 0 \(127.0.0.1:"),
    ):
        client.connection_to(9)


def test_borrowed_connection_is_not_shared_and_is_used_again() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        node = client.find_broker(0, client.deadline())
        first, second = (
            open_connection(node.host, node.port, client.options, client.deadline(), buffers=client.connections.buffers)
            for _ in range(2)
        )
        client.connections.give_back(0, first)
        assert client.connections.take_idle(0) is first
        assert client.connections.take_idle(0) is None
        second.send_request(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        client.connections.give_back(0, second)
        assert second.closed
        first.close()


def test_own_connection_that_the_broker_has_closed_is_replaced_before_a_request() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        first = client.connection_to(0, client.deadline())
        assert client.connection_to(0, client.deadline()) is first
        first.send_request(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        # With a request in flight it is the connection of that conversation.
        assert client.connection_to(0, client.deadline()) is first
        first.receive(client.deadline())
        cluster.drop_connections()
        assert first.readable(PATIENCE_S)
        second = client.connection_to(0, client.deadline())
        assert second is not first
        assert first.closed
        assert second.idle_and_alive


def test_offsets_of_many_partitions_take_one_request_a_broker(wire: WireTrace) -> None:
    with TcpCluster(2) as cluster, cluster.client() as client:
        cluster.add_topic("t", partitions=50)
        cluster.add_topic("u", partitions=50)
        for number in range(50):
            cluster.leaders["t", number] = (number % 2, 0)
            cluster.ends["t", number] = (number, 100 + number)
            cluster.ends["u", number] = (1, 2)
        specs = {TopicPartition(topic, number): Latest() for topic in "tu" for number in range(50)}
        found = list_offsets(client, specs)
        assert found == {tp: 100 + tp.partition if tp.topic == "t" else 2 for tp in specs}
        assert sorted(event.broker for event in wire.sent("ListOffsets")) == sorted(wire_addresses(cluster))
        assert sorted(event.partitions or 0 for event in wire.sent("ListOffsets")) == [25, 75]
        assert len(wire.sent("Metadata")) == 1


def test_each_kind_of_offset_and_the_isolation_level_are_carried() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t", partitions=3)
        cluster.ends["t", 0] = cluster.ends["t", 1] = (4, 9)
        t2 = TopicPartition("t", 2)
        found = list_offsets(
            client, {T0: Earliest(), T1: Latest(), t2: AtTimestamp(1234)}, IsolationLevel.READ_COMMITTED
        )
        # The scripted broker has no record at that time, so the partition is left out.
        assert found == {T0: 4, T1: 9}
        request = cluster.requests(ListOffsetsRequest)[0].request
        assert request.isolation_level == 1
        assert [p.timestamp for p in request.topics[0].partitions] == [-2, -1, 1234]


def test_moved_leader_is_followed_for_the_partitions_that_moved() -> None:
    with TcpCluster(2) as cluster, cluster.client() as client:
        cluster.add_topic("t", partitions=2)
        cluster.ends["t", 0], cluster.ends["t", 1] = (0, 10), (0, 20)
        client.fetch_metadata(["t"])
        cluster.leaders["t", 1] = (1, 1)
        cluster.script(ListOffsetsRequest, list_with_errors(cluster, {1: 6}), broker_id=0)
        assert list_offsets(client, {T0: Latest(), T1: Latest()}) == {T0: 10, T1: 20}
        asked = [
            (seen.broker_id, len(seen.request.topics[0].partitions)) for seen in cluster.requests(ListOffsetsRequest)
        ]
        assert asked == [(0, 2), (1, 1)]


def test_broker_is_asked_again_when_it_was_lost_before_it_responded() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t")
        cluster.ends["t", 0] = (0, 10)
        cluster.script(ListOffsetsRequest, Close, cluster.list_offsets)
        assert list_offsets(client, {T0: Latest()}) == {T0: 10}


def test_end_that_is_not_available_yet_is_asked_for_again() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t")
        cluster.ends["t", 0] = (0, 10)
        cluster.script(ListOffsetsRequest, list_with_errors(cluster, {0: 78}), cluster.list_offsets)
        assert list_offsets(client, {T0: Latest()}) == {T0: 10}


def test_refused_look_up_is_an_access_error_at_once() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t")
        cluster.script(ListOffsetsRequest, list_with_errors(cluster, {0: 29}))
        with pytest.raises(AccessError, match=r"Looking up an offset of t-0 at 127.0.0.1:\d+ failed"):
            list_offsets(client, {T0: Latest()})
        assert len(cluster.requests(ListOffsetsRequest)) == 1


def test_look_up_that_never_succeeds_ends_with_the_deadline_and_the_last_failure() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t")
        cluster.script(ListOffsetsRequest, list_with_errors(cluster, {0: 5}))
        with pytest.raises(DeadlineError, match=r"offset of t-0 \(1 of 1 left\).*LEADER_NOT_AVAILABLE"):
            list_offsets(client, {T0: Latest()}, deadline=Deadline(500))


def test_partition_is_asked_for_again_when_a_response_leaves_it_out() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t")
        cluster.ends["t", 0] = (0, 10)

        def empty(request: Any) -> Any:
            answer = cluster.list_offsets(request)
            answer.topics = []
            return answer

        cluster.script(ListOffsetsRequest, empty, cluster.list_offsets)
        assert list_offsets(client, {T0: Latest()}) == {T0: 10}


def test_broker_is_not_needed_for_no_partitions() -> None:
    with KafkaClient(ConnectionOptions((("127.0.0.1", 1),))) as client:
        assert list_offsets(client, {}) == {}


def test_repr_shows_servers_and_no_secret() -> None:
    client = KafkaClient(ConnectionOptions((("a", 1), ("b", 2)), client_id="alice"))
    assert repr(client) == "KafkaClient(a:1,b:2, PLAINTEXT)"
