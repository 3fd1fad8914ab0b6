"""The positions of consumer groups: read, and, without members, set as part of a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.fanout import raise_first
from pyspark_kafka._client.client.transactions.coordinator import CoordinatorCalls, find_group_coordinator
from pyspark_kafka._client.client.transactions.errors import raise_for_code
from pyspark_kafka._client.client.transactions.open_transaction import Generation
from pyspark_kafka._client.client.transactions.position_parts import split_positions
from pyspark_kafka._client.client.wire.api_versions import OFFSET_FETCH_VERSION
from pyspark_kafka._client.client.wire.completeness import match_entries
from pyspark_kafka._client.client.wire.messages import (
    ErrorCode,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    broker_error,
)
from pyspark_kafka._client.client.wire.missing_rights import Right, name_user
from pyspark_kafka.errors import AccessError, ConnectorError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.client.net.connection import Connection
    from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
    from pyspark_kafka._client.client.waiting.deadline import Deadline

# The newest version of TxnOffsetCommit of each generation; from 5 on, the group joins the transaction by it (KIP-890).
_MAX_VERSION_V1, _MAX_VERSION_V2 = 4, 5


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """A group's position in one topic-partition.

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
        client: the cluster; not used by anyone else in the meantime.
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
        """Return all positions of the group, once the positions in ending transactions are decided.

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
                    parameters={"broker": connection.address},
                )
            return raise_first(_read_positions(self.group_id, connection, deadline, stable=True))

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
        asked = [TopicPartition(topic, number) for topic, numbers in part.items() for number in numbers]
        max_version = _MAX_VERSION_V2 if identity.generation is Generation.V2 else _MAX_VERSION_V1

        def attempt(connection: Connection, deadline: Deadline) -> None:
            response = connection.call(request, deadline, max_version=max_version)
            codes = match_entries(asked, _codes(response), "TxnOffsetCommit", connection.address)
            for topic_partition, code in codes.items():
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


def fetch_group_offsets(client: KafkaClient, group_id: str) -> dict[TopicPartition, GroupPosition | ConnectorError]:
    """Return all positions of a consumer group, as committed last, or why one is not known; nothing is changed.

    Open transactions are not waited for. A group that does not exist has no positions, as one that has committed none:
    brokers make no difference.

    Runs on: driver and executor; blocks for at most `api_timeout_ms`.

    Raises:
        AccessError: the user may not describe the group.
        BrokerError: the coordinator refused, or is not available.
        DeadlineError: no response in time.
        TransportError: no broker can be reached.

    Source: Java `Admin.listConsumerGroupOffsets`.
    """
    calls = CoordinatorCalls(client, lambda deadline: find_group_coordinator(client, group_id, deadline))
    found = calls.run(
        f"Reading the positions of consumer group '{group_id}'",
        lambda connection, deadline: _read_positions(group_id, connection, deadline, stable=False),
    )
    for refused in found.values():
        if isinstance(refused, AccessError):
            name_user(refused, client.options)
    return found


def _read_positions(
    group_id: str, connection: Connection, deadline: Deadline, *, stable: bool
) -> dict[TopicPartition, GroupPosition | ConnectorError]:
    """Return all positions from the coordinator; with `stable`, those in transactions that end are errors to retry."""
    request = OffsetFetchRequest(group_id=group_id, topics=None, require_stable=stable)
    response = connection.call(request, deadline, max_version=OFFSET_FETCH_VERSION)
    where = f"of consumer group '{group_id}' at {connection.address} failed"
    parameters = {"group_id": group_id, "broker": connection.address}
    if response.error_code != ErrorCode.NONE:
        right = Right("Describe", "group", group_id, granted_by="Read")
        raise broker_error(response.error_code, f"Reading the positions {where}", rights=(right,), **parameters)
    found: dict[TopicPartition, GroupPosition | ConnectorError] = {}
    named = [topic_partition for topic_partition, _ in _codes(response)]
    match_entries(named, ((each, None) for each in named), "OffsetFetch", connection.address)
    for topic in response.topics:
        right = Right("Describe", "topic", topic.name, granted_by="Read")
        for entry in topic.partitions:
            topic_partition = TopicPartition(topic.name, entry.partition_index)
            if entry.error_code != ErrorCode.NONE:
                what = f"Reading the position in {topic_partition} {where}"
                found[topic_partition] = broker_error(entry.error_code, what, rights=(right,), **parameters)
            elif entry.committed_offset >= 0:
                found[topic_partition] = GroupPosition(entry.committed_offset, entry.metadata or "")
    return found


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
