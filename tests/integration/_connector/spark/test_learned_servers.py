"""Spark starts Python processes while a query runs, and the bootstrap servers may have retired by then."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.reading import load


def test_read_finds_the_cluster_by_the_brokers_that_another_process_has_learned_of(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(None, b"v")])
    host, port = bootstrap_servers.split(":")
    with socket.socket() as retired:
        # Bound and not listening: connections are refused, and nobody else gets the port.
        retired.bind(("127.0.0.1", 0))
        gone = retired.getsockname()

        # Within this function, so that it travels with the code: executors do not find this module.
        def learn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark_kafka._client.client.reuse.learned_servers import (  # noqa: PLC0415 - see above
                LearnedServers,
                application_directory,
            )

            LearnedServers(application_directory()).put((gone,), ((host, int(port)),))
            yield from batches

        spark.range(1).mapInArrow(learn, "id long").collect()
        rows = load(spark, f"{gone[0]}:{gone[1]}", subscribe=topic).collect()
    assert [row.value for row in rows] == [b"v"]
