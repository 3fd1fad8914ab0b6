"""What a lane of an exactly-once query asks the brokers for, over a producer in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from kit.fakes.memory_cluster import SILENCE, MemoryCluster, make_producer
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction, TransactionIdentity
from pyspark_kafka._client.options import ConnectionOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver.transactional import KafkaTransactionWriterFactory
from pyspark_kafka._connector.sink.executor import transaction_writer
from pyspark_kafka._connector.sink.executor.transaction_writer import KafkaTransactionWriter
from pyspark_kafka.connector import PartitionOffset

CONNECTION = ConnectionOptions((("broker-0", 9092),))


@dataclass(frozen=True)
class Position(PartitionOffset):
    text: str

    def json(self) -> str:
        return self.text


class FakeId:
    """The transactional id of the lane; notes what is asked of it."""

    def __init__(self) -> None:
        self.joins: list[set[TopicPartition]] = []
        self.ends: list[bool] = []

    def join(self, _: OpenTransaction, topic_partitions: Any) -> None:
        self.joins.append(set(topic_partitions))

    def join_group(self, *_: Any) -> None:
        pass

    def end(self, transaction: OpenTransaction, *, commit: bool) -> OpenTransaction:
        self.ends.append(commit)
        return transaction


class FakeGroup:
    group_id = "group"

    def commit_within(self, *_: Any) -> None:
        pass


class Scene:
    """A lane, and the cluster that it writes to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, generation: Generation, partitions: int = 3) -> None:
        self.cluster = MemoryCluster(partitions, brokers=partitions)
        self.id = FakeId()
        self._began_at = self.cluster.clock.now

        @contextmanager
        def borrow(_: ConnectionOptions) -> Iterator[Any]:
            yield self.cluster

        for name, stand_in in {
            "borrow_client": borrow,
            "TransactionalId": lambda *_: self.id,
            "GroupPositions": lambda *_: FakeGroup(),
            "Producer": lambda *_, transaction, **__: make_producer(self.cluster, transaction=transaction),
        }.items():
            monkeypatch.setattr(transaction_writer, name, stand_in)
        transaction = OpenTransaction("lane", TransactionIdentity(self.cluster.producer_id, 0, generation))
        options = WriteOptions(CONNECTION, "orders")
        columns = SinkColumns(value=0, partition=1)
        factory = KafkaTransactionWriterFactory(options, columns, 60_000, "query", "group", (transaction,))
        self.writer: KafkaTransactionWriter = factory.createWriter(0, 0, 0)  # type: ignore[assignment]

    @property
    def elapsed_s(self) -> float:
        return self.cluster.clock.now - self._began_at

    def write(self, *partitions: int) -> None:
        values = [b"v%d" % number for number in partitions]
        rows = {"value": pa.array(values, pa.binary()), "partition": pa.array(partitions, pa.int32())}
        self.writer.write(pa.record_batch(rows))


def orders(*numbers: int) -> set[TopicPartition]:
    return {TopicPartition("orders", number) for number in numbers}


def test_lane_joins_all_partitions_of_what_it_has_gathered_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Generation.V1)
    scene.write(0, 1)
    scene.write(1, 2)
    assert (scene.id.joins, scene.cluster.requests) == ([], [])
    scene.writer.commitEpoch(0, Position('{"in":{"0":4}}'))
    assert (scene.id.joins, scene.id.ends) == ([orders(0, 1, 2)], [True])
    assert [len(scene.cluster.values(number)) for number in range(3)] == [1, 2, 1]


@pytest.mark.parametrize("generation", Generation)
def test_commit_costs_a_marker_for_each_partition_and_one_for_the_positions(
    monkeypatch: pytest.MonkeyPatch, generation: Generation
) -> None:
    scene = Scene(monkeypatch, generation)
    costs = []
    for partitions, position in (((0, 1, 1), 3), ((2,), 4), ((), 5), ((), 5)):
        if partitions:
            scene.write(*partitions)
            scene.writer.flushNow()
        scene.writer.commitEpoch(0, Position(f'{{"in":{{"0":{position}}}}}'))
        costs.append(scene.writer.commitCost())
    assert costs == [3, 2, 1, 0]


def test_lane_that_gives_up_waits_for_the_response_to_a_write_before_the_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Generation.V1)
    scene.cluster.latency_s = 1.5
    scene.write(0)
    scene.writer.flushNow()
    scene.writer.abort()
    assert scene.id.ends == [False]
    assert scene.elapsed_s == pytest.approx(1.5, abs=0.01)


def test_lane_leaves_a_transaction_to_the_next_run_if_a_write_gets_no_response(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(monkeypatch, Generation.V1)
    scene.cluster.faults.append(SILENCE)
    scene.write(0)
    scene.writer.flushNow()
    scene.writer.abort()
    assert scene.id.ends == []
    assert "'lane' is left open until the next run of the query" in caplog.text
    assert scene.elapsed_s <= 5.01


def test_lane_aborts_at_once_if_the_abort_itself_refuses_late_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Generation.V2)
    scene.cluster.faults.append(SILENCE)
    scene.write(0)
    scene.writer.flushNow()
    scene.writer.abort()
    assert (scene.id.ends, scene.elapsed_s) == ([False], 0.0)
