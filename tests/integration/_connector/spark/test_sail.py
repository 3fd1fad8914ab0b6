"""Batch reads and writes on Sail, a Spark Connect server without a JVM; `make test-sail` makes its environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_all, consume_committed, produce
from kit.programs.run import kill_program, start_program
from kit.waiting import eventually
from pyspark_kafka import DefaultSource

# In a process of its own: the sources and sinks set up the process that they run in.
SERVER = """
import threading

from pysail.spark import SparkConnectServer

server = SparkConnectServer(ip="127.0.0.1", port=0)
server.start()
print("listens on", server.listening_address[1], "now", flush=True)
threading.Event().wait()
"""


@pytest.fixture(scope="module")
def sail_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of Sail."""
    log = tmp_path_factory.mktemp("sail") / "server.log"
    process = start_program("-c", SERVER, log=log)
    try:
        eventually(lambda: " now\n" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield f"sc://127.0.0.1:{log.read_text().partition('listens on ')[2].split()[0]}"
    finally:
        kill_program(process)


@pytest.fixture
def session(sail_url: str) -> Iterator[SparkSession]:
    """A session on that server, which knows the format."""
    session = SparkSession.builder.remote(sail_url).create()
    session.dataSource.register(DefaultSource)
    yield session
    session.stop()


def test_format_is_unknown_until_it_is_registered(sail_url: str) -> None:
    session = SparkSession.builder.remote(sail_url).create()
    with pytest.raises(AnalysisException, match="No data source found for: pyspark_kafka"):
        session.read.format("pyspark_kafka").load().collect()
    session.stop()


@pytest.mark.parametrize("pushed", ["true", "false"])
def test_rows_with_headers_are_written_read_and_filtered(
    session: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, pushed: str
) -> None:
    servers, topic = {"kafka.bootstrap.servers": bootstrap_servers}, make_topic(2)
    header = "array(struct('h' AS key, CAST('x' AS BINARY) AS value)) AS headers"
    rows = session.range(0, 20, 1, 4).selectExpr(
        "CAST(id AS STRING) AS value", "CAST(id % 2 AS INT) AS partition", header
    )
    rows.write.format("pyspark_kafka").options(**servers, topic=topic).mode("append").save()
    records = (
        session.read.format("pyspark_kafka")
        .options(**servers, subscribe=topic, includeHeaders="true", pushDownPredicate=pushed)
        .load()
    )
    assert {int(row.value) for row in records.collect()} == {*range(20)}
    found = records.where("partition = 1 AND offset >= 4").select("offset", "value", "headers").collect()
    assert sorted(row.offset for row in found) == [*range(4, 10)]
    assert all(int(row.value) % 2 and row.headers == [("h", b"x")] for row in found)


def test_typed_values_are_written_and_read(
    session: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    servers, topic = {"kafka.bootstrap.servers": bootstrap_servers}, make_topic()
    rows = session.sql("SELECT named_struct('id', id, 'at', TIMESTAMP '2026-01-01 12:00:00') AS value FROM range(5)")
    rows.write.format("pyspark_kafka").options(**servers, topic=topic, valueFormat="json").mode("append").save()
    produce(bootstrap_servers, topic, [Record(None, b'{"id":7,"more":true}')])
    typed = session.read.format("pyspark_kafka").options(
        **servers, subscribe=topic, valueFormat="json", valueSchema="id BIGINT, at TIMESTAMP"
    )
    found = typed.load().selectExpr("value.id", "CAST(value.at AS STRING) AS at").collect()
    assert sorted(row.id for row in found) == [0, 1, 2, 3, 4, 7]
    assert sum((row.at or "").startswith("2026-01-01 12:00:00") for row in found) == 5


def test_exactly_once_write_is_seen_whole_or_not_at_all(
    session: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(2)
    options = {
        "kafka.bootstrap.servers": bootstrap_servers, "topic": topic, "deliveryGuarantee": "exactly_once",
    }  # fmt: skip
    numbers = session.range(0, 40, 1, 4)
    failing = numbers.selectExpr("CAST(IF(id = 33, raise_error('planted'), id) AS STRING) AS value")
    with pytest.raises(Exception, match="planted"):
        failing.write.format("pyspark_kafka").options(**options).mode("append").save()
    assert consume_committed(bootstrap_servers, topic) == []
    numbers.selectExpr("CAST(id AS STRING) AS value").write.format("pyspark_kafka").options(**options).mode(
        "append"
    ).save()
    assert sorted(int(each.value or b"") for each in consume_committed(bootstrap_servers, topic)) == [*range(40)]


def test_streams_are_refused_by_sail(
    session: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    servers, topic = {"kafka.bootstrap.servers": bootstrap_servers}, make_topic()
    read = session.readStream.format("pyspark_kafka").options(**servers, subscribe=topic).load()
    with pytest.raises(AnalysisException, match="only supports streaming data"):
        read.writeStream.format("console").option("checkpointLocation", str(tmp_path / "read")).start()
    rows = session.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    write = rows.writeStream.format("pyspark_kafka").options(**servers, topic=topic)
    with pytest.raises(AnalysisException, match="unsupported extension node for streaming: PythonWriteNode"):
        write.option("checkpointLocation", str(tmp_path / "write")).start()
    assert consume_all(bootstrap_servers, topic) == []
