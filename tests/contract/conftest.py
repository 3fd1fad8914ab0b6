"""The two clusters of the suite: the TCP fake and the embedded broker, behind the same few methods."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator

import pytest

from kit.brokers.requests import TIMEOUT_MS, AskedBroker, MakeTopic
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import client_of
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Latest
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.queries.offsets import list_offsets
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka.testing import EmbeddedKafka


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.broker)])
def broker(request: pytest.FixtureRequest) -> Iterator[AskedBroker]:
    """A broker of one cluster, then of the other."""
    if request.param == "fake":
        with TcpCluster() as cluster:
            names = itertools.count()

            def add_topic(partitions: int = 1, *, max_message_bytes: int | None = None) -> str:
                name = f"t-{next(names)}"
                cluster.add_topic(name, partitions=partitions)
                if max_message_bytes is not None:
                    cluster.max_message_bytes[name] = max_message_bytes
                return name

            yield from _connected(cluster, add_topic)
    else:
        kafka: EmbeddedKafka = request.getfixturevalue("kafka")

        def create_topic(partitions: int = 1, *, max_message_bytes: int | None = None) -> str:
            name = f"contract-{uuid.uuid4().hex[:8]}"
            config = {} if max_message_bytes is None else {"max.message.bytes": str(max_message_bytes)}
            kafka.create_topic(name, partitions, config)
            # Created by the controller; the broker leads it a moment later.
            with client_of(kafka) as client:
                list_offsets(client, {TopicPartition(name, number): Latest() for number in range(partitions)})
            return name

        yield from _connected(kafka, create_topic)


def _connected(cluster: TcpCluster | EmbeddedKafka, make_topic: MakeTopic) -> Iterator[AskedBroker]:
    with client_of(cluster) as client:
        ((host, port), *_) = client.options.bootstrap_servers
        connection = open_connection(host, port, client.options, Deadline(TIMEOUT_MS))
        try:
            yield AskedBroker(client, connection, make_topic)
        finally:
            connection.close()
