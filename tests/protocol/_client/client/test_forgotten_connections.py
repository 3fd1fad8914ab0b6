"""Idle connections that a firewall or load balancer has forgotten: what is sent vanishes, new connections work.

The idle times are shortened; the second until a silent connection is doubted is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from kit.fakes.memory_cluster import batch_of
from kit.fakes.tcp_cluster import TcpCluster
from kit.network.changes import lost
from kit.network.proxy import Proxies, Proxy
from kit.network.wire import Drip, Wire
from kit.reading import client_of, read_range
from kit.waiting import eventually
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.net import connection, idleness
from pyspark_kafka._client.client.produce.delivery import loop
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.transactions.coordinator import find_coordinator
from pyspark_kafka._client.options import ProducerOptions

T0 = TopicPartition("t", 0)
# The default of every timeout that would end the silence otherwise is 10 s or more.
SOON_S = 6.0


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """A broker with some records."""
    with TcpCluster() as made:
        made.add_topic("t")
        made.logs["t", 0].append(bytes(batch_of(b"a")))
        yield made


@pytest.fixture
def proxy(cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The network before it."""
    monkeypatch.setattr(idleness, "IDLE_TIMES", idleness.IdleTimes())
    monkeypatch.setattr(connection, "IDLE_TIMES", idleness.IDLE_TIMES)
    with Proxies() as proxies:
        (made,) = proxies.before(cluster.address(0))
        yield made


@pytest.fixture
def client(proxy: Proxy) -> Iterator[KafkaClient]:
    """A client that knows the network."""
    with client_of(proxy.address) as made:
        yield made


@pytest.fixture
def quickly_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each pause count as an idle time."""
    for module in (idleness, connection, loop):
        monkeypatch.setattr(module, "IDLE_S", 0.0)


def metadata(client: KafkaClient) -> None:
    client.fetch_metadata(["t"])


def offsets(client: KafkaClient) -> None:
    assert list_offsets(client, {T0: Latest()}) == {T0: 1}


def fetch(client: KafkaClient) -> None:
    assert [row["value"] for rows in read_range(client, OffsetRange(T0, 0, 1)) for row in rows] == [b"a"]


def look_up_coordinator(client: KafkaClient) -> None:
    find_coordinator(client, "x", client.deadline())


def take_shared(client: KafkaClient) -> None:
    client.connection_to(0).call(MetadataRequest(topics=[]), client.deadline())


def take_any(client: KafkaClient) -> None:
    client.call(MetadataRequest(topics=[]))


def seconds_of(action: Callable[[KafkaClient], None], client: KafkaClient) -> float:
    began = time.monotonic()
    action(client)
    return time.monotonic() - began


@pytest.mark.parametrize("action", [metadata, offsets, fetch, look_up_coordinator])
def test_connection_that_was_lent_before_is_replaced_when_it_is_silent(
    client: KafkaClient, proxy: Proxy, action: Callable[[KafkaClient], None]
) -> None:
    action(client)
    proxy.forget()
    assert seconds_of(action, client) < SOON_S


@pytest.mark.parametrize("action", [metadata, offsets, fetch, look_up_coordinator, take_shared, take_any])
@pytest.mark.usefixtures("quickly_idle")
def test_connection_that_was_idle_is_replaced_when_it_is_silent(
    client: KafkaClient, proxy: Proxy, action: Callable[[KafkaClient], None]
) -> None:
    action(client)
    proxy.forget()
    assert seconds_of(action, client) < SOON_S


@pytest.mark.usefixtures("quickly_idle")
def test_one_silent_connection_is_waited_for_and_no_other_of_the_same_idle_time(
    client: KafkaClient, proxy: Proxy
) -> None:
    """What a trigger does after some idle minutes: 1 s for all of it."""
    actions = (metadata, offsets, fetch, take_shared, look_up_coordinator)

    def trigger(client: KafkaClient) -> None:
        for action in actions:
            action(client)

    trigger(client)
    with client_of(proxy.address) as other:
        trigger(other)
        proxy.forget()
        took = seconds_of(trigger, client)
        assert 0.9 < took < SOON_S
        accepted = proxy.accepted
        assert seconds_of(trigger, other) < SOON_S
        # Of the other client none was tried.
        assert proxy.accepted > accepted


def test_connection_beyond_its_idle_time_is_not_used(cluster: TcpCluster, proxy: Proxy) -> None:
    with client_of(proxy.address, max_idle_ms=1) as client:
        for action in (metadata, offsets, fetch, take_shared):
            action(client)
            time.sleep(0.01)
            proxy.forget()
            # A forgotten connection would take a second.
            sent = len(cluster.seen)
            action(client)
            assert len(cluster.seen) > sent


def write(client: KafkaClient, *values: bytes, **options: object) -> Producer:
    producer = Producer(client, ProducerOptions(**options))  # type: ignore[arg-type]
    for value in values:
        producer.send_batch(T0, batch_of(value), 1)
    producer.flush()
    return producer


def test_write_after_an_idle_time_is_sent_again_under_the_same_sequences(
    cluster: TcpCluster, client: KafkaClient, proxy: Proxy
) -> None:
    with write(client, b"b") as producer:
        producer.close()
        proxy.forget()
        producer.reopen(client)
        began = time.monotonic()
        producer.send_batch(T0, batch_of(b"c"), 1)
        producer.flush()
        assert time.monotonic() - began < SOON_S
    assert cluster.logs["t", 0].values() == [b"a", b"b", b"c"]


def test_write_whose_response_was_lost_is_not_stored_twice(
    cluster: TcpCluster, client: KafkaClient, proxy: Proxy
) -> None:
    """The broker has it: the connection was forgotten between the request and the response."""
    with write(client, b"b") as producer:
        producer.close()
        producer.reopen(client)
        proxy.set_wire(Wire(changes=(lost("Produce"),)))
        producer.send_batch(T0, batch_of(b"c"), 1)
        producer.flush()
    assert len(cluster.requests(ProduceRequest)) == 3
    assert cluster.logs["t", 0].values() == [b"a", b"b", b"c"]


@pytest.mark.parametrize("acks", [1, 0])
@pytest.mark.usefixtures("quickly_idle")
def test_write_without_an_identity_is_sent_once_and_only_on_a_connection_that_lives(
    cluster: TcpCluster, client: KafkaClient, proxy: Proxy, acks: int
) -> None:
    with write(client, b"b", idempotence=False, acks=acks) as producer:
        eventually(lambda: len(cluster.logs["t", 0].values()) == 2)
        proxy.forget()
        producer.send_batch(T0, batch_of(b"c"), 1)
        producer.flush()
    eventually(lambda: len(cluster.logs["t", 0].values()) == 3)
    assert cluster.logs["t", 0].values() == [b"a", b"b", b"c"]
    assert len(cluster.requests(ProduceRequest)) == 2
    assert cluster.requests(InitProducerIdRequest) == []


@pytest.mark.usefixtures("quickly_idle")
def test_response_that_has_begun_is_no_silence(cluster: TcpCluster, client: KafkaClient, proxy: Proxy) -> None:
    offsets(client)
    proxy.set_wire(Wire(drip=Drip(8, 0.2)))
    asked = len(cluster.requests(ListOffsetsRequest))
    offsets(client)
    assert len(cluster.requests(ListOffsetsRequest)) == asked + 1
