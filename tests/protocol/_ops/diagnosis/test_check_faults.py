"""A check of clusters that a real broker cannot be made to show: addresses, silence, leaders, clocks."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

from kit.brokers.two_brokers import free_ports
from kit.fakes.black_hole import BlackHole
from kit.fakes.tcp_cluster import TcpCluster
from kit.waiting import PATIENCE_S
from pyspark_kafka import check
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.error_codes import ErrorCode
from pyspark_kafka._ops.diagnosis import Diagnosis, Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.context import Context


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster() as cluster:
        without_sasl(cluster)
        yield cluster


def without_sasl(cluster: TcpCluster) -> None:
    """Answer as a listener without SASL."""
    refusal = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    cluster.script(SaslHandshakeRequest, lambda _: refusal)


def options(cluster: TcpCluster, **more: str) -> dict[str, Any]:
    host, port = cluster.address(0)
    return {"kafka.bootstrap.servers": f"{host}:{port}", **more}


def failed(diagnosis: Diagnosis, step: str) -> Finding:
    (found,) = diagnosis.of(step, FindingStatus.FAILED)
    return found


def test_advertised_address_out_of_reach_is_named_with_the_setting(cluster: TcpCluster) -> None:
    (port,) = free_ports(1)
    cluster.elsewhere[0] = ("127.0.0.1", port)
    found = check(options(cluster), step_timeout_s=10)
    missing = failed(found, "advertised")
    assert f"advertises the address 127.0.0.1:{port}, which this machine cannot reach" in missing.text
    assert "Connection refused" in missing.text
    host, own = cluster.address(0)
    assert f"although {host}:{own} was reached and has named it" in missing.text
    assert "set its advertised.listeners to an address that the driver and all executors can reach" in missing.remedy
    assert found.of("record")[0].text == "Not judged: no broker is in reach by the address that it advertises."


def test_advertised_name_that_cannot_be_resolved_is_out_of_reach_too(cluster: TcpCluster) -> None:
    cluster.elsewhere[0] = ("kafka-0.invalid", 9092)
    missing = failed(check(options(cluster), step_timeout_s=5), "advertised")
    assert "kafka-0.invalid:9092" in missing.text
    assert missing.facts["advertised"] == "kafka-0.invalid:9092"


def test_advertised_address_that_swallows_packets_ends_with_the_time_of_a_step(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(context: Context) -> Deadline:
        """Limit the steps after the one that finds the brokers: those before it must succeed."""
        return context.deadline.within(context.step_ms if context.metadata is None else 500)

    monkeypatch.setattr(Context, "step", step)
    began = time.monotonic()
    with BlackHole() as hole:
        host, port = cluster.elsewhere[0] = hole.address
        missing = failed(check(options(cluster), step_timeout_s=30), "advertised")
    assert time.monotonic() - began < 20
    assert "advertised.listeners" in missing.remedy
    assert missing.facts["advertised"] == f"{host}:{port}"


def test_one_broker_out_of_reach_is_a_failure_beside_those_in_reach() -> None:
    with TcpCluster(count=2) as cluster:
        without_sasl(cluster)
        (port,) = free_ports(1)
        cluster.elsewhere[1] = ("127.0.0.1", port)
        found = check(options(cluster), step_timeout_s=10)
    assert failed(found, "advertised").facts["broker_id"] == 1
    assert found.of("advertised", FindingStatus.OK)[0].text.startswith(
        "1 broker is in reach by the advertised address: 0 ("
    )


def test_address_that_swallows_packets_ends_with_the_time_of_a_step() -> None:
    with BlackHole() as hole:
        began = time.monotonic()
        host, port = hole.address
        found = check({"bootstrap.servers": f"{host}:{port}"}, step_timeout_s=0.5)
    assert time.monotonic() - began < 9
    late = failed(found, "tcp")
    assert "no response in" in late.text
    assert "a firewall, a security group or a missing route" in late.remedy


@contextmanager
def strange_server(*, closes: bool) -> Iterator[str]:
    """A server that accepts connections, and closes them or never reads from them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    accepted = listener.accept()[0]
                except OSError:
                    return
                if closes:
                    accepted.close()
                else:
                    held.append(accepted)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=PATIENCE_S)
            for each in held:
                each.close()


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
@pytest.mark.parametrize("closes", [True, False], ids=["closing", "silent"])
def test_server_that_speaks_nothing_is_no_listener_of_kafka(closes: bool, protocol: str) -> None:
    with strange_server(closes=closes) as address:
        found = check({"bootstrap.servers": address, "security.protocol": protocol}, step_timeout_s=1)
    nothing = failed(found, "tls")
    assert "speaks neither Kafka's protocol nor TLS" in nothing.text
    assert "Name the port of a Kafka listener" in nothing.remedy
    assert nothing.facts["listener"] is None


def test_partition_without_a_leader_is_a_failure(cluster: TcpCluster) -> None:
    cluster.topic_ids["orders"] = uuid.uuid4()
    cluster.leaders |= {("orders", 0): (-1, 3), ("orders", 1): (0, 3)}
    offline = failed(check(options(cluster, subscribe="orders"), step_timeout_s=10), "topics")
    assert offline.facts["offline"] == [0]
    assert offline.text.endswith("without a leader: 0.")


def test_service_without_groups_and_cluster_rights_is_unknown_there_and_fine_elsewhere(cluster: TcpCluster) -> None:
    cluster.add_topic("orders")
    found = check(options(cluster, subscribe="orders"), step_timeout_s=10)
    (told,) = found.of("rights", FindingStatus.OK)
    assert "continuous, exactly once: not known" in told.text
    assert found.of("rights", FindingStatus.FAILED)[0].facts["missing"] == ["READ on topic 'orders'"]
