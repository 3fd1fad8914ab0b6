"""Keys and values beyond bytes: formats, schemas, the registry, and the handling of bad values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from pyspark_kafka._client.options.values.secret import Secret

FormatName: TypeAlias = Literal[
    "binary", "string", "uuid", "short", "integer", "long", "float", "double", "json", "avro", "protobuf"
]
FramingName: TypeAlias = Literal["none", "confluent", "confluentHeader", "confluentDual", "glue"]
OpenParts: TypeAlias = Literal["error", "text"]
CorruptMode: TypeAlias = Literal["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """The format of the keys or values of a read or write.

    Attributes:
        format: binary is bytes as they are.
        framing: the bytes before each of them; None: `confluent` if a registry is set, else `none`.
        schema: the schema as the user gave it, or a reference `file:PATH` to it; None: the registry's.
        subject: the subject of the schema in the registry; None: the topic and `-key` or `-value`.
        schema_version: the version of the subject; None: the latest when the query is planned.
        message: the full name of the message in a schema of Protobuf; None: its first.
        timestamp_format: the pattern of times in JSON; None: as RFC 3339 has them.
        date_format: the pattern of dates in JSON; None: as RFC 3339 has them.
        open_parts: what parts of a JSON Schema without a type of a column are: an error, or a string that holds their
            text.
    """

    format: FormatName = "binary"
    framing: FramingName | None = None
    schema: str | None = None
    subject: str | None = None
    schema_version: int | None = None
    message: str | None = None
    timestamp_format: str | None = None
    date_format: str | None = None
    open_parts: OpenParts = "error"


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Access to a schema registry.

    Units: milliseconds.

    Attributes:
        urls: the addresses of one registry, used in turn. Of Glue: none.
        basic_auth: user and password as `user:password`.
        bearer_token: a token that is sent as it is.
        ca_location: a PEM file of the authorities to trust; None: the system's.
        certificate_location: a PEM file of the client's own certificate.
        key_location: a PEM file of its private key.
        key_password: what the key is encrypted with.
        region: the AWS region of a Glue registry.
        registry_name: the name of a Glue registry.
        timeout_ms: how long one question may take, with all its attempts.
    """

    urls: tuple[str, ...] = ()
    basic_auth: Secret | None = None
    bearer_token: Secret | None = None
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: Secret | None = None
    region: str | None = None
    registry_name: str | None = None
    timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class TypedReadOptions:
    """Keys and values of a read as columns of their own types.

    Attributes:
        key: what keys are.
        value: what values are.
        registry: where schemas come from that are not given; None: nowhere.
        mode: the handling of a key or value that cannot be read.
        corrupt_column: the column that holds what could not be read, in mode PERMISSIVE.
        include_schema_id: whether there are columns `key_schema_id` and `value_schema_id`.
        max_corrupt_ratio: a task that finds a larger part of its records to be bad fails; 1.0: never.
        recursive_field_max_depth: how many levels of a record of Avro that holds itself are columns; 0: it is
            refused.
    """

    key: FormatOptions = field(default_factory=FormatOptions)
    value: FormatOptions = field(default_factory=FormatOptions)
    registry: RegistryOptions | None = None
    mode: CorruptMode = "FAILFAST"
    corrupt_column: str = "_corrupt_record"
    include_schema_id: bool = False
    max_corrupt_ratio: float = 1.0
    recursive_field_max_depth: int = 0


@dataclass(frozen=True, slots=True)
class TypedWriteOptions:
    """Keys and values of a write from columns of other types than text and bytes.

    Attributes:
        key: what keys become.
        value: what values become.
        registry: where their schemas are looked up; None: nowhere.
        auto_register_schemas: whether a schema that its subject lacks is registered.
    """

    key: FormatOptions = field(default_factory=FormatOptions)
    value: FormatOptions = field(default_factory=FormatOptions)
    registry: RegistryOptions | None = None
    auto_register_schemas: bool = False
