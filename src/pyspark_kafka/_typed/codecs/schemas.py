"""Schemas of a registry, and the interface to a registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from pyspark_kafka._typed.codecs.values import Reason

SchemaKind: TypeAlias = Literal["AVRO", "JSON", "PROTOBUF"]
# A number of a registry with Confluent's API; a UUID as text, of Glue's and of Confluent's header.
SchemaId: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class NamedSchema:
    """A schema that another refers to.

    Attributes:
        name: its name in the other schema: the full name of a type in Avro, the path of an imported file in Protobuf.
        text: its text.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema of a registry or of a user. Plain data that pickles.

    Attributes:
        kind: its language.
        text: its text. Of Protobuf: the file, or a FileDescriptorSet in Base64.
        references: the schemas that it needs; each comes after its own references.
        schema_id: its id; None for a user's schema.
        subject: the subject of its look-up; None for a look-up by id, or a user's schema.
        version: its version in the subject.
    """

    kind: SchemaKind
    text: str
    references: tuple[NamedSchema, ...] = ()
    schema_id: SchemaId | None = None
    subject: str | None = None
    version: int | None = None


class UnknownSchemaError(LookupError):
    """No schema has the id, or it does not fit the reader schema; the text names the reason."""

    def __init__(self, message: str, reason: Reason = Reason.SCHEMA_ID_NOT_FOUND) -> None:
        """Set the reason, as the end of a sentence."""
        super().__init__(message)
        self.reason = reason


class SchemaRegistry(Protocol):
    """The interface to a schema registry. Every method may block, up to the registry's deadline.

    Each raises `errors.RegistryError` if the registry does not respond, refuses the login, or returns an invalid
    response: this is never a fault of a record.
    """

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with an id.

        Raises:
            UnknownSchemaError: the registry returns that it does not exist.
        """
        ...

    def knows(self, schema_id: SchemaId) -> bool:  # noqa: ARG002 - for registries with a memory
        """Return whether `schema_by_id` returns from memory, with a schema or an error; False without a memory."""
        return False

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Return a version of a subject, with its id; None: the latest.

        Raises:
            UnknownSchemaError: the registry returns that the subject or version does not exist.
        """
        ...

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        """Return the id of a schema in a subject; None if the subject lacks it."""
        ...

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        """Return the reasons why a schema may not be the next version of a subject; empty if it may."""
        ...

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        """Register a schema as the next version of a subject, and return its id; an existing version keeps its id."""
        ...
