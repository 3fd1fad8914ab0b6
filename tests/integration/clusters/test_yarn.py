"""YARN: programs that spark-submit hands to Hadoop's own servers, in client and in cluster mode."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.processes import processes_with
from kit.programs.cluster_plan import PROGRAM, ClusterPlan
from kit.programs.hadoop import Hadoop
from kit.programs.submitted import (
    IN_ARCHIVE,
    SPARK,
    build_archive_of_package,
    python_without_the_package,
    submitted,
    unpack_environment,
)
from pyspark_kafka.checkpoint import CheckpointFiles

hdfs_native = pytest.importorskip("hdfs_native", reason="the extra hdfs")
pytestmark = [pytest.mark.yarn, pytest.mark.timeout(900)]

CONF = {
    # Nodes have Spark, so that it is not uploaded.
    "spark.yarn.jars": f"local:{SPARK}/jars/*",
    "spark.yarn.maxAppAttempts": "1",
    "spark.executor.instances": "2",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # A job begins when both are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.ui.enabled": "false",
    # How often the application master asks what became of containers.
    "spark.yarn.scheduler.heartbeat.interval-ms": "500",
    # Nothing is open to other machines.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
}

FLAGS = [flag for name, value in CONF.items() for flag in ("--conf", f"{name}={value}")]
# The gateway's driver is on the loopback, too.
GATEWAY = {"SPARK_LOCAL_IP": "127.0.0.1"}


def kill_container(container: str) -> None:
    """Kill everything of a container of YARN at once."""
    for process in processes_with("CONTAINER_ID", container.__eq__):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def executors_of(application: str) -> set[str]:
    """Return the containers with executors."""
    prefix = application.replace("application", "container")
    found = set()
    for process, command in processes_with("CONTAINER_ID", lambda name: name.startswith(prefix)).items():
        if "CoarseGrainedExecutorBackend" in command:
            # It may have ended meanwhile.
            with suppress(OSError):
                variables = Path(f"/proc/{process}/environ").read_text().split("\0")
                found |= {each.partition("=")[2] for each in variables if each.startswith("CONTAINER_ID=")}
    return found


@pytest.fixture(scope="module")
def archive_in_hdfs(yarn: Hadoop, packed_environment: Path) -> str:
    """An archive that every node unpacks once, and not for each application: all may read it."""
    with hdfs_native.Client(yarn.files).create("/env.tar.gz") as file:
        file.write(packed_environment.read_bytes())
    return f"{yarn.files}/env.tar.gz#environment"


def test_client_mode_with_an_archive_copies_each_row_once_though_an_executor_is_killed(
    yarn: Hadoop, packed_environment: Path, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    plan = ClusterPlan(bootstrap_servers, make_topic, tmp_path, f"{yarn.files}/{uuid.uuid4().hex}", endless=True)
    python = unpack_environment(packed_environment, tmp_path)
    with submitted(
        "--master", "yarn", "--deploy-mode", "client", *FLAGS,
        "--archives", f"{packed_environment}#environment", PROGRAM, plan.file,
        place=tmp_path,
        environment={"HADOOP_CONF_DIR": str(yarn.settings), "PYSPARK_PYTHON": python, **GATEWAY},
    ) as program:  # fmt: skip
        program.until(lambda: plan.noted("started") != "")
        program.until(lambda: len(plan.copied("continuous")) == len(plan.rows))
        killed = min(executors_of(plan.noted("started")))
        kill_container(killed)
        plan.add_rows()
        program.until(lambda: len(plan.copied("continuous")) >= len(plan.rows))
        # Another container takes its place.
        program.until(lambda: len(executors_of(plan.noted("started")) - {killed}) == 2)
        plan.stop()
        program.succeed()
    assert plan.judge("/environment/", compiled=True)["epochs"] > 1


def test_cluster_mode_with_an_archive_copies_each_row_once_though_a_task_is_killed(
    yarn: Hadoop, archive_in_hdfs: str, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    # Without a scheme: on Hadoop's default file system, for Spark, its processes in Python, and a continuous query.
    location = f"/{uuid.uuid4().hex}"
    plan = ClusterPlan(bootstrap_servers, make_topic, tmp_path, location, held=True)
    with submitted(
        "--master", "yarn", "--deploy-mode", "cluster", *FLAGS,
        "--archives", archive_in_hdfs, PROGRAM, plan.file,
        place=tmp_path,
        environment={"HADOOP_CONF_DIR": str(yarn.settings), "PYSPARK_PYTHON": IN_ARCHIVE},
    ) as program:  # fmt: skip
        program.until(lambda: plan.noted("held") != "")
        kill_container(plan.noted("held"))
        program.succeed()
    plan.judge("/environment/", compiled=True)
    assert CheckpointFiles(f"{yarn.files}{location}/micro").list("commits") == ["0"]
    assert CheckpointFiles(f"{yarn.files}{location}/continuous").list("commits") == ["0"]
    assert not Path(location).exists()


def test_cluster_mode_with_the_package_as_a_file_copies_each_row_once(
    yarn: Hadoop, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    plan = ClusterPlan(bootstrap_servers, make_topic, tmp_path, f"{yarn.files}/{uuid.uuid4().hex}")
    python = python_without_the_package(tmp_path / "env")
    with submitted(
        "--master", "yarn", "--deploy-mode", "cluster", *FLAGS,
        "--py-files", str(build_archive_of_package(tmp_path)), PROGRAM, plan.file,
        place=tmp_path,
        environment={"HADOOP_CONF_DIR": str(yarn.settings), "PYSPARK_PYTHON": str(python)},
    ) as program:  # fmt: skip
        program.succeed()
    plan.judge("pyspark_kafka.zip/", compiled=False)


def test_check_from_the_gateway_judges_every_executor(
    yarn: Hadoop, packed_environment: Path, archive_in_hdfs: str, bootstrap_servers: str, tmp_path: Path
) -> None:
    python = unpack_environment(packed_environment, tmp_path)
    settings = {**CONF, "spark.yarn.dist.archives": archive_in_hdfs}
    ran = subprocess.run(
        [
            tmp_path / python, "-m", "pyspark_kafka", "check", "--bootstrap-servers", bootstrap_servers,
            "--cluster", "--spark", "yarn", "--timeout", "400", "--json",
            *(flag for name, value in settings.items() for flag in ("--spark-conf", f"{name}={value}")),
        ],
        capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if name != "PYSPARK_DRIVER_PYTHON"},
            **GATEWAY, "HADOOP_CONF_DIR": str(yarn.settings), "SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": python,
        },
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr[-6000:]
    executors = [each["facts"] for each in json.loads(ran.stdout)["findings"] if each["step"] == "executor"]
    assert len(executors) == 2
    assert all(each["brokers_reached"] and each["driver"]["reached"] for each in executors)
