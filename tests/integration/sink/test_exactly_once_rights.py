"""The rights that an exactly-once write needs, on a real broker that grants them one by one."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, KafkaAdminClient, ResourcePattern, ResourceType

from kit.brokers.guarded import PASSWORD
from kit.independent_client import await_committed, consume_committed
from kit.waiting import eventually
from pyspark_kafka.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.connector import PhysicalWriteInfo, SourceOffsetsWriter
from pyspark_kafka.errors import AccessError
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.offsets import KafkaSourceOffset
from pyspark_kafka.options import ConnectionOptions, ExactlyOnceOptions, PlainLogin, Secret, WriteOptions
from pyspark_kafka.records import encode
from pyspark_kafka.sink.columns import Column, find_sink_columns
from pyspark_kafka.sink.commit_marker import CommitMarker, MarkerFinding
from pyspark_kafka.sink.driver.publisher import Publisher
from pyspark_kafka.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka.sink.executor.outbox import Chunk, PreparedBatch
from pyspark_kafka.source.executor.partition_offset import KafkaSourcePartitionOffset

if TYPE_CHECKING:
    from pathlib import Path

    from kit.rights_in_use import Guarded
    from pyspark_kafka.testing import EmbeddedKafka


class GuardedBroker:
    """A broker where who has no password may do all, and alice what she is granted."""

    def __init__(self, kafka: EmbeddedKafka, sasl_port: int) -> None:
        self.kafka = kafka
        self.alice = ConnectionOptions(
            (("127.0.0.1", sasl_port),),
            security_protocol="SASL_PLAINTEXT",
            login=PlainLogin("alice", Secret(PASSWORD)),
        )

    def grant(self, kind: ResourceType, name: str, *operations: ACLOperation) -> None:
        allowed = ACLPermissionType.ALLOW
        admin: Any = KafkaAdminClient(bootstrap_servers=self.kafka.bootstrap_servers)
        try:
            pattern = ResourcePattern(kind, name)
            acls = [ACL("User:alice", "*", operation, allowed, pattern) for operation in operations]
            admin.create_acls(acls)
            # What a broker lists it also applies, which may be later than the answer.
            eventually(lambda: all(admin.describe_acls(acl)[0] for acl in acls))
        finally:
            admin.close()


@pytest.fixture
def broker(guarded: Guarded) -> GuardedBroker:
    return GuardedBroker(guarded.kafka, int(guarded.kafka.address("SASL_PLAINTEXT").rpartition(":")[2]))


def publish(broker: GuardedBroker, sink: str, topic: str, commits: str) -> MarkerFinding:
    data = encode(pa.RecordBatch.from_pydict({"value": [b"v"]}))
    prepared = Chunk((PreparedBatch(TopicPartition(topic, 0), len(data), 1),), data)
    with KafkaClient(broker.alice) as client:
        settings = ExactlyOnceOptions(commit_topic=commits)
        publisher = Publisher(client, WriteOptions(broker.alice), settings, sink, None)
        return publisher.publish(CommitMarker(sink, "q", 0, "f"), [prepared])


def test_each_missing_right_is_named_and_with_all_of_them_a_batch_is_written(broker: GuardedBroker) -> None:
    run = uuid.uuid4().hex[:8]
    sink, topic, commits = f"sink-{run}", f"out-{run}", f"commits-{run}"
    broker.kafka.create_topic(topic)
    with pytest.raises(AccessError, match=rf"COMMIT_TOPIC_UNUSABLE\] The topic '{commits}'.*or grant Create as well"):
        publish(broker, sink, topic, commits)
    broker.kafka.create_topic(commits, config={"cleanup.policy": "compact"})
    broker.grant(ResourceType.TOPIC, commits, ACLOperation.READ, ACLOperation.WRITE)
    with pytest.raises(
        AccessError, match=rf"TRANSACTIONAL_ID_AUTHORIZATION_FAILED\].*'{sink}'.*--transactional-id {sink}`"
    ):
        publish(broker, sink, topic, commits)
    broker.grant(ResourceType.TRANSACTIONAL_ID, sink, ACLOperation.WRITE, ACLOperation.DESCRIBE)
    with pytest.raises(AccessError, match=rf"TOPIC_AUTHORIZATION_FAILED\].*{topic}"):
        publish(broker, sink, topic, commits)
    assert consume_committed(broker.kafka.bootstrap_servers, topic) == []
    broker.grant(ResourceType.TOPIC, topic, ACLOperation.WRITE)
    assert publish(broker, sink, topic, commits) is MarkerFinding.NOT_COMMITTED
    assert publish(broker, sink, topic, commits) is MarkerFinding.COMMITTED
    await_committed(broker.kafka.bootstrap_servers, topic, [b"v"])


def test_each_missing_right_of_a_continuous_query_is_named(broker: GuardedBroker, tmp_path: Path) -> None:
    query_id = uuid.uuid4().hex
    name, source, target = f"pyspark-kafka-{query_id}", f"source-{query_id}", f"target-{query_id}"
    for topic in (source, target):
        broker.kafka.create_topic(topic)
    start = KafkaSourceOffset({TopicPartition(source, 0): 0})

    def begin() -> SourceOffsetsWriter:
        write = KafkaTransactionalWrite(
            WriteOptions(broker.alice, topic=target),
            ExactlyOnceOptions(checkpoint_location=str(tmp_path)),
            find_sink_columns([Column("value", pa.binary(), "binary")], topic_option=target),
            query_id=query_id,
            source=broker.alice,
            epoch_ms=100,
        )
        write.takeOver()
        write.prepareLanes(KafkaSourceOffset.from_json(write.committedOffset(start)), 1)
        writer = write.createStreamingWriterFactory(PhysicalWriteInfo(1)).createWriter(0, 0, 0)
        assert isinstance(writer, SourceOffsetsWriter)
        return writer

    with pytest.raises(AccessError, match=rf"TRANSACTIONAL_ID_AUTHORIZATION_FAILED\].*'{name}-0'"):
        begin()
    broker.grant(ResourceType.TRANSACTIONAL_ID, f"{name}-0", ACLOperation.WRITE, ACLOperation.DESCRIBE)
    with pytest.raises(AccessError, match=rf"GROUP_AUTHORIZATION_FAILED\].*'{name}'.*--operation Read --group {name}`"):
        begin()
    broker.grant(ResourceType.GROUP, name, ACLOperation.READ)
    with pytest.raises(AccessError, match=rf"TOPIC_AUTHORIZATION_FAILED\].*{source}"):
        begin()
    broker.grant(ResourceType.TOPIC, source, ACLOperation.READ)
    broker.grant(ResourceType.TOPIC, target, ACLOperation.WRITE)
    writer = begin()
    writer.write(pa.RecordBatch.from_pydict({"value": [b"v"]}))
    writer.commitEpoch(0, KafkaSourcePartitionOffset({TopicPartition(source, 0): 1}))
    writer.close()
    await_committed(broker.kafka.bootstrap_servers, target, [b"v"])
