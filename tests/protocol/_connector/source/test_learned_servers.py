"""Brokers that the driver has learned of travel with what it plans: workers may start after the bootstrap servers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.logs import batches_of
from kit.fakes.tcp_cluster import TcpCluster
from kit.reading import column_of, drain
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Earliest, Latest
from pyspark_kafka._client.client.cluster import pool
from pyspark_kafka._client.client.cluster.pool import ClientPool
from pyspark_kafka._client.client.wire.messages import FetchRequest
from pyspark_kafka._client.options import BatchReadOptions, ConnectionOptions, StreamReadOptions, Subscription
from pyspark_kafka._connector.source.driver.batch import KafkaBatch
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition
from pyspark_kafka.connector import InputPartition, PartitionReaderFactory, ReadAllAvailable

SCHEMA = pa.schema([SOURCE_SCHEMA.field("offset")])
SUBSCRIBED = Subscription("subscribe", topics=("t",))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[TcpCluster]:
    with TcpCluster(3) as cluster:
        cluster.add_topic("t", leader=1)
        cluster.ends["t", 0] = (0, 30)
        cluster.script(FetchRequest, BrokerLog({("t", 0): batches_of(3)}, cluster.topic_ids))
        in_a_new_process(monkeypatch)
        yield cluster
        pool.close_clients()


def in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pool.close_clients()
    monkeypatch.setattr(pool, "_POOL", ClientPool())


def offsets_of(factory: PartitionReaderFactory, partition: InputPartition) -> list[int]:
    return column_of(drain(factory.createReader(partition)), "offset")


def test_a_task_of_a_stream_finds_the_cluster_when_the_bootstrap_server_is_gone(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = ConnectionOptions(cluster.bootstrap_servers, api_timeout_ms=20_000)
    stream = KafkaMicroBatchStream(StreamReadOptions(connection, SUBSCRIBED, starting=Earliest()), SCHEMA)
    # Spark pickles the factory once, in a process that has asked no broker.
    factory = pickle.dumps(stream.createReaderFactory())
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    tasks = pickle.dumps(stream.planInputPartitions(start, end))
    cluster.stop(0)
    in_a_new_process(monkeypatch)
    (task,) = pickle.loads(tasks)  # noqa: S301 - our own bytes
    assert offsets_of(pickle.loads(factory), task) == list(range(30))  # noqa: S301 - our own bytes


def test_a_task_of_a_batch_read_finds_the_cluster_when_the_bootstrap_server_is_gone(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = ConnectionOptions(cluster.bootstrap_servers, api_timeout_ms=20_000)
    read = KafkaBatch(BatchReadOptions(connection, SUBSCRIBED, starting=Earliest(), ending=Latest()), SCHEMA)
    factory = pickle.dumps(read.createReaderFactory())
    tasks = pickle.dumps(read.planInputPartitions())
    cluster.stop(0)
    in_a_new_process(monkeypatch)
    (task,) = pickle.loads(tasks)  # noqa: S301 - our own bytes
    assert offsets_of(pickle.loads(factory), task) == list(range(30))  # noqa: S301 - our own bytes


def test_a_warm_worker_takes_over_what_the_driver_has_learned(cluster: TcpCluster) -> None:
    gone = cluster.address(0)
    connection = ConnectionOptions((gone,), api_timeout_ms=20_000)
    cluster.stop(0)
    read = KafkaBatch(BatchReadOptions(connection, SUBSCRIBED, starting=Earliest(), ending=Latest()), SCHEMA)
    with pool.borrow_client(connection) as warm:
        assert warm.servers.for_other_clients() == ()
    task = KafkaInputPartition(OffsetRange(TopicPartition("t", 0), 0, 30), servers=(cluster.address(2),))
    assert offsets_of(read.createReaderFactory(), task) == list(range(30))


def test_a_task_carries_few_addresses_whatever_the_size_of_the_cluster(cluster: TcpCluster) -> None:
    cluster.count, cluster.elsewhere = 1_000, {number: (f"broker-{number}", 9092) for number in range(3, 1_000)}
    connection = ConnectionOptions(cluster.bootstrap_servers)
    with pool.borrow_client(connection) as client:
        client.fetch_metadata(())
        assert len(client.servers.search_order()) == 17
    assert len(pool.learned_servers(connection)) == 5
    assert pool.learned_servers(ConnectionOptions((("other", 9092),))) == ()
