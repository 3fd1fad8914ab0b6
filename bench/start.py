"""Measure the first seconds of a query: from `load()` and `start()` to the end of the first micro-batch.

Kafka to Kafka, 1,000 records in 4 partitions; the first and the second query of a session. Each side in a Spark of its
own, in turns, some rounds: this package, the same with its launcher, Spark's JVM connector where its jars are, and the
least that a Python source and sink can be, without Kafka and without this package. A last round, which does not count,
looks at the Python processes and prints a time line of each side.
Run: python bench/start.py [--jvm-jars FOLDER]
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from topics import fill_topic

from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark
from pyspark_kafka.testing.broker_config import WARM_JVM_FLAGS

_HERE = Path(__file__).parent
_RECORDS, _PARTITIONS = 1_000, 4
_INPUT, _OUTPUT = "start-in", "start-out"
_SESSION_S = 180
_QUERIES = ("first query", "second query")
TRIVIAL, OURS, PREPARED, DAEMON, JVM = "trivial", "pyspark_kafka", "prepared", "daemon", "kafka"
_GOAL = 1.1
_DAEMON_MODULE = "pyspark_kafka.spark.daemon"
_PROGRAM = Path(sysconfig.get_path("scripts")) / "pyspark-kafka-python"


@dataclass(frozen=True)
class Side:
    """One of the alternatives.

    Attributes:
        format: the name of source and sink.
        config: settings of its sessions, beside those of all.
        environment: variables of its driver.
        options: of source and sink alike.
    """

    title: str
    format: str
    config: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    kafka: bool = True


def sides(jars: list[Path], hidden: str) -> dict[str, Side]:
    """Return the alternatives; those with a setting of this package last.

    Args:
        jars: of the JVM connector.
        hidden: a folder that hides this package from Python, for the trivial source.
    """
    path = os.pathsep.join([str(_HERE / "trivial"), hidden])
    found = {
        TRIVIAL: Side("trivial source and sink", "pyspark_trivial", environment={"PYTHONPATH": path}, kafka=False),
        OURS: Side("pyspark-kafka", "pyspark_kafka"),
        DAEMON: Side("the same, daemon module", "pyspark_kafka", {"spark.python.daemon.module": _DAEMON_MODULE}),
        PREPARED: Side("the same, prepare()", "pyspark_kafka", environment={"PYSPARK_PYTHON": str(_PROGRAM)}),
    }
    if jars:
        found[JVM] = Side("JVM connector", "kafka", {"spark.jars": ",".join(map(str, jars))})
    return found


def run_session(side: Side, servers: str, *, timeline: bool) -> dict[str, Any]:
    """Run both queries of a side in a Spark of its own; return what they took."""
    kafka = {"kafka.bootstrap.servers": servers}
    with tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-") as directory:
        task = {
            "directory": directory,
            "config": side.config,
            "format": side.format,
            "read": kafka | {"subscribe": _INPUT, "startingOffsets": "earliest"} if side.kafka else {},
            "write": kafka | {"topic": _OUTPUT} if side.kafka else {},
            "queries": len(_QUERIES),
            "timeline": timeline,
        }
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
        environment.pop("PYSPARK_DRIVER_PYTHON", None)
        done = subprocess.run(
            [sys.executable, str(_HERE / "start_session.py"), json.dumps(task)],
            capture_output=True, text=True, check=False, timeout=_SESSION_S,
            env=environment | side.environment,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{side.title}: {done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def median(rounds: list[dict[str, Any]], query: int, name: str) -> float:
    """Return the middle of a figure over the rounds."""
    return float(statistics.median(each["queries"][query][name] for each in rounds))


def report(console: Console, all_sides: dict[str, Side], rounds: dict[str, list[dict[str, Any]]]) -> None:
    """Print how long each side takes, and against the trivial one."""
    for query, title in enumerate(_QUERIES):
        table = Table(title=f"{title} of a session: seconds, median of the rounds (least to most)")
        for heading in ("", "load()", "start() to end of first batch", "both", "against trivial", "CPU of the JVM"):
            table.add_column(heading, justify="right" if heading else "left")
        for name, found in rounds.items():
            totals = [each["queries"][query]["total_s"] for each in found]
            # Round by round: what drifts between rounds concerns all sides alike.
            ratio = statistics.median(
                mine["queries"][query]["total_s"] / trivial["queries"][query]["total_s"]
                for mine, trivial in zip(found, rounds.get(TRIVIAL, found), strict=True)
            )
            table.add_row(
                all_sides[name].title,
                f"{median(found, query, 'load_s'):.2f}",
                f"{median(found, query, 'first_batch_s'):.2f}",
                f"{statistics.median(totals):.2f} ({min(totals):.2f} to {max(totals):.2f})",
                f"{ratio:.2f}" + (f" (goal: <= {_GOAL})" if name == OURS else ""),
                f"{median(found, query, 'jvm_cpu_s'):.1f}",
            )
        console.print(table)


def print_time_line(console: Console, title: str, query: dict[str, Any]) -> None:
    """Print the Python processes of one query, in the order in which they began."""
    table = Table(title=f"{title}: Python processes, seconds since load(); all CPU {cpu_of(query):.2f} s")
    for heading in ("began", "at work until", "CPU", "parent", "process", "for"):
        table.add_column(heading, justify="left" if heading in ("process", "for") else "right")
    for each in query["processes"]:
        if "python" not in each["command"]:
            continue  # of Hadoop's file system
        began, until = each["began"] - query["began"], max(each["worked_until"] - query["began"], 0)
        kind = "forked" if any(each["parent"] == other["pid"] for other in query["processes"]) else "started"
        cells = (f"{began:.2f}", f"{until:.2f}", f"{each['cpu']:.2f}", f"{each['parent']}", f"{each['pid']} {kind}")
        table.add_row(*cells, each["purpose"])
    console.print(table)


def cpu_of(query: dict[str, Any]) -> float:
    """Return the CPU time of the Python processes of a query, in seconds."""
    return float(sum(each["cpu"] for each in query["processes"]))


def main(
    rounds: Annotated[int, typer.Option(help="Counted rounds of each side.")] = 3,
    only: Annotated[str, typer.Option(help="Which sides, with commas between; default: all.")] = "",
    timeline: Annotated[bool, typer.Option(help="Print the Python processes of each side, from a last round.")] = True,
    jvm_jars: Annotated[Path | None, typer.Option(help="Folder with the JVM connector's jars.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes.")] = None,
) -> None:
    """Run the rounds and print the figures."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    jars = sorted(jvm_jars.glob("*.jar")) if jvm_jars else []
    if jvm_jars and not jars:
        raise typer.BadParameter(f"there are no jars in {jvm_jars}")
    ensure_java_for_spark()
    with ExitStack() as stack:
        hidden = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pyspark-kafka-bench-")))
        # Spark asks every module `pyspark_*` whether it is a source. This one is found before the package, and is none.
        (hidden / "pyspark_kafka.py").write_text("")
        alternatives = sides(jars, str(hidden))
        if only:
            alternatives = {name: side for name, side in alternatives.items() if name in only.split(",")}
        kafka = stack.enter_context(EmbeddedKafka(heap="512m", jvm_flags=WARM_JVM_FLAGS))
        servers = kafka.bootstrap_servers
        for topic in (_INPUT, _OUTPUT):
            kafka.create_topic(topic, partitions=_PARTITIONS)
        fill_topic(servers, _INPUT, records=_RECORDS, codec="none")
        counted: dict[str, list[dict[str, Any]]] = {name: [] for name in alternatives}
        began = time.monotonic()
        for number in range(rounds):
            for name, side in alternatives.items():
                counted[name].append(run_session(side, servers, timeline=False))
                took = counted[name][-1]["queries"]
                figures = ", ".join(f"{each['total_s']:.2f} s" for each in took)
                console.print(f"{time.monotonic() - began:4.0f} s, round {number + 1}, {side.title}: {figures}")
        lines = {name: run_session(side, servers, timeline=True) for name, side in alternatives.items() if timeline}
        report(console, alternatives, counted) if rounds else None
        for name, found in lines.items():
            for title, query in zip(_QUERIES, found["queries"], strict=True):
                print_time_line(console, f"{alternatives[name].title}, {title}", query)
    result = {"python": platform.python_version(), "cores": os.cpu_count(), "rounds": counted, "time_lines": lines}
    output = output or _HERE / "results" / "start.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"JSON: {output}", highlight=False)


if __name__ == "__main__":
    typer.run(main)
