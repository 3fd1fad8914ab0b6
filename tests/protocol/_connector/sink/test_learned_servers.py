"""Brokers that the driver has learned of travel to the tasks of a write."""

from __future__ import annotations

from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka._client.client.cluster.pool import borrow_client, close_clients
from pyspark_kafka._client.options import ConnectionOptions, ExactlyOnceOptions, WriteOptions
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.driver.exactly_once import KafkaExactlyOnceBatchWrite, KafkaOutboxWriterFactory
from pyspark_kafka.connector import PhysicalWriteInfo


def test_tasks_of_an_exactly_once_write_know_brokers_that_the_driver_has_learned() -> None:
    with TcpCluster(2) as cluster:
        connection = ConnectionOptions(cluster.bootstrap_servers)
        with borrow_client(connection) as client:
            client.fetch_metadata(())
        write = KafkaExactlyOnceBatchWrite(WriteOptions(connection), ExactlyOnceOptions(), SinkColumns(key=0, value=1))
        factory = write.createBatchWriterFactory(PhysicalWriteInfo())
        assert isinstance(factory, KafkaOutboxWriterFactory)
        assert sorted(factory.options.connection.learned_servers) == sorted(map(cluster.address, range(2)))
        close_clients()
