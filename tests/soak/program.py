"""The queries of a soak, in one Spark session: `python -m soak.program SPEC.json`.

The specification is `run.Spec`. A query that ends is noted in `events.jsonl` and started again. The file `finish` makes
all of them process what is there, and stop.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from pyspark_kafka import DefaultSource, KafkaSource, continuous
from pyspark_kafka.testing import ensure_java_for_spark

_POLL_S = 0.5
_JOB_PAUSE_S = 5.0
_FIRST_PROGRESS_WITHIN_S = 300.0
# The heap is taken at once and has one size: what grows beside it is seen.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms768m -XX:+AlwaysPreTouch"


class Program:
    """Runs all queries until the file `finish` is there."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.servers, self.topic, self.place = spec["servers"], spec["topic"], Path(spec["place"])
        self._events = (self.place / "events.jsonl").open("a", buffering=1)
        self._lock = threading.Lock()
        self._finishing = threading.Event()
        ensure_java_for_spark()
        settings: dict[str, Any] = {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "768m",
            "spark.driver.extraJavaOptions": _JVM,
            "spark.local.dir": f"{self.place}/local",
            "spark.sql.warehouse.dir": f"{self.place}/warehouse",
            "spark.sql.shuffle.partitions": "2",
        }
        # A task of each continuous query has its core for good; two are left for all other queries.
        self.spark = SparkSession.builder.master("local[4]").config(map=settings).getOrCreate()
        self.spark.sparkContext.setLogLevel("WARN")
        self.spark.dataSource.register(DefaultSource)

    def report(self, event: str, **fields: Any) -> None:
        """Write down what has happened."""
        with self._lock:
            self._events.write(json.dumps({"time": time.time(), "event": event, **fields}) + "\n")

    def _options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers, "subscribe": self.topic, "startingOffsets": "earliest"}

    def _sink(self, name: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers, "topic": f"out-{name}"}

    def micro_batch(self, name: str, **sink: str) -> Any:
        """Start a query that copies in micro-batches."""
        rows = self.spark.readStream.format("pyspark_kafka").options(**self._options()).load()
        writer = rows.select("key", "value").writeStream.format("pyspark_kafka").options(**self._sink(name), **sink)
        return writer.option("checkpointLocation", f"{self.place}/{name}").trigger(processingTime="1 second").start()

    def counts(self, name: str) -> Any:
        """Start a query that reads typed values and counts them by key and window."""
        source = {**self._options(), "valueFormat": "json", "valueSchema": "n LONG"}
        rows = self.spark.readStream.format("pyspark_kafka").options(**source).load()
        windows = rows.withWatermark("timestamp", "10 seconds").groupBy(F.window("timestamp", "10 seconds"), "key")
        shaped = windows.agg(F.max("value.n").alias("n")).selectExpr("key", "cast(n AS string) AS value")
        writer = shaped.writeStream.format("pyspark_kafka").options(**self._sink(name)).outputMode("append")
        return writer.option("checkpointLocation", f"{self.place}/{name}").trigger(processingTime="2 seconds").start()

    def continuous(self, name: str, **sink: str) -> Any:
        """Start a continuous query that copies."""
        frame = continuous.read(self.spark).format("pyspark_kafka").options(**self._options()).load()
        writer = frame.writeStream.format("pyspark_kafka").options(**self._sink(name), **sink).option("tasks", 1)
        return writer.option("checkpointLocation", f"{self.place}/{name}").trigger(continuous="1 second").start()

    def run(self) -> None:
        """Keep the queries and the jobs running until it is time to finish."""
        starts: dict[str, Callable[[], Any]] = {
            "micro-batch": lambda: self.micro_batch("micro-batch"),
            "micro-batch-once": lambda: self.micro_batch("micro-batch-once", deliveryGuarantee="exactly_once"),
            "counts": lambda: self.counts("counts"),
            "continuous": lambda: self.continuous("continuous"),
            "continuous-once": lambda: self.continuous("continuous-once", deliveryGuarantee="exactly_once"),
        }
        running = {}
        for name, start in starts.items():
            # One after the other: Spark waits 10 s for a Python process, whatever else the machine has to do.
            running[name] = start()
            end = time.monotonic() + _FIRST_PROGRESS_WITHIN_S
            while running[name].lastProgress is None:
                if time.monotonic() > end:
                    raise TimeoutError(f"query {name} did not start: {running[name].exception()}")
                if not running[name].isActive:
                    running[name] = start()
                time.sleep(_POLL_S)
        jobs = [threading.Thread(target=self._loop, args=(job,)) for job in (self._batch, self._own_batches())]
        for job in jobs:
            job.start()
        self.report("running")
        while not (self.place / "finish").exists():
            for name, query in running.items():
                if not query.isActive:
                    self.report("ended", query=name, error=str(query.exception()))
                    running[name] = starts[name]()
            time.sleep(_POLL_S)
        self._finishing.set()
        for job in jobs:
            job.join()
        for name, query in running.items():
            query.processAllAvailable()
            query.stop()
            self.report("caught up", query=name)
        self.report("finished")
        self.spark.stop()

    def _loop(self, job: Callable[[], int]) -> None:
        while not self._finishing.is_set():
            try:
                self.report("job", rows=job())
            except Exception as error:  # noqa: BLE001 - whatever it is, it is noted
                self.report("ended", query="job", error=str(error))
            self._finishing.wait(_JOB_PAUSE_S)

    def _batch(self) -> int:
        """Read the newest records of the topic, and write them elsewhere."""
        # Spark finds data sources for writing by the active session of the thread, which this makes it.
        self.spark.createDataFrame([], "x int")
        rows = self.spark.read.format("pyspark_kafka").options(**self._options()).load().orderBy(F.desc("offset"))
        newest = rows.limit(100).select("key", "value")
        newest.write.format("pyspark_kafka").options(**self._sink("batch")).mode("append").save()
        return 100

    def _own_batches(self) -> Callable[[], int]:
        """Return a job that reads what is new with `KafkaSource`."""
        source = KafkaSource(self.spark, self._options(), f"{self.place}/own/sources/0/0")
        done: list[Any] = []

        def job() -> int:
            end = source.getOffset()
            if end is None:
                return 0
            start = done[-1] if done else source.initialOffset()
            rows = source.getBatch(start, end).count()
            source.commit(end)
            done[:] = [end]
            return rows

        return job


def main(path: str) -> None:
    """Run."""
    program = Program(json.loads(Path(path).read_text()))
    try:
        program.run()
    except BaseException as error:
        program.report("program failed", error=repr(error))
        raise


if __name__ == "__main__":
    main(sys.argv[1])
