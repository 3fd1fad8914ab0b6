"""One broker, fake or real, and requests to it as they stand in the protocol."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.net.connection import Connection
from pyspark_kafka._client.client.waiting.deadline import Deadline

# What the client under test sends; newer versions name topics by their id.
FETCH_VERSION, PRODUCE_VERSION = 12, 12
TIMEOUT_MS = 20_000
COORDINATOR_LOAD_IN_PROGRESS = 14


class MakeTopic(Protocol):
    """Makes topics that no other test knows."""

    def __call__(self, partitions: int = 1, *, max_message_bytes: int | None = None) -> str:
        """Return the name of a new topic."""


@dataclass
class AskedBroker:
    """One broker, and requests to it as they stand in the protocol.

    Attributes:
        client: to look up what has no method here.
        make_topic: returns the name of a new topic.
    """

    client: KafkaClient
    connection: Connection
    make_topic: MakeTopic

    def call(self, request: Any, max_version: int | None = None) -> Any:
        """Return the response to one request."""
        return self.connection.call(request, Deadline(TIMEOUT_MS), max_version=max_version)

    def produce(
        self, topic: str, data: bytes, *, partition: int = 0, transactional_id: str | None = None, acks: int = -1
    ) -> Any:
        """Write one record batch; return the response of its partition."""
        topic_class = ProduceRequest.TopicProduceData
        entry = topic_class.PartitionProduceData(index=partition, records=data)
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=TIMEOUT_MS,
            topic_data=[topic_class(name=topic, partition_data=[entry])],
        )
        response = self.call(request, PRODUCE_VERSION)
        return response.responses[0].partition_responses[0]

    def fetch(
        self, topic: str, offset: int, *, partition: int = 0, committed: bool = False, max_bytes: int = 1 << 20
    ) -> Any:
        """Fetch from one partition without waiting; return the response of the partition."""
        topic_class = FetchRequest.FetchTopic
        asked = topic_class.FetchPartition(
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=max_bytes,
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=int(committed),
            session_id=0,
            session_epoch=-1,
            topics=[topic_class(topic=topic, partitions=[asked])],
            forgotten_topics_data=[],
            rack_id="",
        )
        return self.call(request, FETCH_VERSION).responses[0].partitions[0]

    def offset(self, topic: str, timestamp: int, *, partition: int = 0, committed: bool = False) -> Any:
        """Look up one offset; return the response of the partition."""
        topic_class = ListOffsetsRequest.ListOffsetsTopic
        asked = topic_class.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(committed),
            topics=[topic_class(name=topic, partitions=[asked])],
            timeout_ms=TIMEOUT_MS,
        )
        return self.call(request, 7).topics[0].partitions[0]

    def new_producer(self) -> tuple[int, int]:
        """Return id and epoch of a new idempotent producer."""
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        # Until it has its first block of ids, a broker that has just started refuses.
        while (response := self.call(request, 5)).error_code == COORDINATOR_LOAD_IN_PROGRESS:
            time.sleep(0.05)
        assert response.error_code == 0
        return response.producer_id, response.producer_epoch
