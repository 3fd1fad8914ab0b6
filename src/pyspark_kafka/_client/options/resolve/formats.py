"""The combined meaning of the options of typed keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.options.catalogue.option import Scope
from pyspark_kafka._client.options.resolve.registry import REGISTRY_NAMES, resolve_registry
from pyspark_kafka._client.options.values.formats import (
    FormatOptions,
    RegistryOptions,
    TypedReadOptions,
    TypedWriteOptions,
)

if TYPE_CHECKING:
    from pyspark_kafka._client.options.catalogue.parsed import Parsed, Problems
    from pyspark_kafka._client.options.values.read import Subscription

# As users see them: value first.
_SIDES = ("value", "key")
# What each side has beside `…Format`.
_OF_A_SIDE = ("Framing", "Schema", "Subject", "SchemaVersion", "Message")
_WITH_SCHEMA = ("json", "avro", "protobuf")
_URL, _REGION = "schema.registry.url", "schema.registry.region"
_CORRUPT = "columnNameOfCorruptRecord"
_DEPTH = "recursiveFieldMaxDepth"
_TIMES = ("timestampFormat", "dateFormat")
_PARTS = "openParts"
_OF_JSON = {**dict.fromkeys(_TIMES, "times in JSON"), _PARTS: "parts of a JSON Schema"}
_OF_READS = (*_OF_JSON, "mode", _CORRUPT, "includeSchemaId", "maxCorruptRatio", _DEPTH)
_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_COLUMNS_OF_IDS = ("key_schema_id", "value_schema_id")


@dataclass(frozen=True, slots=True)
class _Context:
    """The settings that both sides share.

    Attributes:
        registry: how the registry is reached.
        reading: whether it is a read.
        topic: the one topic that is read or written; None: there may be several.
    """

    registry: RegistryOptions | None
    reading: bool
    topic: str | None


def resolve_typed_read(
    options: Parsed, problems: Problems, subscription: Subscription | None
) -> TypedReadOptions | None:
    """Return what keys and values of a read are; None if both are bytes."""
    resolved = _resolve_sides(options, problems, subscription.only_topic if subscription else None, reading=True)
    if resolved is None:
        _refuse_without_format(options, problems, _OF_READS)
        return None
    typed = TypedReadOptions(**resolved, **options.fields("typed_read"))
    _check_corrupt(options, problems, typed)
    framed = any(side.framing not in (None, "none") for side in (typed.key, typed.value))
    if typed.include_schema_id and not framed:
        problems.conflict(
            "includeSchemaId",
            "is true, but neither keys nor values have a wire format with ids",
            "Remove it, or set 'valueFraming' to what the writers of the topic use.",
        )
    if options.attempted(_DEPTH) and "avro" not in (typed.key.format, typed.value.format):
        problems.conflict(
            _DEPTH,
            "is given, but neither keys nor values are avro: it is about records of Avro",
            f"Remove '{_DEPTH}', or set 'valueFormat' or 'keyFormat' to avro.",
        )
    if typed.mode == "PERMISSIVE" and not options["includeHeaders"]:
        for name, side in (("value", typed.value), ("key", typed.key)):
            if side.framing in ("confluentHeader", "confluentDual"):
                problems.notes.append(
                    f"The ids of the {name}s' schemas are in headers ('{name}Framing' {side.framing}), and the read "
                    "has no column of headers: dead letters made of its bad records are without these ids. Set "
                    "'includeHeaders' to true to keep them."
                )
    if options.scope is Scope.STREAM_READ and not options.attempted("checkpointLocation"):
        for name, side in (("value", typed.value), ("key", typed.key)):
            if typed.registry and _looks_up(side) and side.schema_version is None:
                problems.notes.append(
                    f"The schema of the {name}s is the latest when the query starts, and another one after a restart "
                    f"if the subject has a new version. Set '{name}SchemaVersion', or 'checkpointLocation' on the "
                    "source as well, to keep it."
                )
    return typed


def resolve_typed_write(options: Parsed, problems: Problems) -> TypedWriteOptions | None:
    """Return what keys and values of a write become; None if both are bytes."""
    resolved = _resolve_sides(options, problems, options["topic"], reading=False)
    if resolved is None:
        _refuse_without_format(options, problems, (*_OF_JSON, "autoRegisterSchemas"))
        return None
    register: bool = options["autoRegisterSchemas"]
    if register and resolved["registry"] is None:
        problems.missing(
            _URL,
            "must be set with 'autoRegisterSchemas': it says where the schema registry is",
            f"Set '{_URL}', or remove 'autoRegisterSchemas'.",
        )
    elif register and not any(side.schema or side.format == "avro" for side in (resolved["key"], resolved["value"])):
        problems.notes.append(
            "Option 'autoRegisterSchemas' has no effect: without 'valueSchema' or 'keySchema' the schemas come from "
            "the registry."
        )
    if options.scope is Scope.STREAM_WRITE and not options.attempted("checkpointLocation"):
        for side in _SIDES:
            given = resolved[side]
            if resolved["registry"] and _looks_up(given) and given.schema_version is None:
                problems.notes.append(
                    f"The schema of the {side}s is the latest of its subject, and may become another one while the "
                    f"query runs. Set '{side}SchemaVersion', or 'checkpointLocation' as an option of the writer, to "
                    "keep it."
                )
    return TypedWriteOptions(**resolved, **options.fields("typed_write"))


def _resolve_sides(options: Parsed, problems: Problems, topic: str | None, *, reading: bool) -> dict[str, Any] | None:
    """Return key, value and registry as fields; None if both sides are bytes."""
    glue = any(options[f"{side}Framing"] == "glue" for side in _SIDES)
    formats = {side: _format(options, side) for side in _SIDES}
    registry = None
    if any(name in _WITH_SCHEMA for name in formats.values()):
        registry = resolve_registry(options, problems, glue=glue)
    elif not any(options.attempted(f"{side}Format") and not options.given(f"{side}Format") for side in _SIDES):
        _refuse_registry(options, problems)
    context = _Context(registry, reading, topic)
    sides = {side: _resolve_side(options, problems, side, formats[side], context) for side in _SIDES}
    if all(side.format == "binary" for side in sides.values()):
        return None
    if registry is not None and not any(_asks(side, context) for side in sides.values()):
        problems.notes.append(
            f"Option '{_URL if registry.urls else _REGION}' has no effect: the schemas are given, and no ids are "
            f"{'read' if reading else 'written'}."
        )
        registry = None
    if not any(side.format == "json" for side in sides.values()):
        for name in filter(options.attempted, _OF_JSON):
            problems.conflict(
                name,
                f"is given, but neither keys nor values are json: it is about {_OF_JSON[name]}",
                f"Remove '{name}', or set 'valueFormat' or 'keyFormat' to json.",
            )
    return {**sides, "registry": registry}


def _format(options: Parsed, side: str) -> str:
    found: str = options[f"{side}Format"] or "binary"
    return found


def _looks_up(side: FormatOptions) -> bool:
    return side.format in _WITH_SCHEMA and side.schema is None


def _asks(side: FormatOptions, context: _Context) -> bool:
    """Return whether the registry is used: for the schema, for ids, or to register the schema."""
    return side.format in _WITH_SCHEMA and (side.schema is None or side.framing != "none" or not context.reading)


def _resolve_side(options: Parsed, problems: Problems, side: str, name: str, context: _Context) -> FormatOptions:
    if name not in _WITH_SCHEMA:
        if options.given(f"{side}Format") or not options.attempted(f"{side}Format"):
            _refuse_beside(options, problems, side, name)
        return FormatOptions(format=name)  # type: ignore[arg-type] # the parser accepts no other word
    if name != "protobuf" and options.attempted(f"{side}Message"):
        clause = f"is given, but '{side}Format' is {name}: messages are of Protobuf"
        problems.conflict(f"{side}Message", clause, f"Remove '{side}Message'.")
    schema = options[f"{side}Schema"]
    given_schema = options.attempted(f"{side}Schema")
    framing = _framing(options, problems, side, name, context)
    optional = name == "json" and not context.reading
    if not given_schema and context.registry is None and not optional and not _registry_is_wrong(options):
        problems.missing(
            f"{side}Schema",
            f"must be set with '{side}Format' {name}, or '{_URL}': one of them says what the {side}s are",
            f"Set '{side}Schema' to the schema or to file:PATH, or '{_URL}' to the address of the registry.",
        )
    _check_subject(options, problems, side, framing, context)
    return FormatOptions(
        format=name,  # type: ignore[arg-type]
        framing=framing,  # type: ignore[arg-type]
        schema=schema,
        subject=options[f"{side}Subject"],
        schema_version=options[f"{side}SchemaVersion"],
        message=options[f"{side}Message"],
        timestamp_format=options["timestampFormat"] if name == "json" else None,
        date_format=options["dateFormat"] if name == "json" else None,
        open_parts=(options[_PARTS] or "error") if name == "json" else "error",
    )


def _registry_is_wrong(options: Parsed) -> bool:
    """Return whether the registry's options have a problem of their own."""
    return any(map(options.attempted, REGISTRY_NAMES))


