"""Each field of each response of a write lies once: records are written once, or there is an error of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)

from kit.fakes.lies import script_lie
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import FAST, client_of
from kit.record_batches import TRANSACTIONAL, batch, record
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.group_commits import GroupCommits
from pyspark_kafka._client.client.transactions.group_positions import GroupPosition, GroupPositions
from pyspark_kafka._client.client.transactions.open_transaction import Generation, OpenTransaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ProducerOptions
from pyspark_kafka.errors import ConnectorError

PARTITIONS = [TopicPartition("t", number) for number in range(2)]
BATCHES, TRANSACTIONS = 3, 2
GROUP = "readers"
STEPS = 4
RESPONSES = (
    *("Metadata", "FindCoordinator", "InitProducerId", "Produce", "AddPartitionsToTxn", "AddOffsetsToTxn"),
    *("TxnOffsetCommit", "EndTxn", "OffsetCommit"),
)
# Where a record is, and since when the log has records, only its leader can say. Another port may be another test's
# broker, and a throttle time is waited out.
TRUTH = {
    ("PartitionProduceResponse", "base_offset"),
    ("PartitionProduceResponse", "log_start_offset"),
    *((name, "port") for name in ("MetadataResponseBroker", "FindCoordinatorResponse", "Coordinator")),
    *((f"{name}Response", "throttle_time_ms") for name in RESPONSES),
}
QUICK = {**FAST, "request_timeout_ms": 2_000, "api_timeout_ms": 4_000}
OPTIONS = ProducerOptions(delivery_timeout_ms=4_000)


@contextmanager
def brokers() -> Iterator[TcpCluster]:
    with TcpCluster() as cluster:
        for topic in ("t", "secret"):
            cluster.add_topic(topic, partitions=len(PARTITIONS))
        yield cluster


def values_of(cluster: TcpCluster) -> dict[tuple[str, int], list[bytes]]:
    """Return the committed values; the log ends with an open transaction that hides them, if one is left."""
    assert all(not log.open_transactions and not log.aborted for log in cluster.logs.values()), "left open, or aborted"
    return {key: log.values() for key, log in cluster.logs.items()}


def expected(batches: int) -> dict[tuple[str, int], list[bytes]]:
    numbers = [b"%d" % number for number in range(batches)]
    return {(topic, number): numbers if topic == "t" else [] for topic in ("t", "secret") for number in range(2)}


def send(producer: Producer, transaction: OpenTransaction | None = None, first: int = 0) -> None:
    for number in range(first, first + BATCHES):
        for where in PARTITIONS:
            attributes = 0 if transaction is None else TRANSACTIONAL
            producer.send_batch(where, bytearray(batch([record(0, b"%d" % number)], attributes=attributes)), 1)
    producer.flush()


def write(client: KafkaClient, cluster: TcpCluster) -> None:
    with Producer(client, OPTIONS) as producer:
        send(producer)
    assert values_of(cluster) == expected(BATCHES)


def write_in_transactions(client: KafkaClient, cluster: TcpCluster, generation: Generation = Generation.V1) -> None:
    """Write with the positions of a group, in several transactions of one owner."""
    owner, group = TransactionalId(client, "owner", 60_000), GroupPositions(client, GROUP)
    transaction = owner.fence()
    transaction = replace(transaction, identity=replace(transaction.identity, generation=generation))
    with Producer(client, OPTIONS, transaction=transaction) as producer:
        for number in range(TRANSACTIONS):
            owner.join(transaction, PARTITIONS)
            send(producer, transaction, number * BATCHES)
            owner.join_group(transaction, GROUP)
            group.commit_within(transaction, {where: GroupPosition(number, "") for where in PARTITIONS})
            transaction = owner.end(transaction, commit=True)
            producer.continue_in(transaction)
    assert values_of(cluster) == expected(TRANSACTIONS * BATCHES)
    assert cluster.groups[GROUP] == {tuple(where): (TRANSACTIONS - 1, "") for where in PARTITIONS}


def write_in_second_generation(client: KafkaClient, cluster: TcpCluster) -> None:
    write_in_transactions(client, cluster, Generation.V2)


def commit_positions(client: KafkaClient, cluster: TcpCluster) -> None:
    positions = {where: 7 + where.partition for where in PARTITIONS}
    refused = GroupCommits(client, GROUP).commit_positions(positions)
    if not refused:
        assert cluster.groups[GROUP] == {tuple(where): (offset, "") for where, offset in positions.items()}


Work = Callable[[KafkaClient, TcpCluster], None]
TABLE: list[tuple[Work, Any]] = [
    *((write, each) for each in (MetadataRequest, InitProducerIdRequest, ProduceRequest)),
    *(
        (write_in_transactions, each)
        for each in (
            MetadataRequest,
            FindCoordinatorRequest,
            InitProducerIdRequest,
            AddPartitionsToTxnRequest,
            ProduceRequest,
            AddOffsetsToTxnRequest,
            TxnOffsetCommitRequest,
            EndTxnRequest,
        )
    ),
    *((write_in_second_generation, each) for each in (ProduceRequest, TxnOffsetCommitRequest, EndTxnRequest)),
    *((commit_positions, each) for each in (FindCoordinatorRequest, OffsetCommitRequest)),
]


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize(("work", "request_class"), TABLE, ids=lambda each: getattr(each, "__name__", str(each)))
def test_write_is_right_or_an_error_whatever_field_of_a_response_lies(
    work: Work, request_class: Any, step: int
) -> None:
    wrong, number = {}, step
    while True:
        with brokers() as cluster:
            done = script_lie(cluster, request_class, number, TRUTH)
            with client_of(cluster, **QUICK) as client:
                try:
                    work(client, cluster)
                except ConnectorError:
                    # It says so.
                    pass
                except AssertionError as error:
                    wrong[str(done)] = str(error)
        assert done, "no such request was sent"
        if done[0] is None:
            break
        number += STEPS
    assert number > STEPS
    assert wrong == {}
