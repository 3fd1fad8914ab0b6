"""Copy a topic continuously without records whose key came within the last hour: state by key, in the checkpoint.

    python examples/drop_repeats_continuous.py localhost:9092 orders orders-once /checkpoints/orders-once

The state has a value for each key that was let through in the last hour. Stop the program, or kill it, and start it
again: it knows the keys of all records before the last committed epoch, and only those. Records without a key are left
out. All records of a key must be in one partition, as producers send them by default.
"""

from __future__ import annotations

import argparse

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyspark_kafka import continuous


def first_of_key(rows: pa.RecordBatch, state: continuous.StateByKey) -> pa.RecordBatch:
    """Return the records whose key has no value yet, and set one; runs in the tasks, for each Arrow batch."""
    keys = rows.column("key")
    known = state.get(keys).column("offset").is_valid().to_pylist()
    taken: set[bytes] = set()
    keep = []
    for key, is_known in zip(keys.to_pylist(), known, strict=True):
        keep.append(not is_known and key not in taken)
        taken.add(key)
    kept = rows.filter(pa.array(keep, pa.bool_()))
    state.update(kept.column("key"), offset=kept.column("offset"))
    return kept.select(["key", "value"])


def start(spark: SparkSession, servers: str, source: str, target: str, checkpoint: str) -> continuous.ContinuousQuery:
    """Start the query and return its handle."""
    read = continuous.read(spark).format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    frame = read.option("subscribe", source).option("startingOffsets", "earliest").load()
    return (
        frame.where(pc.field("key").is_valid())
        .mapWithState(first_of_key, "key binary, value binary", "offset bigint", ttl="1 hour")
        .writeStream.format("pyspark_kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", checkpoint)
        .queryName("orders once")
        .trigger(continuous="1 second")
        .start()
    )


def main() -> None:
    """Copy until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("servers", "source", "target", "checkpoint"):
        parser.add_argument(name)
    parser.add_argument("--once", action="store_true", help="end when everything that is there now is copied")
    arguments = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    query = start(spark, arguments.servers, arguments.source, arguments.target, arguments.checkpoint)
    # Ctrl-C ends the epoch that runs and commits it.
    query.stopOnSignals()
    if arguments.once:
        query.processAllAvailable()
        query.stop()
    query.awaitTermination()


if __name__ == "__main__":
    main()
