"""The schema that an option has, inline or in a file, as a registry would return it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.options import check_reference
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema
from pyspark_kafka.errors import OptionError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pyspark_kafka._client.options import FormatOptions
    from pyspark_kafka._typed.codecs.schemas import SchemaKind

MAX_FILE_BYTES = 4 << 20
_FILE = "file:"
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f]")
KINDS: dict[str, SchemaKind] = {"json": "JSON", "avro": "AVRO", "protobuf": "PROTOBUF"}
_LANGUAGES = {"json": "a JSON Schema", "avro": "a schema of Avro", "protobuf": "a schema of Protobuf"}
_JSON_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_JSON_WORDS = frozenset(
    {"$schema", "$ref", "$defs", "definitions", "type", "properties", "patternProperties", "additionalProperties"}
    | {"items", "prefixItems", "enum", "const", "allOf", "anyOf", "oneOf"}
)


def read_schema_text(option: str, given: str) -> str:
    """Return the text of a schema, which an option has itself or names the file of.

    Runs on: driver; blocks on the file system if it is a file.

    Args:
        option: the name of the option, for errors.
        given: the text, or `file:PATH`; `FILE:` is the same.

    Returns:
        The text. For a binary file, its bytes in Base64, as a FileDescriptorSet is given inline.

    Raises:
        OptionError: the file cannot be read, is larger than 4 MiB, or the administrator of this process does not allow
            it.
    """
    if not _is_pointer(given):
        return given
    path = _path(given)
    check_reference("file", str(path), option)
    try:
        if not path.is_file():
            raise _unreadable(option, path, "there is no such file")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(option, path, error.strerror or type(error).__name__) from error
    if len(data) > MAX_FILE_BYTES:
        raise _unreadable(option, path, f"it has more than {MAX_FILE_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _in_base64(data)
    # Descriptors of plain names are valid UTF-8 as well, but no text has their lengths and tags.
    return _in_base64(data) if _NO_TEXT.search(text) else text


def _is_pointer(given: str) -> bool:
    return given[: len(_FILE)].lower() == _FILE


def _path(pointer: str) -> Path:
    named = pointer[len(_FILE) :].strip()
    # file:///etc/schema.avsc is the same path as a URL.
    return Path(named[2:] if named.startswith("///") else named)


def _in_base64(data: bytes) -> str:
    import base64  # noqa: PLC0415 - of Protobuf only

    return base64.b64encode(data).decode()


def read_given_schema(side: str, options: FormatOptions) -> RegisteredSchema | None:
    """Return the schema that the option of keys or of values has.

    Runs on: driver; as `read_schema_text`.

    Args:
        side: `key` or `value`.
        options: what they are.

    Returns:
        The schema as the user wrote it. None without the option, or if it names columns: as in SQL or in Spark's JSON,
        see `column_formats.given_columns`.

    Raises:
        OptionError: the file cannot be read.
        SchemaError: the file holds something else than a schema of the format; the text repeats nothing of it. What
            the text of an option itself holds is judged by who uses it.
        MissingDependencyError: the package that judges the schema of a file is not there.
    """
    if options.schema is None or options.format not in KINDS:
        return None
    option = f"{side}Schema"
    text = read_schema_text(option, options.schema)
    if options.format == "json" and names_columns(text):
        return None
    schema = RegisteredSchema(KINDS[options.format], text)
    if _is_pointer(options.schema) and not _is_schema(schema):
        raise _no_schema(option, options.schema, _LANGUAGES[options.format])
    return schema


def read_given_columns(option: str, given: str, parse: Callable[[str], pa.StructType]) -> pa.StructType:
    """Return the columns that an option names, itself or in a file.

    Runs on: driver; as `read_schema_text`.

    Args:
        option: the name of the option, for errors.
        given: the columns as text, or `file:PATH`.
        parse: makes columns of a text.

    Raises:
        OptionError: the file cannot be read.
        SchemaError: the text names no columns; if it is from a file, the error repeats nothing of it.
    """
    text = read_schema_text(option, given)
    if not _is_pointer(given):
        return parse(text)
    try:
        return parse(text)
    except SchemaError:
        pass
    # Not within the handler: that error, which has words of the file, would be shown with this one.
    raise _no_schema(option, given, "columns, as in SQL or in Spark's JSON")


def _is_schema(schema: RegisteredSchema) -> bool:
    """Whether a text is in the language of its kind, so that an error that names a part of it reveals nothing else."""
    try:
        if schema.kind == "AVRO":
            from pyspark_kafka._typed.codecs.avro.by_schema import read_schema  # noqa: PLC0415 - of one format

            read_schema(schema)
            return True
        if schema.kind == "PROTOBUF":
            from pyspark_kafka._typed.codecs.protobuf.proto_text import read_file_set  # noqa: PLC0415 - of one format

            # It is kept: whoever needs it next does not compile it again.
            read_file_set(schema)
            return True
    except SchemaError:
        return False
    try:
        return _is_json_schema(json.loads(schema.text))
    except (ValueError, RecursionError):
        return False


def _is_json_schema(parsed: Any) -> bool:
    if not isinstance(parsed, dict) or not parsed.keys() & _JSON_WORDS:
        return False
    named = parsed.get("type", [])
    names = named if isinstance(named, list) else [named]
    return all(isinstance(each, str) and each in _JSON_TYPES for each in names)


def names_columns(text: str) -> bool:
    """Whether the schema of JSON names columns, as in SQL or in Spark's JSON: it is not a JSON Schema."""
    from pyspark_kafka._typed.typed.spark_schema.schema_json import is_schema_json  # noqa: PLC0415 - of JSON only

    if not text.lstrip().startswith("{"):
        return True
    try:
        return is_schema_json(json.loads(text))
    except (ValueError, RecursionError):
        # What is wrong with it is said by who reads it.
        return False


def kind_mismatch(side: str, wanted: str, found: RegisteredSchema) -> SchemaError:
    """Build the error for a schema of the registry in another language than the format is."""
    named = f"subject '{found.subject}'" if found.subject else f"id {found.schema_id}"
    return SchemaError(
        f"The schema of {named} in the registry is one of {found.kind}, but '{side}Format' is {wanted}. Nothing was "
        "read or written.",
        condition="SCHEMA_KIND_MISMATCH",
        hint=f"Set '{side}Format' to {next(name for name, kind in KINDS.items() if kind == found.kind)}, or "
        f"'{side}Subject' to the subject of another schema.",
        parameters={"subject": found.subject or "", "found": found.kind, "wanted": wanted},
    )


def _no_schema(option: str, pointer: str, wanted: str) -> SchemaError:
    """Build the error of a file that is something else: the path may be a wrong one, so nothing in it is repeated."""
    path = _path(pointer)
    return SchemaError(
        f"Option '{option}' names the file {path}, which does not hold {wanted}. What it holds is not shown, as the "
        "path may be a wrong one. Nothing was read or written.",
        condition="SCHEMA_INVALID",
        hint="Correct the path; or set the option to the text of the file, to see the error.",
        parameters={"option": option, "path": path},
    )


def _unreadable(option: str, path: Path, why: str) -> OptionError:
    return OptionError(
        f"Option '{option}' names the file {path}, which cannot be read on the driver: {why}. Nothing was read or "
        "written.",
        condition="SCHEMA_FILE_UNREADABLE",
        hint="Set it to the path of a file on the driver's machine, or to the text of the schema.",
        parameters={"option": option, "path": path},
    )
