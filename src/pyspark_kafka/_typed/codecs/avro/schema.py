"""Schemas of Avro as values, from their JSON: types that resolution and the mapping to Arrow can tell apart. Pure.

A schema that Java's parser reads is read, though a part of it may mean nothing: a default is looked at where a reader
needs it, and a logical type that does not fit its type is ignored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_kafka._typed.codecs.avro.logical_types import Logical, logical_type, nanos_of, scale_of
from pyspark_kafka.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._typed.codecs.schemas import NamedSchema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_MAX_DEPTH = 64
_MAX_JSON = 1 << 20
_MAX_SHOWN = 100
# A string, in which a comment is none; or a comment. An open one ends with the text: no part is searched twice.
_COMMENT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w.$-]*")


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts, by the name that Avro has for it.

    What no column has is left as it is, and keeps its meaning: it must not be taken for another. `nanos` is the name of
    a logical type in nanoseconds, `scale` the scale of any decimal, also of a valid one.
    """

    name: str
    logical: Logical | None = None
    nanos: str = field(default="", repr=False, compare=False)
    scale: int | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bytes of a fixed number; `scale` as in `Primitive`."""

    name: str
    size: int
    logical: Logical | None = None
    aliases: tuple[str, ...] = ()
    scale: int | None = field(default=None, repr=False, compare=False)


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

    Source: Avro 1.12, "Schema Declaration"; for what it leaves open, Java's Schema.Parser and ParseContext.

    Example:
        >>> parse_schema('{"type": "array", "items": "long"}').root
        Array(items=Primitive(name='long', logical=None))
    """
    size = len(text) + sum(len(each.text) for each in references)
    if size > _MAX_JSON:
        raise invalid_schema(f"it has {size} characters, more than {_MAX_JSON}")
    named: dict[str, Fixed | Enum | Record] = {}
    for each in (*(reference.text for reference in references), text):
        try:
            root = _TypeReader(named).read(load_schema_text(each))
        except RecursionError as error:
            raise invalid_schema("it is nested too deeply") from error
        except json.JSONDecodeError as error:
            where = f"at line {error.lineno}, column {error.colno}"
            raise invalid_schema(f"it is not JSON: {error.msg}, {where}", "Correct the JSON of the schema.") from error
        except ValueError as error:
            raise invalid_schema(str(error)[:300]) from error
    return Schema(root, named)


def load_schema_text(text: str) -> Any:
    """Return the JSON of a schema, or the name of a type that is the whole text.

    Comments and a byte order mark are skipped.

    Raises:
        ValueError: it is neither; of a JSONDecodeError the text has no part of the schema.
        RecursionError: it nests too deeply.
    """
    text = text.removeprefix("\ufeff").strip()
    # `"long"` and `long` are both in use.
    if text[:1] not in ("{", "[", '"', "/"):
        if not _NAME.fullmatch(text):
            raise ValueError("it is neither JSON nor the name of a type")
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        bare = _COMMENT.sub(_blank, text)
        if bare == text:
            raise
    return json.loads(bare)


def _blank(found: re.Match[str]) -> str:
    """Return a string as it is, and a comment as blanks: what is behind it stays at its line and column."""
    return found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0])


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


