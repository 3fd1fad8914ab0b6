"""The lineage of whole queries, with Spark and a broker, at a collector that checks events by the published schemas."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
import pytest
from packaging import version
from pyspark.sql import DataFrame, SparkSession

import pyspark_kafka
from kit.fakes.schema_registry import SchemaRegistryServer
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.lineage_collector import LineageCollector, lineage_collector
from kit.programs.run import run_program
from kit.waiting import PATIENCE_S
from pyspark_kafka import continuous, lineage

_PAGE = Path(__file__).parents[4] / "docs" / "lineage.md"
# Older versions of Spark do not name the table of this step.
_APPEND = "append_data_pyspark_kafka" if version.parse(pyspark.__version__) >= version.parse("4.2") else "append_data"
_PARENT = "019f0a6c-0000-7000-8000-000000000001"


@pytest.fixture
def collector() -> Iterator[LineageCollector]:
    """A collector that the environment names, as a user's would; all of its events are as the schemas say."""
    before = dict(os.environ)
    with lineage_collector() as collector:
        os.environ["OPENLINEAGE_URL"] = collector.url
        yield collector
        assert collector.refused == []
    # The client itself adds variables.
    for name in os.environ.keys() - before.keys():
        del os.environ[name]


@pytest.fixture
def listener(spark: SparkSession, collector: LineageCollector) -> Iterator[lineage.LineageListener]:
    made = lineage.listen(spark)
    assert collector.events == []
    yield made
    made.stop(PATIENCE_S)


def options(servers: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, **more}


def batch(spark: SparkSession, servers: str, topic: str, **more: str) -> DataFrame:
    return spark.read.format("pyspark_kafka").options(**options(servers, subscribe=topic, **more)).load()


def stream(spark: SparkSession, servers: str, topic: str, **more: str) -> DataFrame:
    reader = spark.readStream.format("pyspark_kafka")
    return reader.options(**options(servers, subscribe=topic, startingOffsets="earliest", **more)).load()


def topics(datasets: list[Mapping[str, Any]]) -> dict[str, int | None]:
    """Return the rows of datasets by topic."""
    found: dict[str, int | None] = {}
    for each in datasets:
        facets = each.get("inputFacets") or each.get("outputFacets") or {}
        found[each["name"]] = next((facet["rowCount"] for facet in facets.values()), None)
    return found


def columns(dataset: Mapping[str, Any]) -> dict[str, str]:
    return {each["name"]: each["type"] for each in dataset["facets"]["schema"]["fields"]}


def is_whole(events: list[dict[str, Any]]) -> bool:
    """Whether a stream has started and ended; on a slow machine it has several events between."""
    first, *between, last = [each["eventType"] for each in events]
    return (first, last) == ("START", "COMPLETE") and set(between) <= {"RUNNING"}


def test_batch_from_topic_to_topic_has_both_with_their_rows(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"v", 0)] * 5)
    spark.conf.set("spark.openlineage.parentJobNamespace", "airflow")
    spark.conf.set("spark.openlineage.parentJobName", "nightly.orders")
    spark.conf.set("spark.openlineage.parentRunId", _PARENT)
    rows = batch(spark, bootstrap_servers, source).where("offset < 3").select("key", "value")
    rows.write.format("pyspark_kafka").options(**options(bootstrap_servers, topic=target)).mode("append").save()
    assert listener.flush(PATIENCE_S)
    start, end = collector.of_job("append_data")
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert start["eventTime"] < end["eventTime"]
    suffix = target.replace(".", "_")
    # As the agent for Spark: Spark's own name of the step has the name of the table.
    assert end["job"]["namespace"] == "default"
    assert end["job"]["name"] == f"pyspark_kafka_tests.{_APPEND}.{suffix}"
    assert end["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    assert {each["namespace"] for each in (*end["inputs"], *end["outputs"])} == {f"kafka://{bootstrap_servers}"}
    assert topics(end["inputs"]) == {source: 5}
    assert topics(end["outputs"]) == {target: 3}
    assert columns(end["inputs"][0])["offset"] == "long"
    assert columns(end["outputs"][0]) == {"key": "binary", "value": "binary"}
    assert end["run"]["facets"]["parent"]["run"]["runId"] == _PARENT


def test_batch_read_has_its_topic_and_other_batches_have_no_events(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source = make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"v", 0)] * 5)
    assert spark.range(5).count() == 5
    assert len(batch(spark, bootstrap_servers, source).groupBy("value").count().collect()) == 1
    assert listener.flush(PATIENCE_S)
    assert collector.states() == ["START", "COMPLETE"]
    assert topics(collector.events[1]["inputs"]) == {source: 5}
    assert collector.events[1]["outputs"] == []


