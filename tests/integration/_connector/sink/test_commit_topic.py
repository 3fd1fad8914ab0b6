"""Commit markers in their topic, against a real broker."""

from __future__ import annotations

import json
import logging
import uuid

import pytest

from kit.administration import create_partitions
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.admin import topics as admin
from pyspark_kafka._client.client.admin.topics import NewTopic
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.cluster.metadata import ClusterMetadata, TopicMetadata
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ProducerOptions
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._connector.sink.driver import commit_topic
from pyspark_kafka._connector.sink.driver.commit_topic import CommitTopic
from pyspark_kafka._connector.sink.driver.marker_reader import MarkerReader
from pyspark_kafka.errors import BrokerError, CorruptRecordsError, DeadlineError


def marker(sink: str, batch_id: int) -> CommitMarker:
    return CommitMarker(sink, "q", batch_id, "f")


def put(client: KafkaClient, topic: CommitTopic, *markers: CommitMarker, commit: bool = True) -> None:
    """Write markers, all of one sink, in one transaction."""
    owner = TransactionalId(client, f"of-{markers[0].sink_id}", 60_000)
    transaction = owner.fence()
    where = topic.partition_of(markers[0].sink_id)
    owner.join(transaction, [where])
    with Producer(client, ProducerOptions(), transaction=transaction) as producer:
        for each in markers:
            producer.send_batch(where, topic.encode(each.sink_id, each), 1)
        producer.flush()
    owner.end(transaction, commit=commit)
    owner.fence()


def test_commit_topic_is_created_once_and_compacted(client: KafkaClient) -> None:
    name = f"markers-{uuid.uuid4().hex[:8]}"
    for _ in range(2):
        CommitTopic(client, name).ensure()
    assert len(client.fetch_metadata([name]).topics[name].partitions) == 16
    assert MarkerReader(client, CommitTopic(client, name), 10_000).read("never-wrote") is None


def test_the_newest_committed_marker_of_the_sink_is_read(client: KafkaClient, make_topic: TopicMaker) -> None:
    # One partition, so that all sinks share it.
    topic = CommitTopic(client, make_topic())
    reader = MarkerReader(client, topic, 10_000)
    put(client, topic, *(marker("one", batch) for batch in range(3)))
    put(client, topic, marker("two", 50))
    put(client, topic, marker("one", 3), commit=False)
    assert reader.read("one") == marker("one", 2)
    assert reader.read("two") == marker("two", 50)
    assert reader.read("three") is None


