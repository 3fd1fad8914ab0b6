"""A registry with Confluent's API: Confluent's own, Redpanda's, Karapace, Apicurio's at /apis/ccompat/v7.

Nothing is kept here: `cached.py` does.

Source: docs.confluent.io, Schema Registry API reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaRegistry, UnknownSchemaError
from pyspark_kafka._typed.registry.answers import check_number, check_schema
from pyspark_kafka._typed.registry.clients import rest_of
from pyspark_kafka._typed.registry.failures import answer_invalid, shortened
from pyspark_kafka._typed.registry.inquiry import SCHEMA_UNKNOWN, Inquiry, RegistryAccess
from pyspark_kafka._typed.registry.references import resolve
from pyspark_kafka.errors import RegistryError

if TYPE_CHECKING:
    from pyspark_kafka._client.options import RegistryOptions
    from pyspark_kafka._typed.codecs.schemas import SchemaId
    from pyspark_kafka._typed.registry.answers import FoundSchema, SchemaPlace

_MAX_MESSAGES = 20
_MAX_ID = (1 << 31) - 1


class ConfluentRegistry(SchemaRegistry):
    """A registry with Confluent's API; see `codecs.schemas.SchemaRegistry`.

    Runs on: driver and executor; each method blocks, `timeout_ms` at most. Safe to use from threads.

    Args:
        options: the addresses, the login, and the time for a request.
    """

    def __init__(self, options: RegistryOptions) -> None:
        self._access = RegistryAccess(options)

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with an id: a number, or the UUID of a header (`guid`) as text."""
        question = f"schema {schema_id}"
        with self._inquiry() as inquiry:
            if isinstance(schema_id, str):
                guid = schema_id
                schema = inquiry.ask(question, lambda client: _schema_by_guid(client, guid))
                if schema is None:
                    raise UnknownSchemaError(f"is not in the schema registry {inquiry.where}, which finds none by GUID")
            else:
                number = schema_id
                if not 0 <= number <= _MAX_ID:
                    # Some registries respond as if the address were wrong; a producer that made the id up would end
                    # every query of the topic.
                    raise UnknownSchemaError(
                        f"is not in the schema registry {inquiry.where}, whose ids are 0 to {_MAX_ID}"
                    )
                schema = inquiry.ask(question, lambda client: client.get_schema(number))
            found = check_schema(schema, question, inquiry.where)
            return self._whole(inquiry, question, found, schema_id)

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Return a version of a subject, with its id; None: the latest."""
        question = f"subject '{subject}'" + ("" if version is None else f", version {version}")
        with self._inquiry() as inquiry:
            answer = inquiry.ask(question, lambda client: client.get_version(subject, version or "latest"))
            where = inquiry.where
            found = check_schema(getattr(answer, "schema", None), question, where)
            schema_id = check_number(getattr(answer, "schema_id", None), "id", question, where)
            number = check_number(getattr(answer, "version", None), "version", question, where)
            return self._whole(inquiry, question, found, schema_id, subject, number)

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        """Return the id that a schema has in a subject; None if the subject does not have it, or is none."""
        question = f"the id of a schema in subject '{subject}'"
        with self._inquiry() as inquiry:
            try:
                answer = inquiry.ask(question, lambda client: client.lookup_schema(subject, client_schema(schema)))
            except UnknownSchemaError:
                return None
            return check_number(getattr(answer, "schema_id", None), "id", question, inquiry.where)

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        """Return the reason why a schema may not become the subject's next version; empty if it may, or is the first.

        All versions are asked about that the subject's compatibility names; of a registry that knows no such question,
        the latest one.
        """
        question = f"whether a schema fits subject '{subject}'"
        with self._inquiry() as inquiry:
            try:
                try:
                    answer = inquiry.ask(question, lambda client: _compatibility(client, subject, schema, ""))
                except RegistryError as error:
                    if error.condition != "REGISTRY_ANSWER_INVALID":
                        raise
                    answer = inquiry.ask(question, lambda client: _compatibility(client, subject, schema, "/latest"))
            except UnknownSchemaError:
                return []
            fits = answer.get("is_compatible") if isinstance(answer, dict) else None
            if not isinstance(fits, bool):
                raise answer_invalid(question, inquiry.where, "it does not say whether the schema is compatible")
            # Confluent's word, or Apicurio's.
            said = answer.get("messages") or answer.get("reason") or "the registry does not say why"
            return (
                []
                if fits
                else [shortened(each) for each in (said if isinstance(said, list) else [said])[:_MAX_MESSAGES]]
            )

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        """Make a schema the subject's next version, and return its id; return its id if it is one already."""
        question = f"a new version of subject '{subject}'"
        with self._inquiry() as inquiry:
            answer = inquiry.ask(question, lambda client: client.register_schema(subject, client_schema(schema)))
            return check_number(answer, "id", question, inquiry.where)

    def _inquiry(self) -> Inquiry:
        return Inquiry(self._access)

    def _whole(
        self,
        inquiry: Inquiry,
        question: str,
        found: FoundSchema,
        schema_id: SchemaId,
        subject: str | None = None,
        version: int | None = None,
    ) -> RegisteredSchema:
        """Return a schema with all that it needs."""

        def find(reference: SchemaPlace) -> FoundSchema:
            asked = f"{question}, which refers to version {reference.version} of subject '{reference.subject}'"
            try:
                # A version that was deleted after it was referred to is still there for schemas that refer to it.
                answer = inquiry.ask(
                    asked, lambda client: client.get_version(reference.subject, reference.version, deleted=True)
                )
            except UnknownSchemaError as error:
                raise answer_invalid(asked, inquiry.where, f"that {error}", hint="Register it again.") from error
            return check_schema(getattr(answer, "schema", None), asked, inquiry.where)

        references = resolve(found, find, question, inquiry.where)
        return RegisteredSchema(found.kind, found.text, references, schema_id, subject, version)


def client_schema(schema: RegisteredSchema) -> Any:
    """Return a schema in the form that confluent-kafka's client sends."""
    from confluent_kafka.schema_registry import Schema  # noqa: PLC0415 - an extra, and slow to import

    return Schema(schema.text, schema.kind, [])


def _schema_by_guid(client: Any, guid: str) -> Any:
    """Return a schema by its GUID; None of a registry that has no such question, as older ones."""
    try:
        return client.get_schema_by_guid(guid)
    except Exception as error:
        if getattr(error, "http_status_code", None) != 404 or getattr(error, "error_code", None) == SCHEMA_UNKNOWN:
            raise
        # A wrong address has a 404 for this question, too, which is then the error.
        types = rest_of(client).get("schemas/types")
        if not (isinstance(types, list) and "AVRO" in types):
            raise
    return None


def _compatibility(client: Any, subject: str, schema: RegisteredSchema, version: str) -> Any:
    """Request all messages, which the client's own method leaves out."""
    path = f"compatibility/subjects/{quote(subject, safe='')}/versions{version}?verbose=true"
    return rest_of(client).post(path, body=client_schema(schema).to_dict())
