"""A continuous query from Kafka to Kafka as a program: `python -m chaos.continuous.program SPEC.json`.

The specification is `world.ProgramSpec`. A query that ends is noted in `events.jsonl` and started again. The file
`finish` makes it copy what is there, stop, and leave the file `finished`.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from chaos.continuous import striking
from pyspark_kafka import continuous
from pyspark_kafka.continuous.query.handle import ContinuousQuery

_POLL_S = 0.05


def open_session(spec: dict[str, Any]) -> SparkSession:
    """Return a session of the server that the specification names, or start Spark here."""
    if spec["server"]:
        return SparkSession.builder.remote(spec["server"]).create()
    from pyspark_kafka.testing import ensure_java_for_spark  # noqa: PLC0415 - a client needs no Java

    ensure_java_for_spark()
    settings: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": f"{spec['place']}/local",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    return SparkSession.builder.master("local[4]").config(map=settings).getOrCreate()


def start(spark: SparkSession, spec: dict[str, Any]) -> ContinuousQuery:
    """Start the query."""
    frame = continuous.read(spark).format("pyspark_kafka").options(**spec["source"]).load()
    exactly_once = "deliveryGuarantee" in spec["sink"]
    if spec["keeps"] == striking.COUNTING:
        counting = striking.CountingCopy(spec["place"], exactly_once=exactly_once)
        copied = frame.mapWithState(counting, striking.SCHEMA, striking.COUNTS)
    elif spec["keeps"] == striking.IN_WINDOWS:
        copied = (
            frame.mapBatches(striking.timed, striking.TIMED)
            .withWatermark("time", f"{striking.DELAY_MS} ms")
            .groupBy(continuous.window("time", f"{striking.WINDOW_MS} ms"), "topic", "partition", "key")
            .agg(n=("*", "count"), total=("offset", "sum"), handleLateRows=striking.late)
            .mapBatches(striking.StampedWindows(spec["place"], exactly_once=exactly_once), striking.SCHEMA)
        )
    else:
        copied = frame.mapInArrow(striking.StampedCopy(spec["place"], exactly_once=exactly_once), striking.SCHEMA)
    return (
        copied.writeStream.format("pyspark_kafka")
        .options(**spec["sink"])
        .option("checkpointLocation", spec["checkpoint"])
        .trigger(continuous=spec["interval"])
        .start()
    )


def main(path: str) -> None:
    """Run until it is killed or asked to finish."""
    # SIGABRT prints what each thread does.
    faulthandler.enable(all_threads=True)
    spec = json.loads(Path(path).read_text())
    place = Path(spec["place"])
    cloudpickle.register_pickle_by_value(striking)  # type: ignore[no-untyped-call]
    striking.patch_driver(spec["place"])
    if spec["shift"]:
        striking.plant(spec["shift"])
    with (place / "events.jsonl").open("a", buffering=1) as events:

        def say(event: str, **fields: Any) -> None:
            events.write(json.dumps({"time": time.time(), "event": event, **fields}) + "\n")

        spark = open_session(spec)
        query = start(spark, spec)
        say("started")
        while not (place / "finish").exists():
            if not query.isActive:
                say("ended", error="".join(traceback.format_exception(query.exception())))
                query = start(spark, spec)
            time.sleep(_POLL_S)
        query.processAllAvailable()
        query.stop()
        if query.exception() is not None:
            raise query.exception()  # type: ignore[misc]
    (place / "finished").touch()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
