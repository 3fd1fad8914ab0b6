"""A program of a user on a cluster: a batch, a micro-batch query and a continuous query, in one application.

    spark-submit … on_cluster.py <plan.json>

The plan has:

| Key | Meaning |
| --- | --- |
| `servers` | of Kafka |
| `source`, `batch`, `micro`, `continuous` | topics; the queries copy the first one into each of the others |
| `checkpoints` | the location of the checkpoints |
| `notes` | a folder that driver, executors and test share |
| `held` | whether the micro-batch query stands still until its container is killed |
| `endless` | whether the continuous query runs until the test writes the note `stop`; otherwise until it has read all |

When an endless query has started, the note `started` has the id of the application. At the end, the note `found` has
what the program found. The program imports what users have, and nothing of the tests.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import pyspark_kafka
from pyspark_kafka import continuous
from pyspark_kafka.records import codec_info

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

_MAX_S = 400.0


def describe_place(_: int) -> str:
    """Return where the package was found, and whether its codec is compiled."""
    return json.dumps([pyspark_kafka.__file__, codec_info().compiled])


def holding(folder: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that stands still at the first batch that any task has, and notes its container."""

    def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            written, note = Path(folder, f".held-{os.getpid()}"), Path(folder, "held")
            written.write_text(os.environ["CONTAINER_ID"])
            try:
                os.link(written, note)
            except FileExistsError:
                pass
            else:
                # The test kills this process.
                time.sleep(_MAX_S)
                raise TimeoutError("nobody killed the container")
            yield batch

    return hold


def write(frame: Any, options: dict[str, str], topic: str) -> Any:
    """Return the writer of a query, exactly once."""
    return (
        frame.writeStream.format("pyspark_kafka")
        .options(**options)
        .option("topic", topic)
        .option("deliveryGuarantee", "exactly_once")
    )


def main() -> None:
    """Run the plan."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    kafka = {"kafka.bootstrap.servers": plan["servers"]}
    source = {**kafka, "subscribe": plan["source"], "startingOffsets": "earliest"}
    notes = Path(plan["notes"])
    spark = SparkSession.builder.getOrCreate()
    places = spark.range(8).select(udf(describe_place, "string")("id").alias("place")).distinct()
    found: dict[str, Any] = {
        "driver": json.loads(describe_place(0)),
        "tasks": [json.loads(row.place) for row in places.collect()],
    }
    checked = pyspark_kafka.check(kafka, spark, cluster=True, timeout_s=120)
    found["check"] = [each.to_json() for each in checked.findings]

    rows = spark.read.format("pyspark_kafka").options(**kafka, subscribe=plan["source"]).load()
    rows.select("value").write.format("pyspark_kafka").options(**kafka, topic=plan["batch"]).mode("append").save()

    frame = spark.readStream.format("pyspark_kafka").options(**source).load().select("value")
    if plan["held"]:
        frame = frame.mapInArrow(holding(plan["notes"]), "value binary")
    writer = write(frame, kafka, plan["micro"]).option("checkpointLocation", f"{plan['checkpoints']}/micro")
    writer.trigger(availableNow=True).start().awaitTermination()

    lanes: Any = continuous.read(spark).format("pyspark_kafka").options(**source).load().select("value")
    writer = write(lanes, kafka, plan["continuous"]).option("checkpointLocation", f"{plan['checkpoints']}/continuous")
    if plan["endless"]:
        query = writer.trigger(continuous="200 ms").start()
        (notes / "started").write_text(spark.sparkContext.applicationId)
        end = time.monotonic() + _MAX_S
        while not (notes / "stop").exists() and time.monotonic() < end:
            query.awaitTermination(0.1)
        query.stop()
    else:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    found["error"] = str(query.exception() or "")
    found["epochs"] = query.lastProgress.batchId + 1
    (notes / "found").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
