"""The examples of the README, pasted into files and run as a reader would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume, produce
from kit.programs.run import (
    python_without_packages,
    run_connect_program,
    run_logging_program,
)
from pyspark_kafka.testing import EmbeddedKafka

_README = Path(__file__).parents[4] / "README.md"


_CLASSIC = "SparkSession.builder.getOrCreate()"
_CONNECT = 'SparkSession.builder.remote("local[2]").getOrCreate()'


def blocks(language: str, chapter: str = "") -> list[str]:
    """Return the README's blocks of a language: of one chapter, or of all."""
    text = _README.read_text()
    if chapter:
        text = text.partition(f"\n## {chapter}\n")[2].partition("\n## ")[0]
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return found


def other_python_on_path(place: Path) -> dict[str, str | None]:
    """Return the environment of `venv/bin/python program.py`, with another python3 on PATH, which lacks the package."""
    path = f"{python_without_packages(place).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "PYSPARK_PYTHON": None, "PYSPARK_DRIVER_PYTHON": None}


_COUNT_COPY = """
print(read.option("subscribe", "fruits-copy").load().count(), "copied")
spark.stop()
"""


def test_read_and_show_prints_what_the_readme_shows(tmp_path: Path) -> None:
    program = "".join(blocks("python", "Read and show")) + _COUNT_COPY
    (shown,) = blocks("text", "Read and show")
    printed, _ = run_logging_program(program, place=tmp_path, environment=other_python_on_path(tmp_path))
    assert printed == f"{shown}\n3 copied\n"


_COUNT_COPIES = """
for topic in ("copied", "flowing"):
    print(spark.read.format("pyspark_kafka").options(**kafka, subscribe=topic).load().count(), topic)
spark.stop()
"""


def entry_page(session: str) -> tuple[str, str]:
    """Return the programs of the site's entry page with one of the two sessions, and what they print."""
    page = _README.with_name("docs").joinpath("index.md").read_text()
    tabs = dict(re.findall(r"^/// tab \| (.*?)\n(.*?)^///$", page, re.MULTILINE | re.DOTALL))
    assert list(tabs) == ["Classic Spark", "Spark Connect", "Batch", "Micro-batches", "Continuous", "Without Spark"]
    for other in {"Classic Spark", "Spark Connect"} - {session}:
        page = page.replace(tabs[other], "")
    program = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)) + _COUNT_COPIES
    shown = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    return program, "\n".join([*shown, "2 copied\n2 flowing\n"])


@pytest.mark.full("Programs of the pages")
def test_tabs_of_the_entry_page_print_what_they_show(tmp_path: Path) -> None:
    program, shown = entry_page("Classic Spark")
    printed, _ = run_logging_program(program, place=tmp_path, environment=other_python_on_path(tmp_path))
    assert printed == shown


@pytest.mark.full("Spark Connect")
def test_tabs_of_the_entry_page_print_the_same_on_spark_connect(tmp_path: Path) -> None:
    program, shown = entry_page("Spark Connect")
    assert "sc://spark:15002" in program
    assert run_connect_program(program.replace("sc://spark:15002", "local[2]"), place=tmp_path) == shown


@pytest.mark.full("Spark Connect")
def test_read_and_show_prints_the_same_on_spark_connect(tmp_path: Path) -> None:
    """The server is started by the program, so that `prepare()` sets the Python of the server too."""
    program = "".join(blocks("python", "Read and show")[:2])
    assert _CLASSIC in program
    program = program.replace(_CLASSIC, _CONNECT) + "spark.stop()\n"
    (shown,) = blocks("text", "Read and show")
    printed = run_connect_program(program, place=tmp_path, environment=other_python_on_path(tmp_path))
    assert printed == f"{shown}\n"


def test_typed_columns_print_what_the_readme_shows(tmp_path: Path) -> None:
    program = "".join([*blocks("python", "Read and show")[:1], *blocks("python", "Typed columns"), "spark.stop()\n"])
    (shown,) = blocks("text", "Typed columns")
    printed, _ = run_logging_program(program, place=tmp_path, environment=other_python_on_path(tmp_path))
    assert printed == f"{shown}\n"


def test_topics_are_created_as_the_readme_says(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    (example,) = blocks("sh", "With a Kafka of your own")
    for line in example.splitlines():
        command, *arguments = line.replace("localhost:9092", kafka.bootstrap_servers).split()
        assert command == "pyspark-kafka"
        assert kafka.bootstrap_servers in arguments
        subprocess.run([sys.executable, "-m", "pyspark_kafka", *arguments], cwd=tmp_path, timeout=300, check=True)
    for topic in ("events", "events-copy"):
        produce(kafka.bootstrap_servers, topic, [Record(b"k", b"v", partition) for partition in (0, 1)])
        consume(kafka.bootstrap_servers, topic, 2)


_WITHOUT_PACKAGE = """
import os, sys
from pyspark.sql import SparkSession
from pyspark_kafka import KafkaSource

servers, topic = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
source = KafkaSource(spark, {"kafka.bootstrap.servers": servers, "subscribe": topic})
try:
    source.getBatch({topic: {"0": 0}}, {topic: {"0": 1}})
except Exception as error:
    print(type(error).__name__, error)
"""


def test_python_without_the_package_is_named_before_and_in_the_error(
    kafka: EmbeddedKafka, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(kafka.bootstrap_servers, topic, [Record(b"k", b"v")])
    other = str(python_without_packages(tmp_path))
    environment = {"PYSPARK_PYTHON": other, "PYSPARK_DRIVER_PYTHON": None}
    said, logged = run_logging_program(
        _WITHOUT_PACKAGE, kafka.bootstrap_servers, topic, place=tmp_path, environment=environment
    )
    assert said.startswith("SetupError [PYTHON_WITHOUT_PACKAGE] Spark does not find the format 'pyspark_kafka': ")
    assert f"PYSPARK_PYTHON is '{other}'; this program runs {sys.executable}, which has it." in said
    assert 'Hint: Put os.environ["PYSPARK_PYTHON"] = sys.executable before the session is created' in said
    assert "Spark will report DATA_SOURCE_NOT_FOUND for the format 'pyspark_kafka'" in logged


_STARTED_PYTHON = "The Python that Spark starts does not have this package."


@pytest.mark.full("Drivers of their own")
@pytest.mark.parametrize("lacking", [True, False])
def test_version_command_names_the_python_that_lacks_the_package(tmp_path: Path, lacking: bool) -> None:
    other = python_without_packages(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pyspark_kafka", "version"],
        env={**os.environ, "PYSPARK_DRIVER_PYTHON": str(other) if lacking else sys.executable},
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert (_STARTED_PYTHON in done.stdout) is lacking
    assert (f"PYSPARK_DRIVER_PYTHON is '{other}'" in done.stdout) is lacking
