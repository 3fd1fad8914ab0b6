"""The step of a check that asks the schema registry. No Kafka is there: the step is judged all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.fakes.schema_registry import SchemaRegistryServer
from pyspark_kafka import check
from pyspark_kafka._ops.diagnosis import Finding, FindingStatus

RECORD = '{"type":"record","name":"A","fields":[{"name":"x","type":"long"}]}'
PASSWORD = "Pl4ntedS3cret"  # noqa: S105 - of a server of a test


@pytest.fixture
def server() -> Iterator[SchemaRegistryServer]:
    with SchemaRegistryServer(users={"me": PASSWORD}) as server:
        server.add("orders-value", RECORD)
        yield server


def judged(
    server: SchemaRegistryServer, *, login: str = f"me:{PASSWORD}", time_s: float = 5, **options: str
) -> list[Finding]:
    everything = {
        "kafka.bootstrap.servers": "localhost:1",
        "schema.registry.url": server.url,
        "schema.registry.basic.auth.user.info": login,
        **options,
    }
    found = check(everything, step_timeout_s=time_s)
    assert found.of("tcp", FindingStatus.FAILED), found
    return found.of("registry")


def test_subject_of_a_read_is_found(server: SchemaRegistryServer) -> None:
    (found,) = judged(server, subscribe="orders", valueFormat="avro")
    assert (found.status, found.remedy) == (FindingStatus.OK, "")
    assert found.text == f"orders-value: version 1 in AVRO, id 1; {server.url} answers."


def test_subject_that_is_not_there_is_named_with_what_to_do(server: SchemaRegistryServer) -> None:
    key, value = judged(server, subscribe="orders", keyFormat="avro", valueFormat="avro", valueSchemaVersion="7")
    assert (key.status, value.status) == (FindingStatus.FAILED, FindingStatus.FAILED)
    assert key.text == f"orders-key is not a subject of the schema registry {server.url}."
    assert "keySubject" in key.remedy
    assert value.text == f"orders-value, version 7, has no such version in the schema registry {server.url}."


def test_subject_of_another_language_is_named(server: SchemaRegistryServer) -> None:
    (found,) = judged(server, subscribe="orders", valueFormat="json")
    assert found.text == "orders-value is a schema of AVRO, but valueFormat is json."
    assert found.remedy.startswith("Set valueFormat to avro")


def test_login_that_is_refused_is_named_without_the_password(server: SchemaRegistryServer) -> None:
    (found,) = judged(server, login=f"other:{PASSWORD}", subscribe="orders", valueFormat="avro")
    assert found.status is FindingStatus.FAILED
    assert "HTTP status 401" in found.text
    assert "schema.registry.basic.auth.user.info" in found.remedy
    assert PASSWORD not in str(found)


def test_registry_that_is_away_is_named(server: SchemaRegistryServer) -> None:
    server.stop()
    (found,) = judged(server, time_s=0.5, subscribe="orders", valueFormat="avro")
    assert found.status is FindingStatus.FAILED
    assert f"The schema registry {server.url} did not answer" in found.text
    assert "schema.registry.url" in found.remedy


def test_registry_that_has_ids_only_is_asked_whether_it_answers(server: SchemaRegistryServer) -> None:
    (found,) = judged(server, subscribe="orders", valueFormat="avro", valueSchema=RECORD)
    assert found.text == f"{server.url} answers. Schemas are looked up by their ids, as values are read."


@pytest.mark.parametrize(("register", "status"), [("true", FindingStatus.OK), ("false", FindingStatus.FAILED)])
def test_subject_that_a_write_registers_may_be_missing(
    server: SchemaRegistryServer, register: str, status: FindingStatus
) -> None:
    (found,) = judged(server, topic="new", valueFormat="avro", valueSchema=RECORD, autoRegisterSchemas=register)
    assert found.status is status
    assert server.versions("new-value") == []


def test_options_without_a_registry_have_no_such_step(server: SchemaRegistryServer) -> None:
    found = check({"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders"}, step_timeout_s=10)
    assert found.of("registry") == []
    assert server.count() == 0
