"""How positions are set as part of a transaction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition, GroupPositions
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka.errors import ProtocolError

NAMELESS = cast("KafkaClient", None)


class FakeCoordinator:
    """Takes every request, and answers what it takes, but for `left_out`."""

    address = "broker-0:9092"

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.left_out: set[int] = set()

    def run(self, _: str, attempt: Any) -> None:
        attempt(self, None)

    def call(self, request: Any, _: Any, **__: int) -> Any:
        self.requests.append(request)
        topics = [
            SimpleNamespace(
                name=topic.name,
                partitions=[
                    SimpleNamespace(partition_index=each.partition_index, error_code=0)
                    for each in topic.partitions
                    if each.partition_index not in self.left_out
                ],
            )
            for topic in request.topics
        ]
        return SimpleNamespace(topics=topics)


def test_more_positions_than_a_broker_takes_at_once_are_set_in_one_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group, coordinator = GroupPositions(NAMELESS, "group"), FakeCoordinator()
    monkeypatch.setattr(group, "_coordinator", coordinator)
    transaction = OpenTransaction("lane-0", TransactionIdentity(7, 3, Generation.V2))
    positions = {TopicPartition("t", number): GroupPosition(number, "note") for number in range(6_000)}
    group.commit_within(transaction, positions)
    identities = {(each.transactional_id, each.producer_id, each.producer_epoch) for each in coordinator.requests}
    assert identities == {("lane-0", 7, 3)}
    parts = [[each for topic in request.topics for each in topic.partitions] for request in coordinator.requests]
    assert max(map(len, parts)) <= 2_000
    found = {each.partition_index: (each.committed_offset, each.committed_metadata) for part in parts for each in part}
    assert found == {number: (number, "note") for number in range(6_000)}
    assert sum(map(len, parts)) == 6_000


def test_position_that_a_response_leaves_out_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records would become visible whose position was never set, and be read twice."""
    group, coordinator = GroupPositions(NAMELESS, "group"), FakeCoordinator()
    coordinator.left_out = {1}
    monkeypatch.setattr(group, "_coordinator", coordinator)
    transaction = OpenTransaction("lane-0", TransactionIdentity(7, 3, Generation.V2))
    with pytest.raises(ProtocolError, match=r"to TxnOffsetCommit lacks t-1\."):
        group.commit_within(transaction, {TopicPartition("t", number): GroupPosition(5) for number in range(3)})
