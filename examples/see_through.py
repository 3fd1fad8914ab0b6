"""See one query from all sides: its lineage, its traces, its state and its lag.

    export OPENLINEAGE_URL=http://localhost:5000 OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318
    python examples/see_through.py localhost:9092 orders orders-by-minute /checkpoints/orders-by-minute

It counts records by key and minute, continuously, for some seconds. Events of OpenLineage and spans of OpenTelemetry go
to the addresses above; the state of the query and its lag are printed. Needs the extras lineage and otel, and an
exporter of OpenTelemetry.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import pyspark_kafka
from pyspark_kafka import continuous, lineage


def as_records(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the counts as records; runs in the tasks."""
    count = pc.cast(pc.cast(rows.column("n"), pa.string()), pa.binary())
    return pa.RecordBatch.from_arrays([rows.column("key"), count], ["key", "value"])


def main(servers: str, source: str, target: str, checkpoint: str, seconds: str = "30") -> None:
    """Run the query, and print what it holds."""
    spark = SparkSession.builder.getOrCreate()
    lineage.listen(spark)
    kafka = {"kafka.bootstrap.servers": servers, "traceContext": "link"}
    read = continuous.read(spark).format("pyspark_kafka").options(**kafka).option("subscribe", source)
    counts = (
        read.option("startingOffsets", "earliest")
        .load()
        .withWatermark("timestamp", "10 seconds", idleTimeout="1 minute")
        .groupBy(continuous.window("timestamp", "1 minute"), "key")
        .agg(n=("*", "count"), handleLateRows=lambda _: None)
        .mapBatches(as_records, "key binary, value binary")
    )
    write = counts.writeStream.format("pyspark_kafka").options(**kafka).option("topic", target)
    query = write.option("checkpointLocation", checkpoint).queryName("orders by minute").start()
    query.awaitTermination(float(seconds))
    query.stop()
    progress = query.lastProgress
    for step in progress.stateOperators if progress else ():
        print(f"{step.operatorName}: {step.numRowsTotal} rows, {step.customMetrics['numTimers']} timers")
    report = pyspark_kafka.lag(kafka, checkpoint=checkpoint)
    for topic in report.topics():
        print(f"{topic.topic}: {topic.records_behind} records behind")
    for waiting in report.waiting:
        print(f"{waiting.key_group} holds windows open")


if __name__ == "__main__":
    main(*sys.argv[1:])
