"""Commit markers in their topic, against a real broker."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.client.cluster import KafkaClient
from pyspark_kafka.client.produce import IdempotentProducer
from pyspark_kafka.client.transactions import TransactionalId
from pyspark_kafka.errors import CorruptRecordsError, DeadlineError
from pyspark_kafka.options.connection import ConnectionOptions, ProducerOptions
from pyspark_kafka.sink.commit_marker import CommitMarker
from pyspark_kafka.sink.marker_topic import MarkerTopic
from support import Record, produce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import TopicMaker


@pytest.fixture
def client(bootstrap_servers: str) -> Iterator[KafkaClient]:
    host, _, port = bootstrap_servers.partition(":")
    with KafkaClient(ConnectionOptions(((host, int(port)),))) as client:
        yield client


def marker(sink: str, batch_id: int) -> CommitMarker:
    return CommitMarker(sink, "q", batch_id, "f")


def put(client: KafkaClient, topic: MarkerTopic, *markers: CommitMarker, commit: bool = True) -> None:
    """Write markers, all of one sink, in one transaction."""
    owner = TransactionalId(client, f"of-{markers[0].sink_id}", 60_000)
    transaction = owner.fence()
    where = topic.partition_of(markers[0].sink_id)
    owner.join(transaction, [where])
    with IdempotentProducer(client, ProducerOptions(), transaction=transaction) as producer:
        for each in markers:
            producer.send(where, topic.encode(each.sink_id, each), 1)
        producer.flush()
    owner.end(transaction, commit=commit)
    owner.fence()


def test_the_topic_is_made_once_and_compacted(client: KafkaClient) -> None:
    name = f"markers-{uuid.uuid4().hex[:8]}"
    for _ in range(2):
        MarkerTopic(client, name, 1_000).ensure()
    assert len(client.metadata([name]).topics[name].partitions) == 16
    assert MarkerTopic(client, name, 1_000).read("never-wrote") is None


def test_the_newest_committed_marker_of_the_sink_is_read(client: KafkaClient, make_topic: TopicMaker) -> None:
    # One partition, so that all sinks share it.
    topic = MarkerTopic(client, make_topic(), 10_000)
    put(client, topic, *(marker("one", batch) for batch in range(3)))
    put(client, topic, marker("two", 50))
    put(client, topic, marker("one", 3), commit=False)
    assert topic.read("one") == marker("one", 2)
    assert topic.read("two") == marker("two", 50)
    assert topic.read("three") is None


def test_a_marker_far_from_the_end_is_found(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    name = make_topic()
    topic = MarkerTopic(client, name, 10_000)
    put(client, topic, marker("one", 7))
    other = marker("other", 1).to_bytes()
    produce(bootstrap_servers, name, [Record(b"other", other, 0)] * 3_000)
    assert topic.read("one") == marker("one", 7)
    assert topic.read("nobody") is None


def test_of_several_jobs_under_one_key_the_marker_of_the_one_that_is_meant_is_read(
    client: KafkaClient, make_topic: TopicMaker
) -> None:
    topic = MarkerTopic(client, make_topic(), 10_000)
    put(client, topic, CommitMarker("jobs", "first", 0, "f"), CommitMarker("jobs", "second", 0, "f"))
    assert topic.read("jobs", "first") == CommitMarker("jobs", "first", 0, "f")
    assert topic.read("jobs", "second") == CommitMarker("jobs", "second", 0, "f")
    assert topic.read("jobs", "third") is None


def test_a_deleted_marker_is_none(client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str) -> None:
    name = make_topic()
    topic = MarkerTopic(client, name, 10_000)
    produce(bootstrap_servers, name, [Record(b"one", None, 0)])
    assert topic.read("one") is None


def test_what_is_no_marker_is_an_error(client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str) -> None:
    name = make_topic()
    produce(bootstrap_servers, name, [Record(b"one", b"nonsense", 0)])
    with pytest.raises(CorruptRecordsError, match=rf"COMMIT_MARKER_INVALID\] The record at {name}-0@0 is no commit"):
        MarkerTopic(client, name, 10_000).read("one")


def test_a_transaction_of_another_sink_is_waited_for_and_not_longer_than_is_said(
    client: KafkaClient, make_topic: TopicMaker
) -> None:
    topic = MarkerTopic(client, make_topic(), 300)
    put(client, topic, marker("one", 1))
    other = TransactionalId(client, "of-other", 60_000)
    transaction = other.fence()
    where = topic.partition_of("other")
    other.join(transaction, [where])
    with IdempotentProducer(client, ProducerOptions(), transaction=transaction) as producer:
        producer.send(where, topic.encode("other", marker("other", 1)), 1)
        producer.flush()
    with pytest.raises(DeadlineError, match=r"COMMIT_TOPIC_HELD\] Reading commit markers of .* within 300 ms"):
        topic.read("one")
    # Who only looks on does not wait.
    assert topic.glance(["one", "other"]) == {"one": marker("one", 1)}
    other.end(transaction, commit=True)
    assert MarkerTopic(client, topic.topic, 20_000).read("one") == marker("one", 1)


def test_the_newest_markers_of_many_sinks_are_found_in_all_partitions(
    client: KafkaClient, make_topic: TopicMaker
) -> None:
    topic = MarkerTopic(client, make_topic(3), 10_000)
    sinks = [f"sink-{number}" for number in range(6)]
    assert len({topic.partition_of(sink) for sink in sinks}) > 1
    for sink in sinks:
        put(client, topic, marker(sink, 1), marker(sink, 2))
    assert topic.glance([*sinks, "nobody"]) == {sink: marker(sink, 2) for sink in sinks}
    assert topic.glance([]) == {}
