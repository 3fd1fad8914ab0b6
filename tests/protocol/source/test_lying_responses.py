"""Each field of each response of a read lies once: the right rows or an error of the package, never others silently."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kit.fakes.handlers import HANDLERS
from kit.fakes.logs import record_batch
from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka.client.cluster.pool import close_clients
from pyspark_kafka.errors import ConnectorError
from pyspark_kafka.table.kafka_table import KafkaTable

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


def structures(response: Any) -> Iterator[Any]:
    """Yield a response and all structures in it."""
    yield response
    for field in type(response)._struct.fields.values():
        if field.is_struct_array():
            for each in getattr(response, field.name, None) or ():
                yield from structures(each)


def lies_about(value: Any) -> list[Any]:
    """Return other values for a field."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [each for each in (-1, 0, 1, value + 1, value ^ 4, 1 << 14) if each != value]
    if isinstance(value, str):
        return ["", "secret", value + "x", "a\nb"]
    if isinstance(value, uuid.UUID):
        return [uuid.UUID(int=0), uuid.UUID(int=value.int ^ 1)]
    if isinstance(value, list):
        return [[], value[1:], value[::-1], [*value, *value], [*value[:1], *value[:-1]]]
    if isinstance(value, (bytes, memoryview)):
        data = bytes(value)
        return [b"", data[: len(data) // 2], data + data, data[len(data) // 4 :]]
    return []


def lie(response: Any, number: int) -> str | None:
    """Change one field of a response, the lie with this number; return what was done, None behind the last lie."""
    for structure in structures(response):
        for field in type(structure)._struct.fields.values():
            value = getattr(structure, field.name, None)
            if (type(structure).__name__, field.name) in TRUTH:
                continue
            for other in lies_about(value):
                if number == 0:
                    setattr(structure, field.name, other)
                    return f"{type(structure).__name__}.{field.name}: {value!r:.60} -> {other!r:.60}"
                number -= 1
    return None


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
        done: list[str | None] = []

        def lying(request: Any, number: int = number, done: list[str | None] = done) -> Any:
            response = HANDLERS[request_class.name](cluster, request)
            if not done:
                done.append(lie(response, number))
            return response

        cluster.script(request_class, lying)
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
