"""The Python processes of a query's first micro-batch: how many there are, and which PySpark they run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce

pytestmark = pytest.mark.full("Processes of a first batch")

_PROGRAM = Path(__file__).parents[3] / "kit/programs/first_batch.py"
# What Spark starts for a query from Kafka to Kafka: a daemon and a child for each of these, and one for the stream.
_STEPS = {
    "lookup_data_sources": 2,
    "create_data_source": 2,
    "plan_data_source_read": 2,
    "write_into_data_source": 2,
    "python_streaming_source_runner": 1,
    "python_streaming_sink_runner": 2,
    # One task: its reading and its writing.
    "worker": 3,
}


@pytest.fixture(scope="module")
def first_batches(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What was seen of a first micro-batch, with either of the settings that this package offers."""
    place = tmp_path_factory.mktemp("first")
    program = place / "pyspark-kafka-python"
    program.write_text(f"#!{sys.executable}\nfrom pyspark_kafka._connector.spark.worker_python import main\nmain()\n")
    program.chmod(0o755)
    found = {}
    for name, python, config in (
        ("daemon module", sys.executable, {"spark.python.daemon.module": "pyspark_kafka.spark.daemon"}),
        ("prepared", str(program), {}),
    ):
        topics = make_topic(), make_topic()
        produce(bootstrap_servers, topics[0], [Record(b"k", b"v%d" % number) for number in range(5)])
        task = {"servers": bootstrap_servers, "topics": topics, "place": f"{place}/{name}", "config": config}
        environment = {**os.environ, "PYSPARK_PYTHON": python}
        environment.pop("PYSPARK_DRIVER_PYTHON", None)
        done = subprocess.run(
            [sys.executable, str(_PROGRAM), json.dumps(task)],
            capture_output=True, text=True, check=False, timeout=290, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        found[name] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", ["daemon module", "prepared"])
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are looked up in /proc")
def test_a_first_batch_starts_one_process_for_each_step_and_no_more(
    first_batches: dict[str, dict[str, Any]], name: str
) -> None:
    assert Counter(first_batches[name]["steps"]) == _STEPS


@pytest.mark.parametrize("name", ["daemon module", "prepared"])
def test_all_records_arrive_whatever_the_setting(first_batches: dict[str, dict[str, Any]], name: str) -> None:
    assert first_batches[name]["written"] == [f"v{number}" for number in range(5)]


def test_tasks_take_the_installed_pyspark_with_the_daemon_module(first_batches: dict[str, dict[str, Any]]) -> None:
    assert "pyspark.zip" not in first_batches["daemon module"]["in_tasks"]
    # Spark has no such setting for these; and takes its archive where nothing is set.
    assert "pyspark.zip" in first_batches["daemon module"]["in_planning"]


def test_prepared_all_processes_take_the_installed_pyspark(first_batches: dict[str, dict[str, Any]]) -> None:
    assert "pyspark.zip" not in first_batches["prepared"]["in_tasks"]
    assert "pyspark.zip" not in first_batches["prepared"]["in_planning"]
