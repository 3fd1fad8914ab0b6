"""Errors about brokers that cannot be connected to: the guess at what is wrong with an advertised address."""

from __future__ import annotations

import pytest

from kit.texts import said
from pyspark_kafka._client.client.cluster.errors import explain_unreachable
from pyspark_kafka._client.client.cluster.metadata import BrokerNode
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.errors import TransportError

OPTIONS = ConnectionOptions((("kafka.example.com", 9092), ("10.0.0.6", 9092)))
BOOTSTRAP = ("kafka.example.com", 9092)


def failure(condition: str = "CONNECTION_FAILED") -> TransportError:
    return TransportError("It cannot be reached.", condition=condition, retriable=True)


def text_for(host: str, condition: str = "CONNECTION_FAILED", found_at: tuple[str, int] | None = BOOTSTRAP) -> str:
    return said(explain_unreachable(OPTIONS, BrokerNode(3, host, 9092), failure(condition), found_at))


def test_error_names_the_advertised_address_the_one_that_worked_and_the_setting() -> None:
    assert text_for("172.17.0.2") == (
        "[ADVERTISED_ADDRESS_UNREACHABLE] Broker 3 advertises the address 172.17.0.2:9092, which this machine cannot "
        "reach, although kafka.example.com:9092 was reached and has named it. It cannot be reached. Hint: If the "
        "broker runs, set its advertised.listeners to an address that the driver and all executors can reach, as they "
        "reach kafka.example.com:9092 (a guess)."
    )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_address_is_explained_when_the_server_was_elsewhere(host: str) -> None:
    assert f"{host} is the machine itself that connects to it: from elsewhere, no broker is there." in text_for(host)


def test_loopback_address_is_no_guess_when_the_server_was_on_this_machine_too() -> None:
    assert "is the machine itself" not in text_for("localhost", found_at=("127.0.0.1", 19092))


def test_unknown_name_is_explained_as_one_of_a_private_network() -> None:
    assert "The name broker-1 is not known here: it may be one of a private network" in text_for(
        "broker-1", "HOST_UNKNOWN"
    )


def test_all_bootstrap_servers_are_named_when_it_is_not_known_which_one_worked() -> None:
    assert "although kafka.example.com:9092,10.0.0.6:9092 was reached" in text_for("172.17.0.2", found_at=None)


@pytest.mark.parametrize(
    ("host", "condition"), [("172.17.0.2", "TLS_HANDSHAKE_FAILED"), ("kafka.example.com", "CONNECTION_FAILED")]
)
def test_other_failures_are_left_as_they_are(host: str, condition: str) -> None:
    error = failure(condition)
    assert explain_unreachable(OPTIONS, BrokerNode(3, host, 9092), error, BOOTSTRAP) is error
