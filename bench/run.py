"""Measure the connector, side by side with Spark's JVM connector where its jars are given.

Prints a table and writes JSON. All alternatives of a case run in turns, in one session, against one broker; ratios of
medians are what lasts, absolute figures depend on the machine and the hour.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import prepared
import typer
from measure import python_worker_peaks_mib, time_in_turns
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table
from topics import fill_topic, order_rows

from pyspark_kafka.records import codec_info
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from measure import Timing
    from pyspark.sql import DataFrame

OURS, JVM = "pyspark_kafka", "kafka"
_PARTITIONS = 4
_KEY_VALUE = "key binary, value binary"
_PARTS = "read,write,copy"
_WARM_UP_READS = 12


@dataclass(frozen=True)
class Case:
    """One line of the result: rows/s of each side, and what the ratio has to be."""

    name: str
    rows: int
    ours_seconds: float
    jvm_seconds: float | None
    goal: float
    ours_broker_seconds: float
    jvm_broker_seconds: float | None

    @property
    def ratio(self) -> float | None:
        """How many times the JVM connector's rows/s ours are."""
        return None if self.jvm_seconds is None else self.jvm_seconds / self.ours_seconds


class Bench:
    """One broker, one Spark session, and the sides that take part."""

    def __init__(
        self, kafka: EmbeddedKafka, spark: SparkSession, spool: str, *, with_jvm: bool, runs: int, warm_ups: int
    ) -> None:
        self._kafka = kafka
        self._spool = spool
        self._spark = spark
        self._sides = (OURS, JVM) if with_jvm else (OURS,)
        self._runs = runs
        self._warm_ups = warm_ups
        self._numbers = itertools.count()

    def topic(self, name: str, *, records: int, codec: str, value_bytes: int = 90) -> str:
        """Create a topic and fill it."""
        self._kafka.create_topic(name, partitions=_PARTITIONS)
        fill_topic(self._kafka.bootstrap_servers, name, records=records, codec=codec, value_bytes=value_bytes)
        return name

    def read(self, side: str, topic: str, columns: str | None = None) -> Callable[[], None]:
        """Give a call that reads a whole topic and throws the rows away."""
        reader = self._spark.read.format(side).option("kafka.bootstrap.servers", self._kafka.bootstrap_servers)
        reader = reader.option("subscribe", topic)
        if columns is None:
            rows = reader.load()
        elif side == OURS:
            rows = reader.schema(columns).load()
        else:
            rows = reader.load().select(*(column.split()[0] for column in columns.split(", ")))
        return lambda: rows.write.format("noop").mode("overwrite").save()

    def warm_up(self, topic: str) -> None:
        """Read a topic some times on every side."""
        for _ in range(_WARM_UP_READS):
            for side in self._sides:
                self.read(side, topic)()

    def floor(self, topic: str, records: int) -> dict[str, float]:
        """Give the rows/s of a Python source that has its batches ready: what Spark allows, whatever the source."""
        found = {}
        for name, columns in (("all columns", None), ("key + value", _KEY_VALUE)):
            rows = self._prepared(topic, records, columns)
            found[f"source with its batches ready, {name}"] = records / self._median(
                rows.write.format("noop").mode("overwrite").save
            )
        return found

    def copy_floor(self, topic: str, records: int) -> dict[str, float]:
        """Give the rows/s from that source to a Python sink that throws its rows away."""
        prepared.register_sink(self._spark)
        writer = self._prepared(topic, records, _KEY_VALUE).write.format(prepared.SINK_NAME).mode("append")
        return {"source with its batches ready, to a sink that throws them away": records / self._median(writer.save)}

    def _prepared(self, topic: str, records: int, columns: str | None) -> DataFrame:
        reader = self._spark.read.format(OURS).option("kafka.bootstrap.servers", self._kafka.bootstrap_servers)
        prepared.register(self._spark, reader.option("subscribe", topic).load().schema, _PARTITIONS)
        source = self._spark.read.format(prepared.NAME).option("records", str(records))
        return (source.schema(columns) if columns else source).load()

    def sink_floor(self, rows: DataFrame, records: int) -> dict[str, float]:
        """Give the rows/s of a Python sink that throws its rows away: what Spark allows, whatever the sink."""
        prepared.register_sink(self._spark)
        writer = rows.write.format(prepared.SINK_NAME).mode("append")
        return {"sink that throws its rows away": records / self._median(writer.save)}

    def _median(self, call: Callable[[], None]) -> float:
        return self._time({"": call})[""].median

    def _time(self, calls: dict[str, Callable[[], None]]) -> dict[str, Timing]:
        return time_in_turns(calls, warm_ups=self._warm_ups, runs=self._runs, broker_pid=self._kafka.pid)

    def write(self, side: str, rows: DataFrame, *, exactly_once: bool = False) -> Callable[[], None]:
        """Give a call that writes all rows, with lz4, to a topic of its own.

        Spark's connector writes at least once, whatever is asked of ours.
        """
        topic = f"written-{next(self._numbers)}"
        self._kafka.create_topic(topic, partitions=_PARTITIONS)
        writer = rows.write.format(side).option("kafka.bootstrap.servers", self._kafka.bootstrap_servers)
        writer = writer.option("topic", topic).option("kafka.compression.type", "lz4").mode("append")
        if exactly_once and side == OURS:
            writer = writer.option("deliveryGuarantee", "exactly_once").option("spoolLocation", self._spool)
        return writer.save

    def copy(self, side: str, topic: str, *, exactly_once: bool = False) -> Callable[[], None]:
        """Give a call that reads key and value of a whole topic and writes them to another."""
        reader = self._spark.read.format(side).option("kafka.bootstrap.servers", self._kafka.bootstrap_servers)
        reader = reader.option("subscribe", topic)
        rows = (reader.schema(_KEY_VALUE) if side == OURS else reader).load().select("key", "value")
        return self.write(side, rows, exactly_once=exactly_once)

    def case(self, name: str, rows: int, goal: float, build: Callable[[str], Callable[[], None]]) -> Case:
        """Measure one case on every side, in turns."""
        calls = {side: build(side) for side in self._sides}
        timings = self._time(calls)
        ours, jvm = timings[OURS], timings.get(JVM)
        return Case(
            name,
            rows,
            ours.median,
            jvm.median if jvm else None,
            goal,
            ours.broker_median,
            jvm.broker_median if jvm else None,
        )


