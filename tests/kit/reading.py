"""Connections, clients and reads of tests, on every level: a client, a fetcher, a task, a query.

Each takes what a test has: the address of a broker as text, a list of addresses, or a cluster of the kit.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa
from kafka.protocol.consumer import FetchRequest
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka._base.model import OffsetRange
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.fetch.fetcher import Fetcher
from pyspark_kafka._client.client.fetch.request import FetchFrame
from pyspark_kafka._client.client.transactions.group_positions import GroupPositions
from pyspark_kafka._client.options import ConnectionOptions, FetchOptions
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA
from pyspark_kafka._connector.source.executor.partition_reader import KafkaPartitionReader
from pyspark_kafka._connector.source.input_partition import KafkaInputPartition, KafkaPartitionReaderFactory
from pyspark_kafka.connector import PartitionReader
from pyspark_kafka.records import iter_decode

# For clusters that answer at once: no test waits for a pause between two attempts.
FAST: dict[str, Any] = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 5}
# For clusters of which a part is silent: who waits for it alone is later than a slow machine makes anybody.
PATIENT: dict[str, Any] = {"api_timeout_ms": 120_000, "connect_timeout_ms": 60_000, "request_timeout_ms": 60_000}
# As FAST, for fetches.
FAST_FETCH: dict[str, Any] = {"max_wait_ms": 1, "poll_timeout_ms": 5_000}


class Brokers(Protocol):
    """A broker or several, real or fake."""

    @property
    def bootstrap_servers(self) -> str | Sequence[tuple[str, int]]:
        """The addresses, as "host:port,host:port" or in pairs."""


# What a test has of its brokers.
Servers = str | Sequence[tuple[str, int]] | Brokers | ConnectionOptions


def options_for(servers: Servers, **changes: Any) -> ConnectionOptions:
    """Return the options of a connection to these brokers."""
    if isinstance(servers, ConnectionOptions):
        return replace(servers, **changes)
    addresses = servers if isinstance(servers, (str, Sequence)) else servers.bootstrap_servers
    if isinstance(addresses, str):
        parts = [text.rpartition(":") for text in addresses.split(",")]
        addresses = [(host, int(port)) for host, _, port in parts]
    return ConnectionOptions(tuple(addresses), **changes)


def client_of(servers: Servers, **changes: Any) -> KafkaClient:
    """Return a new client of these brokers; use it in a `with` statement."""
    return KafkaClient(options_for(servers, **changes))


def positions_of_group(servers: Servers, group: str) -> dict[int, int]:
    """Return the positions that Kafka's coordinator has of a group, by partition: its topics are one."""
    with client_of(servers) as client:
        found = GroupPositions(client, group).fetch()
    return {topic_partition.partition: position.offset for topic_partition, position in found.items()}


def read_range(
    client: KafkaClient,
    offset_range: OffsetRange,
    fetch: FetchOptions | None = None,
    *,
    columns: Sequence[str] = ("value",),
) -> Iterator[list[dict[str, Any]]]:
    """Fetch and decode a range as a source does; yield the rows of each response."""
    fetch = fetch or FetchOptions()
    with Fetcher(client, [offset_range], fetch) as fetcher:
        for topic_partition, fetched in fetcher:
            position, rows = fetched.start_offset, list[dict[str, Any]]()
            for decoded in iter_decode(
                fetched.records,
                start_offset=position,
                end_offset=offset_range.end_offset,
                isolation_level=fetch.isolation_level.value,
                aborted_transactions=fetched.aborted_transactions,
                columns=list(columns),
            ):
                rows += decoded.batch.to_pylist()
                position = decoded.next_offset
            fetcher.confirm(topic_partition, position)
            yield rows


def reader_of(
    servers: Servers,
    *ranges: OffsetRange,
    task: KafkaInputPartition | None = None,
    columns: Sequence[str] = ("offset",),
    fail_on_data_loss: bool = True,
    leaves_recreated: bool = False,
    **fetch: Any,
) -> KafkaPartitionReader:
    """Return the reader of a task, or of a task of these ranges; `fetch` are fetch options."""
    schema = pa.schema([SOURCE_SCHEMA.field(name) for name in columns])
    factory = KafkaPartitionReaderFactory(
        options_for(servers), FetchOptions(**fetch), schema, fail_on_data_loss, leaves_recreated
    )
    reader = factory.createReader(task or KafkaInputPartition(ranges[0], ranges[1:]))
    assert isinstance(reader, KafkaPartitionReader)
    return reader


def drain(reader: PartitionReader) -> Generator[pa.RecordBatch, None, None]:
    """Read a task to its end as an engine does; the reader is closed then, and after an error."""
    try:
        while reader.next():
            yield reader.get()
    finally:
        reader.close()


def read(servers: Servers, *ranges: OffsetRange, **arguments: Any) -> Generator[dict[str, Any], None, None]:
    """Yield the rows of a task; the arguments are those of `reader_of`."""
    for batch in drain(reader_of(servers, *ranges, **arguments)):
        yield from batch.to_pylist()


def column_of(batches: Iterable[pa.RecordBatch], name: str) -> list[Any]:
    """Return the values of one column of all batches."""
    return [value for batch in batches for value in batch.column(name).to_pylist()]


def load(spark: SparkSession, bootstrap_servers: str, **options: Any) -> DataFrame:
    """Return what Spark reads in a batch query with these options."""
    reader = spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", bootstrap_servers)
    return reader.options(**options).load()


def decoded_fetch(frame: FetchFrame, version: int) -> Any:
    """Return a Fetch request as a broker decodes it."""
    data = b"".join(frame.build(version, 1, "me"))
    return FetchRequest.decode(data, version=version, header=True, framed=True)