def _framing(options: Parsed, problems: Problems, side: str, name: str, context: _Context) -> str:
    """Return the framing of each key or value, and check that its ids can be used."""
    registry, option = context.registry, f"{side}Framing"
    given: str | None = options[option]
    if given is None:
        if registry is None:
            return "none"
        return "confluent" if registry.urls else "glue"
    if given == "confluentDual" and not context.reading:
        problems.conflict(
            option,
            "is confluentDual, which says where a read finds an id: a write has one place for it",
            f"Set '{option}' to confluentHeader or confluent.",
        )
    if given == "none" or (_registry_is_wrong(options) and registry is None):
        return given
    if registry is None:
        if not context.reading or name == "avro":
            why = (
                "the schema that a value was written with is looked up there"
                if context.reading
                else ("the id that is written comes from there")
            )
            problems.missing(
                _URL,
                f"must be set with '{option}' {given}: {why}",
                f"Set '{_URL}' to the address of the registry, or '{option}' to none.",
            )
    elif not registry.urls and given != "glue":
        problems.conflict(
            option,
            f"is {given}, but the registry is AWS Glue",
            f"Set '{_URL}' to the address of the registry, or '{option}' to glue or none.",
        )
    return given


def _check_subject(options: Parsed, problems: Problems, side: str, framing: str, context: _Context) -> None:
    subject, version, schema = f"{side}Subject", f"{side}SchemaVersion", f"{side}Schema"
    given_schema = options.attempted(schema)
    for name in (subject, version):
        if not options.attempted(name):
            continue
        if context.registry is None:
            if not _registry_is_wrong(options):
                problems.missing(
                    _URL,
                    f"must be set with '{name}': it says where the schema registry is",
                    f"Set '{_URL}', or remove '{name}'.",
                )
        elif given_schema and (context.reading or name == version):
            problems.report(
                "OPTION_CONFLICT",
                f"Options '{schema}' and '{name}' are both given: the schema is given, or it is the registry's.",
                "Remove one of them.",
                name,
            )
    needed = not given_schema or (not context.reading and framing != "none")
    if context.registry is not None and needed and context.topic is None and not options.attempted(subject):
        # Without any topic there is a problem already.
        known = not context.reading or any(map(options.given, ("subscribe", "subscribePattern", "assign")))
        if known:
            verb = "read" if context.reading else "written"
            problems.missing(
                subject,
                f"must be set if more than one topic may be {verb}: the topic's name does not say "
                "which schema of the registry it is",
                f"Set '{subject}' to the subject of the schema" + ("." if context.reading else ", or set 'topic'."),
            )


