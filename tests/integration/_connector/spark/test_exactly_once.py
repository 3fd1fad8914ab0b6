"""Exactly-once writes through Spark: streams, restarts, batch writes, other readers, refusals."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from py4j.java_gateway import JavaGateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, await_committed, consume_committed, produce
from kit.programs.run import run_program
from kit.waiting import eventually
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.produce.producer import Producer
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._client.options import ConnectionOptions, ProducerOptions
from pyspark_kafka.records import encode
from pyspark_kafka.testing.jars import kafka_classpath
from pyspark_kafka.testing.java import find_java


def numbered(first: int, last: int) -> list[Record]:
    return [Record(b"k%d" % i, b"v%03d" % i) for i in range(first, last)]


def names(first: int, last: int) -> list[bytes]:
    return [b"v%03d" % i for i in range(first, last)]


def stream(spark: SparkSession, servers: str, source: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    return reader.options(subscribe=source, startingOffsets="earliest", **options).load().select("key", "value")


def run(rows: DataFrame, servers: str, topic: str, checkpoint: Path | str, **options: str) -> StreamingQuery:
    """Write a stream exactly once until everything is written."""
    writer = rows.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    writer = writer.options(
        topic=topic, deliveryGuarantee="exactly_once", checkpointLocation=str(checkpoint), **options
    )
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def values(servers: str, topic: str) -> list[bytes]:
    return sorted(record.value or b"" for record in consume_committed(servers, topic))


def save(rows: DataFrame, servers: str, **options: str) -> None:
    writer = rows.write.format("pyspark_kafka").option("kafka.bootstrap.servers", servers).mode("append")
    writer.options(deliveryGuarantee="exactly_once", **options).save()


def test_a_stream_is_written_once_over_batches_and_runs(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=3), make_topic(partitions=2)
    produce(bootstrap_servers, source, numbered(0, 90))
    query = run(
        stream(spark, bootstrap_servers, source, maxOffsetsPerTrigger="30"), bootstrap_servers, target, tmp_path
    )
    assert len(query.recentProgress) >= 3
    assert sum(progress.sink.numOutputRows for progress in query.recentProgress if progress.numInputRows) == 90
    await_committed(bootstrap_servers, target, names(0, 90))
    produce(bootstrap_servers, source, numbered(90, 95))
    run(stream(spark, bootstrap_servers, source), bootstrap_servers, target, tmp_path)
    await_committed(bootstrap_servers, target, names(0, 95))


def test_a_batch_whose_commit_spark_has_not_noted_is_not_written_again(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    produce(bootstrap_servers, source, numbered(0, 40))
    run(stream(spark, bootstrap_servers, source), bootstrap_servers, target, tmp_path)
    # As after a driver that died between the sink's commit and the commit log.
    (tmp_path / "commits" / "0").unlink()
    (tmp_path / "commits" / ".0.crc").unlink()
    # Planned with other partitions, so that other tasks hold other rows.
    run(stream(spark, bootstrap_servers, source, minPartitions="5"), bootstrap_servers, target, tmp_path)
    assert (tmp_path / "commits" / "0").exists()
    await_committed(bootstrap_servers, target, names(0, 40))


def test_an_older_copy_of_the_checkpoint_is_refused_and_nothing_is_written_twice(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    checkpoint, copy = tmp_path / "checkpoint", tmp_path / "copy"
    for last in (10, 20, 30):
        produce(bootstrap_servers, source, numbered(last - 10, last))
        run(stream(spark, bootstrap_servers, source), bootstrap_servers, target, checkpoint)
        if last == 10:
            shutil.copytree(checkpoint, copy)
    shutil.rmtree(checkpoint)
    copy.rename(checkpoint)
    # Batch 1 of the copy would hold what batches 1 and 2 have written.
    with pytest.raises(Exception, match="COMMIT_MARKER_OF_A_LATER_BATCH"):
        run(stream(spark, bootstrap_servers, source), bootstrap_servers, target, checkpoint)
    await_committed(bootstrap_servers, target, names(0, 30))


def test_another_query_is_refused_the_sink_at_its_start(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, numbered(0, 5))
    name = {"kafka.transactional.id": f"sink-of-{target}"}
    run(stream(spark, bootstrap_servers, source), bootstrap_servers, target, tmp_path / "one", **name)
    with pytest.raises(Exception, match="COMMIT_MARKER_OF_ANOTHER_QUERY"):
        run(stream(spark, bootstrap_servers, source), bootstrap_servers, target, tmp_path / "two", **name)
    await_committed(bootstrap_servers, target, names(0, 5))


@pytest.mark.full("Large batches")
def test_spooled_rows_are_written_and_removed(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    produce(bootstrap_servers, source, numbered(0, 50))
    rows = stream(spark, bootstrap_servers, source, maxOffsetsPerTrigger="20")
    run(rows, bootstrap_servers, target, tmp_path, spoolThresholdBytes="0")
    await_committed(bootstrap_servers, target, names(0, 50))
    assert [path for path in (tmp_path / "spool").rglob("*") if path.is_file()] == []
    # One directory, the query's own.
    assert len(list((tmp_path / "spool").glob("pyspark-kafka-*"))) == 1


# In small what 1,200 tasks of 0.9 MiB are for the defaults of Spark: 1 GiB of results.
MANY_TASKS = """
import sys
from pyspark.sql import SparkSession
servers, topic = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.driver.maxResultSize", "20m")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .config("spark.ui.enabled", "false").getOrCreate())
spark.range(40 * 7000, numPartitions=40).selectExpr("repeat(md5(string(id)), 4) AS value").write.parquet("rows")
rows = spark.readStream.schema("value string").option("maxFilesPerTrigger", 100).parquet("rows")
query = (rows.repartition(40).writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
         .option("topic", topic).option("deliveryGuarantee", "exactly_once").option("checkpointLocation", "checkpoint")
         .trigger(availableNow=True).start())
