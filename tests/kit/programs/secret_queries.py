"""Every kind of query with secrets in its options, in a program of its own; what Spark shows of them goes into files.

    python secret_queries.py <plan.json> <folder>

The plan has the master, Spark's settings, the options of queries, of mistakes and of clients of Spark Connect, and a
file for the keys of continuous queries' runs. The folder gets the texts of `explain`, progress, events and errors, and
the pages of Spark's UI.
"""
# ruff: noqa: N802, T201 - the names of Spark's listeners; a program prints

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import traceback
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

FORMAT = "pyspark_kafka"
MAX_PAGES = 200

CONNECT = """
import json, sys
from pyspark.sql import SparkSession

url, options, settings, checkpoint = sys.argv[1], *map(json.loads, sys.argv[2:4]), sys.argv[4]
spark = SparkSession.builder.remote(url).getOrCreate()
for name, value in settings.items():
    spark.conf.set(name, value)
rows = spark.read.format("pyspark_kafka").options(**options, subscribe="in").load()
rows.explain(True)
print(len(rows.collect()))
rows.select("value").write.format("pyspark_kafka").options(**options, topic="out").mode("append").save()
stream = spark.readStream.format("pyspark_kafka").options(**options, subscribe="in", startingOffsets="earliest").load()
stream.explain(True)
writer = stream.select("value").writeStream.format("pyspark_kafka").options(**options, topic="out")
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
query.awaitTermination()
print(query.lastProgress, query.status)
query.explain(True)
try:
    spark.read.format("pyspark_kafka").options(**options, subscribe="in", failOnDataLoss="perhaps").load().count()
except Exception as error:
    print(error)
"""


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select(["value"])


