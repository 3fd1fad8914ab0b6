"""Measure typed columns, and from_json, from_avro and from_protobuf of Spark after its JVM connector, in one run.

Both sides of a case run in turns, in one session, against one broker, on the same topic, and must find the same rows.
`--jvm-jars` names a folder with the jars of Spark's connector, of spark-avro and of spark-protobuf; cases whose jar is
not there run on our side only. `--via-bytes` adds what our source takes with Spark's function after it.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import statistics
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from goals import Figure
from measure import python_worker_peaks_mib, time_in_turns
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from rich.console import Console
from rich.table import Table
from session import JVM, OURS, jvm_process, start_spark
from typed_topics import FLAT, NESTED, Shape, fill

from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from measure import Timing
    from pyspark.sql import Column, DataFrame, SparkSession

PARTITIONS = 4
VIA_BYTES = "ours, Spark's function"
_MAX_MIB = 350
_MAX_WITH_BAD = 1.3


@dataclass(frozen=True)
class TypedCase:
    """What is measured.

    Attributes:
        title: the line in the table.
        goal: what the ratio has to be.
        shape: of the rows.
        kind: the format.
        grouped: whether the rows are grouped by two columns; else all are thrown away.
        divisor: of the records, how many times fewer it has.
    """

    title: str
    goal: float
    shape: Shape
    kind: str
    grouped: bool = False
    divisor: int = 1


CASES = {
    "json": TypedCase("JSON, 6 columns", 3.5, FLAT, "json"),
    "json-group": TypedCase("JSON, 6 columns, groupBy two", 4, FLAT, "json", grouped=True),
    "json-nested": TypedCase("JSON, nested, 1 kB", 3, NESTED, "json", divisor=4),
    "avro": TypedCase("Avro, 6 columns", 5, FLAT, "avro"),
    "protobuf": TypedCase("Protobuf, 6 columns", 4, FLAT, "protobuf"),
}
_BAD, _SINK = "bad", "sink"
_NAMES = (*CASES, _BAD, _SINK)
_JARS = {"avro": "spark-avro_", "protobuf": "spark-protobuf_"}


@dataclass
class TypedBench:
    """One broker, one session, and the jars that are there.

    Attributes:
        kafka: the broker.
        spark: the session.
        jars: names of jars.
        warm_ups: runs before those that count.
        runs: those that count.
        via_bytes: whether our source with Spark's function takes part.
        topics: those that are filled.
    """

    kafka: EmbeddedKafka
    spark: SparkSession
    jars: list[str]
    warm_ups: int
    runs: int
    via_bytes: bool
    topics: set[str] = field(default_factory=set)

    def has(self, kind: str) -> bool:
        """Whether Spark's side of a format can run."""
        needed = _JARS.get(kind, "spark-sql-kafka-")
        return bool(self.jars) and any(name.startswith(needed) for name in self.jars)

    def topic(self, shape: Shape, kind: str, records: int, *, bad: bool = False) -> str:
        """Return a filled topic."""
        name = f"{kind}-{shape.name}{'-bad' if bad else ''}"
        if name not in self.topics:
            self.topics.add(name)
            self.kafka.create_topic(name, partitions=PARTITIONS)
            fill(self.kafka.bootstrap_servers, name, shape, kind, records=records, bad=bad)
        return name

    def ours(self, shape: Shape, kind: str, topic: str, **options: str) -> DataFrame:
        """Return the columns of the values, as our source has them."""
        reader = self._reader(OURS, topic).option("valueFormat", kind).options(**options)
        schemas = {"json": shape.ddl, "avro": shape.avro, "protobuf": base64.b64encode(shape.file_set).decode()}
        reader = reader.option("valueSchema", schemas[kind])
        if kind == "protobuf":
            reader = reader.option("valueMessage", shape.message)
        found: DataFrame = reader.load()
        return found

    def spark_side(self, side: str, shape: Shape, kind: str, topic: str) -> DataFrame:
        """Return the same from bytes, with Spark's function."""
        found: DataFrame = self._reader(side, topic).load().select(_decoded(shape, kind).alias("value"))
        return found

    def _reader(self, side: str, topic: str) -> Any:
        return (
            self.spark.read.format(side)
            .option("kafka.bootstrap.servers", self.kafka.bootstrap_servers)
            .option("subscribe", topic)
        )

    def time(self, calls: dict[str, Callable[[], object]]) -> dict[str, Timing]:
        """Time calls in turns."""
        return time_in_turns(calls, warm_ups=self.warm_ups, runs=self.runs, broker_pid=self.kafka.pid)


