"""Checked responses of registries: no response is trusted to have its documented form.

Pure: no sockets, no clock.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pyspark_kafka._typed.registry.failures import answer_invalid, rules_unsupported, shortened

if TYPE_CHECKING:
    from pyspark_kafka._typed.codecs.schemas import SchemaKind

_LOG = logging.getLogger(__name__)

KINDS = ("AVRO", "JSON", "PROTOBUF")
# What one schema may have, and with it all that it needs: as the decoders.
MAX_SCHEMA_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class SchemaPlace:
    """A schema that another names, and where it is registered."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """A schema as a registry has it, with the places of its references, not their texts."""

    kind: SchemaKind
    text: str
    references: tuple[SchemaPlace, ...]


def check_schema(schema: Any, question: str, where: str) -> FoundSchema:
    """Return a schema of confluent-kafka's client as a value.

    Raises:
        RegistryError: the response is invalid (`REGISTRY_ANSWER_INVALID`), or rules that change values
            (`REGISTRY_RULES_UNSUPPORTED`).
    """
    kind, text = getattr(schema, "schema_type", None) or "AVRO", getattr(schema, "schema_str", None)
    if not isinstance(text, str):
        raise answer_invalid(question, where, "it has no schema")
    if kind not in KINDS:
        raise answer_invalid(
            question,
            where,
            f"its schema is of the kind {shortened(kind)!r}, and only {', '.join(KINDS)} can be read",
            hint="Read the column as bytes, or use a schema of one of these kinds.",
        )
    check_size(len(text), question, where)
    _check_rules(getattr(schema, "rule_set", None), question, where)
    references = []
    for each in getattr(schema, "references", None) or ():
        place = (getattr(each, "name", None), getattr(each, "subject", None), getattr(each, "version", None))
        if not (isinstance(place[0], str) and isinstance(place[1], str) and is_number(place[2])):
            raise answer_invalid(question, where, "a reference of its schema has no name, subject or version")
        references.append(SchemaPlace(place[0], place[1], cast("int", place[2])))
    return FoundSchema(cast("SchemaKind", kind), text, tuple(references))


def check_size(size: int, question: str, where: str) -> None:
    """Refuse a schema, or one with all that it needs, that is too large."""
    if size > MAX_SCHEMA_BYTES:
        raise answer_invalid(
            question,
            where,
            f"its schema, with all that it refers to, has more than {MAX_SCHEMA_BYTES} bytes",
            hint="Divide the schema.",
        )


def is_number(value: object) -> bool:
    """Return whether a value is a whole number; JSON's true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_number(value: object, name: str, question: str, where: str) -> int:
    """Return an id or a version.

    Raises:
        RegistryError: it is none.
    """
    if not is_number(value):
        raise answer_invalid(question, where, f"it has no {name}")
    return cast("int", value)


def _check_rules(rule_set: Any, question: str, where: str) -> None:
    """Refuse rules that change values; rules that only check values are named in the log."""
    if rule_set is None:
        return
    checks: list[str] = []
    changes: list[str] = []
    for field, always in (("migration_rules", True), ("encoding_rules", True), ("domain_rules", False)):
        for rule in getattr(rule_set, field, None) or ():
            if getattr(rule, "disabled", False) is True:
                continue
            kind = str(getattr(getattr(rule, "kind", None), "name", getattr(rule, "kind", None)) or "")
            described = f"{shortened(getattr(rule, 'name', ''))} ({shortened(getattr(rule, 'type', ''))})"
            (checks if kind.upper() == "CONDITION" and not always else changes).append(described)
    if changes:
        raise rules_unsupported(question, where, ", ".join(changes[:5]))
    if checks:
        _LOG.warning(
            "Rules that the schema registry %s has for %s are not checked: %s.", where, question, ", ".join(checks[:5])
        )