class _TypeReader:
    """Reads one text, and adds its named types to the types of earlier texts."""

    def __init__(self, named: dict[str, Fixed | Enum | Record]) -> None:
        self._named = named
        # The names that this text defines: they begin with their definition, so that a record may hold itself.
        self._own: set[str] = set()
        self._referred: set[str] = set()

    def read(self, given: Any) -> Type:
        """Return the type of the whole text."""
        root = self._type(given, "", 0)
        lost = min(self._referred - self._named.keys(), default=None)
        if lost is not None:
            raise invalid_schema(f"type '{_shown(lost)}' is not defined in it")
        return root

    def _type(self, given: Any, space: str, depth: int) -> Type:
        """Return a type within a namespace."""
        if depth > _MAX_DEPTH:
            raise invalid_schema(f"it nests more than {_MAX_DEPTH} types")
        if isinstance(given, list):
            return Union(tuple(self._type(branch, space, depth + 1) for branch in given))
        if isinstance(given, str):
            return Primitive(given) if given in PRIMITIVES else self._reference(given, space)
        if not isinstance(given, dict) or "type" not in given:
            raise invalid_schema("a part of it has no type")
        kind = given["type"]
        if not isinstance(kind, str):
            return self._type(kind, space, depth + 1)
        if kind in PRIMITIVES:
            return Primitive(kind, logical_type(given), nanos_of(given), scale_of(given))
        if kind in ("array", "map"):
            word = "items" if kind == "array" else "values"
            if word not in given:
                raise invalid_schema(f"a type {kind} has no {word}")
            inner = self._type(given[word], space, depth + 1)
            return Array(inner) if kind == "array" else Map(inner)
        if kind in ("fixed", "enum", "record", "error"):
            return self._definition(kind, given, space, depth)
        return self._reference(kind, space)

    def _reference(self, name: str, space: str) -> Reference:
        """Return the type with a name: in the namespace, else without a namespace.

        Source: `find` of Java's ParseContext.
        """
        full = _full_name(name, space)
        if full not in self._own and full not in self._named and (name in self._own or name in self._named):
            full = name
        self._referred.add(full)
        return Reference(full)

    def _definition(self, kind: str, given: dict[str, Any], space: str, depth: int) -> Type:
        name = given.get("name")
        if not isinstance(name, str) or not name:
            raise invalid_schema(f"a type {kind} has no name")
        own_space = given.get("namespace")
        name = _full_name(name, own_space if isinstance(own_space, str) else space)
        before = self._named.pop(name, None) if name in self._own else None
        if name in self._own and before is None:
            raise invalid_schema(f"type '{_shown(name)}' is defined within itself")
        self._own.add(name)
        if kind == "fixed":
            size = given.get("size")
            if not isinstance(size, int) or size < 0:
                raise invalid_schema(f"fixed '{_shown(name)}' has no size")
            made: Fixed | Enum | Record = Fixed(name, size, logical_type(given, size), _aliases(given), scale_of(given))
        elif kind == "enum":
            made = _enum(name, given)
        else:
            made = self._record(name, given, depth)
        if before is not None and _outline(made) != _outline(before):
            raise invalid_schema(f"type '{_shown(name)}' is defined twice, and not alike")
        self._named[name] = made
        return made

    def _record(self, name: str, given: dict[str, Any], depth: int) -> Record:
        space = name.rpartition(".")[0]
        fields: dict[str, Field] = {}
        listed: Any = given.get("fields", [])
        for each in listed if isinstance(listed, list) else [{}]:
            own = each.get("name") if isinstance(each, dict) else None
            if not isinstance(own, str) or "type" not in each:
                raise invalid_schema(f"a field of record '{_shown(name)}' has no name or no type")
            if own in fields:
                raise invalid_schema(f"record '{_shown(name)}' has two fields '{_shown(own)}'")
            kind = self._type(each["type"], space, depth + 1)
            fields[own] = Field(own, kind, _aliases(each), "default" in each, each.get("default"))
        return Record(name, tuple(fields.values()), _aliases(given))


def _full_name(name: str, space: str) -> str:
    """Return the name with its namespace; a name with a dot has one of its own, which is none if it is empty."""
    if "." in name:
        return name.removeprefix(".")
    return f"{space}.{name}" if space else name


def _enum(name: str, given: dict[str, Any]) -> Enum:
    symbols = given.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
        raise invalid_schema(f"enum '{_shown(name)}' has no list of symbols")
    if len(set(symbols)) != len(symbols):
        raise invalid_schema(f"enum '{_shown(name)}' has a symbol twice")
    default = given.get("default")
    # Without a meaning, as a default that does not fit its field.
    return Enum(name, tuple(symbols), default if default in symbols else None, _aliases(given))


def _aliases(given: dict[str, Any]) -> tuple[str, ...]:
    found = given.get("aliases")
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _outline(given: Type) -> Any:
    """Return the form in which types are compared: named types within by their names, as each is compared itself."""
    if isinstance(given, Record):
        fields = [(each.name, _inner(each.type), each.aliases, each.has_default, each.default) for each in given.fields]
        return given.name, fields, given.aliases
    if isinstance(given, Fixed):
        return given, given.scale
    return given


def _inner(given: Type) -> Any:
    if isinstance(given, (Record, Enum, Fixed, Reference)):
        return given.name
    if isinstance(given, Array):
        return "array", _inner(given.items)
    if isinstance(given, Map):
        return "map", _inner(given.values)
    return [*map(_inner, given.branches)] if isinstance(given, Union) else (given, given.nanos, given.scale)


def _shown(name: str) -> str:
    return name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}…"
