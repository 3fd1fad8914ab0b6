"""The examples of the README, pasted into files and run as a reader would run them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kit.independent_client import Record, consume, produce
from kit.programs.run import run_logging_program, run_program

if TYPE_CHECKING:
    from kit.fixtures.broker import TopicMaker
    from pyspark_kafka.testing import EmbeddedKafka

_README = Path(__file__).parents[3] / "README.md"


def example_with(word: str) -> str:
    """Give the README's Python block that holds a word."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", _README.read_text(), re.DOTALL)
    return next(block for block in blocks if word in block)


def other_python(place: Path, *, name: str = "python3") -> Path:
    """Make a folder with a Python in it that has no packages, as the one of a system."""
    folder = place / "other"
    folder.mkdir()
    script = folder / name
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return folder


def test_the_first_example_runs_as_it_stands(tmp_path: Path) -> None:
    # As `venv/bin/python program.py`, with another python3 in PATH.
    path = f"{other_python(tmp_path)}{os.pathsep}{os.environ['PATH']}"
    unset = {"PATH": path, "PYSPARK_PYTHON": None, "PYSPARK_DRIVER_PYTHON": None}
    said, _ = run_logging_program(example_with("EmbeddedKafka"), place=tmp_path, environment=unset)
    assert said.endswith("1000 records\n")
    assert "|partition|offset|key" in said


def test_the_topics_of_the_readme_are_made_as_it_says(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    example = example_with("create_topics")
    assert "localhost:9092" in example
    run_program(example.replace("localhost:9092", kafka.bootstrap_servers), place=tmp_path)
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


def test_a_python_of_sparks_without_the_package_is_named(
    kafka: EmbeddedKafka, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(kafka.bootstrap_servers, topic, [Record(b"k", b"v")])
    other = str(other_python(tmp_path) / "python3")
    environment = {"PYSPARK_PYTHON": other, "PYSPARK_DRIVER_PYTHON": None}
    said, _ = run_logging_program(
        _WITHOUT_PACKAGE, kafka.bootstrap_servers, topic, place=tmp_path, environment=environment
    )
    assert said.startswith("SetupError [PYTHON_WITHOUT_PACKAGE] Spark does not find the format 'pyspark_kafka': ")
    assert f"PYSPARK_PYTHON is '{other}'; this program runs {sys.executable}, which has it." in said
    assert 'Hint: Put os.environ["PYSPARK_PYTHON"] = sys.executable before the session is made' in said
