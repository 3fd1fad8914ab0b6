"""A program of its own: a query from Kafka to Kafka in a new Spark, and what is seen of its Python processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def main() -> None:
    """Run the query of the task in the first argument; print what was seen as JSON."""
    task = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[1]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": f"{task['place']}/local",
        "spark.sql.warehouse.dir": f"{task['place']}/warehouse",
        **task["config"],
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    kafka = {"kafka.bootstrap.servers": task["servers"]}
    read_from, write_to = task["topics"]
    source = spark.readStream.format("pyspark_kafka").options(**kafka)
    rows = source.option("subscribe", read_from).option("startingOffsets", "earliest").load().select("value")
    writer = rows.writeStream.format("pyspark_kafka").options(**kafka).option("topic", write_to)
    query = writer.option("checkpointLocation", f"{task['place']}/checkpoint").start()
    query.processAllAvailable()
    jvm: Any = spark._jvm
    # The stream's own process ends with the query.
    seen = steps(int(jvm.java.lang.ProcessHandle.current().pid()))
    query.stop()
    found = {
        "steps": seen,
        "in_planning": place_in_planning(spark),
        "in_tasks": spark.range(1).mapInArrow(place_in_a_task, "place string").collect()[0].place,
    }
    written = spark.read.format("pyspark_kafka").options(**kafka).option("subscribe", write_to).load()
    found["written"] = sorted(row.value.decode() for row in written.select("value").collect())
    print(json.dumps(found), flush=True)  # noqa: T201 - the result
    spark.stop()


def steps(jvm: int) -> list[str]:
    """Return the steps of all Python processes below the JVM; all of them wait for more to do."""
    parents, commands = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            commands[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile
        parents[int(entry.name)] = int(fields[1])
    found = []
    for pid, command in commands.items():
        modules = [word for word in command if word.startswith(b"pyspark.") and word != b"pyspark.daemon"]
        if modules and (parents[pid] == jvm or parents.get(parents[pid]) == jvm):
            found.append(modules[-1].decode().rpartition(".")[2])
    return found


def place_in_planning(spark: SparkSession) -> str:
    """Return where the process that makes a source has PySpark from."""

    class Tells(DataSource):
        @classmethod
        def name(cls) -> str:
            return "tells"

        def schema(self) -> str:
            import pyspark  # noqa: PLC0415 - in that process

            return f"`{pyspark.__file__}` string"

    spark.dataSource.register(Tells)
    return spark.read.format("tells").load().columns[0]


def place_in_a_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return where a task's process has PySpark from."""
    import pyarrow as pa  # noqa: PLC0415 - pickled by value
    import pyspark  # noqa: PLC0415

    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([pyspark.__file__])], names=["place"])


if __name__ == "__main__":
    main()
