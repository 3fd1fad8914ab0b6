"""Measure how long a warm worker takes from a planned range to its first record: one record, read 200 times.

Warm means what it means in a Spark executor: the process has read from the cluster before, so its pool holds a client
with a connection and with metadata. The goal is under 10 ms. In turns with the reads, a bare request that the broker
answers from memory is timed: what the machine and the broker take whatever is read.
Prints the figures and writes JSON.
Run: PYTHONPATH=src python bench/first_record.py [--bootstrap-servers HOST:PORT] [--reads N] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from topics import fill_topic

from pyspark_kafka._base.model import OffsetRange, TopicPartition
from pyspark_kafka._client.client.admin.topics import NewTopic, create_topics
from pyspark_kafka._client.client.cluster.pool import borrow_client, close_clients
from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest
from pyspark_kafka._client.options import FetchOptions, parse_batch_read_options
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.administration import delete_topic

if TYPE_CHECKING:
    from pyspark_kafka._client.options import ConnectionOptions

_RECORDS = 1_000
_GOAL_MS = 10.0


def connection_options(bootstrap_servers: str) -> ConnectionOptions:
    """Return the options that an executor connects with."""
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": "any"}
    return parse_batch_read_options(options).connection


def first_record_ms(factory: KafkaPartitionReaderFactory, topic: str, offset: int) -> float:
    """Read the range of one record as a task does; return the milliseconds to its batch."""
    partition = KafkaInputPartition(OffsetRange(TopicPartition(topic, 0), offset, offset + 1))
    began = time.perf_counter()
    reader = factory.createReader(partition)
    found = reader.next() and reader.get().num_rows
    took = (time.perf_counter() - began) * 1000
    reader.close()
    if found != 1:
        raise AssertionError(f"offset {offset} of {topic} gave {found} records")
    return took


def bare_request_ms(options: ConnectionOptions) -> float:
    """Ask the broker for its versions; return the milliseconds to the answer."""
    with borrow_client(options) as client:
        connection = client.any_broker.connect(client.deadline())
        request = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
        began = time.perf_counter()
        connection.call(request, client.deadline())
        return (time.perf_counter() - began) * 1000


def describe(name: str, values: list[float]) -> str:
    """Return the median and the tail of timings."""
    ordered = sorted(values)
    return (
        f"{name}: p50 {statistics.median(ordered):.2f} ms, p99 {percentile(ordered, 0.99):.2f} ms, "
        f"longest {ordered[-1]:.2f} ms"
    )


def percentile(sorted_values: list[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed."""
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bootstrap-servers", help="a running broker; one is started if left out")
    parser.add_argument("--reads", type=int, default=200)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "first_record.json")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        servers = arguments.bootstrap_servers
        if servers is None:
            servers = stack.enter_context(EmbeddedKafka()).bootstrap_servers
        options = connection_options(servers)
        topic = f"first-record-{uuid.uuid4().hex[:8]}"
        with borrow_client(options) as client:
            create_topics(client, [NewTopic(topic)])
        fill_topic(servers, topic, records=_RECORDS, codec="lz4")
        close_clients()

        factory = KafkaPartitionReaderFactory(options, FetchOptions(), SOURCE_SCHEMA, fail_on_data_loss=True)
        cold = first_record_ms(factory, topic, 0)
        warm, bare = [], []
        for number in range(arguments.reads):
            warm.append(first_record_ms(factory, topic, number * 7 % _RECORDS))
            bare.append(bare_request_ms(options))
        close_clients()
        delete_topic(servers, topic)
    print(describe(f"first record of {arguments.reads} warm reads (goal: < {_GOAL_MS:g} ms)", warm))
    print(describe("bare request, in turns with them", bare))
    print(f"first record of a cold process: {cold:.1f} ms")
    output: Path = arguments.output
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"warm_ms": warm, "bare_request_ms": bare, "cold_ms": cold}, indent=2) + "\n")
    print(f"JSON: {output}")


if __name__ == "__main__":
    main()
