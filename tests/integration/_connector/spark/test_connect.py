"""The same on Spark Connect: a server of its own in a process of its own, no import of this package in the script."""

from __future__ import annotations

import sys
from pathlib import Path

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from kit.programs.run import run_connect_program

_SCRIPT = """
import sys
from pyspark.sql import SparkSession

servers, source, target, place = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
batch = (spark.read.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
         .option("subscribe", source).load())
print("batch", batch.count(), type(spark).__module__)
query = (
    spark.readStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    .option("subscribe", source).option("startingOffsets", "earliest").load()
    .writeStream.format("pyspark_kafka").option("kafka.bootstrap.servers", servers)
    .option("topic", target).option("checkpointLocation", place + "/checkpoint")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
try:
    # A Connect client asks the server nothing before the first action.
    spark.read.format("pyspark_kafka").option("subscribe", source).load().count()
except Exception as error:
    print("refused", "kafka.bootstrap.servers" in str(error))
spark.stop()
"""


def test_batch_stream_sink_and_errors_work_on_spark_connect(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    produce(bootstrap_servers, source, [Record(b"k%d" % i, b"v%d" % i) for i in range(30)])
    # Not prepared: most programs of users have this Python, with the archive of PySpark first on its path.
    python = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
    said = run_connect_program(
        _SCRIPT, bootstrap_servers, source, target, str(tmp_path), place=tmp_path, environment=python
    )
    assert "batch 30 pyspark.sql.connect" in said
    assert "refused True" in said
    assert {(r.key, r.value) for r in consume(bootstrap_servers, target, 30)} == {
        (b"k%d" % i, b"v%d" % i) for i in range(30)
    }