def test_batch_that_fails_has_its_message(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source = make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"v", 0)])
    rows = batch(spark, bootstrap_servers, source).selectExpr("CAST(raise_error('broken') AS STRING) AS value")
    with pytest.raises(Exception, match="broken"):
        rows.write.format("pyspark_kafka").options(**options(bootstrap_servers, topic="t")).mode("append").save()
    assert listener.flush(PATIENCE_S)
    assert collector.states() == ["START", "FAIL"]
    message = collector.events[1]["run"]["facets"]["errorMessage"]["message"]
    assert "broken" in message
    assert "\tat " not in message


def test_batch_whose_columns_are_refused_has_its_message_and_the_same_job(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source, target = make_topic(), make_topic()
    rows = batch(spark, bootstrap_servers, source).selectExpr("offset AS value")
    with pytest.raises(Exception, match="SCHEMA_MISMATCH"):
        rows.write.format("pyspark_kafka").options(**options(bootstrap_servers, topic=target)).mode("append").save()
    assert listener.flush(PATIENCE_S)
    assert collector.states(f"{_APPEND}.{target}") == ["START", "FAIL"]
    end = collector.events[1]
    assert "SCHEMA_MISMATCH.SINK" in end["run"]["facets"]["errorMessage"]["message"]
    assert (topics(end["inputs"]), topics(end["outputs"])) == ({source: 0}, {target: None})
    assert listener.lost == 0


def test_micro_batches_have_one_run_with_the_rows_of_all(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"v", 0)] * 50)
    rows = stream(spark, bootstrap_servers, source, maxOffsetsPerTrigger="20").select("key", "value")
    writer = rows.writeStream.format("pyspark_kafka").options(**options(bootstrap_servers, topic=target))
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    # The name that the agent for Spark finds.
    executed = query._jsq.streamingQuery().lastExecution().executedPlan()
    assert executed.nodeName() == "WriteToDataSourceV2"
    assert listener.flush(PATIENCE_S)
    assert is_whole(collector.events)
    assert {each["run"]["runId"] for each in collector.events} == {str(query.runId)}
    suffix = target.replace(".", "_")
    assert {each["job"]["name"] for each in collector.events} == {
        f"pyspark_kafka_tests.write_to_data_source_v2.{suffix}"
    }
    start, *running, end = collector.events
    assert running
    assert (topics(start["inputs"]), topics(start["outputs"])) == ({source: None}, {target: None})
    assert (topics(end["inputs"]), topics(end["outputs"])) == ({source: 50}, {target: 50})
    assert columns(end["inputs"][0])["timestamp"] == "timestamp"
    assert end["job"]["facets"]["jobType"]["processingType"] == "STREAMING"


def test_batches_of_a_function_for_each_micro_batch_have_runs_of_their_own(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"v", 0)] * 3)

    def write(rows: DataFrame, _: int) -> None:
        writer = rows.select("value").write.format("pyspark_kafka")
        writer.options(**options(bootstrap_servers, topic=target)).mode("append").save()

    rows = stream(spark, bootstrap_servers, source)
    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path)).queryName("split")
    writer.trigger(availableNow=True).start().awaitTermination()
    assert listener.flush(PATIENCE_S)
    of_query = collector.of_job("pyspark_kafka_tests.foreach_batch_sink.split")
    assert is_whole(of_query)
    assert (topics(of_query[-1]["inputs"]), of_query[-1]["outputs"]) == ({source: 3}, [])
    of_batch = collector.of_job("append_data")
    assert [each["eventType"] for each in of_batch] == ["START", "COMPLETE"]
    assert topics(of_batch[1]["outputs"]) == {target: 3}


