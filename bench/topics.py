"""Topics full of records to measure with: filled through the package's own writer, the same bytes every time."""

from __future__ import annotations

import random

import pyarrow as pa

from pyspark_kafka._client.options import parse_write_options
from pyspark_kafka._connector.sink.columns import SinkColumns
from pyspark_kafka._connector.sink.executor.data_writer import KafkaDataWriter

_ROWS = 20_000
_CITIES = ("Berlin", "Paris", "Madrid", "Rome", "Warsaw", "Oslo", "Lisbon", "Vienna")


def order_rows(value_bytes: int, seed: int = 11) -> pa.RecordBatch:
    """Return rows of a 10-byte key and a JSON value of exactly `value_bytes`; compressible about as real events are."""
    draw = random.Random(seed)
    keys, values = [], []
    for row in range(_ROWS):
        head = b'{"id":%d,"city":"%s","amount":%d,"note":"' % (
            row,
            draw.choice(_CITIES).encode(),
            draw.randrange(10**6),
        )
        note = draw.randbytes(value_bytes).hex().encode()[: max(0, value_bytes - len(head) - 2)]
        keys.append(b"k%09d" % draw.randrange(10**9))
        values.append((head + note + b'"}')[:value_bytes])
    return pa.record_batch([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], names=["key", "value"])


def fill_topic(bootstrap_servers: str, topic: str, *, records: int, codec: str, value_bytes: int = 90) -> None:
    """Write `records` records; returns when all are acknowledged."""
    options = parse_write_options(
        {"kafka.bootstrap.servers": bootstrap_servers, "topic": topic, "kafka.compression.type": codec}, streaming=False
    )
    rows = order_rows(value_bytes)
    writer = KafkaDataWriter(options, SinkColumns(key=0, value=1))
    try:
        for first in range(0, records, rows.num_rows):
            writer.write(rows.slice(0, min(rows.num_rows, records - first)))
        writer.commit()
    finally:
        writer.close()
