"""Copy a topic to another one, continuously: records flow within milliseconds, progress is committed every second.

    python examples/kafka_to_kafka_continuous.py localhost:9092 orders orders-upper /checkpoints/orders-upper

A function of yours runs in the tasks, over Arrow batches. A record that the query has read is written at least once:
after a failure, those since the last committed epoch are written again. Ctrl-C ends the epoch that runs and commits it;
start the program again, and it continues there. A micro-batch query can continue from the checkpoint as well.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyspark_kafka import continuous

if TYPE_CHECKING:
    from collections.abc import Iterator


def in_capitals(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the records with their values in capitals; runs in the tasks, once for each epoch."""
    for batch in batches:
        text = pc.cast(batch.column("value"), pa.string())
        value = pc.cast(pc.utf8_upper(text), pa.binary())
        yield pa.RecordBatch.from_arrays([batch.column("key"), value], ["key", "value"])


def start(spark: SparkSession, servers: str, source: str, target: str, checkpoint: str) -> continuous.ContinuousQuery:
    """Start the query and return its handle."""
    read = continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    frame = read.option("subscribe", source).option("startingOffsets", "earliest").load()
    return (
        frame.mapInArrow(in_capitals, "key binary, value binary")
        .writeStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", checkpoint)
        .queryName("orders in capitals")
        .trigger(continuous="1 second")
        .start()
    )


def main() -> None:
    """Copy until Ctrl-C, and print a line for each epoch with records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("servers", "source", "target", "checkpoint"):
        parser.add_argument(name)
    parser.add_argument("--once", action="store_true", help="end when everything that is there now is copied")
    arguments = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    query = start(spark, arguments.servers, arguments.source, arguments.target, arguments.checkpoint)
    query.stopOnSignals()
    if arguments.once:
        query.processAllAvailable()
        query.stop()
    shown = -1
    while not query.awaitTermination(1):
        progress = query.lastProgress
        if progress is not None and progress["batchId"] != shown and progress["numInputRows"]:
            shown = progress["batchId"]
            offset = progress["sources"][0]["endOffset"]
            print(f"epoch {shown}: {progress['numInputRows']} records, now at {offset}", flush=True)
    recent = query.recentProgress
    print(f"{sum(each['numInputRows'] for each in recent)} records copied in the last {len(recent)} epochs")


if __name__ == "__main__":
    main()