def _decoded(shape: Shape, kind: str) -> Column:
    if kind == "json":
        return F.from_json(F.col("value").cast("string"), shape.ddl)
    if kind == "avro":
        from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415 - of one case

        return from_avro("value", shape.avro)
    from pyspark.sql.protobuf.functions import from_protobuf  # noqa: PLC0415 - of one case

    # As our columns have them; else Spark has null for a number that is 0.
    options = {"emit.default.values": "true"}
    return from_protobuf("value", shape.message, options=options, binaryDescriptorSet=shape.file_set)


def _consume(rows: DataFrame, *, grouped: bool) -> Callable[[], object]:
    found = rows.select("value.*")
    if grouped:
        # Thrown away too: `collect` of the same frame would find the shuffle of the run before.
        found = found.groupBy("city", "ok").agg(F.count("*"), F.sum("amount"), F.max("at"))
    return found.write.format("noop").mode("overwrite").save


def _check_same(rows: dict[str, DataFrame]) -> None:
    """Raise unless all sides find the same rows."""
    found = {}
    for side, frame in rows.items():
        flat = frame.select(F.to_json("value").alias("text"), F.isnull("value").alias("none"))
        (row,) = flat.agg(
            F.count("*"), F.sum(F.xxhash64("text").cast("decimal(38,0)")), F.sum(F.col("none").cast("int"))
        ).collect()
        found[side] = tuple(row)
    if len(set(found.values())) > 1:
        raise RuntimeError(f"the sides find other rows: {found}")


def read_case(bench: TypedBench, case: TypedCase, records: int) -> dict[str, Any]:
    """Measure a read."""
    count = records // case.divisor
    topic = bench.topic(case.shape, case.kind, count)
    rows = {OURS: bench.ours(case.shape, case.kind, topic)}
    if bench.has(case.kind):
        rows[JVM] = bench.spark_side(JVM, case.shape, case.kind, topic)
        if bench.via_bytes:
            rows[VIA_BYTES] = bench.spark_side(OURS, case.shape, case.kind, topic)
    _check_same(rows)
    calls = {side: _consume(frame, grouped=case.grouped) for side, frame in rows.items()}
    return _line(case.title, count, case.goal, bench.time(calls))


def sink_case(bench: TypedBench, records: int) -> dict[str, Any]:
    """Measure a write of Avro."""
    from pyspark.sql.avro.functions import to_avro  # noqa: PLC0415 - of this case

    topic = bench.topic(FLAT, "json", records)
    rows = bench.ours(FLAT, "json", topic).select("key", "value").repartition(2).cache()
    rows.count()
    calls: dict[str, Callable[[], object]] = {}
    for side in (OURS, JVM) if bench.has("avro") else (OURS,):
        target = f"written-{side.replace('_', '-')}"
        bench.kafka.create_topic(target, partitions=PARTITIONS)
        if side == OURS:
            writer = rows.write.format(side).option("valueFormat", "avro").option("valueSchema", FLAT.avro)
        else:
            writer = rows.select("key", to_avro("value", FLAT.avro).alias("value")).write.format(side)
        writer = writer.option("kafka.bootstrap.servers", bench.kafka.bootstrap_servers).option("topic", target)
        calls[side] = writer.option("kafka.compression.type", "lz4").mode("append").save
    line = _line("sink, Avro, 6 columns", records, 2, bench.time(calls))
    rows.unpersist()
    return line


def bad_case(bench: TypedBench, records: int) -> list[Figure]:
    """Measure reads of which one value of 100 is cut short, beside reads of good ones."""
    found = []
    for kind, shape, divisor in (("json", FLAT, 1), ("json", NESTED, 4), ("avro", FLAT, 1), ("protobuf", FLAT, 1)):
        count = records // divisor
        topics = {bad: bench.topic(shape, kind, count, bad=bad) for bad in (False, True)}
        calls = {
            str(bad): _consume(bench.ours(shape, kind, topic, mode="PERMISSIVE"), grouped=False)
            for bad, topic in topics.items()
        }
        timings = bench.time(calls)
        ratio = timings["True"].median / timings["False"].median
        name = f"1 % bad, {kind}, {shape.name}"
        goal = f"<= {_MAX_WITH_BAD} times the clean time"
        values: dict[str, float | str] = {"ratio": ratio, "clean_s": timings["False"].median}
        found.append(Figure(name, f"{ratio:.2f} times", goal, ratio <= _MAX_WITH_BAD, values))
    return found


