"""The example of docs/batch-reads.md as it stands, and what it says besides."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.administration import create_partitions
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import load
from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.options import parse_batch_read_options

pytestmark = pytest.mark.full("Programs of the pages")

_PAGE = Path(__file__).parents[4] / "docs" / "batch-reads.md"


def test_the_example_runs_as_it_stands(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, [Record(None, b"%d" % i, partition=i % 2) for i in range(24)])
    # What a reader changes: the address of the broker, and here the name of the topic.
    own = example.replace("localhost:9092", bootstrap_servers).replace('"events"', f'"{topic}"')
    try:
        exec(own, {})  # noqa: S102 - the page's own example
    finally:
        # It is set in the session of all tests.
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    said = capsys.readouterr().out.splitlines()
    assert said == ["24 records", "17 in the part", "4 after the filter"]


def test_partitions_that_are_new_are_seen_by_the_next_load(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    rows = load(spark, bootstrap_servers, subscribe=topic)
    assert rows.count() == 0
    raw = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}
    with borrow_client(parse_batch_read_options(raw).connection) as client:
        create_partitions(client, {topic: 2})
    produce(bootstrap_servers, topic, [Record(None, b"x", partition=i % 2) for i in range(6)])
    assert rows.count() == 3
    assert load(spark, bootstrap_servers, subscribe=topic).count() == 6


def test_an_empty_partition_has_a_task_where_its_end_is_open(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic(partitions=2)
    produce(bootstrap_servers, topic, [Record(None, b"x", partition=0)] * 4)
    ending = json.dumps({topic: {"0": -1, "1": 0}})
    assert load(spark, bootstrap_servers, subscribe=topic).rdd.getNumPartitions() == 2
    assert load(spark, bootstrap_servers, subscribe=topic, maxRecordsPerPartition=2).rdd.getNumPartitions() == 3
    assert load(spark, bootstrap_servers, subscribe=topic, endingOffsets=ending).rdd.getNumPartitions() == 1
