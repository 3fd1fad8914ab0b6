"""Each field of each response of a read lies once: the right rows or an error of the package, never others silently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kit.fakes.lies import script_lie
from kit.fakes.logs import record_batch
from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka._client.client.cluster.pool import close_clients
from pyspark_kafka._connector.table.kafka_table import KafkaTable
from pyspark_kafka.errors import ConnectorError

PARTITIONS, RECORDS = 3, 20
EXPECTED = sorted((number, offset, b"%d" % offset) for number in range(PARTITIONS) for offset in range(RECORDS))
# Nothing can be compared with the end of a log, which its leader says, or with the mark of topics that are not read.
TRUTH = {("ListOffsetsPartitionResponse", "offset"), ("MetadataResponseTopic", "is_internal")}
QUICK = {
    "kafka.request.timeout.ms": "1500",
    "kafka.default.api.timeout.ms": "2000",
    "kafkaConsumer.pollTimeoutMs": "1500",
    "kafka.fetch.max.wait.ms": "50",
    "kafka.retry.backoff.ms": "5",
    "kafka.retry.backoff.max.ms": "20",
    "fetchOffset.numRetries": "1",
    "subscribe": "t",
}
REQUESTS = [MetadataRequest, ListOffsetsRequest, FetchRequest]


@pytest.fixture(scope="module")
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster() as cluster:
        for topic in ("t", "secret"):
            cluster.add_topic(topic, partitions=PARTITIONS)
            for number in range(PARTITIONS):
                for base in range(0, RECORDS, 5):
                    cluster.logs[topic, number].append(record_batch(0, [b"%d" % (base + each) for each in range(5)]))
        yield cluster


def read(cluster: TcpCluster) -> list[tuple[int, int, bytes]]:
    """Read the topic as a batch query does."""
    servers = ",".join(f"{host}:{port}" for host, port in cluster.bootstrap_servers)
    batch = KafkaTable().newScanBuilder({**QUICK, "kafka.bootstrap.servers": servers}).build().toBatch()
    rows: list[tuple[int, int, bytes]] = []
    for part in batch.planInputPartitions():
        reader = batch.createReaderFactory().createReader(part)
        try:
            while reader.next():
                got = reader.get()
                columns = [got.column(name).to_pylist() for name in ("partition", "offset", "value")]
                rows += zip(*columns, strict=True)
        finally:
            reader.close()
    return sorted(rows)


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("request_class", REQUESTS, ids=lambda each: str(each.name))
def test_read_is_right_or_an_error_whatever_field_of_a_response_lies(
    cluster: TcpCluster, request_class: Any, step: int
) -> None:
    wrong, number = {}, step
    while True:
        done = script_lie(cluster, request_class, number, TRUTH)
        close_clients()
        try:
            found = read(cluster)
        except ConnectorError:
            found = EXPECTED
        if done[0] is None:
            break
        if found != EXPECTED:
            wrong[done[0]] = len(found)
        number += 8
    assert number > 16
    assert wrong == {}