def test_query_that_runs_already_has_events_from_now_on(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path, collector: LineageCollector
) -> None:
    source = make_topic()
    writer = stream(spark, bootstrap_servers, source).writeStream.format("noop").queryName("running")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
        listener = lineage.listen(spark)
        produce(bootstrap_servers, source, [Record(b"k", b"v", 0)] * 3)
        query.processAllAvailable()
    finally:
        query.stop()
    assert listener.flush(PATIENCE_S)
    listener.stop()
    assert is_whole(collector.of_job("running"))
    assert topics(collector.events[-1]["inputs"]) == {source: 3}


def test_settings_of_the_application_are_those_of_the_session(spark: SparkSession) -> None:
    """Such as `spark.extraListeners`, which nobody sets for a session."""
    assert spark.conf.get("spark.plugins", None) == "org.apache.spark.sql.connect.SparkConnectPlugin"


def test_micro_batches_that_fail_have_their_message(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source = make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"{", 0)])
    rows = stream(spark, bootstrap_servers, source, valueFormat="json", valueSchema="id INT").select("value.id")
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).queryName("typed").start()
    with pytest.raises(Exception, match="BAD_RECORD"):
        query.awaitTermination()
    assert listener.flush(PATIENCE_S)
    assert collector.states() == ["START", "FAIL"]
    end = collector.events[1]
    assert re.fullmatch(r"pyspark_kafka_tests\.\w+\.typed", end["job"]["name"])
    assert "BAD_RECORD" in end["run"]["facets"]["errorMessage"]["message"]
    assert "Streaming Query" not in end["run"]["facets"]["errorMessage"]["message"]


def test_dead_letters_are_an_output_beside_the_good_rows(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source, valid, dead = make_topic(), make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b'{"id":1}', 0), Record(b"k", b"{", 0)])
    rows = stream(
        spark,
        bootstrap_servers,
        source,
        valueFormat="json",
        valueSchema="id INT",
        mode="PERMISSIVE",
        includeHeaders="true",
    )
    good = [f"'{valid}' AS topic", "key", "to_json(value) AS value"]
    both = pyspark_kafka.with_dead_letters(rows, good, topic=dead)
    writer = both.writeStream.format("pyspark_kafka").options(**options(bootstrap_servers))
    writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    assert listener.flush(PATIENCE_S)
    # Spark counts the rows of both together.
    assert topics(collector.events[-1]["outputs"]) == {valid: None, dead: None}


def test_continuous_query_with_formats_has_subjects_and_column_lineage(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    tmp_path: Path,
    schema_registry: SchemaRegistryServer,
    collector: LineageCollector,
    listener: lineage.LineageListener,
) -> None:
    source, target = make_topic(), make_topic()
    typed = {"valueFormat": "avro", "schema.registry.url": schema_registry.url}
    schema = '{"type":"record","name":"order","fields":[{"name":"id","type":["null","long"]}]}'
    for topic in (source, target):
        schema_registry.add(f"{topic}-value", schema)
    orders = spark.sql("SELECT named_struct('id', 7L) AS value")
    write = orders.write.format("pyspark_kafka").options(**options(bootstrap_servers, topic=source), **typed)
    write.mode("append").save()
    reader = continuous.read(spark).format("pyspark_kafka").options(**options(bootstrap_servers, subscribe=source))
    rows = reader.options(**typed, startingOffsets="earliest").load().select("key", "value")
    writer = rows.writeStream.format("pyspark_kafka").options(**options(bootstrap_servers, topic=target), **typed)
    query = writer.option("checkpointLocation", str(tmp_path)).option("tasks", 1).trigger(availableNow=True).start()
    query.awaitTermination()
    assert listener.flush(PATIENCE_S)
    events = collector.of_job("continuous_query")
    assert is_whole(events)
    end = events[-1]
    assert end["run"]["runId"] == query.runId
    assert (topics(end["inputs"]), topics(end["outputs"])) == ({source: 1}, {target: 1})
    for dataset, topic in ((end["inputs"][0], source), (end["outputs"][0], target)):
        tags = {each["key"]: each["value"] for each in dataset["facets"]["tags"]["tags"]}
        assert tags == {"schema.registry.subject": f"{topic}-value", "schema.registry.version": "1"}
    lines = end["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert {name: each["inputFields"][0]["field"] for name, each in lines.items()} == {
        "key": "key",
        "value.id": "value.id",
    }