def rows_to_write(spark: SparkSession, records: int) -> DataFrame:
    """Give a cached DataFrame of `key` and `value`, two partitions, the same rows as the topics to read hold."""
    batch = order_rows(90)
    values = spark.createDataFrame(batch.to_pandas())
    copies = spark.range(0, -(-records // batch.num_rows), numPartitions=2)
    rows = copies.join(values).select("key", "value").cache()
    rows.count()
    return rows


def start_spark(directory: str, jars: list[Path]) -> SparkSession:
    """Start a local session with two cores, with the JVM connector's jars if there are any."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("pyspark-kafka bench")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", directory)
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        # As the README advises. It concerns Python workers only; the JVM connector has none.
        .config("spark.python.unix.domain.socket.enabled", "true")
    )
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    return builder.getOrCreate()


def jvm_process(spark: SparkSession) -> int:
    """Give the process id of Spark's JVM, the ancestor of its Python workers."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - there is no public way
    return int(jvm.java.lang.ProcessHandle.current().pid())


def report(console: Console, cases: list[Case], floor: dict[str, float], memory: dict[str, float]) -> None:
    """Print the figures."""
    table = Table(title="rows/s, median, same run, same broker")
    for heading in ("case", "pyspark-kafka", "JVM connector", "ratio", "goal", "broker µs/row", "JVM's", "ratio"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for case in cases:
        jvm = "-" if case.jvm_seconds is None else f"{case.rows / case.jvm_seconds:,.0f}"
        ratio = "-" if case.ratio is None else f"{case.ratio:.2f}"
        broker = 1e6 * case.ours_broker_seconds / case.rows
        brokers = ("-", "-")
        if case.jvm_broker_seconds is not None:
            share = case.ours_broker_seconds / case.jvm_broker_seconds
            brokers = (f"{1e6 * case.jvm_broker_seconds / case.rows:.3f}", f"{share:.3f}")
        figures = (f"{case.rows / case.ours_seconds:,.0f}", jvm, ratio, f">= {case.goal:g}", f"{broker:.3f}", *brokers)
        table.add_row(case.name, *figures)
    console.print(table)
    for name, rows in floor.items():
        console.print(f"without Kafka, a Python {name}: {rows:,.0f} rows/s", highlight=False)
    for name, peak in memory.items():
        console.print(f"peak memory of a Python worker, {name}: {peak:.0f} MiB (goal: <= 300)", highlight=False)


def main(
    records: Annotated[int, typer.Option(help="Records of the topics that are read and written.")] = 2_000_000,
    large: Annotated[int, typer.Option(help="Records of the large topic, for memory; 0 leaves it out.")] = 10_000_000,
    runs: Annotated[int, typer.Option(help="Counted runs of each case, on each side.")] = 5,
    warm_ups: Annotated[int, typer.Option(help="Runs before these: Spark and the broker compile for long.")] = 10,
    parts: Annotated[str, typer.Option(help="Which cases: any of read, write, copy, with commas between.")] = _PARTS,
    jvm_jars: Annotated[Path | None, typer.Option(help="Folder with the JVM connector's jars.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Run every case and print the figures."""
    # Wide enough for the table where output is not a terminal.
    console = Console(width=None if sys.stdout.isatty() else 120)
    jars = sorted(jvm_jars.glob("*.jar")) if jvm_jars else []
    if jvm_jars and not jars:
        raise typer.BadParameter(f"there are no jars in {jvm_jars}")
    ensure_java_for_spark()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS))
        spark = start_spark(directory, jars)
        stack.callback(spark.stop)
        bench = Bench(kafka, spark, f"{directory}/spool", with_jvm=bool(jars), runs=runs, warm_ups=warm_ups)
        jvm_pid = jvm_process(spark)

        memory: dict[str, float] = {}
        floor: dict[str, float] = {}
        cases: list[Case] = []
        lz4 = bench.topic("records-lz4", records=records, codec="lz4")
        # What the first case would otherwise pay for all: Spark's compilers, the broker's caches.
        bench.warm_up(lz4)
        if "read" in parts:
            bench.read(OURS, lz4)()
            memory[f"{records:,} records"] = max(python_worker_peaks_mib(jvm_pid), default=float("nan"))
            if large:
                bench.read(OURS, bench.topic("records-large", records=large, codec="lz4"))()
                memory[f"{large:,} records"] = max(python_worker_peaks_mib(jvm_pid), default=float("nan"))
                kafka.delete_topic("records-large")
            zstd = bench.topic("records-zstd", records=records, codec="zstd")
            kilobyte = bench.topic("records-1kb", records=records // 4, codec="lz4", value_bytes=990)
            cases += [
                bench.case("read, all columns, lz4", records, 4, lambda side: bench.read(side, lz4)),
                bench.case("read, key + value, lz4", records, 5, lambda side: bench.read(side, lz4, _KEY_VALUE)),
                bench.case("read, value, lz4", records, 5, lambda side: bench.read(side, lz4, "value binary")),
                bench.case("read, all columns, zstd", records, 2.5, lambda side: bench.read(side, zstd)),
                bench.case("read, all columns, 1 kB, lz4", records // 4, 2.5, lambda side: bench.read(side, kilobyte)),
            ]
            floor |= bench.floor(lz4, records)
        if "write" in parts:
            rows = rows_to_write(spark, records)
            cases.append(bench.case("write, lz4", records, 2, lambda side: bench.write(side, rows)))
            cases.append(
                bench.case(
                    "write, lz4, exactly once",
                    records,
                    1,
                    lambda side: bench.write(side, rows, exactly_once=True),
                )
            )
            floor |= bench.sink_floor(rows, records)
            rows.unpersist()
        if "copy" in parts:
            cases.append(bench.case("Kafka to Kafka, lz4", records, 4, lambda side: bench.copy(side, lz4)))
            cases.append(
                bench.case(
                    "Kafka to Kafka, lz4, exactly once",
                    records,
                    2,
                    lambda side: bench.copy(side, lz4, exactly_once=True),
                )
            )

            floor |= bench.copy_floor(lz4, records)

        report(console, cases, floor, memory)
        result = {
            "python": platform.python_version(),
            "pyspark": spark.version,
            "codec": str(codec_info()),
            "cores": os.cpu_count(),
            "cases": [asdict(case) | {"ratio": case.ratio} for case in cases],
            "without_kafka_rows_per_s": floor,
            "worker_peak_mib": memory,
        }
    output = output or Path(__file__).parent / "results" / "bench.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
