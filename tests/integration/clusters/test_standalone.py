"""A standalone cluster whose nodes have no environment: Spark unpacks one on each executor."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.programs.cluster import StandaloneCluster
from kit.programs.cluster_plan import PROGRAM, ClusterPlan
from kit.programs.submitted import submitted, unpack_environment

pytestmark = pytest.mark.full("Clusters")


def test_program_with_an_archive_copies_each_row_once(
    packed_environment: Path, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    plan = ClusterPlan(bootstrap_servers, make_topic, tmp_path, str(tmp_path / "checkpoints"))
    place = tmp_path / "cluster"
    place.mkdir()
    python = unpack_environment(packed_environment, tmp_path)
    with StandaloneCluster(place) as cluster:
        for _ in range(2):
            cluster.start_worker()
        with submitted(
            "--master", cluster.url, "--executor-memory", "512m",
            "--conf", "spark.ui.enabled=false", "--conf", "spark.driver.bindAddress=127.0.0.1",
            # A job begins when both executors are there.
            "--conf", "spark.cores.max=2", "--conf", "spark.scheduler.minRegisteredResourcesRatio=1.0",
            "--conf", "spark.scheduler.maxRegisteredResourcesWaitingTime=120s",
            "--archives", f"{packed_environment}#environment", PROGRAM, plan.file,
            place=tmp_path,
            environment={"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"},
        ) as program:  # fmt: skip
            program.succeed()
    plan.judge("/environment/", compiled=True)