def test_collector_that_refuses_events_fails_no_query(
    spark: SparkSession,
    bootstrap_servers: str,
    make_topic: TopicMaker,
    collector: LineageCollector,
    listener: lineage.LineageListener,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = make_topic()
    produce(bootstrap_servers, source, [Record(b"k", b"v", 0)])
    collector.status = 403
    with caplog.at_level(logging.WARNING, "pyspark_kafka.lineage"):
        assert batch(spark, bootstrap_servers, source).count() == 1
        assert batch(spark, bootstrap_servers, source).count() == 1
        assert listener.flush(PATIENCE_S)
    assert (listener.sent, listener.lost) == (0, 2)
    assert len([each for each in caplog.records if each.name == "pyspark_kafka.lineage"]) == 1


def test_listener_that_was_stopped_sends_nothing(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, collector: LineageCollector
) -> None:
    listener = lineage.listen(spark)
    listener.stop()
    assert batch(spark, bootstrap_servers, make_topic()).count() == 0
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(int(PATIENCE_S * 1_000))
    assert collector.events == []


_PROGRAM = """
import sys
from pyspark.sql import SparkSession
{listening}
rows = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", sys.argv[1])
rows.option("subscribe", sys.argv[2]).load().count()
print("openlineage" in sys.modules)
"""


def program(listening: str) -> str:
    session = "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
    return _PROGRAM.format(listening=session + listening)


@pytest.mark.full("Drivers of their own")
def test_program_that_ends_has_sent_its_last_events(
    bootstrap_servers: str, make_topic: TopicMaker, collector: LineageCollector, tmp_path: Path
) -> None:
    listening = re.search(r"```python\n(from pyspark_kafka import lineage\n.*?)```", _PAGE.read_text(), re.DOTALL)
    assert listening is not None
    topic = make_topic()
    assert run_program(program(listening[1]), bootstrap_servers, topic, place=tmp_path).strip() == "True"
    assert collector.states() == ["START", "COMPLETE"]


@pytest.mark.full("Drivers of their own")
def test_program_that_does_not_listen_imports_nothing_of_openlineage(
    bootstrap_servers: str, make_topic: TopicMaker, collector: LineageCollector, tmp_path: Path
) -> None:
    assert (
        run_program(program("import pyspark_kafka"), bootstrap_servers, make_topic(), place=tmp_path).strip() == "False"
    )
    assert collector.events == []


_CONNECT = """
import sys
from pyspark.sql import SparkSession
import pyspark_kafka
from pyspark_kafka import continuous, lineage

remote, servers, source, target, place = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
lineage.listen(spark)
kafka = {"kafka.bootstrap.servers": servers}
read = {**kafka, "subscribe": source, "startingOffsets": "earliest"}
"""
_CONNECT_CONTINUOUS = """
rows = continuous.read(spark).format("pyspark_kafka").options(**read).load().select("value")
write = rows.writeStream.format("pyspark_kafka").options(**kafka).option("topic", target)
query = write.option("checkpointLocation", place + "/checkpoint").option("tasks", 1).trigger(availableNow=True).start()
query.awaitTermination()
"""
_CONNECT_MICRO_BATCH = """
rows = spark.readStream.format("pyspark_kafka").options(**read).load().select("value")
write = rows.writeStream.format("pyspark_kafka").options(**kafka).option("topic", target).queryName("copy")
query = write.option("checkpointLocation", place + "/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
print(query.runId)
"""
_CONNECT_BATCH = """
rows = spark.read.format("pyspark_kafka").options(**read).load()
print(rows.groupBy("partition").count().collect()[0]["count"])
rows.select("value").write.format("pyspark_kafka").options(**kafka).option("topic", target).mode("append").save()
try:
    rows.selectExpr("raise_error('broken') AS value").toArrow()
except Exception:
    print("failed")
typed = spark.read.format("pyspark_kafka").options(**read, valueFormat="json", valueSchema="id INT", mode="PERMISSIVE")
good = [f"'{source}' AS topic", "to_json(value) AS value"]
both = pyspark_kafka.with_dead_letters(typed.load(), good, topic=target)
both.write.format("pyspark_kafka").options(**kafka).mode("append").save()
spark.range(3).count()
lineage.listen(spark).stop()
print(rows.count())
"""


class ConnectProgram(NamedTuple):
    """Runs programs of a Spark Connect client on two topics, of which the source has five records."""

    source: str
    target: str
    arguments: tuple[str, ...]
    place: Path

    def run(self, text: str) -> str:
        """Run a program that listens, and return what it printed."""
        return run_program(_CONNECT + text, *self.arguments, place=self.place)


@pytest.fixture
def connect_program(bootstrap_servers: str, make_topic: TopicMaker, connect_url: str, tmp_path: Path) -> ConnectProgram:
    source, target = make_topic(), make_topic()
    produce(bootstrap_servers, source, [Record(None, b"v", 0)] * 5)
    arguments = connect_url, bootstrap_servers, source, target, str(tmp_path)
    return ConnectProgram(source, target, arguments, tmp_path)


@pytest.mark.full("Spark Connect")
@pytest.mark.parametrize("program", [_CONNECT_CONTINUOUS, _CONNECT_MICRO_BATCH], ids=["continuous", "micro-batch"])
def test_streams_have_the_same_events_on_spark_connect(
    program: str, connect_program: ConnectProgram, collector: LineageCollector
) -> None:
    source, target, *_ = connect_program
    run_id = connect_program.run(program).strip()
    is_continuous = program is _CONNECT_CONTINUOUS
    assert is_whole(collector.of_job("continuous_query" if is_continuous else "write_to_data_source_v2"))
    # The jobs that run it have none.
    assert len({each["run"]["runId"] for each in collector.events}) == 1
    start, end = collector.events[0], collector.events[-1]
    assert is_continuous or end["run"]["runId"] == run_id
    assert (topics(start["inputs"]), topics(start["outputs"])) == ({source: None}, {target: None})
    assert (topics(end["inputs"]), topics(end["outputs"])) == ({source: 5}, {target: 5})
    assert columns(end["inputs"][0])["offset"] == "long"
    assert columns(end["outputs"][0]) == {"value": "binary"}


@pytest.mark.full("Spark Connect")
def test_batches_have_their_topics_on_spark_connect(
    connect_program: ConnectProgram, collector: LineageCollector
) -> None:
    source, target, *_ = connect_program
    assert connect_program.run(_CONNECT_BATCH).split() == ["5", "failed", "5"]
    assert collector.states() == [*["START", "COMPLETE"] * 2, "START", "FAIL", "START", "COMPLETE"]
    read, write, failed, letters = collector.events[1::2]
    assert (topics(read["inputs"]), read["outputs"]) == ({source: 5}, [])
    # The response to a write has no counts.
    assert (topics(write["inputs"]), topics(write["outputs"])) == ({source: None}, {target: None})
    assert write["job"]["name"].endswith(f".{_APPEND}.{target.replace('.', '_')}")
    assert columns(write["outputs"][0]) == {"value": "binary"}
    message = failed["run"]["facets"]["errorMessage"]["message"]
    assert "broken" in message
    assert "JVM stacktrace" not in message
    assert topics(letters["outputs"]) == {source: None, target: None}
