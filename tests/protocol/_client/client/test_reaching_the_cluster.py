"""Whom a client asks when servers are gone, silent, or only half there."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.sasl import SaslHandshakeResponse

from kit.fakes.black_hole import BlackHole
from kit.fakes.clock import Clock
from kit.fakes.scripts import Close, Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import PATIENT
from kit.texts import said
from kit.waiting import PATIENCE_S
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster import bootstrap
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.leaders import find_leaders
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest, MetadataRequest, SaslHandshakeRequest
from pyspark_kafka._client.options import ConnectionOptions, ScramLogin, Secret
from pyspark_kafka.errors import AccessError, ConnectorError, DeadlineError, TransportError

T0 = TopicPartition("t", 0)

pytestmark = pytest.mark.usefixtures("no_dial_is_left")


def test_brokers_that_were_learned_are_asked_when_the_only_bootstrap_server_is_gone() -> None:
    with TcpCluster(3) as cluster, cluster.client() as client:
        cluster.add_topic("t", leader=1)
        cluster.ends["t", 0] = (0, 42)
        client.fetch_metadata(["t"])
        assert list_offsets(client, {T0: Latest()}) == {T0: 42}
        cluster.stop(0)
        client.forget_topic("t")
        assert list_offsets(client, {T0: Latest()}) == {T0: 42}
        assert sorted(client.fetch_metadata().topics) == ["t"]


def test_brokers_that_were_learned_are_connected_to_where_nothing_is_open() -> None:
    with TcpCluster(3) as cluster, cluster.client() as client:
        client.fetch_metadata(())
        cluster.stop(0)
        client.close()
        assert client.fetch_metadata(()).cluster_id == "fake"


def test_learned_broker_that_is_gone_leaves_the_bootstrap_servers_to_be_asked() -> None:
    with TcpCluster(2) as cluster, cluster.client() as client:
        client.fetch_metadata(())
        cluster.stop(1)
        client.close()
        assert client.fetch_metadata(()).cluster_id == "fake"


def test_error_does_not_speak_of_spelling_if_brokers_answered_before() -> None:
    with TcpCluster(2) as cluster, cluster.client(api_timeout_ms=1_500) as client:
        client.fetch_metadata(())
        ports = [cluster.address(broker_id)[1] for broker_id in (0, 1)]
        cluster.stop(0)
        cluster.stop(1)
        with pytest.raises(TransportError) as caught:
            client.fetch_metadata(())
    text = str(caught.value)
    assert text.startswith(
        "[BOOTSTRAP_FAILED] No server of option 'kafka.bootstrap.servers', and no broker learned from them, could be"
    )
    assert "Check 'kafka.bootstrap.servers'" not in text
    for port in ports:
        assert f"127.0.0.1:{port}: [CONNECTION_FAILED]" in text


def test_hint_about_the_bootstrap_servers_stands_once() -> None:
    options = ConnectionOptions((("nowhere.invalid", 9092),), api_timeout_ms=1_500)
    with KafkaClient(options) as client, pytest.raises(TransportError) as caught:
        client.fetch_metadata(())
    assert said(caught.value).partition(" Hint: ")[2] == (
        "Check 'kafka.bootstrap.servers'. The name must be spelled right, and this machine must be able to resolve it."
    )


def test_server_that_swallows_packets_delays_the_next_one_by_a_second() -> None:
    with BlackHole() as hole, TcpCluster() as cluster:
        servers = (hole.address, *cluster.bootstrap_servers)
        with KafkaClient(ConnectionOptions(servers, **PATIENT)) as client:
            began_at = time.monotonic()
            assert client.fetch_metadata(()).cluster_id == "fake"
            # A third of the whole deadline, or the connect timeout, would be 40 s and more.
            assert time.monotonic() - began_at < 20


def test_refused_credentials_are_reported_although_another_server_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[ConnectorError] = []

    def now() -> float:
        """Let the time be over when both servers have failed; an attempt that takes too long is repeated until then."""
        refused = [isinstance(error, AccessError) for error in failures]
        return time.monotonic() + 3_600 * (True in refused and False in refused)

    monkeypatch.setattr(bootstrap, "note_failure", failures.append)
    monkeypatch.setattr(bootstrap, "time", SimpleNamespace(monotonic=now))
    monkeypatch.setattr(bootstrap, "_HEAD_START_S", 0.1)
    with BlackHole() as hole, TcpCluster() as cluster:
        cluster.script(SaslHandshakeRequest, SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN"]))
        options = ConnectionOptions(
            (hole.address, *cluster.bootstrap_servers),
            security_protocol="SASL_PLAINTEXT",
            login=ScramLogin("alice", Secret("hunter2"), "SCRAM-SHA-256"),
            connect_timeout_ms=500,
            api_timeout_ms=120_000,
        )
        with KafkaClient(options) as client, pytest.raises(AccessError, match="UNSUPPORTED_SASL_MECHANISM"):
            client.fetch_metadata(())


def test_server_that_starts_is_tried_again_while_another_one_is_silent() -> None:
    with BlackHole() as hole, TcpCluster() as cluster:
        cluster.script(ApiVersionsRequest, Close, Close, cluster.api_versions)
        servers = (hole.address, *cluster.bootstrap_servers)
        with KafkaClient(ConnectionOptions(servers, **PATIENT)) as client:
            began_at = time.monotonic()
            assert client.fetch_metadata(()).cluster_id == "fake"
            assert time.monotonic() - began_at < 20


def test_another_broker_is_asked_when_one_is_silent() -> None:
    with TcpCluster(2) as cluster, cluster.client(**PATIENT) as client:
        client.fetch_metadata(())
        cluster.script(MetadataRequest, Silence, broker_id=0)
        began_at = time.monotonic()
        assert client.fetch_metadata(()).cluster_id == "fake"
        # Half of the deadline, which one answer may take, is 60 s.
        assert time.monotonic() - began_at < 20
        asked = [seen.broker_id for seen in cluster.requests(MetadataRequest)]
        assert asked == [0, 0, 1]
        # The next question goes to the one that answered.
        client.fetch_metadata(())
        assert [seen.broker_id for seen in cluster.requests(MetadataRequest)] == [0, 0, 1, 1]


def test_late_response_is_taken_if_nobody_else_can_be_asked() -> None:
    released = threading.Event()
    with TcpCluster() as cluster, cluster.client() as client:
        client.fetch_metadata(())

        def late(request: Any) -> Any:
            released.wait(PATIENCE_S)
            return cluster.metadata(request)

        cluster.script(MetadataRequest, late)
        threading.Timer(1.5, released.set).start()
        assert client.fetch_metadata(()).cluster_id == "fake"
        # The last of them on a new connection: the network may have forgotten the one that was there.
        assert len(cluster.requests(MetadataRequest)) == 3


def test_first_broker_is_heard_when_the_second_one_cannot_be_reached() -> None:
    released = threading.Event()
    with TcpCluster(2) as cluster, cluster.client(**PATIENT) as client:
        client.fetch_metadata(())
        cluster.stop(1)

        def late(request: Any) -> Any:
            released.wait(60)
            return cluster.metadata(request)

        cluster.script(MetadataRequest, late)
        threading.Timer(1.5, released.set).start()
        began_at = time.monotonic()
        assert client.fetch_metadata(()).cluster_id == "fake"
        assert time.monotonic() - began_at < 20


def test_metadata_without_brokers_is_not_believed() -> None:
    with TcpCluster() as cluster, cluster.client() as client:
        cluster.add_topic("t")

        def starting(request: Any) -> Any:
            answer = cluster.metadata(request)
            answer.brokers = []
            for topic in answer.topics:
                topic.error_code, topic.partitions = 3, []
            return answer

        cluster.script(MetadataRequest, starting, starting, cluster.metadata)
        assert client.fetch_metadata(["t"]).topics["t"].error is None
        cluster.script(MetadataRequest, starting)
        # Time passes in the pauses between attempts only, and each attempt has enough of it.
        clock = Clock()
        deadline = Deadline(60_000, clock=clock, sleep=lambda _: clock.sleep(15))
        with pytest.raises(DeadlineError, match=r"METADATA_WITHOUT_BROKERS.*knows of no brokers"):
            client.fetch_metadata(["t"], deadline)


@pytest.mark.parametrize(("highest", "expected"), [(8, -1), (9, 0)])
def test_epochs_of_leaders_are_trusted_from_version_9_on(highest: int, expected: int) -> None:
    with (
        TcpCluster(versions={MetadataRequest.API_KEY: (0, highest)}) as cluster,
        cluster.client() as client,
    ):
        cluster.add_topic("t")
        assert find_leaders(client, [T0])[T0].leader_epoch == expected


def test_lent_connection_is_lent_again_after_it_responded_for_a_silent_one() -> None:
    with TcpCluster(2) as cluster, cluster.client() as client:
        for number in range(2):
            cluster.add_topic(f"t{number}", leader=number)
        specs = {TopicPartition(f"t{number}", 0): Latest() for number in range(2)}
        list_offsets(client, specs)
        cluster.script(MetadataRequest, Silence, cluster.metadata, broker_id=0)
        client.fetch_metadata(())
        opened = cluster.connections
        list_offsets(client, specs)
        assert cluster.connections == opened
