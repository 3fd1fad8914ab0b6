"""The queries under test, in one Spark session: `driver.py SPEC.json`.

The specification is `world.DriverSpec`. What happens is written to `events.jsonl` in the folder of the run, a JSON
object a line. A query that ends is noted with its error and started again. The file `finish` makes it read what is
there, and end.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkConf
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.streaming.query import StreamingQuery

from chaos.continuous import flows
from chaos.planted import PlantedSource
from chaos.world import WINDOW_S
from pyspark_kafka import DefaultSource
from pyspark_kafka.continuous.query.handle import ContinuousQuery
from pyspark_kafka.testing import ensure_java_for_spark

_POLL_S = 0.5
_FINISH_WITHIN_S = 120.0
_FIRST_BATCH_WITHIN_S = 300.0
_BATCH_PAUSE_S = 2.0
_ROWS_PER_WRITE = 100
# What each output record says: where it was read, in which task of which micro-batch, and what it was. A micro-batch is
# known by its time, which the offset log has as well and which stays when it is run again; an attempt of a task by its
# task context, as each has one of its own; a row of it by one as well.
SAYS = (
    "topic",
    "partition",
    "offset",
    "unix_millis(timestamp)",
    "unix_millis(current_timestamp())",
    "spark_partition_id()",
    "reflect('org.apache.spark.TaskContext', 'get')",
    "uuid()",
    "cast(value AS string)",
)
COPY = f"concat_ws('|', {', '.join(SAYS)})"


class Driver:
    """Runs until it is asked to finish."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.place = Path(spec["place"])
        self._events = (self.place / "events.jsonl").open("a", buffering=1)
        self._lock = threading.Lock()
        self._finishing = threading.Event()
        self._starts: dict[str, int] = {}
        self.spark = self._make_session()

    def say(self, event: str, **fields: Any) -> None:
        """Write down what has happened."""
        with self._lock:
            self._events.write(json.dumps({"time": time.time(), "event": event, **fields}) + "\n")

    @property
    def bootstrap(self) -> str:
        """The server that a job that starts now is given."""
        return (self.place / "bootstrap").read_text()

    def _make_session(self) -> SparkSession:
        ensure_java_for_spark()
        conf = SparkConf().setMaster(self.spec["master"])
        conf.setAll(
            [
                ("spark.ui.enabled", "false"),
                ("spark.ui.showConsoleProgress", "false"),
                ("spark.driver.bindAddress", "127.0.0.1"),
                ("spark.driver.host", "127.0.0.1"),
                ("spark.local.dir", f"{self.place}/local"),
                ("spark.sql.warehouse.dir", f"{self.place}/warehouse"),
                ("spark.sql.shuffle.partitions", "2"),
                ("spark.sql.session.timeZone", "UTC"),
                ("spark.sql.streaming.minBatchesToRetain", "1000000"),
                *self.spec["conf"].items(),
            ]
        )
        if self.spec["jars"]:
            conf.set("spark.jars", ",".join(self.spec["jars"]))
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
        spark.sparkContext.setLogLevel("WARN")
        spark.dataSource.register(DefaultSource)
        spark.dataSource.register(PlantedSource)
        flows.patch_driver()
        return spark

    def _read(self, query: dict[str, Any]) -> DataFrame:
        options = {"kafka.bootstrap.servers": self.bootstrap, "startingOffsets": "earliest", **query["source"]}
        return self.spark.readStream.format(query["format"]).options(**options).load()

    def start(self, name: str) -> StreamingQuery | ContinuousQuery:
        """Start a query, or start it again."""
        query = self.spec["queries"][name]
        made = self._start_continuous if query["tasks"] else self._start_micro_batches
        started = made(query, f"{name}-{self._starts.get(name, 0)}")
        self._starts[name] = self._starts.get(name, 0) + 1
        self.say("started", query=name, start=self._starts[name])
        return started

    def _start_continuous(self, query: dict[str, Any], name: str) -> ContinuousQuery:
        return flows.start(self.spark, query, name, self.bootstrap)

    def _start_micro_batches(self, query: dict[str, Any], name: str) -> StreamingQuery:
        rows = self._read(query)
        if query["shape"] == "copy":
            shaped = rows.selectExpr("key", f"cast({COPY} AS binary) AS value")
        else:
            counts = rows.withWatermark("timestamp", f"{query['watermark_s']} seconds").groupBy(
                F.window("timestamp", f"{WINDOW_S} seconds"), F.col("partition")
            )
            shaped = counts.count().selectExpr(
                "cast(concat_ws('|', unix_millis(window.start), partition) AS binary) AS key",
                "cast(concat_ws('|', unix_millis(window.start), partition, count) AS binary) AS value",
            )
        return (
            shaped.writeStream.format(query["format"])
            .queryName(name)
            .options(**{"kafka.bootstrap.servers": self.bootstrap, **query["sink"]})
            .option("checkpointLocation", query["checkpoint"])
            .trigger(processingTime=query["trigger"])
            .start()
        )

    def _start_first(self, name: str) -> StreamingQuery | ContinuousQuery:
        """Start a query and wait for its first micro-batch, or epoch."""
        query = self.start(name)
        end = time.monotonic() + _FIRST_BATCH_WITHIN_S
        while query.lastProgress is None:
            if not query.isActive:
                self.say("not started", query=name, error=str(query.exception()))
                query = self.start(name)
            if time.monotonic() > end:
                raise TimeoutError(f"query {name} has done no micro-batch within {_FIRST_BATCH_WITHIN_S:g} s")
            time.sleep(_POLL_S)
        return query

    def run(self) -> None:
        """Keep the queries and the batch jobs running until it is time to finish."""
        # One after the other: Spark waits 10 s for a Python process, whatever else the machine has to do.
        running = {name: self._start_first(name) for name in self.spec["queries"]}
        loops = [
            threading.Thread(target=self._loop, args=(job,), daemon=True)
            for job in (self._read_batch, self._write_batch)
            if self.spec["batch_topics"]
        ]
        for loop in loops:
            loop.start()
        self.say("running")
        told: dict[str, int] = {}
        ended: set[str] = set()
        while not (self.place / "finish").exists():
            for name, query in running.items():
                progress = query.lastProgress
                if progress is not None and progress["batchId"] != told.get(name):
                    told[name] = progress["batchId"]
                    self.say("progress", query=name, batch=progress["batchId"], took=progress["durationMs"])
                if not query.isActive and name not in ended:
                    self.say("ended", query=name, error=str(query.exception()))
                    ended.add(name)
                if name in ended:
                    try:
                        running[name] = self.start(name)
                    except Exception as error:  # noqa: BLE001 - whatever ended it may last
                        self.say("not started", query=name, error=str(error))
                    else:
                        ended.discard(name)
            time.sleep(_POLL_S)
        self._finishing.set()
        for loop in loops:
            loop.join(_FINISH_WITHIN_S)
        finishing = [threading.Thread(target=self._finish, args=each, daemon=True) for each in running.items()]
        for thread in finishing:
            thread.start()
        for thread in finishing:
            thread.join(_FINISH_WITHIN_S)
        self.say("finished")

    def _finish(self, name: str, query: StreamingQuery | ContinuousQuery) -> None:
        try:
            query.processAllAvailable()
            query.stop()
            self.say("caught up", query=name)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is noted
            self.say("ended", query=name, error=str(error))

    def _loop(self, job: Callable[[int], None]) -> None:
        number = 0
        while not self._finishing.is_set():
            try:
                job(number)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is noted
                self.say("batch failed", job=job.__name__.strip("_"), number=number, error=str(error)[:4000])
            number += 1
            self._finishing.wait(_BATCH_PAUSE_S)

    def _read_batch(self, number: int) -> None:
        """Read ranges that are there, and count."""
        text = (self.place / "readable.json").read_text()
        ranges = {int(key): value for key, value in json.loads(text)["ranges"].items()}
        if not ranges:
            return
        topic = self.spec["batch_topics"]["read"]
        self.say("batch read", number=number, readable=json.loads(text)["number"])
        rows = (
            self.spark.read.format(self.spec["batch_format"])
            .option("kafka.bootstrap.servers", self.bootstrap)
            # Not a subscription: a partition that was added meanwhile would need an offset, too.
            .option("assign", json.dumps({topic: sorted(ranges)}))
            .option("startingOffsets", json.dumps({topic: {key: start for key, (start, _) in ranges.items()}}))
            .option("endingOffsets", json.dumps({topic: {key: end for key, (_, end) in ranges.items()}}))
            .load()
        )
        found = {
            row["partition"]: (row["first"], row["last"] + 1, row["rows"], row["offsets"])
            for row in rows.groupBy("partition")
            .agg(
                F.min("offset").alias("first"),
                F.max("offset").alias("last"),
                F.count("*").alias("rows"),
                F.countDistinct("offset").alias("offsets"),
            )
            .collect()
        }
        wanted = {key: (start, end, end - start, end - start) for key, (start, end) in ranges.items() if end > start}
        if found == wanted:
            self.say("batch done", job="read_batch", number=number)
        else:
            self.say("batch wrong", job="read_batch", number=number, found=str(found), wanted=str(wanted))

    def _write_batch(self, number: int) -> None:
        # Spark finds data sources for writing by the active session of the thread, which this makes it.
        rows = self.spark.createDataFrame(
            [(b"%d" % row, b"%d|%d" % (number, row)) for row in range(_ROWS_PER_WRITE)], "key binary, value binary"
        )
        (
            rows.write.format(self.spec["batch_format"])
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("topic", self.spec["batch_topics"]["write"])
            .mode("append")
            .save()
        )
        self.say("batch done", job="write_batch", number=number, rows=_ROWS_PER_WRITE)


def main(path: str) -> None:
    """Run."""
    # As Spark's lines.
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%y/%m/%d %H:%M:%S")
    driver = Driver(json.loads(Path(path).read_text()))
    try:
        driver.run()
    except BaseException as error:
        driver.say("driver failed", error=repr(error))
        raise
    driver.spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
