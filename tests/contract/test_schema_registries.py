"""The same questions to a real registry, Apicurio's, and to the one of the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.request import Request, urlopen
from uuid import UUID, uuid4

import pytest

from kit.fakes.schema_registry import SchemaRegistryServer
from pyspark_kafka._client.options import RegistryOptions
from pyspark_kafka._typed.codecs.schemas import NamedSchema, RegisteredSchema, SchemaRegistry, UnknownSchemaError
from pyspark_kafka._typed.registry.connect import open_registry
from pyspark_kafka.errors import RegistryError

FAKE, COMPATIBLE = "the tests' own", "/apis/ccompat/v7"
PROTO = 'syntax = "proto3"; package {package}; message M {{ int64 x = 1; }}'


@pytest.fixture(params=[FAKE, COMPATIBLE])
def registry(request: pytest.FixtureRequest) -> Iterator[SchemaRegistry]:
    if request.param == FAKE:
        with SchemaRegistryServer() as server:
            yield open_registry(RegistryOptions(urls=(server.url,)))
    else:
        yield open_registry(RegistryOptions(urls=(request.getfixturevalue("apicurio") + request.param,)))


@pytest.fixture
def subject() -> str:
    """A subject that no other test has; its name needs quoting in a path."""
    return f"orders/{uuid4().hex}-value"


def record(name: str, *fields: str) -> RegisteredSchema:
    """Return a schema of Avro of which there is no other: texts of one kind share an id."""
    return RegisteredSchema(
        "AVRO",
        json.dumps({"type": "record", "name": name, "fields": [{"name": each, "type": "long"} for each in fields]}),
    )


def unique() -> str:
    return f"R{uuid4().hex}"


def test_schema_is_found_after_it_was_registered(registry: SchemaRegistry, subject: str) -> None:
    schema = record(unique(), "x")
    assert registry.find_id(subject, schema) is None
    schema_id = registry.register(subject, schema)
    assert registry.register(subject, schema) == schema_id
    assert registry.find_id(subject, schema) == schema_id
    found = registry.schema_by_id(schema_id)
    assert (found.kind, json.loads(found.text), found.references) == ("AVRO", json.loads(schema.text), ())
    latest = registry.schema_by_subject(subject)
    assert (latest.schema_id, latest.subject, latest.version) == (schema_id, subject, 1)


def test_versions_of_a_subject_are_found_by_their_number(registry: SchemaRegistry, subject: str) -> None:
    name = unique()
    ids = [registry.register(subject, record(name, *fields)) for fields in ("x", "xy")]
    assert [registry.schema_by_subject(subject, version).schema_id for version in (1, 2, None)] == [*ids, ids[1]]
    with pytest.raises(UnknownSchemaError, match="has no such version"):
        registry.schema_by_subject(subject, 3)
    # Of a version that is not the latest as well.
    assert json.loads(registry.schema_by_id(ids[0]).text)["fields"] == [{"name": "x", "type": "long"}]


def test_subject_or_id_that_is_not_there_is_unknown(registry: SchemaRegistry, subject: str) -> None:
    with pytest.raises(UnknownSchemaError, match="is not a subject of the schema registry"):
        registry.schema_by_subject(subject)
    with pytest.raises(UnknownSchemaError, match="is not in the schema registry"):
        registry.schema_by_id(2_000_000_000)
    assert registry.incompatibilities(subject, record("A")) == []


@pytest.mark.parametrize("schema_id", [-(2**63), -1, 0, 2**31, 2**63 - 1, str(UUID(int=1))])
def test_id_that_a_producer_made_up_is_unknown(registry: SchemaRegistry, schema_id: int | str) -> None:
    with pytest.raises(UnknownSchemaError, match="is not in the schema registry"):
        registry.schema_by_id(schema_id)


@pytest.mark.parametrize("kind", ["JSON", "PROTOBUF"])
def test_schema_of_another_language_is_found(registry: SchemaRegistry, subject: str, kind: str) -> None:
    text = {
        "JSON": json.dumps({"type": "object", "title": unique(), "properties": {"x": {"type": "integer"}}}),
        "PROTOBUF": PROTO.format(package=unique()),
    }[kind]
    schema_id = registry.register(subject, RegisteredSchema(kind, text))  # type: ignore[arg-type]
    found = registry.schema_by_id(schema_id)
    assert (found.kind, found.text) == (kind, text)


def test_schema_that_does_not_fit_is_not_registered(apicurio: str, subject: str) -> None:
    """The rule of the subject is Apicurio's; that of the tests' own registry is what a test says."""
    registry = open_registry(RegistryOptions(urls=(apicurio + COMPATIBLE,)))
    name = unique()
    registry.register(subject, record(name, "x"))
    _call(apicurio, f"/apis/ccompat/v7/config/{subject.replace('/', '%2F')}", {"compatibility": "BACKWARD"}, "PUT")
    assert registry.incompatibilities(subject, record(name)) == []
    (reason,) = registry.incompatibilities(subject, record(name, "x", "y"))
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in reason or "y" in reason
    with pytest.raises(RegistryError, match=r"REGISTRY_REJECTED.*HTTP status 409, code 409"):
        registry.register(subject, record(name, "x", "y"))


def test_references_come_with_the_schema(apicurio: str) -> None:
    registry = open_registry(RegistryOptions(urls=(apicurio + COMPATIBLE,)))
    package = unique()
    inner, middle, outer = (f"{package}-{name}" for name in ("inner", "middle", "outer"))
    texts = {
        inner: PROTO.format(package=package),
        middle: f'syntax = "proto3"; package {package}; import "{inner}.proto"; message N {{ M m = 1; }}',
        outer: f'syntax = "proto3"; package {package}; import "{middle}.proto"; message O {{ N n = 1; }}',
    }
    needed = None
    for subject, text in texts.items():
        place = {"name": f"{needed}.proto", "subject": needed, "version": 1}
        references = [place] * bool(needed)
        body = {"schema": text, "schemaType": "PROTOBUF", "references": references}
        _call(apicurio, f"/apis/ccompat/v7/subjects/{subject}/versions", body)
        needed = subject
    found = registry.schema_by_subject(outer)
    expected = tuple(NamedSchema(f"{name}.proto", texts[name]) for name in (inner, middle))
    assert (found.text, found.references) == (texts[outer], expected)
    assert found.schema_id is not None
    assert registry.schema_by_id(found.schema_id).references == expected


@pytest.mark.parametrize("path", ["", "/apis/ccompat/v99", "/apis/registry/v2"])
def test_address_that_is_none_of_an_api_fails_the_task(apicurio: str, path: str) -> None:
    registry = open_registry(RegistryOptions(urls=(apicurio + path,)))
    with pytest.raises(RegistryError) as caught:
        registry.schema_by_id(1)
    assert caught.value.condition == "REGISTRY_ANSWER_INVALID"
    assert "/apis/ccompat/v7" in caught.value.hint


def test_address_that_is_none_of_an_api_does_not_make_a_guid_unknown(apicurio: str) -> None:
    registry = open_registry(RegistryOptions(urls=(apicurio + "/apis/ccompat/v99",)))
    with pytest.raises(RegistryError, match="REGISTRY_ANSWER_INVALID"):
        registry.schema_by_id(str(UUID(int=1)))


def _call(server: str, path: str, body: object, method: str = "POST") -> None:
    """Make a request that this package never makes."""
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(server + path, json.dumps(body).encode(), headers, method=method), timeout=30) as answer:  # noqa: S310
        assert answer.status == 200
