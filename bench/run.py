"""Measure the connector, side by side with Spark's JVM connector where its jars are given.

Prints a table; without `--cases` also records it (tools/results.py). All alternatives of a case run in turns, in one
session, against one broker; ratios of medians are what lasts, absolute figures depend on the machine and the hour. A
case takes as long as its warm-ups do: Spark's and the broker's compilers go on for that long.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from alternatives import KEY_VALUE, Bench, rows_to_write
from measure import python_worker_peaks_mib
from rich.console import Console
from rich.table import Table
from session import OURS, jvm_process, start_spark

from pyspark_kafka.records import codec_info
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from results import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from alternatives import Case
    from pyspark.sql import DataFrame, SparkSession

_MEMORY_GOAL_MIB = 300
# The records that the times below are of.
_USUAL_RECORDS = 2_000_000


class Inputs:
    """What cases read and write, made when the first of them needs it."""

    def __init__(self, bench: Bench, spark: SparkSession, records: int) -> None:
        self._bench = bench
        self._spark = spark
        self._records = records

    @cached_property
    def lz4(self) -> str:
        """A topic of 100-byte records, compressed with lz4."""
        return self._bench.topic("records-lz4", records=self._records, codec="lz4")

    @cached_property
    def zstd(self) -> str:
        """The same with zstd."""
        return self._bench.topic("records-zstd", records=self._records, codec="zstd")

    @cached_property
    def kilobyte(self) -> str:
        """A topic of a quarter as many records, of 1 kB each."""
        return self._bench.topic("records-1kb", records=self._records // 4, codec="lz4", value_bytes=990)

    @cached_property
    def rows(self) -> DataFrame:
        """Cached rows to write."""
        return rows_to_write(self._spark, self._records)


@dataclass(frozen=True)
class Choice:
    """A case that the command line can name.

    Attributes:
        title: the line in the table.
        goal: what the ratio has to be.
        build: returns the call of one side.
        seconds: about how long one run takes on two cores, ours and the JVM connector's.
        divisor: of the records, how many times fewer it has.
    """

    title: str
    goal: float
    build: Callable[[Bench, Inputs, str], Callable[[], None]]
    seconds: tuple[float, float]
    divisor: int = 1


_CHOICES = {
    "read-all": Choice("read, all columns, lz4", 4, lambda bench, of, side: bench.read(side, of.lz4), (0.9, 3.3)),
    "read-key-value": Choice(
        "read, key + value, lz4", 5, lambda bench, of, side: bench.read(side, of.lz4, KEY_VALUE), (0.5, 2.8)
    ),
    "read-value": Choice(
        "read, value, lz4", 5, lambda bench, of, side: bench.read(side, of.lz4, "value binary"), (0.4, 2.7)
    ),
    "read-zstd": Choice("read, all columns, zstd", 2.5, lambda bench, of, side: bench.read(side, of.zstd), (0.7, 2.9)),
    "read-1kb": Choice(
        "read, all columns, 1 kB, lz4", 2.5, lambda bench, of, side: bench.read(side, of.kilobyte), (0.7, 2.1), 4
    ),
    "write-at-least-once": Choice("write, lz4", 2, lambda bench, of, side: bench.write(side, of.rows), (0.8, 1.5)),
    "write-exactly-once": Choice(
        "write, lz4, exactly once",
        1,
        lambda bench, of, side: bench.write(side, of.rows, exactly_once=True),
        (0.8, 1.4),
    ),
    "copy-at-least-once": Choice(
        "Kafka to Kafka, lz4", 4, lambda bench, of, side: bench.copy(side, of.lz4), (1.6, 6.0)
    ),
    "copy-exactly-once": Choice(
        "Kafka to Kafka, lz4, exactly once",
        2,
        lambda bench, of, side: bench.copy(side, of.lz4, exactly_once=True),
        (1.7, 5.7),
    ),
}
# Without Kafka, and on our side only: what Spark allows. In seconds of a run.
_FLOORS: dict[str, tuple[Callable[[Bench, Inputs, int], dict[str, float]], float]] = {
    "read-floor": (lambda bench, of, records: bench.floor(of.lz4, records), 0.9),
    "write-floor": (lambda bench, of, records: bench.sink_floor(of.rows, records), 0.5),
    "copy-floor": (lambda bench, of, records: bench.copy_floor(of.lz4, records), 0.8),
}
_MEMORY = "memory"
# Fills two topics and reads each once.
_MEMORY_S = 40.0
_NAMES = (_MEMORY, *_CHOICES, *_FLOORS)


def chosen(cases: str) -> list[str]:
    """Return the names that are meant, in the order in which they run; `read` means all that begin with `read-`."""
    wanted = [name.strip() for name in cases.split(",") if name.strip()]
    known = {name for each in _NAMES for name in (each, each.partition("-")[0])}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise typer.BadParameter(f"there is no case {', '.join(unknown)}; there are {', '.join(_NAMES)}")
    return [name for name in _NAMES if not wanted or name in wanted or name.partition("-")[0] in wanted]


class Progress:
    """Says which case runs, how long it still takes, and how long all that is left."""

    def __init__(self, console: Console, names: list[str], *, sides: int, turns: int, records: int) -> None:
        self._console = console
        self._turns = turns
        share = records / _USUAL_RECORDS
        self._expected = {name: share * _expected_s(name, sides, turns) for name in names}
        self._names = names
        self._began = time.monotonic()
        self._done_s = 0.0
        self._turns_s = 0.0

    def begin(self, name: str) -> None:
        """Say what comes next."""
        self._turns_s = 0.0
        number = self._names.index(name) + 1
        left = sum(self._expected[other] for other in self._names[number - 1 :]) * self._pace()
        self._say(f"{number} of {len(self._names)}: {name}; {_duration(left)} left with it")

    def turn(self, number: int, seconds: float) -> None:
        """Take note of a turn of all sides; say how long the case takes after the first, and now and then."""
        self._turns_s += seconds
        # The first one starts Python processes.
        if number in (2, self._turns // 2):
            left = seconds * (self._turns - number)
            self._say(f"    run {number} of {self._turns} took {seconds:.1f} s; {_duration(left)} to go")

    def end(self, name: str) -> None:
        """Take note of a case that is done."""
        self._done_s += self._expected[name]

    def _pace(self) -> float:
        """Return how many times longer it takes than on the machine of the estimates."""
        return (time.monotonic() - self._began) / self._done_s if self._done_s else 1.0

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False)


def _expected_s(name: str, sides: int, turns: int) -> float:
    if name == _MEMORY:
        return _MEMORY_S
    if name in _FLOORS:
        return _FLOORS[name][1] * turns * (2 if name == "read-floor" else 1)
    return sum(_CHOICES[name].seconds[:sides]) * turns


def _duration(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} minutes"


def worker_memory(bench: Bench, of: Inputs, kafka: EmbeddedKafka, jvm: int, sizes: tuple[int, int]) -> dict[str, float]:
    """Read the usual topic and a large one once; return the peak memory of a worker after each, in MiB."""
    records, large = sizes
    bench.read(OURS, of.lz4)()
    memory = {f"{records:,} records": max(python_worker_peaks_mib(jvm), default=float("nan"))}
    if large:
        bench.read(OURS, bench.topic("records-large", records=large, codec="lz4"))()
        memory[f"{large:,} records"] = max(python_worker_peaks_mib(jvm), default=float("nan"))
        kafka.delete_topic("records-large")
    return memory


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
        goal = f"(goal: <= {_MEMORY_GOAL_MIB})"
        console.print(f"peak memory of a Python worker, {name}: {peak:.0f} MiB {goal}", highlight=False)


def main(
    cases: Annotated[str, typer.Option(help=f"Which: any of read, write, copy, {', '.join(_NAMES)}.")] = "",
    records: Annotated[int, typer.Option(help="Records of the topics that are read and written.")] = _USUAL_RECORDS,
    large: Annotated[int, typer.Option(help="Records of the large topic, for memory; 0 leaves it out.")] = 10_000_000,
    runs: Annotated[int, typer.Option(help="Counted runs of each case, on each side.")] = 5,
    warm_ups: Annotated[int, typer.Option(help="Runs before these: Spark and the broker compile for long.")] = 10,
    jvm_jars: Annotated[Path | None, typer.Option(help="Folder with the JVM connector's jars.")] = None,
    as_advised: Annotated[bool, typer.Option(help="Spark has the settings that docs/performance.md advises.")] = True,
) -> None:
    """Run the cases and print the figures; without --cases, all of them."""
    # Wide enough for the table where output is not a terminal.
    console = Console(width=None if sys.stdout.isatty() else 120)
    names = chosen(cases)
    jars = sorted(jvm_jars.glob("*.jar")) if jvm_jars else []
    if jvm_jars and not jars:
        raise typer.BadParameter(f"there are no jars in {jvm_jars}")
    ensure_java_for_spark()
    record = Run("bench")
    progress = Progress(console, names, sides=1 + bool(jars), turns=warm_ups + runs, records=records)
    memory: dict[str, float] = {}
    floor: dict[str, float] = {}
    figures: list[Case] = []
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        kafka = stack.enter_context(EmbeddedKafka(heap="1g", jvm_flags=WARM_JVM_FLAGS))
        spark = start_spark(directory, jars, as_advised=as_advised)
        stack.callback(spark.stop)
        bench = Bench(
            kafka,
            spark,
            f"{directory}/spool",
            with_jvm=bool(jars),
            runs=runs,
            warm_ups=warm_ups,
            on_run=progress.turn,
        )
        of = Inputs(bench, spark, records)
        for name in names:
            progress.begin(name)
            if name == _MEMORY:
                memory = worker_memory(bench, of, kafka, jvm_process(spark), (records, large))
            elif name in _FLOORS:
                floor |= _FLOORS[name][0](bench, of, records)
            else:
                choice = _CHOICES[name]
                count = records // choice.divisor
                figures.append(bench.case(choice.title, count, choice.goal, partial(choice.build, bench, of)))
            progress.end(name)
        report(console, figures, floor, memory)
    if not cases:
        missed = sum(case.ratio is not None and case.ratio < case.goal for case in figures)
        peak = max(memory.values())
        record.end(
            # Speed is no promise.
            passed=peak <= _MEMORY_GOAL_MIB,
            counts={"cases": len(figures), "ratios below their goal": missed, "MiB of a Python worker": round(peak)},
            codec=str(codec_info()),
            cores=os.cpu_count(),
            as_advised=as_advised,
            cases=[asdict(case) | {"ratio": case.ratio} for case in figures],
            without_kafka_rows_per_s=floor,
            worker_peak_mib=memory,
        )


if __name__ == "__main__":
    typer.run(main)
