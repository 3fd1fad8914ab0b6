"""A real broker that advertises an address where nobody can reach it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kit.administration import create_topic
from kit.reading import client_of
from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.testing import EmbeddedKafka


# A real broker, though not the shared one that the fixtures' marker is derived from.
@pytest.fixture(scope="module")
def free_port() -> Iterator[int]:
    """A port that is taken, so that no other program listens there meanwhile; nor does this one."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield int(sock.getsockname()[1])


@pytest.fixture(scope="module")
def broker(free_port: int) -> Iterator[EmbeddedKafka]:
    advertised = {"advertised.listeners": f"PLAINTEXT://localhost:{free_port}"}
    with EmbeddedKafka(properties=advertised) as kafka:
        yield kafka


def test_look_up_names_the_address_that_the_broker_advertises(broker: EmbeddedKafka, free_port: int) -> None:
    with client_of(broker.bootstrap_servers, api_timeout_ms=4_000) as client, pytest.raises(ConnectorError) as caught:
        create_topic(client, "orders")
    text = str(caught.value)
    assert f"Broker 1 advertises the address localhost:{free_port}, which this machine cannot reach" in text
    assert f"although {broker.bootstrap_servers} was reached and has named it" in text
    assert "Hint: If the broker runs, set its advertised.listeners" in text
