"""Schemas as a registry has them, and what a registry can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from pyspark_kafka.formats.values import Reason

SchemaKind: TypeAlias = Literal["AVRO", "JSON", "PROTOBUF"]
# A number of Confluent's or Apicurio's registry; a UUID as text, of Glue's and of Confluent's header.
SchemaId: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class NamedSchema:
    """A schema that another refers to.

    Attributes:
        name: what the other calls it: the full name of a type in Avro, the path of an imported file in Protobuf.
        text: its text.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema, as a registry or a user gave it. Plain data that pickles.

    Attributes:
        kind: its language.
        text: its text. Of Protobuf: the file, or a FileDescriptorSet in Base64.
        references: the schemas that it needs, each after those that it needs itself.
        schema_id: its id; None if it is the user's.
        subject: the subject that it was looked up by; None if by its id, or if it is the user's.
        version: its version in the subject.
    """

    kind: SchemaKind
    text: str
    references: tuple[NamedSchema, ...] = ()
    schema_id: SchemaId | None = None
    subject: str | None = None
    version: int | None = None


class UnknownSchemaError(LookupError):
    """There is definitely no schema with an id, or none that the reader's fits; its text says which."""

    def __init__(self, message: str, reason: Reason = Reason.SCHEMA_ID_NOT_FOUND) -> None:
        """Say why, as the end of a sentence."""
        super().__init__(message)
        self.reason = reason


class SchemaRegistry(Protocol):
    """What a schema registry is asked. Every method may block, up to the registry's deadline.

    Each raises `errors.RegistryError` if the registry does not answer, refuses the login, or answers nonsense: that is
    never a fault of a record.
    """

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with an id.

        Raises:
            UnknownSchemaError: the registry says that there is none.
        """
        ...

    def knows(self, schema_id: SchemaId) -> bool:  # noqa: ARG002 - for registries with a memory
        """Return whether `schema_by_id` answers from memory, with a schema or an error; False without a memory."""
        return False

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Return a version of a subject, with its id; None: the latest.

        Raises:
            UnknownSchemaError: the registry says that there is no such subject or version.
        """
        ...

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        """Return the id that a schema has in a subject; None if the subject does not have it."""
        ...

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        """Return why a schema may not become the subject's next version; nothing if it may, or it is the first."""
        ...

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        """Make a schema the subject's next version, and return its id; return its id if it is one already."""
        ...
