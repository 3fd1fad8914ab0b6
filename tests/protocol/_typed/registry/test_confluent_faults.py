"""What is made of each fault of a registry: an error of the task, or the registry's word that there is no schema."""

from __future__ import annotations

import base64
import html
import time
import uuid
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from kit.fakes.schema_registry import RegistryAnswer, SchemaRegistryServer
from pyspark_kafka._client.options import RegistryOptions, Secret
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, UnknownSchemaError
from pyspark_kafka._typed.registry.confluent import ConfluentRegistry
from pyspark_kafka.errors import RegistryError

LONG = '"long"'


def connect(server: SchemaRegistryServer, timeout_ms: int = 10_000, **options: Any) -> ConfluentRegistry:
    return ConfluentRegistry(RegistryOptions(urls=(server.url,), timeout_ms=timeout_ms, **options))


def refused(call: Callable[[], object]) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda registry: registry.schema_by_id(99), "is not in the schema registry"),
        (lambda registry: registry.schema_by_subject("none"), "is not a subject of the schema registry"),
        (lambda registry: registry.schema_by_subject("orders-value", 7), "has no such version in the schema registry"),
    ],
)
def test_schema_that_a_registry_does_not_have_is_unknown(
    schema_registry: SchemaRegistryServer, ask: Callable[[ConfluentRegistry], object], text: str
) -> None:
    schema_registry.add("orders-value", LONG)
    with pytest.raises(UnknownSchemaError, match=f"^{text} {schema_registry.url}$"):
        ask(connect(schema_registry))


@pytest.mark.parametrize("schema_id", [-1, 2**31, 2**63 - 1])
def test_id_of_more_than_31_bits_is_unknown_without_a_question(
    schema_registry: SchemaRegistryServer, schema_id: int
) -> None:
    with pytest.raises(UnknownSchemaError, match=f"^is not in the schema registry {schema_registry.url}, whose ids"):
        connect(schema_registry).schema_by_id(schema_id)
    assert schema_registry.count() == 0


GUID = str(uuid.UUID(int=1))
NO_PATH = RegistryAnswer(404, {"error_code": 404, "message": "HTTP 404 Not Found"})


@pytest.mark.parametrize("answer", [NO_PATH, RegistryAnswer(404, b"<html>not here</html>")])
def test_guid_is_unknown_to_a_registry_that_answers_another_question_only(
    schema_registry: SchemaRegistryServer, answer: RegistryAnswer
) -> None:
    schema_registry.next_answers([answer])
    with pytest.raises(UnknownSchemaError, match=f"{schema_registry.url}, which finds none by GUID$"):
        connect(schema_registry).schema_by_id(GUID)
    assert [each.path for each in schema_registry.requests] == [f"/schemas/guids/{GUID}", "/schemas/types"]


def test_guid_that_a_registry_does_not_have_is_unknown(schema_registry: SchemaRegistryServer) -> None:
    with pytest.raises(UnknownSchemaError, match=f"^is not in the schema registry {schema_registry.url}$"):
        connect(schema_registry).schema_by_id(GUID)
    assert schema_registry.count() == 1


@pytest.mark.parametrize(
    ("second", "condition"),
    [
        (NO_PATH, "REGISTRY_ANSWER_INVALID"),
        (RegistryAnswer(200, {"AVRO": 1}), "REGISTRY_ANSWER_INVALID"),
        (RegistryAnswer(200, b"<html>login</html>"), "REGISTRY_ANSWER_INVALID"),
        (RegistryAnswer(403, {"error_code": 40301, "message": "no"}), "REGISTRY_REFUSED"),
    ],
)
def test_guid_at_an_address_that_is_no_registry_fails_the_task(
    schema_registry: SchemaRegistryServer, second: RegistryAnswer, condition: str
) -> None:
    schema_registry.next_answers([NO_PATH, second])
    error = refused(lambda: connect(schema_registry).schema_by_id(GUID))
    assert error.condition == condition
    assert schema_registry.count() == 2


def test_guid_is_asked_for_again_if_the_registry_is_busy(schema_registry: SchemaRegistryServer) -> None:
    schema_registry.next_answers([NO_PATH, RegistryAnswer(503, b"busy")])
    schema_id = schema_registry.add("orders-value", LONG)
    assert connect(schema_registry).schema_by_id(schema_registry.guid(schema_id)).text == LONG
    assert schema_registry.count() == 3


