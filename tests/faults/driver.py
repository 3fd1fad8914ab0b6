"""A streaming query from Kafka to Kafka as a program, which stops at points that a file names: `driver.py SPEC.json`.

The specification is what `harness.DriverSpec` writes. At a point the process that comes to it leaves a file
`<batch>.<point>` with its process id in the folder of the run, and stands still until there is `<batch>.<point>.go`; or
it does what the stop says instead. One process does it; others that come to the same point go on. A commit leaves
`<batch>.commit` with what came of it.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from pyspark import SparkConf
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from faults.cluster import prepare
from faults.stamped import WITH_TASK
from faults.stopping import StoppingSource
from pyspark_kafka.testing import ensure_java_for_spark


def start_session(spec: dict[str, Any]) -> SparkSession:
    """Start Spark as a specification says: its folder, its master, and its settings."""
    place = spec["place"]
    ensure_java_for_spark()
    conf = (
        SparkConf()
        .setMaster(spec["master"])
        .setAll(
            [
                ("spark.ui.enabled", "false"),
                ("spark.driver.bindAddress", "127.0.0.1"),
                ("spark.driver.host", "127.0.0.1"),
                ("spark.local.dir", f"{place}/local"),
                ("spark.sql.streaming.minBatchesToRetain", "1000000"),
                ("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
                *spec["conf"].items(),
            ]
        )
    )
    if not spec["master"].startswith("local["):
        prepare(conf, place)
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(StoppingSource)
    return spark


def main(path: str) -> None:
    """Run the query until it is killed, or has read everything."""
    spec = json.loads(Path(path).read_text())
    place = spec["place"]
    spark = start_session(spec)
    stopping = {
        "place": place,
        "watched": spec["checkpoint"],
        "stops": json.dumps(spec["stops"]),
        "plant": spec["plant"],
    }
    rows = spark.readStream.format("stopping_kafka").options(**stopping, **spec["source_options"]).load()
    Path(place, "ready").touch()
    # With a format, values are texts.
    if "valueFormat" in spec["sink_options"]:
        value = "CAST(value AS STRING) AS value"
    elif spec["sink_options"].get("exactlyOnceCommit") == "tasks":
        value = WITH_TASK
    else:
        value = "value"
    writer = (
        rows.selectExpr("key", value)
        .writeStream.format("stopping_kafka")
        .options(**stopping, **spec["sink_options"])
        .option("checkpointLocation", spec["checkpoint"])
    )
    if spec["available_now"]:
        writer = writer.trigger(availableNow=True)
    for left in range(spec["restarts"], -1, -1):
        try:
            writer.start().awaitTermination()
        except StreamingQueryException:
            if not left:
                raise
            traceback.print_exc()
        else:
            # A cluster in this JVM would start executors again while it goes down.
            spark.stop()
            return


if __name__ == "__main__":
    main(sys.argv[1])