def _line(title: str, count: int, goal: float, timings: dict[str, Timing]) -> dict[str, Any]:
    medians = {side: timing.median for side, timing in timings.items()}
    ratio = medians[JVM] / medians[OURS] if JVM in medians else None
    spread = {side: max(timing.seconds) / min(timing.seconds) for side, timing in timings.items()}
    return {"case": title, "rows": count, "goal": goal, "ratio": ratio, "seconds": medians, "spread": spread}


def report(console: Console, lines: list[dict[str, Any]], figures: list[Figure]) -> None:
    """Print the figures."""
    if lines:
        table = Table(title="rows/s, median, same run, same broker, same topic")
        for heading in ("case", "pyspark-kafka", "JVM + function", "ratio", "goal", "met", "ours + function", "spread"):
            table.add_column(heading, justify="left" if heading == "case" else "right")
        for line in lines:
            rows, taken = line["rows"], line["seconds"]
            rates = {side: f"{rows / seconds:,.0f}" for side, seconds in taken.items()}
            ratio = line["ratio"]
            table.add_row(
                line["case"],
                rates[OURS],
                rates.get(JVM, "-"),
                "-" if ratio is None else f"{ratio:.2f}",
                f">= {line['goal']:g}",
                "-" if ratio is None else Figure("", "", met=ratio >= line["goal"]).verdict,
                rates.get(VIA_BYTES, "-"),
                f"{statistics.median(line['spread'].values()):.2f}",
            )
        console.print(table)
    table = Table(title="beside the goals")
    for heading in ("what", "figure", "goal", "met"):
        table.add_column(heading)
    for figure in figures:
        table.add_row(figure.name, figure.figure, figure.goal, figure.verdict)
    console.print(table)


def chosen(cases: str) -> list[str]:
    """Return the names that are meant, in the order in which they run."""
    wanted = [name.strip() for name in cases.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in _NAMES]
    if unknown:
        raise typer.BadParameter(f"there is no case {', '.join(unknown)}; there are {', '.join(_NAMES)}")
    return [name for name in _NAMES if not wanted or name in wanted]


def main(
    cases: Annotated[str, typer.Option(help=f"Which: any of {', '.join(_NAMES)}.")] = "",
    records: Annotated[int, typer.Option(help="Records of the topics.")] = 2_000_000,
    runs: Annotated[int, typer.Option(help="Counted runs of each case, on each side.")] = 5,
    warm_ups: Annotated[int, typer.Option(help="Runs before these: Spark and the broker compile for long.")] = 5,
    jvm_jars: Annotated[Path | None, typer.Option(help="Folder with the jars of Spark's side.")] = None,
    via_bytes: Annotated[bool, typer.Option(help="Also our source with Spark's function.")] = False,
    as_advised: Annotated[bool, typer.Option(help="Spark has the settings that docs/performance.md advises.")] = True,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Run the cases and print the figures; without --cases, all of them."""
    console = Console(width=None if sys.stdout.isatty() else 130)
    names = chosen(cases)
    jars = sorted(jvm_jars.glob("*.jar")) if jvm_jars else []
    if jvm_jars and not jars:
        raise typer.BadParameter(f"there are no jars in {jvm_jars}")
    ensure_java_for_spark()
    lines: list[dict[str, Any]] = []
    figures: list[Figure] = []
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS))
        spark = start_spark(directory, jars, as_advised=as_advised)
        stack.callback(spark.stop)
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        bench = TypedBench(kafka, spark, [jar.name for jar in jars], warm_ups, runs, via_bytes)
        for name in names:
            console.print(name, highlight=False)
            if name == _BAD:
                figures += bad_case(bench, records)
            elif name == _SINK:
                lines.append(sink_case(bench, records))
            else:
                lines.append(read_case(bench, CASES[name], records))
        peak = max(python_worker_peaks_mib(jvm_process(spark)), default=float("nan"))
        figures.append(
            Figure("peak memory of a Python worker", f"{peak:.0f} MiB", f"<= {_MAX_MIB} MiB", peak <= _MAX_MIB)
        )
        report(console, lines, figures)
        result = {
            "python": platform.python_version(),
            "pyspark": spark.version,
            "cores": os.cpu_count(),
            "as_advised": as_advised,
            "records": records,
            "cases": lines,
            "figures": [asdict(figure) for figure in figures],
        }
    output = output or Path(__file__).parent / "results" / "typed.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