@pytest.mark.parametrize(
    ("answer", "condition", "reason"),
    [
        (RegistryAnswer(401, {"error_code": 401, "message": "no"}), "REGISTRY_REFUSED", "HTTP status 401, code 401"),
        (RegistryAnswer(403, {"error_code": 40301, "message": "no"}), "REGISTRY_REFUSED", "HTTP status 403"),
        (RegistryAnswer(404, b"<html>not here</html>"), "REGISTRY_ANSWER_INVALID", "HTTP status 404"),
        (RegistryAnswer(404, {"error_code": 404, "message": "no"}), "REGISTRY_ANSWER_INVALID", "HTTP status 404"),
        (RegistryAnswer(404, {"error_code": "40403"}), "REGISTRY_ANSWER_INVALID", "HTTP status 404"),
        (RegistryAnswer(200, b"<html>login</html>"), "REGISTRY_ANSWER_INVALID", "it is not JSON"),
        (RegistryAnswer(200, b"\xff\xfe"), "REGISTRY_ANSWER_INVALID", "it is not JSON"),
        (RegistryAnswer(200, b"[" * 100_000), "REGISTRY_ANSWER_INVALID", "RecursionError"),
        (RegistryAnswer(200, b""), "REGISTRY_ANSWER_INVALID", "it is not "),
        (RegistryAnswer(204, b""), "REGISTRY_ANSWER_INVALID", "it is not "),
        (RegistryAnswer(200, [1]), "REGISTRY_ANSWER_INVALID", "not of the form"),
        (RegistryAnswer(200, {"schema": 7}), "REGISTRY_ANSWER_INVALID", "it has no schema"),
        (RegistryAnswer(200, {"schema": LONG, "schemaType": "XML"}), "REGISTRY_ANSWER_INVALID", "of the kind 'XML'"),
        (RegistryAnswer(200, {"schema": LONG, "references": [{}]}), "REGISTRY_ANSWER_INVALID", "a reference"),
        (RegistryAnswer(200, {"schema": LONG, "references": 7}), "REGISTRY_ANSWER_INVALID", "not of the form"),
        (RegistryAnswer(200, {"schema": LONG, "ruleSet": 7}), "REGISTRY_ANSWER_INVALID", "not of the form"),
        (RegistryAnswer(200, b" " * (17 << 20)), "REGISTRY_ANSWER_INVALID", "more than 16777216 bytes"),
        (RegistryAnswer(200, {"schema": " " * (5 << 20)}), "REGISTRY_ANSWER_INVALID", "more than 4194304 bytes"),
        (RegistryAnswer(200, b"", {"Content-Encoding": "gzip"}), "REGISTRY_ANSWER_INVALID", "it is compressed"),
        (RegistryAnswer(301, b"", {"Location": "http://localhost:1/"}), "REGISTRY_ANSWER_INVALID", "not followed"),
    ],
)  # fmt: skip
def test_answer_that_cannot_be_used_fails_the_task(
    schema_registry: SchemaRegistryServer, answer: RegistryAnswer, condition: str, reason: str
) -> None:
    schema_registry.add("orders-value", LONG)
    schema_registry.next_answers([answer])
    error = refused(lambda: connect(schema_registry).schema_by_id(1))
    assert error.condition == condition
    assert reason in error.message
    assert not error.retriable
    assert error.message.endswith("No record is at fault, and none was treated as bad.")
    assert schema_registry.count() == 1


@pytest.mark.parametrize(
    "answer",
    [
        RegistryAnswer(500, {"error_code": 50001, "message": "store"}),
        RegistryAnswer(503, b"busy"),
        RegistryAnswer(429, b"slowly"),
        RegistryAnswer(cut=5),
    ],
)
def test_question_is_repeated_if_an_answer_may_come_later(
    schema_registry: SchemaRegistryServer, answer: RegistryAnswer
) -> None:
    schema_registry.add("orders-value", LONG)
    schema_registry.next_answers([answer, answer])
    assert connect(schema_registry).schema_by_id(1) == RegisteredSchema("AVRO", LONG, schema_id=1)
    assert schema_registry.count("/schemas/ids/1") == 3


