"""The text of a schema, as a registry takes it and as an encoder does: they differ for Protobuf."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.schemas import RegisteredSchema


def encodable(schema: RegisteredSchema) -> RegisteredSchema:
    """Return a schema that tasks need no compiler for: of Protobuf, a FileDescriptorSet in Base64.

    Runs on: driver; of Protobuf it may start a compiler, which runs for a second.

    Raises:
        SchemaError: it cannot be used.
        MissingDependencyError: without the compiler.
    """
    if schema.kind != "PROTOBUF":
        return schema
    from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set  # noqa: PLC0415 - of Protobuf only

    return replace(schema, text=base64.b64encode(read_file_set(schema)).decode(), references=())


def registrable(schema: RegisteredSchema) -> RegisteredSchema:
    """Return the user's schema as a registry takes it: of Protobuf, one file, as its text or as its descriptor.

    Raises:
        SchemaError: the schema imports others, which have to be registered before it.
    """
    if schema.kind != "PROTOBUF" or not _is_base64(schema.text):
        return schema
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - of Protobuf only

    from pyspark_kafka._typed.codecs.protobuf.known_files import is_known  # noqa: PLC0415 - as above
    from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set  # noqa: PLC0415 - as above

    files = descriptor_pb2.FileDescriptorSet.FromString(read_file_set(schema)).file
    own = [each for each in files if not is_known(each.name)]
    if len(own) != 1:
        raise SchemaError(
            f"The Protobuf schema cannot be looked up in a registry: it has {len(own)} files, and each is a schema of "
            "its own there. Nothing was written.",
            condition="SCHEMA_INVALID",
            hint="Register the files with the registry's own tool, and remove the schema from the options.",
        )
    return replace(schema, text=base64.b64encode(own[0].SerializeToString()).decode())


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        return False
    return True
