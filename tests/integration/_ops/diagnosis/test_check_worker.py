"""A check from a worker of Spark: classic and Connect, and workers with another Python than the driver's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kit.brokers.two_brokers import free_ports
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.programs.cluster import StandaloneCluster
from pyspark_kafka import check
from pyspark_kafka._ops.diagnosis import Diagnosis, Finding, FindingStatus
from pyspark_kafka.testing import EmbeddedKafka

_ON_WORKER = ["packages", "names", "tcp", "tls", "sasl", "brokers", "advertised", "clock", "topics", "record"]


def of_worker(diagnosis: Diagnosis) -> list[Finding]:
    return [each for each in diagnosis.findings if each.where.startswith("worker")]


def test_worker_judges_what_depends_on_its_machine(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(b"k", b"v")])
    found = check({"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}, spark, timeout_s=300)
    assert found.ok, found
    there = of_worker(found)
    assert [each.step for each in there] == _ON_WORKER
    assert there[0].facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "is decoded" in there[-1].text


def test_each_executor_is_judged_and_reaches_brokers_and_driver(
    spark: SparkSession, bootstrap_servers: str, make_topic: TopicMaker
) -> None:
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": make_topic(), "coordinatorPort": "0"}
    found = check(options, spark, cluster=True, timeout_s=300)
    assert found.ok, found
    (row,) = found.of("executor")
    assert row.where == f"executor {row.facts['host']}"
    assert row.facts["packages"]["pyspark-kafka"] == found.of("packages")[0].facts["packages"]["pyspark-kafka"]
    assert row.facts["brokers_reached"]
    assert row.facts["driver"]["reached"] is True
    assert abs(row.facts["clock"]["ahead_ms"]) < 1_000


def test_port_of_continuous_queries_that_is_none_is_a_finding(bootstrap_servers: str) -> None:
    options = {"kafka.bootstrap.servers": bootstrap_servers, "coordinatorPort": "high"}
    found = check(options, object(), cluster=True, timeout_s=1)
    (refused,) = found.of("options", FindingStatus.FAILED)
    assert refused.text == "Option coordinatorPort must be a whole number, 0 to 65535, but is 'high'."


def test_worker_logs_in_with_the_secrets_of_the_query(spark: SparkSession, secured_kafka: EmbeddedKafka) -> None:
    given = secured_kafka.client_options("SASL_SSL", "alice", mechanism="SCRAM-SHA-256")
    found = check(given, spark, timeout_s=300)
    assert found.ok, found
    (login,) = [each for each in of_worker(found) if each.step == "sasl"]
    assert "as 'alice'" in login.text


@pytest.mark.full("Spark Connect")
def test_worker_of_spark_connect_is_judged_too(connect_url: str, bootstrap_servers: str, tmp_path: Path) -> None:
    """A program of its own: a process has classic sessions or those of Connect."""
    program = (
        "import json, sys\n"
        "from pyspark.sql import SparkSession\n"
        "import pyspark_kafka\n"
        "spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()\n"
        "done = pyspark_kafka.check({'kafka.bootstrap.servers': sys.argv[2]}, spark, timeout_s=300)\n"
        "print(json.dumps(done.to_json()))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, connect_url, bootstrap_servers],
        capture_output=True,
        text=True,
        timeout=400,
        check=True,
        cwd=tmp_path,
    )
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["ok"], told
    assert any(each["where"].startswith("worker") and each["step"] == "advertised" for each in told["findings"])


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    """The Python of the tests, which finds another version of PyArrow, and another one of this package."""
    for name, version in (("pyarrow", "9.9"), ("pyspark_kafka", "0.0.1")):
        place = tmp_path / "packages" / f"{name}-{version}.dist-info"
        place.mkdir(parents=True)
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n")
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path / "packages"}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return program


def run_check(python: str, *arguments: str, place: Path, master: str = "local[1]", status: int = 1) -> dict[str, Any]:
    """Run the command with a Spark of its own, whose workers may have another Python."""
    environment = {**os.environ, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    conf = ["--spark-conf", "spark.driver.bindAddress=127.0.0.1"]
    conf += ["--spark-conf", "spark.driver.host=127.0.0.1"]
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pyspark_kafka",
            "check",
            "--json",
            "--spark",
            master,
            "--timeout",
            "300",
            *conf,
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=environment,
        cwd=place,
    )
    assert ran.returncode == status, ran.stdout + ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


@pytest.mark.full("Checks of a worker")
def test_worker_with_other_versions_is_told_package_by_package(
    other_python: Path, bootstrap_servers: str, tmp_path: Path
) -> None:
    told = run_check(str(other_python), "--bootstrap-servers", bootstrap_servers, place=tmp_path)
    there = [each for each in told["findings"] if each["where"].startswith("worker")]
    assert [(each["status"], each["text"].partition(" there")[0]) for each in there[:2]] == [
        ("failed", "pyspark-kafka is 0.0.1"),
        ("warning", "pyarrow is 9.9"),
    ]
    assert there[2]["text"] == "Not judged: the packages of the worker do not fit."


@pytest.mark.full("Checks of a worker")
def test_every_executor_of_a_standalone_cluster_is_judged(bootstrap_servers: str, tmp_path: Path) -> None:
    conf = ["--spark-conf", "spark.executor.memory=512m", "--spark-conf", "spark.cores.max=2"]
    with StandaloneCluster(tmp_path) as cluster:
        for _ in range(2):
            cluster.start_worker()
        told = run_check(
            sys.executable,
            "--cluster",
            "--bootstrap-servers",
            bootstrap_servers,
            *conf,
            place=tmp_path,
            master=cluster.url,
            status=0,
        )
    rows = [each["facts"] for each in told["findings"] if each["step"] == "executor"]
    assert [row["executor"] for row in rows] == [rows[0]["host"], f"{rows[0]['host']} #2"]
    assert all(row["driver"]["reached"] and row["brokers_reached"] for row in rows)


@pytest.mark.full("Checks of a worker")
def test_python_that_is_not_on_the_worker_is_told(bootstrap_servers: str, tmp_path: Path) -> None:
    told = run_check("/no/such/python", "--bootstrap-servers", bootstrap_servers, place=tmp_path)
    (there,) = [each for each in told["findings"] if each["where"].startswith("worker")]
    assert "/no/such/python" in there["text"]
    assert there["remedy"] == "Set PYSPARK_PYTHON to a Python that is there on all workers."


@pytest.mark.full("Checks of a worker")
def test_command_ends_in_time_if_there_is_no_server_of_spark_connect(bootstrap_servers: str, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "pyspark_kafka", "check", "--bootstrap-servers", bootstrap_servers]
    command += ["--remote", f"sc://127.0.0.1:{port}", "--timeout", "15", "--json"]
    # PySpark alone tries for minutes.
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert ran.returncode == 1
    (there,) = [each for each in json.loads(ran.stdout)["findings"] if each["where"] == "worker"]
    assert there["text"] == "There is no Spark session after 15 s, the time for the whole check."


@pytest.mark.full("Checks of a worker")
def test_cluster_without_room_for_a_task_ends_with_the_time_of_the_check(bootstrap_servers: str) -> None:
    class Waiting:
        """A session whose tasks never start."""

        interrupted: list[str]

        def __init__(self) -> None:
            self.interrupted = []

        def addTag(self, _: str) -> None:  # noqa: N802 - Spark's name
            pass

        def range(self, *_: int) -> Any:
            raise_never.wait()

        def interruptTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
            self.interrupted.append(tag)

    import threading  # noqa: PLC0415 - only here

    raise_never = threading.Event()
    session = Waiting()
    try:
        found = check({"kafka.bootstrap.servers": bootstrap_servers}, session, timeout_s=10)
    finally:
        raise_never.set()
    (there,) = of_worker(found)
    assert there.status is FindingStatus.FAILED
    assert there.text.startswith("No worker finished a task within 10 s")
    assert len(session.interrupted) == 1
