"""Measure what the connector API costs: a `Table` as a data source, beside the same source written by hand for PySpark.

Both variants of a case do the same work and run in turns, in one Spark session, without Kafka. The ratio is the median
of the ratios of each round: the machine's speed drifts from round to round, and less within one. Arrow batches that
are there already show the adapter itself; rows show how rows become Arrow batches.
Run: make bench, or python bench/connector.py [--cases read,write --rounds 9]
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from own_sources import register
from rich.console import Console
from rich.table import Table
from session import start_spark

from pyspark_kafka.testing import ensure_java_for_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

_MAX = 1.03
# The first micro-batch of a query starts Python processes.
_BATCHES, _FIRST = 3, 1
_NAMES = ("read", "write", "tuples", "dictionaries", "micro-batch")


@dataclass(frozen=True)
class Figures:
    """One case; seconds of the rounds that count, in their order.

    Attributes:
        case: by name.
        rows: of a run.
        adapter: through `as_data_source`.
        by_hand: against PySpark's own API.
    """

    case: str
    rows: int
    adapter: tuple[float, ...]
    by_hand: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median, over rounds, of what the adapter took by what the other one took."""
        return statistics.median(one / other for one, other in zip(self.adapter, self.by_hand, strict=True))


class Bench:
    """The cases, in one session."""

    def __init__(self, spark: SparkSession, directory: str, rows: int) -> None:
        self._spark = spark
        self._directory = directory
        self._names = register(spark)
        self._queries = 0
        self._rows = rows
        self._written: DataFrame | None = None

    def measure(self, case: str, rounds: int, warm_ups: int) -> Figures:
        """Run both variants in turns, the first of a round in turns too."""
        # Rows of Python objects take ten times as long as Arrow batches.
        rows = self._rows // 10 if case in ("tuples", "dictionaries") else self._rows
        run = {"write": self._write, "micro-batch": self._stream}.get(case, self._read)
        seconds: dict[str, list[float]] = {variant: [] for variant in self._names}
        for number in range(warm_ups + rounds):
            order = sorted(self._names, reverse=bool(number % 2))
            for variant in order:
                took = run(case, self._names[variant], rows)
                if number >= warm_ups:
                    seconds[variant].append(took)
        return Figures(case, rows, tuple(seconds["adapter"]), tuple(seconds["by hand"]))

    def _read(self, case: str, name: str, rows: int) -> float:
        kind = "batches" if case == "read" else case
        frame = self._options(self._spark.read.format(name), kind, rows).load()
        return _timed(lambda: frame.write.format("noop").mode("overwrite").save())

    def _stream(self, case: str, name: str, rows: int) -> float:  # noqa: ARG002 - as the others
        """Return the mean of a query's micro-batches, without the first."""
        self._queries += 1
        frame = self._options(self._spark.readStream.format(name), "batches", rows).load()
        writer = frame.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{self._directory}/checkpoint-{self._queries}").start()
        query.awaitTermination()
        reports = [json.loads(progress.json) for progress in query.recentProgress]
        took: list[float] = [
            report["durationMs"]["triggerExecution"] / 1000 for report in reports if report["numInputRows"]
        ]
        if len(took) != _BATCHES:
            raise RuntimeError(f"{name}: {len(took)} micro-batches, expected {_BATCHES}")
        return statistics.mean(took[_FIRST:])

    def _write(self, case: str, name: str, rows: int) -> float:  # noqa: ARG002 - as the others
        if self._written is None:
            columns = ("id", "concat('name-', lpad(id, 9, '0')) AS name", "CAST(id AS double) AS price")
            self._written = self._spark.range(0, rows, 1, 2).selectExpr(*columns).cache()
            self._written.count()
        frame = self._written
        return _timed(lambda: frame.write.format(name).mode("append").save())

    @staticmethod
    def _options(reader: Any, kind: str, rows: int) -> Any:
        return reader.options(kind=kind, rows=str(rows), batches=str(_BATCHES))


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def report(console: Console, figures: list[Figures]) -> None:
    """Print the table with verdicts."""
    table = Table(title="seconds, median (shortest to longest); the same work, in turns")
    for heading in ("case", "rows", "adapter", "by hand", "ratio", "goal", "met"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for each in figures:
        met = "yes" if each.ratio < _MAX else "no"
        sides = (_spread(each.adapter), _spread(each.by_hand))
        table.add_row(each.case, f"{each.rows:,}", *sides, f"{each.ratio:.3f}", f"< {_MAX:g}", met)
    console.print(table)


def _spread(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main(
    cases: Annotated[str, typer.Option(help=f"Any of {', '.join(_NAMES)}.")] = ",".join(_NAMES),
    rows: Annotated[int, typer.Option(help="Rows of a run; a tenth of it where rows are Python objects.")] = 2_000_000,
    rounds: Annotated[int, typer.Option(help="Rounds that count, of both variants.")] = 7,
    warm_ups: Annotated[int, typer.Option(help="Rounds before these.")] = 3,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Run the cases and print the figures."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    names = [name.strip() for name in cases.split(",") if name.strip()]
    unknown = [name for name in names if name not in _NAMES]
    if unknown:
        raise typer.BadParameter(f"there is no case {', '.join(unknown)}; there are {', '.join(_NAMES)}")
    ensure_java_for_spark()
    figures = []
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-"))
        spark = start_spark(directory)
        stack.callback(spark.stop)
        bench = Bench(spark, directory, rows)
        for name in names:
            began = time.perf_counter()
            # A query of micro-batches has warm-ups of its own.
            figures.append(bench.measure(name, rounds, min(warm_ups, 1) if name == "micro-batch" else warm_ups))
            took = time.perf_counter() - began
            console.print(f"{name}: {figures[-1].ratio:.3f} times by hand; took {took:.0f} s", highlight=False)
        pyspark = spark.version
    report(console, figures)
    result = {
        "python": platform.python_version(),
        "pyspark": pyspark,
        "cores": os.cpu_count(),
        "cases": [asdict(each) | {"ratio": each.ratio} for each in figures],
    }
    output = output or Path(__file__).parent / "results" / "connector.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
