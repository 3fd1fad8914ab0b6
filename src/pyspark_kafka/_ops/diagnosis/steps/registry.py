"""The schema registry: whether it responds, accepts the login, and has the subjects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_kafka._client.options import TypedWriteOptions
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._typed.codecs.column_format import WITH_SCHEMA
from pyspark_kafka._typed.codecs.schemas import UnknownSchemaError
from pyspark_kafka.errors import MissingDependencyError, OptionError, RegistryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._client.options import FormatOptions, RegistryOptions, TypedReadOptions
    from pyspark_kafka._ops.diagnosis.context import Context
    from pyspark_kafka._ops.operations.settings import Settings

# No subject has this name; "not found" shows that the login was accepted.
_NO_SUBJECT = "pyspark-kafka-check"


class WantedSubject(NamedTuple):
    """A subject that a query looks up.

    Attributes:
        registry: where.
        side: `key` or `value`.
        subject: its name; None if the query looks up ids alone.
        options: what the keys or values are.
        is_registered: whether the query registers what it does not find.
    """

    registry: RegistryOptions
    side: str
    subject: str | None
    options: FormatOptions
    is_registered: bool = False


def wanted_subjects(settings: Settings) -> list[WantedSubject]:
    """Return the options' look-ups in registries, each once; empty without a registry. Pure."""
    found: list[WantedSubject] = []
    if settings.read is not None and settings.read.typed is not None:
        subscription = settings.read.subscription
        topics = {*subscription.topics, *(each.topic for each in subscription.topic_partitions)}
        found += _wanted(settings.read.typed, topics.pop() if len(topics) == 1 else None)
    if settings.write is not None and settings.write.typed is not None:
        found += _wanted(
            settings.write.typed, settings.write.topic, is_registered=settings.write.typed.auto_register_schemas
        )
    return list(dict.fromkeys(found))


def _wanted(
    typed: TypedReadOptions | TypedWriteOptions, topic: str | None, *, is_registered: bool = False
) -> Iterator[WantedSubject]:
    from pyspark_kafka._typed.typed.read_formats import default_subject  # noqa: PLC0415 - most options have no types

    if typed.registry is None:
        return
    for side, options in (("key", typed.key), ("value", typed.value)):
        if options.format not in WITH_SCHEMA:
            continue
        subject = options.subject or (topic and default_subject(side, topic, typed.registry))
        # A schema that is given is written with the id of its subject, and read with the ids of its writers.
        is_named = options.schema is None or (isinstance(typed, TypedWriteOptions) and options.framing != "none")
        yield WantedSubject(typed.registry, side, subject if is_named else None, options, is_registered)


def judge_registry(context: Context) -> Iterator[Finding]:
    """Look up the options' subjects in each registry; if they name none, a subject that does not exist."""
    for wanted in wanted_subjects(context.settings):
        timeout_ms = int(min(wanted.registry.timeout_ms, context.step().remaining_s() * 1000))
        registry = replace(wanted.registry, timeout_ms=max(1, timeout_ms))
        try:
            yield _ask(wanted, registry)
        except (MissingDependencyError, OptionError, RegistryError) as error:
            facts = {**error.parameters, "condition": error.condition}
            yield Finding("registry", FindingStatus.FAILED, error.message, error.hint, facts)


def _ask(wanted: WantedSubject, registry: RegistryOptions) -> Finding:
    from pyspark_kafka._typed.registry.connect import open_registry  # noqa: PLC0415 - most options have no registry

    where = ", ".join(registry.urls) or "AWS Glue"
    facts: dict[str, Any] = {"registry": where, "subject": wanted.subject}
    version = wanted.options.schema_version
    try:
        found = open_registry(registry).schema_by_subject(wanted.subject or _NO_SUBJECT, version)
    except UnknownSchemaError as error:
        if wanted.subject is None:
            text = f"{where} answers. Schemas are looked up by their ids, as values are read."
            return Finding("registry", FindingStatus.OK, text, facts=facts)
        if wanted.is_registered:
            text = f"{wanted.subject} {error}; the query registers it (autoRegisterSchemas)."
            return Finding("registry", FindingStatus.OK, text, facts=facts)
        named = "" if version is None else f", version {version},"
        return Finding(
            "registry",
            FindingStatus.FAILED,
            f"{wanted.subject}{named} {error}.",
            f"Register the schema, set {wanted.side}Subject to the subject that the writers use, or set "
            f"{wanted.side}Schema to the schema itself.",
            {**facts, "option": f"{wanted.side}Subject"},
        )
    facts |= {"kind": found.kind, "version": found.version, "schema_id": found.schema_id}
    if found.kind != wanted.options.format.upper():
        return Finding(
            "registry",
            FindingStatus.FAILED,
            f"{wanted.subject} is a schema of {found.kind}, but {wanted.side}Format is {wanted.options.format}.",
            f"Set {wanted.side}Format to {found.kind.lower()}, or {wanted.side}Subject to another subject.",
            {**facts, "option": f"{wanted.side}Format", "value": found.kind.lower()},
        )
    text = f"{wanted.subject}: version {found.version} in {found.kind}, id {found.schema_id}; {where} answers."
    return Finding("registry", FindingStatus.OK, text, facts=facts)
