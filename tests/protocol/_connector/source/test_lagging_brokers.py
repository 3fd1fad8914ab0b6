"""A broker that lags behind the creation of a topic names a former id: no loss, and no other topic."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kit.fakes.handlers.fetch import BrokerLog
from kit.fakes.logs import batches_of
from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset
from pyspark_kafka._client.client.cluster.pool import borrow_client, close_clients
from pyspark_kafka._client.client.wire.messages import FetchRequest, MetadataRequest
from pyspark_kafka._client.options import FetchOptions, StreamReadOptions, Subscription
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.connector import ReadAllAvailable
from pyspark_kafka.errors import DataLossError

SCHEMA = pa.schema([SOURCE_SCHEMA.field("offset")])
T0 = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster(2) as cluster:
        cluster.add_topic("t", leader=1)
        cluster.ends["t", 0] = (0, 30)
        cluster.script(FetchRequest, BrokerLog({("t", 0): batches_of(3)}, cluster.topic_ids))
        yield cluster
        close_clients()


def let_lag(cluster: TcpCluster, broker_id: int) -> None:
    former = uuid.uuid4()

    def lagging(request: Any) -> Any:
        answer = cluster.metadata(request)
        for topic in answer.topics:
            topic.topic_id = former
        return answer

    cluster.script(MetadataRequest, lagging, broker_id=broker_id)


def test_a_task_asks_another_broker_before_it_takes_its_topic_for_another_one(cluster: TcpCluster) -> None:
    let_lag(cluster, 0)
    factory = KafkaPartitionReaderFactory(cluster.options(), FetchOptions(), SCHEMA, fail_on_data_loss=True)
    task = KafkaInputPartition(OffsetRange(T0, 0, 30), topic_ids={"t": str(cluster.topic_ids["t"])})
    reader = factory.createReader(task)
    rows = 0
    while reader.next():
        rows += reader.get().num_rows
    reader.close()
    assert rows == 30


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_planning_asks_other_brokers_before_it_takes_a_topic_for_another_one(
    cluster: TcpCluster, caplog: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    connection = cluster.options()
    options = StreamReadOptions(
        connection,
        Subscription("subscribe", topics=("t",)),
        starting=Earliest(),
        fail_on_data_loss=fail_on_data_loss,
    )
    stream = KafkaMicroBatchStream(options, SCHEMA)
    first = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert stream.planInputPartitions(stream.initialOffset(), first)
    with borrow_client(connection) as client:
        lags = 0 if client.servers.last_asked == cluster.address(0) else 1
    let_lag(cluster, lags)
    cluster.ends["t", 0] = (0, 40)
    second = stream.latestOffset(first, ReadAllAvailable())
    assert second == KafkaSourceOffset({T0: 40})
    (task,) = stream.planInputPartitions(first, second)
    assert isinstance(task, KafkaInputPartition)
    assert task.offset_range == OffsetRange(T0, 30, 40)
    assert task.topic_ids == {"t": str(cluster.topic_ids["t"])}
    assert "created again" not in caplog.text


def test_a_topic_that_all_brokers_name_anew_is_another_one(cluster: TcpCluster) -> None:
    options = StreamReadOptions(cluster.options(), Subscription("subscribe", topics=("t",)), starting=Earliest())
    stream = KafkaMicroBatchStream(options, SCHEMA)
    first = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    stream.planInputPartitions(stream.initialOffset(), first)
    cluster.topic_ids["t"] = uuid.uuid4()
    with pytest.raises(DataLossError, match="TOPIC_RECREATED"):
        stream.latestOffset(first, ReadAllAvailable())
