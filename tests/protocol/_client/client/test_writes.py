"""Writes to brokers that find a batch damaged, or whose responses do not fit the request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pytest
from kafka.protocol.producer import ProduceRequest

from kit.fakes.handlers.produce import produce
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import FAST, client_of
from kit.record_batches import batch, record
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.options import ProducerOptions
from pyspark_kafka.errors import DeliveryError

CORRUPT_MESSAGE, NOT_ENOUGH_REPLICAS = 2, 19
PARTITIONS = [TopicPartition("t", number) for number in range(2)]


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster() as cluster:
        cluster.add_topic("t", partitions=len(PARTITIONS))
        yield cluster


def refused(cluster: TcpCluster, code: int, partitions: Iterable[int] = (0, 1)) -> Any:
    """Return a script that takes batches of other partitions, and refuses those of these."""

    def answer(request: Any) -> Any:
        for topic in request.topic_data:
            for data in topic.partition_data:
                if data.index in partitions:
                    # Damaged, so that the log does not take it.
                    data.records = bytes(data.records[:-1]) + bytes([data.records[-1] ^ 1])
        response = produce(cluster, request)
        for topic in response.responses:
            for entry in topic.partition_responses:
                if entry.index in partitions:
                    entry.error_code = code
        return response

    return answer


def write(cluster: TcpCluster) -> None:
    with client_of(cluster, **FAST) as client, Producer(client, ProducerOptions()) as producer:
        for number in range(10):
            for topic_partition in PARTITIONS:
                producer.send_batch(topic_partition, bytearray(batch([record(0, b"%d" % number)])), 1)
        producer.flush()


def test_batches_that_a_broker_finds_damaged_once_are_written_once_and_in_order(cluster: TcpCluster) -> None:
    cluster.script(ProduceRequest, refused(cluster, CORRUPT_MESSAGE), partial(produce, cluster))
    write(cluster)
    for number in range(len(PARTITIONS)):
        assert cluster.logs["t", number].values() == [b"%d" % each for each in range(10)]


def test_batches_that_a_broker_always_finds_damaged_are_certainly_not_delivered(cluster: TcpCluster) -> None:
    cluster.script(ProduceRequest, refused(cluster, CORRUPT_MESSAGE))
    with pytest.raises(
        DeliveryError, match=r"\[CORRUPT_MESSAGE\] .* Records of t-.: delivered 0, not delivered 10, unknown 0\."
    ):
        write(cluster)


def test_entry_with_the_number_of_another_partition_acknowledges_nothing(cluster: TcpCluster) -> None:
    """As after a damaged byte: the batch of partition 1 was refused, and the entry of partition 0 bears its number."""
    refuse = refused(cluster, NOT_ENOUGH_REPLICAS, [1])
    lies: list[Any] = []

    def mislabeled(request: Any) -> Any:
        if lies:
            return produce(cluster, request)
        response = refuse(request)
        entries = response.responses[0].partition_responses
        if len(entries) == len(PARTITIONS):
            lies.append(entries)
            next(entry for entry in entries if entry.index == 0).index = 1
            entries.sort(key=lambda entry: entry.error_code)
        return response

    cluster.script(ProduceRequest, mislabeled)
    write(cluster)
    assert lies
    for number in range(len(PARTITIONS)):
        assert cluster.logs["t", number].values() == [b"%d" % each for each in range(10)]
