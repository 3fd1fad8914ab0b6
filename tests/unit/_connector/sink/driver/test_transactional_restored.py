"""The takeover of an exactly-once continuous query whose checkpoint has lost its record of lanes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._client.client.cluster.metadata import TopicMetadata
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver import transactional
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionalWrite
from pyspark_kafka._connector.sink.source_positions import PositionNote

CONNECTION = ConnectionOptions((("localhost", 9092),))
TOPIC_ID = UUID(int=7)
NOTE = PositionNote("query", str(TOPIC_ID), "4").text()


def test_lanes_and_positions_are_those_of_the_group_if_the_checkpoint_has_lost_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced: list[str] = []
    # A lane that was not fenced at first commits meanwhile.
    looks = iter([{0: 8, 1: 3}, {0: 8, 1: 5}])

    class Id:
        def __init__(self, _: object, name: str, __: int) -> None:
            self._name = name

        def fence(self) -> OpenTransaction:
            fenced.append(self._name)
            return OpenTransaction(self._name, TransactionIdentity(1, 1, Generation.V2))

    @contextmanager
    def borrowed(_: ConnectionOptions) -> Iterator[Any]:
        topics = {"t": TopicMetadata("t", TOPIC_ID)}
        yield SimpleNamespace(fetch_metadata=lambda _: SimpleNamespace(cluster_id="one", topics=topics))

    def positions(*_: object) -> SimpleNamespace:
        found = {TopicPartition("t", number): GroupPosition(end, NOTE) for number, end in next(looks).items()}
        return SimpleNamespace(fetch=lambda: found)

    monkeypatch.setattr(transactional, "TransactionalId", Id)
    monkeypatch.setattr(transactional, "GroupPositions", positions)
    monkeypatch.setattr(transactional, "borrow_client", borrowed)
    write = KafkaTransactionalWrite(
        WriteOptions(CONNECTION, "t"),
        ExactlyOnceOptions(checkpoint_location=str(tmp_path)),
        SinkColumns(value=0),
        query_id="query",
        source=CONNECTION,
        epoch_ms=10,
    )
    write.takeOver()
    assert sorted(set(fenced)) == ["pyspark-kafka-query-0", "pyspark-kafka-query-1"]
    # The checkpoint is behind the group.
    start = KafkaSourceOffset.from_json('{"t":{"0":2,"1":2}}')
    assert write.committedOffset(start) == '{"t":{"0":8,"1":5}}'
