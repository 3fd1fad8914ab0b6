"""Schemas of Avro as values, from their JSON. Pure.

fastavro parses and checks the JSON, and has the full name of every named type; here it becomes types that resolution
and the mapping to Arrow can tell apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import MissingDependencyError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.formats.schemas import NamedSchema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_MAX_DEPTH = 64
_MAX_JSON = 1 << 20


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type, such as decimal; only decimals have a precision and a scale."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts, by the name that Avro has for it.

    `nanos` is the name of a logical type in nanoseconds: no column has them, so that the number is left as it is, and
    must not be taken for one of another unit.
    """

    name: str
    logical: Logical | None = None
    nanos: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bytes of a fixed number."""

    name: str
    size: int
    logical: Logical | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Enum:
    """One of some symbols; `default` stands for symbols that are not among them."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of items."""

    items: Type


@dataclass(frozen=True, slots=True)
class Map:
    """Values by a string."""

    values: Type


@dataclass(frozen=True, slots=True)
class Union:
    """A value of one of some types; no union is directly in another."""

    branches: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record; without `has_default`, `default` means nothing."""

    name: str
    type: Type
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Record:
    """Fields in order.

    The aliases of a named type are as written: an alias without a namespace is in the namespace of the type.
    """

    name: str
    fields: tuple[Field, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A named type that stands elsewhere in the schema."""

    name: str


Type = Primitive | Fixed | Enum | Array | Map | Union | Record | Reference


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema: its type, and the named types in it by full name."""

    root: Type
    named: dict[str, Fixed | Enum | Record] = field(default_factory=dict)

    def resolve(self, given: Type) -> Type:
        """Return the type that a reference stands for; any other type as it is."""
        return self.named[given.name] if isinstance(given, Reference) else given


def parse_schema(text: str, references: Sequence[NamedSchema] = ()) -> Schema:
    """Parse a schema from its JSON.

    Runs on: driver and executor, once a schema.

    Args:
        text: the JSON, or the name of a type.
        references: schemas whose named types it uses, each after its own references.

    Raises:
        SchemaError: it is not a schema of Avro, or nests more than 64 types.
        MissingDependencyError: without the package fastavro.

    Source: Avro 1.12, "Schema Declaration".

    Example:
        >>> parse_schema('{"type": "array", "items": "long"}').root
        Array(items=Primitive(name='long', logical=None))
    """
    try:
        import fastavro.schema  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingDependencyError(
            "Values in Avro need the Python package 'fastavro', which cannot be imported.",
            condition="MISSING_DEPENDENCY",
            hint='Install it on the driver and on the executors: pip install "pyspark-kafka[avro]".',
            parameters={"package": "fastavro"},
        ) from error
    size = len(text) + sum(len(each.text) for each in references)
    if size > _MAX_JSON:
        raise invalid_schema(f"it has {size} characters, more than {_MAX_JSON}")
    known: dict[str, Any] = {}
    named: dict[str, Fixed | Enum | Record] = {}
    for each in (*(reference.text for reference in references), text):
        try:
            # `"long"` and `long` are both in use.
            loaded = json.loads(each) if each.lstrip()[:1] in ("{", "[", '"') else each.strip()
            parsed = fastavro.schema.parse_schema(loaded, known, expand=False, _force=True)
        except RecursionError as error:
            raise invalid_schema("it is nested too deeply") from error
        except json.JSONDecodeError as error:
            where = f"at line {error.lineno}, column {error.colno}"
            raise invalid_schema(f"it is not JSON: {error.msg}, {where}", "Correct the JSON of the schema.") from error
        except Exception as error:
            # fastavro raises its own errors, and KeyError, TypeError and others on what is not a schema at all.
            raise invalid_schema(f"{type(error).__name__}: {str(error)[:300]}") from error
        root = _convert(parsed, named, 0)
    return Schema(root, named)


def invalid_schema(
    reason: str, hint: str = "Check the JSON of the schema against the Avro specification."
) -> SchemaError:
    """Build the error for a text that is not a schema."""
    return SchemaError(
        f"The Avro schema cannot be used: {reason}.",
        condition="SCHEMA_INVALID",
        hint=hint,
        parameters={"reason": reason},
    )


def _convert(parsed: Any, named: dict[str, Fixed | Enum | Record], depth: int) -> Type:
    if depth > _MAX_DEPTH:
        raise invalid_schema(f"it nests more than {_MAX_DEPTH} types")
    if isinstance(parsed, list):
        return Union(tuple(_convert(branch, named, depth + 1) for branch in parsed))
    if isinstance(parsed, str):
        return Primitive(parsed) if parsed in PRIMITIVES else Reference(parsed)
    kind = parsed["type"]
    if isinstance(kind, (dict, list)):
        return _convert(kind, named, depth + 1)
    if kind in PRIMITIVES:
        annotation = parsed.get("logicalType")
        nanos = annotation if kind == "long" and annotation in _NANOS else ""
        return Primitive(kind, _logical(parsed), nanos)
    if kind == "array":
        return Array(_convert(parsed["items"], named, depth + 1))
    if kind == "map":
        return Map(_convert(parsed["values"], named, depth + 1))
    name = parsed.get("name", "")
    if kind == "fixed":
        if not isinstance(parsed["size"], int) or parsed["size"] < 0:
            raise invalid_schema(f"fixed '{name}' has no size")
        named[name] = Fixed(name, parsed["size"], _logical(parsed, parsed["size"]), _aliases(parsed))
    elif kind == "enum":
        named[name] = Enum(name, tuple(parsed["symbols"]), parsed.get("default"), _aliases(parsed))
    elif kind in ("record", "error"):
        fields = tuple(_convert_field(one, named, depth + 1) for one in parsed["fields"])
        named[name] = Record(name, fields, _aliases(parsed))
    else:
        return Reference(kind)
    return named[name]


def _aliases(parsed: dict[str, Any]) -> tuple[str, ...]:
    # fastavro checks only the aliases of fields.
    found = parsed.get("aliases")
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _convert_field(parsed: Any, named: dict[str, Fixed | Enum | Record], depth: int) -> Field:
    return Field(
        parsed["name"],
        _convert(parsed["type"], named, depth),
        tuple(parsed.get("aliases", ())),
        "default" in parsed,
        parsed.get("default"),
    )


# The types that a logical type may annotate; on another it has no meaning, and is ignored as the specification says.
_ANNOTATES = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
}

_NANOS = ("timestamp-nanos", "local-timestamp-nanos")


def _logical(parsed: dict[str, Any], size: int | None = None) -> Logical | None:
    name = parsed.get("logicalType")
    if parsed["type"] not in _ANNOTATES.get(str(name), ()):
        return None
    if name == "uuid" and size not in (None, 16):
        return None
    if name != "decimal":
        return Logical(str(name))
    precision, scale = parsed.get("precision"), parsed.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None
    # An invalid decimal stays bytes, and so does a decimal of more digits than Arrow and Spark have.
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        return None
    if size is not None and precision > _max_digits(size):
        return None
    return Logical("decimal", precision, scale)


def _max_digits(size: int) -> int:
    return len(str(2 ** (8 * min(size, 64) - 1) - 1)) - 1 if size else 0
