"""The schema registry of Glue with botocore's Stubber, which checks requests and answers against the service's model.

The same questions were put to moto 5.2.5, which has all but `check_schema_version_validity`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from pyspark_kafka._client.options import RegistryOptions
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, UnknownSchemaError
from pyspark_kafka._typed.registry.glue import GlueRegistry
from pyspark_kafka.errors import OptionError, RegistryError

UUID = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
TEXT = '{"type":"record","name":"A","fields":[]}'
SCHEMA = RegisteredSchema("AVRO", TEXT)
PLACE = {"RegistryName": "orders", "SchemaName": "a"}
FOUND = {"SchemaVersionId": UUID, "SchemaDefinition": TEXT, "DataFormat": "AVRO", "VersionNumber": 3,
         "Status": "AVAILABLE"}  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Any:
    """A client of Glue: its model of the service takes long to load."""
    return boto3.session.Session().client(
        "glue",
        region_name="eu-west-1",
        aws_access_key_id="id",
        aws_secret_access_key="Pl4ntedS3cret",  # noqa: S106
    )


@pytest.fixture
def stub(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def registry(stub: Stubber) -> GlueRegistry:
    options = RegistryOptions(region="eu-west-1", registry_name="orders", timeout_ms=2_000)
    return GlueRegistry(options, stub.client)


def refused(stub: Stubber, registry: GlueRegistry, code: str, status: int = 400) -> RegistryError:
    stub.add_client_error("get_schema_version", code, "said", status)
    with pytest.raises(RegistryError) as caught:
        registry.schema_by_id(UUID)
    return caught.value


def test_schema_is_found_by_its_uuid(stub: Stubber, registry: GlueRegistry) -> None:
    stub.add_response("get_schema_version", FOUND, {"SchemaVersionId": UUID})
    assert registry.schema_by_id(UUID) == RegisteredSchema("AVRO", TEXT, schema_id=UUID)


@pytest.mark.parametrize(("version", "number"), [(None, {"LatestVersion": True}), (3, {"VersionNumber": 3})])
def test_schema_is_found_by_its_name(
    stub: Stubber, registry: GlueRegistry, version: int | None, number: dict[str, Any]
) -> None:
    stub.add_response("get_schema_version", FOUND, {"SchemaId": PLACE, "SchemaVersionNumber": number})
    expected = RegisteredSchema("AVRO", TEXT, schema_id=UUID, subject="a", version=3)
    assert registry.schema_by_subject("a", version) == expected


def test_schema_that_glue_does_not_have_is_unknown(stub: Stubber, registry: GlueRegistry) -> None:
    stub.add_client_error("get_schema_version", "EntityNotFoundException", "Schema is not found.", 400)
    with pytest.raises(UnknownSchemaError, match=r"^is not in AWS Glue, registry orders in eu-west-1$"):
        registry.schema_by_id(UUID)
    stub.add_response("get_schema_version", {**FOUND, "Status": "FAILURE"})
    with pytest.raises(UnknownSchemaError, match="was not accepted"):
        registry.schema_by_id(UUID)


@pytest.mark.parametrize("code", ["AccessDeniedException", "ExpiredTokenException", "UnrecognizedClientException"])
def test_login_that_glue_refuses_fails_the_task(stub: Stubber, registry: GlueRegistry, code: str) -> None:
    error = refused(stub, registry, code)
    assert error.condition == "REGISTRY_REFUSED"
    assert f"get_schema_version: {code}: said" in error.message
    assert "Check the login of AWS" in error.hint
    assert "Pl4ntedS3cret" not in str(error)


def test_other_refusals_fail_the_task(stub: Stubber, registry: GlueRegistry) -> None:
    assert refused(stub, registry, "InvalidInputException").condition == "REGISTRY_REJECTED"
    assert refused(stub, registry, "Unheard").condition == "REGISTRY_ANSWER_INVALID"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ThrottlingException", 400),
        ("ConcurrentModificationException", 400),
        ("InternalServiceException", 500),
        ("Other", 503),
    ],
)
def test_question_to_glue_is_repeated(stub: Stubber, registry: GlueRegistry, code: str, status: int) -> None:
    stub.add_client_error("get_schema_version", code, "later", status)
    stub.add_response("get_schema_version", FOUND, {"SchemaVersionId": UUID})
    assert registry.schema_by_id(UUID).text == TEXT


@pytest.mark.parametrize("code", ["EntityNotFoundException", "AccessDeniedException", "InvalidInputException"])
def test_answer_of_glue_ends_its_outage_whatever_it_says(stub: Stubber, registry: GlueRegistry, code: str) -> None:
    stub.add_client_error("get_schema_version", "InternalServiceException", "later", 500)
    stub.add_client_error("get_schema_version", code, "no", 400)
    with pytest.raises((RegistryError, LookupError)):
        registry.schema_by_id(UUID)
    assert registry._backoff.wait_s() == 0
    assert registry._backoff._failures == 0


def test_id_is_found_by_the_text(stub: Stubber, registry: GlueRegistry) -> None:
    asked = {"SchemaId": PLACE, "SchemaDefinition": TEXT}
    stub.add_response("get_schema_by_definition", {"SchemaVersionId": UUID, "Status": "AVAILABLE"}, asked)
    assert registry.find_id("a", SCHEMA) == UUID
    stub.add_response("get_schema_by_definition", {"SchemaVersionId": UUID, "Status": "FAILURE"}, asked)
    assert registry.find_id("a", SCHEMA) is None
    stub.add_client_error("get_schema_by_definition", "EntityNotFoundException")
    assert registry.find_id("a", SCHEMA) is None


@pytest.mark.parametrize(
    ("valid", "known", "expected"),
    [
        ({"Valid": False, "Error": "no JSON"}, None, ["no JSON"]),
        ({"Valid": True}, {"DataFormat": "AVRO", "Compatibility": "BACKWARD"}, []),
        ({"Valid": True}, {"DataFormat": "JSON"}, ["the schemas of 'a' are in JSON, not in AVRO"]),
        (
            {"Valid": True},
            {"DataFormat": "AVRO", "Compatibility": "DISABLED"},
            ["the compatibility of 'a' is DISABLED, which takes no further version"],
        ),
    ],
)  # fmt: skip
def test_schema_that_may_not_be_registered_is_found_before(
    stub: Stubber, registry: GlueRegistry, valid: dict[str, Any], known: dict[str, Any] | None, expected: list[str]
) -> None:
    asked = {"DataFormat": "AVRO", "SchemaDefinition": TEXT}
    stub.add_response("check_schema_version_validity", valid, asked)
    if known is not None:
        stub.add_response("get_schema", known, {"SchemaId": PLACE})
    assert registry.incompatibilities("a", SCHEMA) == expected


def test_first_version_of_a_name_fits(stub: Stubber, registry: GlueRegistry) -> None:
    stub.add_response("check_schema_version_validity", {"Valid": True})
    stub.add_client_error("get_schema", "EntityNotFoundException")
    assert registry.incompatibilities("a", SCHEMA) == []


def test_version_is_registered_once_glue_has_accepted_it(stub: Stubber, registry: GlueRegistry) -> None:
    asked = {"SchemaId": PLACE, "SchemaDefinition": TEXT}
    stub.add_response("register_schema_version", {"SchemaVersionId": UUID, "Status": "PENDING"}, asked)
    stub.add_response("get_schema_version", {**FOUND, "Status": "PENDING"}, {"SchemaVersionId": UUID})
    stub.add_response("get_schema_version", FOUND, {"SchemaVersionId": UUID})
    assert registry.register("a", SCHEMA) == UUID
    stub.add_response("register_schema_version", {"SchemaVersionId": UUID, "Status": "FAILURE"}, asked)
    with pytest.raises(RegistryError, match=r"REGISTRY_REJECTED.*the version has the status FAILURE"):
        registry.register("a", SCHEMA)


def test_name_that_is_new_is_created(stub: Stubber, registry: GlueRegistry) -> None:
    stub.add_client_error("register_schema_version", "EntityNotFoundException")
    stub.add_response(
        "create_schema",
        {"SchemaVersionId": UUID, "SchemaVersionStatus": "AVAILABLE"},
        {"RegistryId": {"RegistryName": "orders"}, "SchemaName": "a", "DataFormat": "AVRO",
         "Compatibility": "BACKWARD", "SchemaDefinition": TEXT},
    )  # fmt: skip
    assert registry.register("a", SCHEMA) == UUID


def test_name_that_another_writer_creates_first_gets_a_version(stub: Stubber, registry: GlueRegistry) -> None:
    asked = {"SchemaId": PLACE, "SchemaDefinition": TEXT}
    stub.add_client_error("register_schema_version", "EntityNotFoundException", expected_params=asked)
    stub.add_client_error("create_schema", "AlreadyExistsException")
    stub.add_response("register_schema_version", {"SchemaVersionId": UUID, "Status": "AVAILABLE"}, asked)
    assert registry.register("a", SCHEMA) == UUID


@pytest.mark.parametrize("region", [None, "eu-west-1"])
def test_login_or_region_that_is_missing_fails_the_task(region: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with pytest.raises(RegistryError) as caught:
        GlueRegistry(RegistryOptions(region=region, timeout_ms=2_000)).schema_by_id(UUID)
    assert caught.value.condition == "REGISTRY_REFUSED"
    assert ("no region is set" if region is None else "there is no login of AWS") in caught.value.message


def test_identity_of_the_process_is_used_only_if_the_process_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", "")
    with pytest.raises(OptionError, match=r"REFERENCE_NOT_ALLOWED.*the identity that the process has 'aws'"):
        GlueRegistry(RegistryOptions(region="eu-west-1")).schema_by_id(UUID)