def _refuse_beside(options: Parsed, problems: Problems, side: str, name: str) -> None:
    """Refuse what has a meaning with a format that has a schema."""
    for part in _OF_A_SIDE:
        option = f"{side}{part}"
        if not options.attempted(option) or (part == "Framing" and options[option] == "none" and name != "binary"):
            continue
        beside = f", but '{side}Format' is {name}" if options.given(f"{side}Format") else f" without '{side}Format'"
        hint = f"Set '{side}Format' to json, avro or protobuf, or remove '{option}'."
        problems.conflict(option, f"is given{beside}", hint)


def _refuse_without_format(options: Parsed, problems: Problems, names: tuple[str, ...]) -> None:
    if any(options.attempted(f"{side}Format") and not options.given(f"{side}Format") for side in _SIDES):
        return
    for name in names:
        if options.attempted(name):
            problems.conflict(
                name,
                "is given, but keys and values are bytes",
                f"Set 'valueFormat' or 'keyFormat', or remove '{name}'.",
            )


def _refuse_registry(options: Parsed, problems: Problems) -> None:
    given = [name for name in REGISTRY_NAMES if options.attempted(name)]
    if given:
        problems.conflict(
            given[0],
            "is given, but neither keys nor values have a format with a schema",
            "Set 'valueFormat' or 'keyFormat' to json, avro or protobuf, or remove the options of the registry.",
        )


def _check_corrupt(options: Parsed, problems: Problems, typed: TypedReadOptions) -> None:
    if options.attempted("mode") and not options.given("mode"):
        return
    if options.attempted(_CORRUPT) and typed.mode != "PERMISSIVE":
        problems.conflict(
            _CORRUPT,
            f"is given, but 'mode' is {typed.mode}, in which there is no such column",
            f"Set 'mode' to PERMISSIVE, or remove '{_CORRUPT}'.",
        )
    elif typed.mode == "PERMISSIVE":
        taken = {name.lower() for name in (*_COLUMNS, *_COLUMNS_OF_IDS)}
        if typed.corrupt_column.lower() in taken:
            problems.conflict(
                _CORRUPT, f"is '{typed.corrupt_column}', which is another column of the read", "Choose another name."
            )
    if options.attempted("maxCorruptRatio") and typed.mode == "FAILFAST":
        problems.conflict(
            "maxCorruptRatio",
            "is given, but 'mode' is FAILFAST, which fails at the first record",
            "Set 'mode' to PERMISSIVE or DROPMALFORMED, or remove 'maxCorruptRatio'.",
        )