@pytest.mark.parametrize("answer", [RegistryAnswer(held=True), RegistryAnswer(200, b"x" * 10_000, piecewise=True)])
def test_answer_that_does_not_end_is_not_waited_for(
    schema_registry: SchemaRegistryServer, answer: RegistryAnswer
) -> None:
    schema_registry.add("orders-value", LONG)
    schema_registry.next_answers([answer] * 9)
    began = time.monotonic()
    error = refused(lambda: connect(schema_registry, timeout_ms=600).schema_by_id(1))
    assert time.monotonic() - began < 30
    assert (error.condition, error.retriable) == ("REGISTRY_UNREACHABLE", True)


def test_registry_that_is_away_is_an_error_of_the_task() -> None:
    with SchemaRegistryServer() as server:
        pass
    error = refused(lambda: connect(server, timeout_ms=1_500).schema_by_id(1))
    assert str(error).startswith(
        f"[REGISTRY_UNREACHABLE] The schema registry {server.url} did not answer the question about schema 1: "
    )
    assert "within 1500 ms, the last: ConnectError: [Errno 111] Connection refused." in str(error)


def test_another_address_is_asked_if_one_does_not_answer(schema_registry: SchemaRegistryServer) -> None:
    with SchemaRegistryServer() as away:
        pass
    schema_registry.add("orders-value", LONG)
    registry = ConfluentRegistry(RegistryOptions(urls=(away.url, schema_registry.url), timeout_ms=10_000))
    assert registry.schema_by_id(1).text == LONG
    assert schema_registry.count() == 1


@pytest.mark.parametrize(
    "answer",
    [
        RegistryAnswer(404, {"error_code": 40403, "message": "no"}),
        RegistryAnswer(403, {"error_code": 40301, "message": "no"}),
        RegistryAnswer(409, {"error_code": 409, "message": "no"}),
        RegistryAnswer(200, b"<html>login</html>"),
    ],
)
def test_answer_of_a_registry_ends_its_outage_whatever_it_says(
    schema_registry: SchemaRegistryServer, answer: RegistryAnswer
) -> None:
    registry = connect(schema_registry)
    schema_registry.next_answers([RegistryAnswer(503, b"busy"), answer])
    with pytest.raises((RegistryError, LookupError)):
        registry.schema_by_id(1)
    assert schema_registry.count() == 2
    assert registry._access.backoff.wait_s() == 0
    assert registry._access.backoff._failures == 0


@pytest.mark.parametrize("status", [429, 503])
def test_registry_that_is_busy_is_asked_again_after_the_time_it_names(
    schema_registry: SchemaRegistryServer, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema_registry.add("orders-value", LONG)
    registry = connect(schema_registry)
    pauses: list[float] = []
    # Not of the module `time`: threads of other parts sleep as well.
    own = SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append)
    monkeypatch.setattr("pyspark_kafka._typed.registry.inquiry.time", own)
    schema_registry.next_answers([RegistryAnswer(status, b"busy", {"Retry-After": "3"})])
    assert registry.schema_by_id(1).text == LONG
    assert len(pauses) == 1
    assert 2 < pauses[0] <= 3


@pytest.mark.parametrize(
    "login", [{"basic_auth": Secret("me:Pl4ntedS3cret")}, {"bearer_token": Secret("Pl4ntedS3cret")}]
)
def test_login_is_sent_and_not_shown(login: dict[str, Any]) -> None:
    with SchemaRegistryServer(users={"me": "other"}) as server:
        server.add("orders-value", LONG)
        # A server that repeats what it got.
        encoded = base64.b64encode(b"me:Pl4ntedS3cret").decode()
        sent = f"you sent me:Pl4ntedS3cret and Pl4ntedS3cret and {encoded}"
        server.next_answers([RegistryAnswer(401, {"error_code": 401, "message": sent})])
        error = refused(lambda: connect(server, **login).schema_by_id(1))
        assert server.requests[0].headers["authorization"].startswith(("Basic ", "Bearer Pl4nted"))
    assert error.condition == "REGISTRY_REFUSED"
    assert error.__context__ is None
    said = f"{error} {error.parameters} {error.hint}"
    assert "Pl4ntedS3cret" not in said
    assert encoded not in said or "bearer_token" in login


