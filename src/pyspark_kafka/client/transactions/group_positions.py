"""The positions of a consumer group without members: read, and set as part of a transaction. Layer: client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.transactions.coordinator import CoordinatorCalls, find_group_coordinator
from pyspark_kafka.client.transactions.errors import raise_for_code
from pyspark_kafka.client.transactions.open_transaction import Generation
from pyspark_kafka.client.transactions.position_parts import split_positions
from pyspark_kafka.client.wire.messages import (
    ErrorCode,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    broker_error,
)
from pyspark_kafka.client.wire.missing_rights import Right
from pyspark_kafka.client.wire.versions import OFFSET_FETCH_VERSION
from pyspark_kafka.errors import ProtocolError
from pyspark_kafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline
    from pyspark_kafka.client.net.connection import Connection
    from pyspark_kafka.client.transactions.open_transaction import OpenTransaction

# The newest version of TxnOffsetCommit of each generation; from 5 on, the group joins the transaction by it (KIP-890).
_MAX_VERSION_V1, _MAX_VERSION_V2 = 4, 5


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """Where a group is in one topic-partition.

    Attributes:
        offset: the next one to read.
        metadata: text that is kept with it.
    """

    offset: int
    metadata: str = ""


class GroupPositions:
    """The positions of one consumer group that has no members: its owner decides alone what it reads.

    Runs on: driver and executor; one thread; methods block, each for at most `api_timeout_ms`. Does not pickle.

    Args:
        client: the cluster; not used by anyone else meanwhile.
        group_id: the group.

    Raises:
        AccessError: by every method: the user may not read the group, or one of the topics.
        DeadlineError: by every method: not done in time.
        TransportError: by every method: no broker can be reached.

    Source: KIP-98, KIP-447; Java `KafkaConsumer.committed`, `KafkaProducer.sendOffsetsToTransaction`.
    """

    def __init__(self, client: KafkaClient, group_id: str) -> None:
        self.group_id = group_id
        self._coordinator = CoordinatorCalls(
            client, lambda deadline: find_group_coordinator(client, group_id, deadline)
        )

    def fetch(self) -> dict[TopicPartition, GroupPosition]:
        """Return all positions of the group, once those of transactions that are being ended are decided.

        Raises:
            ProtocolError: the brokers cannot wait for transactions (condition UNSUPPORTED_VERSION).
        """

        def attempt(connection: Connection, deadline: Deadline) -> dict[TopicPartition, GroupPosition]:
            if not connection.supports(OffsetFetchRequest, OFFSET_FETCH_VERSION):
                raise ProtocolError(
                    f"{connection.address} cannot wait for open transactions when it tells the positions of a group. "
                    "Nothing was read.",
                    condition="UNSUPPORTED_VERSION",
                    hint="Exactly once in a continuous query needs Kafka 2.5 or newer; use at_least_once.",
                    facts={"broker": connection.address},
                )
            request = OffsetFetchRequest(group_id=self.group_id, topics=None, require_stable=True)
            response = connection.call(request, deadline, max_version=OFFSET_FETCH_VERSION)
            right = Right("Describe", "group", self.group_id, granted_by="Read")
            self._raise(response.error_code, "Reading the positions", connection, right)
            found: dict[TopicPartition, GroupPosition] = {}
            for topic in response.topics:
                for entry in topic.partitions:
                    topic_partition = TopicPartition(topic.name, entry.partition_index)
                    right = Right("Describe", "topic", topic.name, granted_by="Read")
                    self._raise(entry.error_code, f"Reading the position in {topic_partition}", connection, right)
                    if entry.committed_offset >= 0:
                        found[topic_partition] = GroupPosition(entry.committed_offset, entry.metadata or "")
            return found

        return self._coordinator.run(f"Reading the positions of group '{self.group_id}'", attempt)

    def commit_within(self, transaction: OpenTransaction, positions: Mapping[TopicPartition, GroupPosition]) -> None:
        """Set positions as part of a transaction, in as many requests as they need: they count once it is committed.

        In V1 the group must have joined it; see `TransactionalId.join_group`.

        A topic that is not there is waited for: the coordinator may not know it yet.

        Raises:
            TransactionLostError: the owner has lost the transaction.
        """
        for part in split_positions(self.group_id, positions, lambda position: position.metadata):
            self._commit_part(transaction, part)

    def _commit_part(self, transaction: OpenTransaction, part: Mapping[str, Mapping[int, GroupPosition]]) -> None:
        identity = transaction.identity
        request = TxnOffsetCommitRequest(
            transactional_id=transaction.name,
            group_id=self.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            topics=_topics(part),
        )
        max_version = _MAX_VERSION_V2 if identity.generation is Generation.V2 else _MAX_VERSION_V1

        def attempt(connection: Connection, deadline: Deadline) -> None:
            response = connection.call(request, deadline, max_version=max_version)
            for topic_partition, code in _codes(response):
                what = f"Setting the position of group '{self.group_id}' in {topic_partition} by"
                rights = (
                    Right("Write", "transactional-id", transaction.name),
                    Right("Read", "group", self.group_id),
                    Right("Read", "topic", topic_partition.topic),
                )
                raise_for_code(
                    code,
                    what,
                    transaction.name,
                    connection.address,
                    rights=rights,
                    topic_partition=topic_partition,
                    owned=True,
                )

        count = sum(map(len, part.values()))
        self._coordinator.run(f"Setting {count} positions of group '{self.group_id}' by '{transaction.name}'", attempt)

    def _raise(self, code: int, what: str, connection: Connection, right: Right) -> None:
        if code != ErrorCode.NONE:
            raise broker_error(
                code,
                f"{what} of consumer group '{self.group_id}' at {connection.address} failed",
                rights=(right,),
                group_id=self.group_id,
                broker=connection.address,
            )


def _topics(positions: Mapping[str, Mapping[int, GroupPosition]]) -> list[Any]:
    topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    partition_class = topic_class.TxnOffsetCommitRequestPartition
    return [
        topic_class(
            name=name,
            partitions=[
                partition_class(
                    partition_index=number,
                    committed_offset=position.offset,
                    committed_leader_epoch=-1,
                    committed_metadata=position.metadata,
                )
                for number, position in partitions.items()
            ],
        )
        for name, partitions in positions.items()
    ]


def _codes(response: Any) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(topic.name, entry.partition_index), entry.error_code)
        for topic in response.topics
        for entry in topic.partitions
    ]
