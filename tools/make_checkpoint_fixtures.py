"""Makes tests/golden/checkpoints: checkpoints that Spark and its JVM connector wrote, file by file.

    python tools/make_checkpoint_fixtures.py FOLDER_WITH_JARS [NAME ...]

The folder has the jars of the connector for the PySpark that runs this, and of what it depends on. Files keep their
bytes, also the hidden checksums; their times are not kept. Run it only to add a case; the stored files are what the
tests read.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import SparkSession

from pyspark_kafka.testing import EmbeddedKafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

STORED = Path(__file__).parents[1] / "tests" / "golden" / "checkpoints"


class Cases:
    """Runs the queries; each method is a case and returns nothing but files."""

    def __init__(self, spark: SparkSession, servers: str, place: Path) -> None:
        self.spark = spark
        self.servers = servers
        self.place = place

    def produce(self, count: int) -> None:
        """Append records to both partitions of the topic."""
        rows = self.spark.range(count).selectExpr("CAST(id AS STRING) AS value", "CAST(id % 2 AS INT) AS partition")
        rows.write.format("kafka").option("kafka.bootstrap.servers", self.servers).option("topic", "orders").save()

    def orders(self, name: str = "orders") -> DataFrame:
        """Return the stream of the topic."""
        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        return reader.option("subscribe", name).option("startingOffsets", "earliest").load()

    def batches(self, frame: DataFrame, name: str, mode: str = "append", fail_at: int = 3) -> None:
        """Run a query four times with one batch each; the last one is planned and fails."""

        def use(rows: DataFrame, batch_id: int) -> None:
            if batch_id == fail_at:
                raise RuntimeError("this batch stays unfinished")
            rows.count()

        for _ in range(4):
            self.produce(10)
            writer = frame.writeStream.foreachBatch(use).outputMode(mode).trigger(availableNow=True)
            query = writer.option("checkpointLocation", str(self.place / name)).start()
            try:
                query.awaitTermination()
            except Exception as error:  # noqa: BLE001 - whatever Spark makes of it
                print(f"{name}: {str(error)[:80]}")

    def append(self) -> None:
        """Write the plainest query."""
        self.batches(self.orders(), "append")

    def append_v2(self) -> None:
        """Write version 2 of the logs."""
        self.spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")
        self.batches(self.orders(), "append-v2")
        self.spark.conf.unset("spark.sql.streaming.offsetLog.formatVersion")

    def aggregation(self) -> None:
        """Write a query with a watermark and a state."""
        frame = self.orders().withWatermark("timestamp", "1 minute").groupBy("partition").count()
        self.batches(frame, "aggregation", "update")

    def two_sources(self) -> None:
        """Write a query that reads Kafka and files."""
        (self.place / "texts").mkdir()
        (self.place / "texts" / "a.txt").write_text("1\n2\n")
        texts = self.spark.readStream.format("text").load(str(self.place / "texts"))
        self.batches(self.orders().selectExpr("CAST(value AS STRING) AS value").union(texts), "two-sources")

    def files(self) -> None:
        """Write a query that reads no Kafka."""
        (self.place / "more").mkdir()
        (self.place / "more" / "a.txt").write_text("1\n2\n")
        self.batches(self.spark.readStream.format("text").load(str(self.place / "more")), "files", fail_at=-1)

    def asynchronous(self) -> None:
        """Write a query with asynchronous progress tracking."""
        writer = self.orders().select("value").writeStream.format("kafka").option("topic", "copies")
        writer = writer.option("kafka.bootstrap.servers", self.servers)
        writer = writer.option("asyncProgressTrackingEnabled", "true").option(
            "asyncProgressTrackingCheckpointIntervalMs", "3000"
        )
        query = writer.option("checkpointLocation", str(self.place / "asynchronous")).start()
        for _ in range(16):
            self.produce(4)
            time.sleep(0.7)
        query.stop()

    def continuous(self) -> None:
        """Write a query of Spark's own continuous engine."""
        writer = self.orders().select("value").writeStream.format("kafka").option("topic", "copies")
        writer = writer.option("kafka.bootstrap.servers", self.servers).trigger(continuous="1 second")
        self.produce(4)
        query = writer.option("checkpointLocation", str(self.place / "continuous")).start()
        for _ in range(5):
            self.produce(4)
            time.sleep(1)
        query.stop()


def main() -> None:
    """Write the files."""
    jars = ",".join(str(jar) for jar in sorted(Path(sys.argv[1]).glob("*.jar")))
    STORED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, EmbeddedKafka() as kafka:
        place = Path(folder)
        builder = SparkSession.builder.master("local[4]").config("spark.jars", jars)
        builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.local.dir", folder).config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
        kafka.create_topic("orders", partitions=2)
        kafka.create_topic("copies", partitions=1)
        cases = Cases(spark, kafka.bootstrap_servers, place)
        runs: list[tuple[str, Callable[[], None]]] = [
            ("append", cases.append),
            ("append-v2", cases.append_v2),
            ("aggregation", cases.aggregation),
            ("two-sources", cases.two_sources),
            ("files", cases.files),
            ("asynchronous", cases.asynchronous),
            ("continuous", cases.continuous),
        ]
        for name, run in runs:
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            run()
            stored = STORED / f"spark-{pyspark.__version__}-{name}"
            if (place / name).exists():
                shutil.rmtree(stored, ignore_errors=True)
                shutil.copytree(place / name, stored)
        spark.stop()


if __name__ == "__main__":
    main()
