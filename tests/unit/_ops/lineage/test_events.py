"""Events of a run, checked by the published schemas of OpenLineage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError
from openlineage.client.serde import Serde

from kit.openlineage_schemas import check_event
from pyspark_kafka._ops.lineage.events import PRODUCER, run_event
from pyspark_kafka._ops.lineage.naming import ApplicationNames
from pyspark_kafka._ops.lineage.runs import Application, QueryParts, ReadPart, WritePart
from pyspark_kafka._ops.lineage.values import (
    DatasetColumn,
    JobRun,
    ParentRun,
    QueryFlow,
    RegistrySubject,
    RunFacts,
    State,
    TopicDataset,
)

RUN_ID, PARENT_ID = "019f0a6c-0000-7000-8000-000000000001", "019f0a6c-0000-7000-8000-000000000002"
VALUE = DatasetColumn("value", "struct", (DatasetColumn("id", "long"), DatasetColumn("tags", "array")))
ORDERS = TopicDataset("kafka://a:9092", "orders", (VALUE,), (RegistrySubject("value", "orders-value", 3),), rows=5)
COPY = TopicDataset("kafka://b:9092", "copy", (VALUE,), rows=4)
FACTS = RunFacts(
    JobRun("default", "app.append_data.copy", RUN_ID),
    "STREAMING",
    "SQL_JOB",
    "4.2.0",
    QueryFlow((ORDERS,), (COPY,), {"value.id": "value.id"}),
)


def made(facts: RunFacts, state: State = "RUNNING") -> Mapping[str, Any]:
    """Return an event as the client sends it."""
    event: dict[str, Any] = Serde.to_dict(run_event(facts, state, datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)))
    check_event(event)
    return event


@pytest.mark.parametrize("state", ["START", "RUNNING", "COMPLETE", "FAIL"])
def test_event_of_each_state_is_as_the_schemas_say(state: State) -> None:
    event = made(FACTS, state)
    assert event["eventType"] == state
    assert event["eventTime"] == "2026-01-02T03:04:05.000+00:00"
    assert event["run"]["runId"] == RUN_ID
    assert (event["job"]["namespace"], event["job"]["name"]) == ("default", "app.append_data.copy")
    assert event["producer"] == PRODUCER


def test_event_of_a_run_of_which_nothing_is_known_is_as_the_schemas_say() -> None:
    event = made(RunFacts(FACTS.run, "BATCH", "SQL_JOB", "4.2.0"), "START")
    assert (event["inputs"], event["outputs"]) == ([], [])


def test_inputs_have_schema_subject_and_statistics() -> None:
    (orders,) = made(FACTS)["inputs"]
    assert (orders["namespace"], orders["name"]) == ("kafka://a:9092", "orders")
    assert orders["inputFacets"]["inputStatistics"]["rowCount"] == 5
    (value,) = orders["facets"]["schema"]["fields"]
    assert (value["name"], value["type"]) == ("value", "struct")
    assert [(each["name"], each["type"]) for each in value["fields"]] == [("id", "long"), ("tags", "array")]
    tags = [(each["key"], each["value"], each["field"]) for each in orders["facets"]["tags"]["tags"]]
    assert tags == [("schema.registry.subject", "orders-value", "value"), ("schema.registry.version", "3", "value")]
    assert orders["facets"]["datasetType"]["datasetType"] == "TOPIC"


def test_outputs_have_statistics_and_the_columns_that_they_copy() -> None:
    (copy,) = made(FACTS)["outputs"]
    assert copy["outputFacets"]["outputStatistics"]["rowCount"] == 4
    (path,) = copy["facets"]["columnLineage"]["fields"]["value.id"]["inputFields"]
    assert (path["namespace"], path["name"], path["field"]) == ("kafka://a:9092", "orders", "value.id")
    assert path["transformations"][0]["subtype"] == "IDENTITY"


def test_columns_and_counts_that_are_unknown_are_left_out() -> None:
    plain = TopicDataset("kafka://a:9092", "orders")
    event = made(replace(FACTS, flow=QueryFlow((plain,), (plain,))))
    assert set(event["inputs"][0]["facets"]) == set(event["outputs"][0]["facets"]) == {"datasetType"}
    assert event["inputs"][0]["inputFacets"] == event["outputs"][0]["outputFacets"] == {}


def test_failure_has_its_message_at_most_4000_characters_long() -> None:
    facet = made(replace(FACTS, error="x" * 5_000), "FAIL")["run"]["facets"]["errorMessage"]
    assert (len(facet["message"]), facet["programmingLanguage"]) == (4_000, "PYTHON")


def test_parent_and_root_are_named() -> None:
    parent, root = JobRun("airflow", "dag.task", PARENT_ID), JobRun("airflow", "dag", RUN_ID)
    facet = made(replace(FACTS, parent=ParentRun(parent, root)))["run"]["facets"]["parent"]
    assert facet["run"]["runId"] == PARENT_ID
    assert (facet["root"]["job"]["name"], facet["root"]["run"]["runId"]) == ("dag", RUN_ID)


SECRET = "s3cr3t-of-the-user"  # noqa: S105 - of this test
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{}";'
WITH_SECRETS = {
    "kafka.bootstrap.servers": "a:9093",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": LOGIN.format(SECRET),
    "schema.registry.url": f"https://other:{SECRET}@registry",
    "valueFormat": "avro",
}


def with_options(**options: str) -> Mapping[str, Any]:
    read = ReadPart(WITH_SECRETS | {"subscribe": "orders"} | options, (VALUE,))
    write = WritePart(WITH_SECRETS | {"topic": "copy"} | options, (VALUE,))
    application = Application(ApplicationNames("default", "app"), "4.2.0")
    return made(application.facts(QueryParts("AppendData", [read], [write]), RUN_ID))


def test_event_has_no_secret_of_the_options() -> None:
    event = with_options()
    assert [each["name"] for each in (*event["inputs"], *event["outputs"])] == ["orders", "copy"]
    assert SECRET not in json.dumps(event)


def test_event_reads_nothing_that_options_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So it needs nothing that the administrator forbids."""
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "")
    monkeypatch.setenv("THE_PASSWORD", SECRET)
    (tmp_path / "password").write_text(SECRET)
    references = {
        "kafka.sasl.jaas.config": LOGIN.format("env:THE_PASSWORD"),
        "schema.registry.url": "https://registry",
        "schema.registry.bearer.auth.token": f"file:{tmp_path}/password",
        "valueSchema": f"file:{tmp_path}/password",
    }
    event = with_options(**references)
    assert [each["name"] for each in (*event["inputs"], *event["outputs"])] == ["orders", "copy"]
    assert SECRET not in json.dumps(event)


def test_check_of_the_schemas_notices_a_facet_that_is_wrong() -> None:
    event = made(FACTS)
    event["job"]["facets"]["jobType"].pop("processingType")
    with pytest.raises(ValidationError):
        check_event(event)
