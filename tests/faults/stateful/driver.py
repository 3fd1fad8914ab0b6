"""Stateful queries as one program, which stops at points that a file names: `driver.py SPEC.json`.

The specification is what `world.StatefulSpec` writes. All queries run in one session, each with a folder of its own for
its stops. Where there are none, the package's own source and sink run. A query is started when the one before it has
done a micro-batch, stands, or has ended: Spark fails a query whose Python processes do not start within 10 s.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from faults.driver import start_session
from faults.stateful.queries import QUERIES, build
from faults.stopping import Stops

_POLL_S = 0.02


def write_files(place: str, stops: Stops, rows: DataFrame, batch: int) -> None:
    """Write a micro-batch into a folder of its own, in the place of what an earlier attempt has written there."""
    rows.write.mode("overwrite").text(f"{place}/{batch}")
    stops.at(batch, "after_commit")


def start(spark: SparkSession, spec: dict[str, Any], query: dict[str, Any]) -> StreamingQuery:
    """Start one of the queries, and wait until its processes are there."""
    name = query["name"]
    place = Path(spec["place"], name)
    place.mkdir()
    stops = [stop for stop in spec["stops"] if stop["query"] == name]
    stopping = {"place": str(place), "watched": query["checkpoint"], "stops": json.dumps(stops), "plant": ""}
    form, own = ("stopping_kafka", stopping) if stops else ("pyspark_kafka", {})

    def read(side: str) -> DataFrame:
        reader = spark.readStream.format(form).options(**own, **spec["source_options"])
        return reader.option("subscribe", spec["topics"][side]).load()

    spark.conf.set("spark.sql.streaming.stateStore.providerClass", query["provider"])
    writer = build(name, read).writeStream.outputMode(QUERIES[name])
    if name == "update":
        # Spark has no update mode for Python sinks.
        own_stops = Stops(str(place), query["checkpoint"], json.dumps(stops))
        writer = writer.foreachBatch(partial(write_files, query["files"], own_stops))
    else:
        writer = writer.format(form).options(**own, **query["sink_options"])
    started = writer.option("checkpointLocation", query["checkpoint"]).trigger(availableNow=True).start()
    while started.isActive and not started.recentProgress and not any(place.iterdir()):
        time.sleep(_POLL_S)
    return started


def main(path: str) -> None:
    """Run the queries until they are killed, or have read everything."""
    spec = json.loads(Path(path).read_text())
    spark = start_session(spec)
    started = [start(spark, spec, query) for query in spec["queries"]]
    for query in started:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