def test_login_that_is_repeated_in_another_form_is_not_shown(schema_registry: SchemaRegistryServer) -> None:
    password = "Pl4nted\tS3cret\n"  # noqa: S105 - of a server of a test
    registry = connect(schema_registry, basic_auth=Secret(f"me:{password}"))
    for sent in (password.strip(), repr(password), repr(password.encode())):
        schema_registry.next_answers([RegistryAnswer(403, {"error_code": 403, "message": f"{sent} is wrong"})])
        error = refused(partial(registry.schema_by_id, 1))
        assert "S3cret" not in f"{error} {error.parameters}"
        assert "is wrong" in error.message


def test_login_that_is_repeated_as_urls_and_other_charsets_have_it_is_not_shown(
    schema_registry: SchemaRegistryServer,
) -> None:
    password = "Pl4nted ü/S3cret&"  # noqa: S105 - of a server of a test
    registry = connect(schema_registry, basic_auth=Secret(f"me:{password}"))
    escaped = quote(password, safe="")
    forms = [escaped, escaped.lower().replace("pl4nted", "Pl4nted").replace("s3c", "S3c"), quote_plus(password)]
    forms += [quote(password.encode("latin-1")), password.encode().decode("latin-1"), html.escape(password)]
    for sent in forms:
        schema_registry.next_answers([RegistryAnswer(403, {"error_code": 403, "message": f"{sent} is wrong"})])
        error = refused(partial(registry.schema_by_id, 1))
        assert "S3cret" not in f"{error} {error.parameters}"
        assert "is wrong" in error.message


def test_login_in_an_address_is_not_shown(schema_registry: SchemaRegistryServer) -> None:
    """Options have none there; a program that builds `RegistryOptions` by hand may."""
    address = schema_registry.url.replace("://", "://me:Pl4nted%21S3cret@")
    registry = ConfluentRegistry(RegistryOptions(urls=(address,)))
    encoded = base64.b64encode(b"me:Pl4nted!S3cret").decode()
    for sent in ("Pl4nted!S3cret", "Pl4nted%21S3cret", encoded, address):
        schema_registry.next_answers([RegistryAnswer(403, {"error_code": 403, "message": f"{sent} is wrong"})])
        error = refused(partial(registry.schema_by_id, 1))
        assert "S3cret" not in f"{error} {error.parameters}"
        assert encoded not in f"{error} {error.parameters}"
        assert "is wrong" in error.message


@pytest.mark.parametrize(
    "rules",
    [
        {"domainRules": [{"name": "pii", "kind": "TRANSFORM", "type": "ENCRYPT", "mode": "WRITEREAD"}]},
        {"migrationRules": [{"name": "up", "kind": "TRANSFORM", "type": "JSONATA", "mode": "UPGRADE"}]},
        {"encodingRules": [{"name": "all", "kind": "TRANSFORM", "type": "ENCRYPT_PAYLOAD", "mode": "WRITEREAD"}]},
    ],
)
def test_rules_that_change_values_are_refused(schema_registry: SchemaRegistryServer, rules: dict[str, Any]) -> None:
    schema_registry.add("orders-value", LONG, rule_set=rules)
    registry = connect(schema_registry)
    assert refused(lambda: registry.schema_by_id(1)).condition == "REGISTRY_RULES_UNSUPPORTED"
    assert refused(lambda: registry.schema_by_subject("orders-value")).condition == "REGISTRY_RULES_UNSUPPORTED"


def test_rules_that_only_check_values_are_named_in_the_log(
    schema_registry: SchemaRegistryServer, caplog: pytest.LogCaptureFixture
) -> None:
    rules = [
        {"name": "positive", "kind": "CONDITION", "type": "CEL", "mode": "WRITE"},
        {"name": "off", "kind": "TRANSFORM", "type": "ENCRYPT", "mode": "WRITEREAD", "disabled": True},
    ]
    schema_registry.add("orders-value", LONG, rule_set={"domainRules": rules})
    assert connect(schema_registry).schema_by_id(1).text == LONG
    assert "for schema 1 are not checked: positive (CEL)." in caplog.text