class Events(StreamingQueryListener):
    """Keeps the events of listeners."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def onQueryStarted(self, event: Any) -> None:
        self.told.append(f"started {event.id} {event.name} {vars(event)}")

    def onQueryProgress(self, event: Any) -> None:
        self.told.append(f"progress {event.progress.json} {vars(event.progress)}")

    def onQueryTerminated(self, event: Any) -> None:
        self.told.append(f"terminated {event.exception} {vars(event)}")

    def onQueryIdle(self, event: Any) -> None:
        self.told.append(f"idle {vars(event)}")


class Program:
    """The queries of one application."""

    def __init__(self, plan: dict[str, Any], place: Path) -> None:
        self.plan, self.place = plan, place
        builder = SparkSession.builder.master(plan["master"])
        for name, value in plan["settings"].items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.events = Events()
        self.spark.streams.addListener(self.events)
        self.failed: list[str] = []

    def note(self, name: str, work: Callable[[], None], *, fails: bool = False) -> None:
        """Do something, and write what it printed and how it failed."""
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                work()
            if fails:
                self.failed.append(f"{name} did not fail")
        except Exception as error:  # noqa: BLE001 - the texts of all errors are of interest
            if not fails:
                self.failed.append(name)
            said.write(f"{traceback.format_exc()}\n{error!r}\n{vars(error)}")
        (self.place / f"{name}.txt").write_text(said.getvalue())

    def batch(self, options: dict[str, str], _: Path) -> None:
        rows = self.spark.read.format(FORMAT).options(**options, subscribe="in").load()
        for mode in ("simple", "extended", "formatted", "cost", "codegen"):
            rows.explain(mode)
        execution = rows._jdf.queryExecution()
        print(rows, execution.toString(), execution.analyzed().toJSON())
        print(len(rows.collect()))
        rows.createOrReplaceTempView("rows_read")
        self.spark.sql("SELECT count(*) FROM rows_read").explain("formatted")
        written = rows.select("value").write.format(FORMAT).options(**options, topic="out").mode("append")
        print(written)
        written.save()

    def stream(self, options: dict[str, str], checkpoint: Path, **further: str) -> None:
        rows = (
            self.spark.readStream.format(FORMAT).options(**options, subscribe="in", startingOffsets="earliest").load()
        )
        rows.explain(True)
        writer = rows.select("value").writeStream.format(FORMAT).options(**options, **further, topic="out")
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            print(query.recentProgress, query.status, query.exception())
            query.explain(True)

    def typed(self, options: dict[str, str], checkpoint: Path) -> None:
        """Read only: what is for bad records is not an option of a write."""
        rows = self.spark.read.format(FORMAT).options(**options, subscribe="in").load()
        rows.explain(True)
        print(rows, rows.collect())
        rows.createOrReplaceTempView("typed_rows_read")
        stream = self.spark.readStream.format(FORMAT).options(**options, subscribe="in", startingOffsets="earliest")
        read = stream.load()
        read.explain(True)
        writer = read.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            print(query.recentProgress, query.status, query.exception())
            query.explain(True)

    def once(self, options: dict[str, str], checkpoint: Path) -> None:
        self.stream(options, checkpoint, deliveryGuarantee="exactly_once", spoolThresholdBytes="1")

    def continuous(self, options: dict[str, str], checkpoint: Path) -> None:
        from pyspark_kafka import continuous  # noqa: PLC0415 - only here
        from pyspark_kafka.continuous.run import run  # noqa: PLC0415 - only here

        patched: Any = run
        key = patched.new_key()
        with Path(self.plan["keys"]).open("a") as keys:
            keys.write(f"{key.hex()}\n")
        patched.new_key = lambda: key
        rows = continuous.read(self.spark).format(FORMAT).options(**options, subscribe="in", startingOffsets="earliest")
        writer = rows.load().mapInArrow(same, "value binary").writeStream.format(FORMAT).options(**options, topic="out")
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(continuous="200 milliseconds").start()
        try:
            query.processAllAvailable()
            query.explain(True)
            print(query, query.status, query.lastProgress, query.recentProgress)
        finally:
            query.stop()
            print(query.exception())

    def mistake(self, options: dict[str, str], kind: str) -> None:
        if kind == "write":
            self.spark.range(1).selectExpr("cast('x' as binary) value").write.format(FORMAT).options(
                **options, topic="out"
            ).mode("append").save()
        elif kind == "stream":
            self.stream(options, self.place / "checkpoints" / "mistake")
        else:
            self.spark.read.format(FORMAT).options(**options, subscribe="in").load().collect()

    def sql(self, options: dict[str, str], _: Path) -> None:
        quoted = {name: value.replace("\\", "\\\\") for name, value in {**options, "subscribe": "in"}.items()}
        listed = ", ".join(f"`{name}` '{value}'" for name, value in quoted.items())
        self.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen USING {FORMAT} OPTIONS ({listed})")
        self.spark.sql("SELECT * FROM seen").explain(True)
        self.spark.sql("SELECT * FROM seen").collect()
        self.spark.sql("DESCRIBE EXTENDED seen").show(200, truncate=False)
        self.spark.sql(f"CREATE TABLE kept (value BINARY) USING {FORMAT} OPTIONS ({listed})")
        for statement in ("DESCRIBE EXTENDED kept", "SHOW CREATE TABLE kept", "SHOW TBLPROPERTIES kept"):
            self.spark.sql(statement).show(200, truncate=False)
        self.spark.sql("SELECT * FROM kept").explain(True)
        self.spark.sql("DROP TABLE kept")

    def connect(self, name: str, options: dict[str, str], settings: dict[str, str]) -> None:
        jvm: Any = self.spark._jvm
        service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
        url = f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"
        checkpoint = str(self.place / "checkpoints" / name)
        command = [sys.executable, "-c", CONNECT, url, json.dumps(options), json.dumps(settings), checkpoint]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        print(done.stdout, done.stderr)
        if done.returncode:
            raise RuntimeError("the client failed")

    def pages(self) -> None:
        """Save the pages of the UI that can be reached, and those of its REST API."""
        ui = self.spark.sparkContext.uiWebUrl
        api = f"/api/v1/applications/{self.spark.sparkContext.applicationId}"
        pending = [
            f"{api}/{path}"
            for path in (
                "environment",
                "jobs",
                "stages?details=true",
                "sql?details=true&planDescription=true&length=500",
                "allexecutors",
            )
        ]
        pending += ["/SQL/", "/environment/", "/StreamingQuery/", "/connect/", "/jobs/", "/stages/", "/executors/"]
        seen: dict[str, None] = dict.fromkeys(pending)
        saved = 0
        while pending and saved < MAX_PAGES:
            path = pending.pop(0)
            try:
                with urllib.request.urlopen(f"{ui}{path}", timeout=30) as response:  # noqa: S310 - Spark's own
                    page = response.read().decode("utf-8", "replace")
            except urllib.error.HTTPError as error:
                page = error.read().decode("utf-8", "replace")
            (self.place / "pages" / f"{saved:03}.txt").write_text(f"{path}\n{page}")
            saved += 1
            for link in re.findall(r'href="(/[^"#]*)"', page.replace("&amp;", "&")):
                if link not in seen and not re.search("static|kill|threadDump|heapHistogram|proxy", link):
                    seen[link] = None
                    pending.append(link)

    def run(self) -> None:
        """Run everything in the plan."""
        works: dict[str, Callable[[dict[str, str], Path], None]] = {
            "batch": self.batch,
            "stream": self.stream,
            "once": self.once,
            "continuous": self.continuous,
            "sql": self.sql,
            "typed": self.typed,
        }
        for name, query in self.plan["queries"].items():
            self.note(name, partial(works[query["kind"]], query["options"], self.place / "checkpoints" / name))
        for name, mistake in self.plan["mistakes"].items():
            self.note(f"mistake-{name}", partial(self.mistake, mistake["options"], mistake["kind"]), fails=True)
        for name, connect in self.plan["connect"].items():
            self.note(f"connect-{name}", partial(self.connect, name, connect["options"], connect["settings"]))
        (self.place / "pages").mkdir()
        self.note("pages", self.pages)
        (self.place / "events.txt").write_text("\n".join(self.events.told))
        self.spark.stop()


if __name__ == "__main__":
    program = Program(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
    program.run()
    print("FAILED", program.failed, "EVENTS", len(program.events.told))
