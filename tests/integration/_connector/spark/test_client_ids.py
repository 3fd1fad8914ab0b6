"""Client ids, as brokers see them: a task's requests name query, run and task, unless the user names them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.network.proxy import Proxy, proxied
from kit.waiting import PATIENCE_S, eventually
from pyspark_kafka import continuous
from pyspark_kafka.testing import EmbeddedKafka


@pytest.fixture
def proxy(kafka: EmbeddedKafka) -> Iterator[Proxy]:
    """A broker whose requests are counted by client id."""
    with proxied(kafka.bootstrap_servers) as made:
        yield made


@pytest.fixture
def source(kafka: EmbeddedKafka, make_topic: TopicMaker) -> str:
    """A topic with a record in each of two partitions."""
    topic = make_topic(partitions=2)
    produce(kafka.bootstrap_servers, topic, [Record(b"k", b"v", partition=number) for number in range(2)])
    return topic


def clients(proxy: Proxy, *apis: str) -> set[str]:
    """Return the client ids of all requests with some names."""
    return {client for api, client in proxy.clients if api in apis}


def ids(query: str, run: str) -> set[str]:
    return {f"pyspark-kafka-q{query[:8]}-r{run[:8]}-t{task}" for task in range(2)}


def test_tasks_of_a_micro_batch_name_query_and_run_when_they_read_and_write(
    spark: SparkSession, proxy: Proxy, source: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": proxy.address}
    read = spark.readStream.format("pyspark_kafka").options(**options)
    rows = read.option("subscribe", source).option("startingOffsets", "earliest").load().select("key", "value")
    write = rows.writeStream.format("pyspark_kafka").options(**options).option("topic", make_topic())
    query = write.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(int(PATIENCE_S))
    expected = ids(str(query.id), str(query.runId))
    assert clients(proxy, "Fetch") == expected
    assert clients(proxy, "Produce") == expected
    # What the driver requests has no task.
    assert "pyspark-kafka" in clients(proxy, "ListOffsets")


def test_tasks_of_a_batch_read_name_their_stage(spark: SparkSession, proxy: Proxy, source: str) -> None:
    read = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", proxy.address)
    assert read.option("subscribe", source).load().count() == 2
    found = sorted(clients(proxy, "Fetch"))
    assert [name.rpartition("-")[2] for name in found] == ["t0", "t1"]
    assert len({name.rpartition("-")[0] for name in found}) == 1
    assert found[0].startswith("pyspark-kafka-s")


def test_tasks_of_a_continuous_query_name_query_and_run(
    spark: SparkSession, proxy: Proxy, source: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": proxy.address}
    read = continuous.read(spark).format("pyspark_kafka").options(**options).option("subscribe", source)
    write = read.option("startingOffsets", "earliest").load().writeStream.format("pyspark_kafka").options(**options)
    query = write.option("topic", make_topic(partitions=2)).option("checkpointLocation", str(tmp_path)).start()
    try:
        expected = ids(query.id, query.runId)
        eventually(lambda: clients(proxy, "Produce") == expected)
        assert clients(proxy, "Fetch") <= expected
    finally:
        query.stop()


def test_client_id_of_the_user_is_the_one_of_all_requests(spark: SparkSession, proxy: Proxy, source: str) -> None:
    options = {"kafka.bootstrap.servers": proxy.address, "kafka.client.id": "orders"}
    assert spark.read.format("pyspark_kafka").options(**options).option("subscribe", source).load().count() == 2
    assert {client for _, client in proxy.clients} == {"orders"}
