"""Read a past batch of a streaming query again: exactly the records it had, out of the query's checkpoint.

    python examples/replay_batch.py /checkpoints/orders 17 -o kafka.bootstrap.servers=localhost:9092 --to /tmp/batch-17

The checkpoint is only read. It may be that of `format("pyspark_kafka")` or of Spark's own connector. Without `--to` the
records are shown, not written.
"""

from __future__ import annotations

import argparse
import json
import sys

from pyspark.sql import SparkSession

from pyspark_kafka import KafkaSource
from pyspark_kafka.checkpoint import CheckpointFiles, InitialOffsetLog, KafkaSourceOffset, OffsetSeqLog
from pyspark_kafka.errors import ConnectorError


def find_range(
    files: CheckpointFiles, batch_id: int, source: str, start: str | None
) -> tuple[KafkaSourceOffset, KafkaSourceOffset]:
    """Return where a batch began and where it ended."""
    log = OffsetSeqLog(files)
    batch = log.get(batch_id)
    end_json = batch.of_source(source) if batch else None
    if end_json is None:
        sys.exit(f"{files.shown} has no offsets of batch {batch_id}; it has the batches {log.batch_ids()}.")
    end = KafkaSourceOffset.from_json(end_json)
    before = log.get(batch_id - 1) if batch_id > 0 else None
    start = start or (before.of_source(source) if before else None)
    if start is not None:
        return KafkaSourceOffset.from_json(start), end
    if batch_id > 0 and before is None:
        sys.exit(f"{files.shown} no longer has batch {batch_id - 1}, whose end is the start. Name it: --start JSON")
    # The source's first batch: its end may carry its start; else the source may have kept it in a file.
    kept = KafkaSourceOffset(end.starts) if end.starts else InitialOffsetLog(files, f"sources/{source}").get()
    if kept is None:
        sys.exit(f"{files.shown} does not hold where batch {batch_id} began. Name it: --start JSON")
    return kept, end


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description="Read a past batch of a streaming query again.")
    parser.add_argument("checkpoint", help="the query's checkpointLocation: a path or URI")
    parser.add_argument("batch", type=int, help="the batch's id, as in the query's progress")
    parser.add_argument(
        "-o", "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the source"
    )
    parser.add_argument("--source", default="0", help="which source of the query, if it has several; they count from 0")
    parser.add_argument("--start", help='where the batch began, if the checkpoint does not tell: {"topic":{"0":100}}')
    parser.add_argument("--to", help="folder for the records, as Parquet; it must not exist")
    arguments = parser.parse_args()

    try:
        replay(arguments)
    except ConnectorError as error:
        sys.exit(str(error))


def replay(arguments: argparse.Namespace) -> None:
    """Find the range, and read it."""
    files = CheckpointFiles(arguments.checkpoint)
    start, end = find_range(files, arguments.batch, arguments.source, arguments.start)
    # The partitions of the batch, whatever the query subscribed to.
    offsets = KafkaSourceOffset(end.partitions).to_dict()
    assigned = {topic: [int(number) for number in by_partition] for topic, by_partition in offsets.items()}
    options = dict(option.split("=", maxsplit=1) for option in arguments.option)

    spark = SparkSession.builder.appName(f"replay of batch {arguments.batch}").getOrCreate()
    records = KafkaSource(spark, {"assign": json.dumps(assigned), **options}).getBatch(start, end)
    print(f"batch {arguments.batch}: {start} to {KafkaSourceOffset(end.partitions)}, {records.count()} records")
    if arguments.to:
        records.write.parquet(arguments.to)
    else:
        records.selectExpr("topic", "partition", "offset", "timestamp", "CAST(value AS STRING) AS value").show(20)
    spark.stop()


if __name__ == "__main__":
    main()
