"""The programs of docs/stateful.md, run as they stand but for addresses and places, and what the page says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce
from kit.waiting import eventually
from pyspark_kafka.checkpoint import CheckpointFiles, OffsetSeqLog

pytestmark = pytest.mark.full("Programs of the pages")

_DOC = Path(__file__).parents[3] / "docs" / "stateful.md"
WINDOWS, JOIN, STATE, UPDATE, _ = re.findall(r"```python\n(.*?)```", _DOC.read_text(), re.DOTALL)
# The start of a window of the page.
START_S = 1_767_225_600
# The records are old, and brokers delete what is old.
KEPT = {"retention.ms": "-1"}
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER, PARTITIONS = "spark.sql.streaming.stateStore.providerClass", "spark.sql.shuffle.partitions"


class Page:
    """Runs programs of the page on topics and folders of a test.

    Args:
        spark: the session of the run.
        servers: of the broker.
        place: a folder.
        topics: those of the page, each with the one that stands for it.
    """

    def __init__(self, spark: SparkSession, servers: str, place: Path, topics: dict[str, str]) -> None:
        self.servers, self.place, self.topics = servers, place, topics
        self.names: dict[str, Any] = {"spark": spark}

    def run(self, program: str) -> None:
        """Run a program; a query that it starts ends when it has read everything."""
        text = program.replace("localhost:9092", self.servers).replace(
            ".start()", ".trigger(availableNow=True).start()"
        )
        text = text.replace("/checkpoints", str(self.place / "checkpoints")).replace("/data", str(self.place / "data"))
        for topic, own in self.topics.items():
            text = text.replace(f'"{topic}"', f'"{own}"')
        exec(text, self.names)  # noqa: S102 - our own text

    def send(self, topic: str, *records: tuple[str, int, int]) -> None:
        """Send keys, each with its partition and its seconds after the start."""
        made = [Record(key.encode(), b"", partition, (START_S + second) * 1000) for key, partition, second in records]
        produce(self.servers, self.topics[topic], made)

    def copy(self, rows: DataFrame) -> StreamingQuery:
        """Run a query that the page does not start, into files, until it has read everything."""
        writer = rows.writeStream.format("json").option("path", str(self.place / "rows"))
        query = writer.option("checkpointLocation", str(self.place / "rows-checkpoint"))
        started = query.trigger(availableNow=True).start()
        started.awaitTermination()
        return started

    def rows(self) -> list[dict[str, Any]]:
        """Return what `copy` has written."""
        lines = [line for file in (self.place / "rows").glob("*.json") for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[SparkSession]:
    """The session; its settings for state are as before when the test is over."""
    before = {name: spark.conf.get(name) for name in (PROVIDER, PARTITIONS)}
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


def test_windows_of_the_page_are_written_once_and_a_partition_behind_is_late(
    settings: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topics = {"orders": make_topic(2, KEPT), "order-counts": make_topic()}
    page = Page(settings, bootstrap_servers, tmp_path, topics)

    def run() -> StreamingQuery:
        page.run(WINDOWS)
        query: StreamingQuery = page.names["query"]
        query.awaitTermination()
        return query

    def written() -> list[tuple[int, int]]:
        values = [
            json.loads(record.value or b"") for record in consume_committed(bootstrap_servers, topics["order-counts"])
        ]
        starts = [value["start"] for value in values]
        assert all(start.startswith("2026-01-01T00:0") for start in starts)
        return sorted(
            (int(start[14:16]) * 60 + int(start[17:19]), value["count"])
            for start, value in zip(starts, values, strict=True)
        )

    # The other partition has no records, and holds nothing back.
    page.send("orders", ("a", 0, 1), ("b", 0, 2), ("a", 0, 3), ("c", 0, 25), ("d", 0, 60))
    run()
    # The watermark is at 30: the second window ends at 40.
    eventually(lambda: written() == [(0, 2)])
    settings.conf.set(PARTITIONS, "3")
    settings.conf.set(PROVIDER, ROCKSDB)
    page.send("orders", ("e", 1, 5), ("f", 1, 41), ("c", 1, 42), ("g", 0, 100))
    query = run()
    eventually(lambda: written() == [(0, 2), (20, 1), (40, 1)])
    operators = [operator for progress in query.recentProgress for operator in progress.stateOperators]
    assert sum(operator.numRowsDroppedByWatermark for operator in operators) == 1
    log = OffsetSeqLog(CheckpointFiles(str(tmp_path / "checkpoints" / "order-counts")))
    last = log.get(max(log.batch_ids()))
    assert last is not None
    conf = last.metadata["conf"]
    assert (conf[PARTITIONS], conf[PROVIDER].rpartition(".")[2]) == ("2", "HDFSBackedStateStoreProvider")


def test_join_of_the_page_waits_for_the_topic_that_is_behind(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topics = {"orders": make_topic(1, KEPT), "payments": make_topic(1, KEPT)}
    page = Page(spark, bootstrap_servers, tmp_path, topics)
    page.run(WINDOWS.partition("\n")[0])
    page.run(JOIN)
    joined = page.names["joined"].selectExpr("CAST(order_key AS STRING) AS key", "CAST(paid AS LONG) AS paid")
    page.send("orders", ("paid", 0, 1), ("unpaid", 0, 2), ("newest", 0, 500))
    page.send("payments", ("paid", 0, 11))
    page.copy(joined)
    paid = {"key": "paid", "paid": START_S + 11}
    assert page.rows() == [paid]
    page.send("orders", ("newest", 0, 600))
    page.copy(joined)
    assert page.rows() == [paid]
    page.send("payments", ("nobody", 0, 100))
    page.copy(joined)
    # This run knows no time of the orders.
    assert page.rows() == [paid]
    page.send("orders", ("newest", 0, 601))
    page.send("payments", ("nobody", 0, 101))
    page.copy(joined)
    assert sorted(page.rows(), key=str) == [paid, {"key": "unpaid"}]


def test_state_of_the_page_numbers_the_records_of_each_key_over_runs(
    settings: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    page = Page(settings, bootstrap_servers, tmp_path, {"orders": make_topic(1, KEPT), "payments": make_topic()})
    page.run(JOIN.partition("\n\n\norders")[0])
    page.run(STATE)
    for number in range(2):
        page.send("orders", ("a", 0, number), ("b", 0, number), ("a", 0, number))
        page.copy(page.names["numbered"])
    assert sorted(row["value"] for row in page.rows()) == ["a 1", "a 2", "a 3", "a 4", "b 1", "b 2"]


def test_update_mode_of_the_page_writes_what_changed(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    page = Page(spark, bootstrap_servers, tmp_path, {"orders": make_topic(1, KEPT)})
    page.run(JOIN.partition("\n\n\norders")[0])
    for keys in (["a", "b", "a"], ["b"]):
        page.send("orders", *((key, 0, 0) for key in keys))
        page.run(UPDATE)
        page.names["query"].awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "data" / "counts")).collect()
    assert sorted((row.batch, bytes(row.key), row["count"]) for row in rows) == [
        (0, b"a", 2),
        (0, b"b", 1),
        (1, b"b", 2),
    ]
