"""Errors about topics that do not exist."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kit.texts import said
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.missing_topics import cluster_text, explain_missing_topic, find_nearest_topic
from pyspark_kafka._client.options import ConnectionOptions, ProducerOptions
from pyspark_kafka.errors import DeliveryError
from pyspark_kafka.testing import EmbeddedKafka


# Of the session, as the broker is: a process of the run may come to this module twice, and topics are created once.
@pytest.fixture(scope="session")
def servers(kafka: EmbeddedKafka) -> tuple[tuple[str, int], ...]:
    for topic in ("customers", "customers-archive", "Payments"):
        kafka.create_topic(topic)
    host, port = kafka.bootstrap_servers.split(":")
    return ((host, int(port)),)


@pytest.fixture
def client(servers: tuple[tuple[str, int], ...]) -> Iterator[KafkaClient]:
    with KafkaClient(ConnectionOptions(servers)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("custmers", "customers"), ("payments", "Payments"), ("customers-archiv", "customers-archive"), ("xyzzy", None)],
)
def test_nearest_topic_is_found(client: KafkaClient, asked: str, meant: str | None) -> None:
    assert find_nearest_topic(client, asked) == meant


def test_nearest_topic_is_never_the_topic_itself(client: KafkaClient) -> None:
    # It may have been made a moment ago.
    assert find_nearest_topic(client, "customers") is None


def test_error_names_the_cluster_and_the_topic_that_was_perhaps_meant(
    client: KafkaClient, servers: tuple[tuple[str, int], ...]
) -> None:
    ((host, port),) = servers
    assert said(explain_missing_topic(client, "custmers")) == (
        f"[UNKNOWN_TOPIC] Topic 'custmers' does not exist in the cluster of {host}:{port}, or this user may not "
        "describe it: the brokers answered UNKNOWN_TOPIC_OR_PARTITION (3). Nothing was read or written. Hint: Did you "
        "mean 'customers'? Otherwise check the spelling in option 'subscribe', 'assign' or 'topic'; create the topic "
        "first; a topic made a moment ago is known to all brokers after some seconds."
    )


def test_cluster_of_many_servers_is_named_by_the_first_ones() -> None:
    many = tuple((f"b{number}", 9092) for number in range(9))
    assert cluster_text(ConnectionOptions(many)) == "the cluster of b0:9092, b1:9092, b2:9092, …"


def test_nearest_topic_is_none_when_the_names_cannot_be_fetched() -> None:
    with KafkaClient(ConnectionOptions((("127.0.0.1", 1),), api_timeout_ms=500)) as unreachable:
        assert find_nearest_topic(unreachable, "customers") is None


def test_write_warns_that_it_waits_for_a_topic(client: KafkaClient, caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer(client, ProducerOptions(), topic_timeout_ms=2_000)
    caplog.set_level(logging.WARNING)
    with pytest.raises(DeliveryError) as caught:
        producer.partition_count("custmers")
    text = str(caught.value)
    cluster = cluster_text(client.options)
    assert f"Writing to topic 'custmers' failed: it does not exist in {cluster}, or this user may not" in text
    assert "Hint: Did you mean 'customers'? If not: Create the topic, or correct option 'topic'" in text
    (waiting,) = [message for message in caplog.messages if "is waited for" in message]
    assert waiting.startswith(f"Topic 'custmers' does not exist in {cluster}, or this user may not describe it. ")
    assert "2000 ms in all (option 'kafka.max.block.ms')" in waiting