def test_a_marker_far_from_the_end_is_found(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    name = make_topic()
    topic = CommitTopic(client, name)
    reader = MarkerReader(client, topic, 10_000)
    put(client, topic, marker("one", 7))
    other = marker("other", 1).to_bytes()
    produce(bootstrap_servers, name, [Record(b"other", other, 0)] * 3_000)
    assert reader.read("one") == marker("one", 7)
    assert reader.read("nobody") is None


def test_reader_takes_the_marker_of_its_own_job_if_several_share_a_key(
    client: KafkaClient, make_topic: TopicMaker
) -> None:
    topic = CommitTopic(client, make_topic())
    reader = MarkerReader(client, topic, 10_000)
    put(client, topic, CommitMarker("jobs", "first", 0, "f"), CommitMarker("jobs", "second", 0, "f"))
    assert reader.read("jobs", "first") == CommitMarker("jobs", "first", 0, "f")
    assert reader.read("jobs", "second") == CommitMarker("jobs", "second", 0, "f")
    assert reader.read("jobs", "third") is None


def test_a_deleted_marker_is_none(client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str) -> None:
    name = make_topic()
    topic = CommitTopic(client, name)
    reader = MarkerReader(client, topic, 10_000)
    produce(bootstrap_servers, name, [Record(b"one", None, 0)])
    assert reader.read("one") is None


def test_record_that_is_no_marker_is_an_error(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    name = make_topic()
    produce(bootstrap_servers, name, [Record(b"one", b"nonsense", 0)])
    with pytest.raises(CorruptRecordsError, match=rf"COMMIT_MARKER_INVALID\] The record at {name}-0@0 is not a commit"):
        MarkerReader(client, CommitTopic(client, name), 10_000).read("one")


def test_a_transaction_of_another_sink_is_waited_for_and_not_longer_than_is_said(
    client: KafkaClient, make_topic: TopicMaker
) -> None:
    topic = CommitTopic(client, make_topic())
    reader = MarkerReader(client, topic, 1_500)
    put(client, topic, marker("one", 1))
    other = TransactionalId(client, "of-other", 60_000)
    transaction = other.fence()
    where = topic.partition_of("other")
    other.join(transaction, [where])
    with Producer(client, ProducerOptions(), transaction=transaction) as producer:
        producer.send_batch(where, topic.encode("other", marker("other", 1)), 1)
        producer.flush()
    with pytest.raises(DeadlineError, match=r"COMMIT_TOPIC_HELD\] Reading commit markers of .* within 1500 ms"):
        reader.read("one")
    # Who only looks on does not wait.
    assert reader.read_newest(["one", "other"]) == {"one": marker("one", 1)}
    other.end(transaction, commit=True)
    assert MarkerReader(client, CommitTopic(client, topic.name), 20_000).read("one") == marker("one", 1)


def test_the_newest_markers_of_many_sinks_are_found_in_all_partitions(
    client: KafkaClient, make_topic: TopicMaker
) -> None:
    topic = CommitTopic(client, make_topic(3))
    reader = MarkerReader(client, topic, 10_000)
    sinks = [f"sink-{number}" for number in range(6)]
    assert len({topic.partition_of(sink) for sink in sinks}) > 1
    for sink in sinks:
        put(client, topic, marker(sink, 1), marker(sink, 2))
    assert reader.read_newest([*sinks, "nobody"]) == {sink: marker(sink, 2) for sink in sinks}
    assert reader.read_newest([]) == {}


def test_markers_are_found_after_partitions_were_added(client: KafkaClient, make_topic: TopicMaker) -> None:
    name = make_topic(partitions=2)
    sinks = [f"sink-{number}" for number in range(8)]
    for sink in sinks:
        put(client, CommitTopic(client, name), marker(sink, 1))
    for count in (3, 5):
        create_partitions(client, {name: count})
        topic = CommitTopic(client, name)
        reader = MarkerReader(client, topic, 10_000)
        assert [reader.read(sink) for sink in sinks] == [marker(sink, count - 2) for sink in sinks]
        assert reader.read_newest(sinks) == {sink: marker(sink, count - 2) for sink in sinks}
        for sink in sinks:
            # Where a sink's older markers are in another partition the newer one counts.
            put(client, topic, marker(sink, count), marker(sink, {3: 3, 5: 6}[count]))
        topic = CommitTopic(client, name)
        reader = MarkerReader(client, topic, 10_000)
        assert [reader.read(sink) for sink in sinks] == [marker(sink, {3: 3, 5: 6}[count]) for sink in sinks]


def test_a_marker_without_the_number_of_partitions_is_found_and_the_newest_batch_counts(
    client: KafkaClient, make_topic: TopicMaker, bootstrap_servers: str
) -> None:
    name = make_topic(partitions=3)
    for partition, batch in ((0, 4), (1, 9), (2, 6)):
        value = json.loads(marker("one", batch).to_bytes())
        del value["partitions"]
        produce(bootstrap_servers, name, [Record(b"one", json.dumps(value).encode(), partition)])
    assert MarkerReader(client, CommitTopic(client, name), 10_000).read("one") == marker("one", 9)


def test_look_at_the_newest_marker_parses_it_alone_however_many_there_are(
    client: KafkaClient, make_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = CommitTopic(client, make_topic())
    put(client, topic, *(marker("one", batch) for batch in range(30)))
    parsed = []
    real = CommitMarker.from_bytes

    def counted(value: bytes, where: str) -> CommitMarker:
        parsed.append(real(value, where))
        return parsed[-1]

    monkeypatch.setattr(CommitMarker, "from_bytes", counted)
    assert MarkerReader(client, topic, 10_000).read("one") == marker("one", 29)
    assert parsed == [marker("one", 29)]


def test_markers_on_another_broker_are_found_before_the_commit(client: KafkaClient, make_topic: TopicMaker) -> None:
    name = make_topic()
    topic = CommitTopic(client, name)
    reader = MarkerReader(client, topic, 10_000)
    put(client, topic, marker("one", 1))
    where = topic.partition_of("one")
    # As a broker reads that was cut off before the marker was written.
    stale = MarkerReader(client, CommitTopic(client, name), 10_000)
    assert stale.read("two") is None
    put(client, topic, marker("two", 7))
    end = list_offsets(client, {where: Latest()})[where]
    assert stale.read_since("two", None, end) == marker("two", 7)
    assert stale.read_since("three", None, end) is None
    # Nothing lies between: nothing is read.
    assert reader.read("two") == marker("two", 7)
    assert reader.read_since("two", None, end) is None
    # Less than was seen is another log.
    assert reader.read_since("one", None, end - 1) == marker("one", 1)


def test_a_topic_of_someone_else_that_deletes_markers_is_warned_of(
    client: KafkaClient, make_topic: TopicMaker, caplog: pytest.LogCaptureFixture
) -> None:
    deleting, compacted = make_topic(), make_topic(config={"cleanup.policy": "compact"})

    def said() -> list[logging.LogRecord]:
        # The client may say that a busy broker is waited for.
        return [record for record in caplog.records if record.name.startswith("pyspark_kafka._connector.sink")]

    CommitTopic(client, compacted).check_policy()
    assert not said()
    CommitTopic(client, deleting).check_policy()
    (record,) = said()
    assert record.levelname == "WARNING"
    assert f"Commit topic '{deleting}' has cleanup.policy=delete" in record.getMessage()


def test_commit_topic_that_another_query_has_just_created_is_waited_for(
    client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"markers-{uuid.uuid4().hex[:8]}"
    metadata, answers = client.fetch_metadata, [True] * 3

    def lagging(topics: list[str], *arguments: object) -> ClusterMetadata:
        found = metadata(topics, *arguments)  # type: ignore[arg-type]
        if topics == [name] and answers:
            answers.pop()
            return ClusterMetadata(found.brokers, {name: TopicMetadata(name, partitions=(), error_code=3)})
        return found

    def faster(other: KafkaClient, topics: list[NewTopic]) -> None:
        admin.create_topics(other, topics)
        # And once more, as the one that comes second.
        admin.create_topics(other, topics)

    monkeypatch.setattr(commit_topic, "create_topics", faster)
    monkeypatch.setattr(client, "fetch_metadata", lagging)
    topic = CommitTopic(client, name)
    topic.ensure()
    assert topic.partition_of("one").topic == name


def test_the_topic_gets_as_many_replicas_as_kafkas_own(client: KafkaClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def create(_: KafkaClient, topics: list[NewTopic]) -> None:
        asked.append(topics[0].replication_factor)
        if len(asked) == 1:
            raise BrokerError("refused", code=38, condition="INVALID_REPLICATION_FACTOR")
        admin.create_topics(client, topics)

    monkeypatch.setattr(commit_topic, "create_topics", create)
    CommitTopic(client, f"markers-{uuid.uuid4().hex[:8]}").ensure()
    # This cluster has one broker; and where the number is refused the brokers' own is taken.
    assert asked == [1, -1]
