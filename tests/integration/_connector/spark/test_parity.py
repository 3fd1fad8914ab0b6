"""Where a Python source or sink cannot be what Spark's connector is: what Spark's Python API allows and refuses."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient
from pyspark.sql import DataFrame, SparkSession

from kit.administration import create_partitions
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.options import ConnectionOptions

_SOURCES = Path(__file__).parents[4] / "src" / "pyspark_kafka"


def stream(spark: SparkSession, bootstrap_servers: str, topic: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    return reader.options(subscribe=topic, startingOffsets="earliest", **options).load()


def run(rows: DataFrame, place: Path) -> Any:
    query = rows.writeStream.format("noop").option("checkpointLocation", str(place)).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def test_spark_refuses_update_mode_to_python_sinks(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    counts = stream(spark, bootstrap_servers, topic).groupBy("key").count().selectExpr("key", "key AS value")
    writer = counts.writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    writer = writer.options(topic=topic, checkpointLocation=str(tmp_path)).outputMode("update")
    with pytest.raises(Exception, match=r"(?i)update"):
        writer.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.parametrize("trigger", [{"continuous": "1 second"}, {"realTime": "5 seconds"}], ids=str)
def test_spark_refuses_other_triggers_to_python_sources(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, trigger: dict[str, str]
) -> None:
    writer = stream(spark, bootstrap_servers, make_topic()).writeStream.format("noop").outputMode("update")
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(**trigger)
    with pytest.raises(Exception, match=r"(?i)continuous|real.?time"):
        writer.start().processAllAvailable()


def test_spark_refuses_its_default_save_mode_to_python_sinks(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    rows = spark.range(1).selectExpr("CAST(id AS STRING) AS value").write.format("pyspark_kafka")
    with pytest.raises(Exception, match=r"(?i)errorifexists"):
        rows.options(**{"kafka.bootstrap.servers": bootstrap_servers, "topic": make_topic()}).save()


def test_which_partitions_there_are_is_looked_up_once_for_a_load(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)] * 3)
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    rows = reader.option("subscribe", topic).load()
    assert rows.count() == 3
    host, _, port = bootstrap_servers.rpartition(":")
    with borrow_client(ConnectionOptions(((host, int(port)),))) as client:
        create_partitions(client, {topic: 2})
    produce(bootstrap_servers, topic, [Record(None, b"v", 0), Record(None, b"v", 1)])
    assert rows.count() == 4
    assert reader.option("subscribe", topic).load().count() == 5


def test_checkpoints_hold_sparks_json_with_blanks_and_progress_describes_the_source_by_a_class(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, [Record(None, b"v", number % 2) for number in range(6)])
    query = run(stream(spark, bootstrap_servers, topic), tmp_path)
    logged = (tmp_path / "offsets" / "0").read_text().splitlines()[2]
    assert logged == f'{{"{topic}": {{"0": 3, "1": 3}}}}'
    (source,) = query.lastProgress.sources
    assert source.description.startswith("org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream")
    assert source.metrics == {}


def test_tasks_have_no_preferred_executors_as_python_partitions_have_no_place_for_them() -> None:
    from pyspark.sql.datasource import DataSourceReader, InputPartition  # noqa: PLC0415 - see the conftest

    names = {name.lower() for kind in (DataSourceReader, InputPartition) for name in dir(kind)}
    assert not [name for name in names if "prefer" in name or "locat" in name or "host" in name]


def test_no_consumer_group_comes_into_being_whatever_is_said_of_its_name(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v", 0)])
    group = f"group-of-{topic}"
    before = groups_of(bootstrap_servers)
    run(stream(spark, bootstrap_servers, topic, groupIdPrefix=group), tmp_path / "prefix")
    run(stream(spark, bootstrap_servers, topic, **{"kafka.group.id": group}), tmp_path / "id")
    # Brokers forget groups of other tests meanwhile.
    assert groups_of(bootstrap_servers) - before == set()


def groups_of(bootstrap_servers: str) -> set[str]:
    """Return the consumer groups; other tests with the same broker have some."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        return {found["group_id"] for found in admin.list_groups()}
    finally:
        admin.close()


def without_comparisons(source: str) -> str:
    """Return a module without what its options say of Spark's connector."""
    rest = source
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "parity":
            rest = rest.replace(ast.get_source_segment(source, node.value) or "", "")
    return rest


def test_settings_of_sparks_connector_are_not_read() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in _SOURCES.rglob("*.py")}
    assert len(texts) > 50
    for name in (
        "spark.kafka.consumer.",
        "spark.kafka.producer.",
        "spark.sql.kafkaConsumerCache",
        "useDeprecatedOffsetFetching",
        "spark.network.timeout",
    ):
        named = {path: text for path, text in texts.items() if name in text and path.name != "parity.py"}
        found = [path.name for path, text in named.items() if name in without_comparisons(text)]
        assert found == [], name
