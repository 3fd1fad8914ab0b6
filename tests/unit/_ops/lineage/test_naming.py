"""Names of jobs and parents, compared with examples of OpenLineage's agent for Spark."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kit.pointers import REPO
from pyspark_kafka._ops.lineage.naming import application_names, normalized
from pyspark_kafka._ops.lineage.values import JobRun, ParentRun

PAGE = REPO / "docs" / "lineage.md"
UNSET: dict[str, str] = {}
AGENT = {"spark.extraListeners": "a.Listener, io.openlineage.spark.agent.OpenLineageSparkListener"}
ONE, TWO, THREE = (f"0{n}9f0a6c-0000-7000-8000-00000000000{n}" for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AppendData", "append_data"),
        ("WriteToDataSourceV2", "write_to_data_source_v2"),
        ("Execute InsertIntoHadoopFsRelationCommand", "execute_insert_into_hadoop_fs_relation_command"),
        ("  My App! ", "my_app"),
        ("someACRONYMInside", "some_acronym_inside"),
        ("Café orders", "cafe_orders"),
        ("nightly.orders-2", "nightly_orders_2"),
        ("!!!", ""),
    ],
)
def test_name_is_normalized_as_the_agent_does(name: str, expected: str) -> None:
    assert normalized(name) == expected


def test_job_name_has_the_application_the_command_and_the_topic() -> None:
    names = application_names({"spark.app.name": "Nightly Orders"}.get, {})
    assert names.namespace == "default"
    assert names.job_name("AppendData", "orders.valid") == "nightly_orders.append_data.orders_valid"
    assert names.job_name("AppendData", None) == "nightly_orders.append_data"


def test_job_name_follows_the_settings_of_the_agent() -> None:
    settings = {
        "spark.app.name": "x",
        "spark.openlineage.appName": "Orders",
        "spark.openlineage.namespace": "prod",
        "spark.openlineage.jobName.appendDatasetName": "false",
    }
    names = application_names(settings.get, {"OPENLINEAGE_NAMESPACE": "other"})
    assert (names.namespace, names.job_name("AppendData", "orders")) == ("prod", "orders.append_data")


def test_namespace_of_the_environment_is_used_without_a_setting() -> None:
    names = application_names(UNSET.get, {"OPENLINEAGE_NAMESPACE": "other"})
    assert (names.namespace, names.application, names.parent) == ("other", "unknown", None)


def parent_settings(prefix: str, run_id: str) -> dict[str, str]:
    return {
        f"spark.openlineage.{prefix}JobNamespace": "airflow",
        f"spark.openlineage.{prefix}JobName": f"{prefix}.job",
        f"spark.openlineage.{prefix}RunId": run_id,
    }


def test_parent_is_the_run_that_the_settings_name() -> None:
    own = JobRun("airflow", "parent.job", ONE)
    assert application_names(parent_settings("parent", ONE).get, {}).parent == ParentRun(own, own)
    both = parent_settings("parent", ONE) | parent_settings("rootParent", TWO)
    assert application_names(both.get, {}).parent == ParentRun(own, JobRun("airflow", "rootParent.job", TWO))


def test_parent_without_a_whole_name_is_left_out() -> None:
    assert application_names(parent_settings("parent", "no uuid").get, {}).parent is None
    assert application_names({"spark.openlineage.parentRunId": ONE}.get, {}).parent is None


def test_context_takes_precedence_over_the_single_settings() -> None:
    def run(name: str, run_id: str) -> dict[str, object]:
        return {"run": {"runId": run_id}, "job": {"namespace": "dags", "name": name}}

    context = {"parent": run("task", TWO) | {"root": run("dag", THREE)}}
    settings = parent_settings("parent", ONE) | {"spark.openlineage.context": json.dumps(context)}
    expected = ParentRun(JobRun("dags", "task", TWO), JobRun("dags", "dag", THREE))
    assert application_names(settings.get, {}).parent == expected
    settings["spark.openlineage.context"] = "[]"
    found = application_names(settings.get, {}).parent
    assert found is not None
    assert found.parent.run_id == ONE


def test_parent_of_the_environment_is_used_without_settings() -> None:
    environment = {"OPENLINEAGE_PARENT_ID": f"dags/task/{ONE}", "OPENLINEAGE_ROOT_PARENT_ID": f"dags/dag/{TWO}"}
    expected = ParentRun(JobRun("dags", "task", ONE), JobRun("dags", "dag", TWO))
    assert application_names(UNSET.get, environment).parent == expected
    assert application_names(UNSET.get, {"OPENLINEAGE_PARENT_ID": "task"}).parent is None


def test_run_of_the_agents_application_is_the_parent_where_the_agent_runs() -> None:
    settings = {"spark.app.name": "Orders", "spark.openlineage.applicationRunId": TWO} | parent_settings("parent", ONE)
    given = JobRun("airflow", "parent.job", ONE)
    assert application_names(settings.get, {}).parent == ParentRun(given, given)
    expected = ParentRun(JobRun("default", "orders", TWO), given)
    assert application_names((settings | AGENT).get, {}).parent == expected


def test_settings_of_the_page_make_the_agents_application_the_parent() -> None:
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[-1]
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 - our own page
    settings = names["builder"]._options
    found = application_names((settings | {"spark.app.name": "Orders"}).get, {})
    assert found.parent is not None
    assert found.parent.parent == JobRun("default", "orders", settings["spark.openlineage.applicationRunId"])
