"""Whatever JSON is at an address: a schema, the registry's word that there is none, or an error of the task."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_kafka._client.options import RegistryOptions
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, UnknownSchemaError
from pyspark_kafka._typed.registry import clients
from pyspark_kafka._typed.registry.confluent import ConfluentRegistry
from pyspark_kafka.errors import RegistryError

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
NAMES = st.sampled_from(
    ["schema", "schemaType", "references", "ruleSet", "metadata", "id", "version", "subject", "guid", "name", "kind",
     "domainRules", "migrationRules", "encodingRules", "mode", "type", "disabled", "is_compatible", "messages",
     "AVRO", "PROTOBUF", "TRANSFORM"]
)  # fmt: skip
ANSWERS = st.recursive(
    SCALARS | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=6),
    max_leaves=20,
)
# Clients have one each: reading the authorities of the machine takes longer than the rest of an example.
CONTEXT = ssl.create_default_context()


class _Answering:
    """In place of what makes requests: each answer is the same."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.event_hooks: dict[str, Any] = {}

    def get(self, *_: object) -> object:
        return self.answer

    def post(self, *_: object, **__: object) -> object:
        return self.answer

    def close(self) -> None:
        """Nothing is open."""


_Answering.__module__ = "httpx2"


@given(ANSWERS)
@example({"schema": "x", "references": [{"name": "a", "subject": "b", "version": True}]})
@example({"schema": "x", "ruleSet": {"domainRules": [{"kind": "TRANSFORM", "mode": "READ", "type": "X", "name": 1}]}})
@example({"schema": "x", "id": True, "version": 1})
@example({"schema": 1})
def test_any_answer_is_a_schema_or_an_error_of_the_task(answer: object) -> None:
    pytest.importorskip("httpx2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", lambda *_, **__: CONTEXT)
        client = SchemaRegistryClient({"url": "http://localhost:1"})
        rest = _Answering(answer)
        rest.session = rest  # type: ignore[attr-defined]
        patch.setattr(client, "_rest_client", rest)
        patch.setattr(clients, "_open_client", lambda *_: client)
        registry = ConfluentRegistry(RegistryOptions(urls=("http://localhost:1",), timeout_ms=60_000))
        schema = RegisteredSchema("AVRO", '"long"')
        questions: list[Callable[[], object]] = [
            lambda: registry.schema_by_id(1),
            lambda: registry.schema_by_id("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"),
            lambda: registry.schema_by_subject("a"),
            lambda: registry.find_id("a", schema),
            lambda: registry.incompatibilities("a", schema),
            lambda: registry.register("a", schema),
        ]
        for ask in questions:
            try:
                found = ask()
            except (RegistryError, UnknownSchemaError):
                continue
            if isinstance(found, RegisteredSchema):
                assert isinstance(found.text, str)
                assert found.kind in ("AVRO", "JSON", "PROTOBUF")
            else:
                assert type(found) is int or isinstance(found, list)