assert query.awaitTermination(300)
print("batches", len(query.recentProgress), flush=True)
"""


@pytest.mark.full("Large batches")
def test_results_of_many_tasks_stay_below_the_limit_of_the_driver(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    target = make_topic(partitions=4)
    run_program(MANY_TASKS, bootstrap_servers, target, place=tmp_path)
    eventually(lambda: len(values(bootstrap_servers, target)) == 40 * 7000)


def test_a_batch_write_is_visible_whole_or_not_at_all(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    target = make_topic(partitions=2)
    rows = spark.range(0, 1000, 1, 4).selectExpr("CAST(id AS STRING) AS key", "printf('v%03d', id) AS value")
    save(rows, bootstrap_servers, topic=target)
    await_committed(bootstrap_servers, target, names(0, 1000))
    # One row of the last task cannot be sent.
    bad = rows.selectExpr("IF(key = '999', NULL, ''||'%s') AS topic".replace("%s", target), "key", "value")
    with pytest.raises(Exception, match="KAFKA_NULL_TOPIC_IN_DATA"):
        save(bad, bootstrap_servers)
    await_committed(bootstrap_servers, target, names(0, 1000))
    # Run again it is another write.
    save(rows, bootstrap_servers, topic=target)
    await_committed(bootstrap_servers, target, names(0, 1000) * 2)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"topic": "no-such-topic", "kafka.max.block.ms": "300"}, r"\[UNKNOWN_TOPIC\].*no-such-topic"),
        ({"kafka.max.request.size": "200"}, "RECORD_TOO_LARGE"),
        ({"kafka.transaction.timeout.ms": "900001"}, "TRANSACTION_TIMEOUT_TOO_LARGE"),
        ({"kafka.acks": "1"}, "needs all"),
    ],
)
def test_bad_input_is_a_clear_error_and_leaves_nothing_half_visible(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, change: dict[str, str], expected: str
) -> None:
    target = make_topic()
    rows = spark.range(0, 100, 1, 2).selectExpr("repeat('x', IF(id = 99, 500, 5)) AS value")
    with pytest.raises(Exception, match=expected):
        save(rows, bootstrap_servers, **{"topic": target, **change})
    assert values(bootstrap_servers, target) == []


def test_a_stream_without_its_checkpoint_as_an_option_is_refused(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    writer = stream(spark, bootstrap_servers, source).writeStream.format("pyspark_kafka")
    writer = writer.options(topic=target, deliveryGuarantee="exactly_once")
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
    try:
        query = writer.option("kafka.bootstrap.servers", bootstrap_servers).trigger(availableNow=True).start()
        with pytest.raises(Exception, match="'checkpointLocation' of the writer must be set"):
            query.awaitTermination()
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")


def test_kafkas_own_java_consumer_reads_what_was_committed(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic(partitions=2)
    produce(bootstrap_servers, source, numbered(0, 30))
    run(stream(spark, bootstrap_servers, source, maxOffsetsPerTrigger="10"), bootstrap_servers, target, tmp_path)
    await_committed(bootstrap_servers, target, names(0, 30))
    # A job that is aborted half-way leaves records in the log that nobody is to see.
    client = KafkaClient(ConnectionOptions((("127.0.0.1", int(bootstrap_servers.rpartition(":")[2])),)))
    with client:
        owner = TransactionalId(client, f"aborted-{target}", 60_000)
        transaction = owner.fence()
        with Producer(client, ProducerOptions(), transaction=transaction) as producer:
            producer.send_batch(
                TopicPartition(target, 0), encode(pa.RecordBatch.from_pydict({"value": [b"aborted"]})), 1
            )
            producer.flush()
        owner.fence()
    assert sorted(read_with_java(bootstrap_servers, target)) == [name.decode() for name in names(0, 30)]


def read_with_java(bootstrap_servers: str, topic: str) -> list[str]:
    """Read a topic with the consumer of Kafka's own client library, in a JVM with the broker's jars."""
    (py4j_jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    jar_path, java = str(py4j_jar), str(find_java().executable)
    gateway = JavaGateway.launch_gateway(
        jarpath=jar_path, classpath=kafka_classpath(), java_path=java, die_on_exit=True
    )
    try:
        jvm: Any = gateway.jvm
        settings = jvm.java.util.Properties()
        text = "org.apache.kafka.common.serialization.StringDeserializer"
        for name, value in {
            "bootstrap.servers": bootstrap_servers,
            "key.deserializer": text,
            "value.deserializer": text,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }.items():
            settings.put(name, value)
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
        partitions = jvm.java.util.ArrayList()
        for found in consumer.partitionsFor(topic):
            partitions.add(jvm.org.apache.kafka.common.TopicPartition(topic, found.partition()))
        consumer.assign(partitions)
        consumer.seekToBeginning(partitions)
        ends = consumer.endOffsets(partitions)
        values: list[str] = []
        while any(consumer.position(where) < ends[where] for where in partitions):
            records = consumer.poll(jvm.java.time.Duration.ofMillis(1000)).iterator()
            while records.hasNext():
                values.append(records.next().value())
        consumer.close()
        return values
    finally:
        gateway.shutdown()
