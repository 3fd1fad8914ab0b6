"""Avro's schema resolution by its specification, over plain values: what the product is compared with.

Source: "Schema Resolution" in the specification of Avro 1.12. Where it leaves a choice, the documented one: of a
reader's union the branch of the same type, or name, comes before one that the value is widened to; names of records do
not count outside of unions. Without namespaces, logical types and references to named types.
"""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

WIDER = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_NAMED = ("record", "enum", "fixed")
_SAME, _ALIAS, _OTHER = range(3)


class NoValue(Exception):  # noqa: N818 - a finding of the model
    """A value that the reader's schema has no place for."""


def resolves(writer: Any, reader: Any) -> bool:
    """Whether values of a writer's schema can be read at all."""
    if isinstance(writer, list):
        return any(resolves(branch, reader) for branch in writer)
    if isinstance(reader, list):
        return _branch(writer, reader) is not None
    kind, wanted = _kind(writer), _kind(reader)
    if kind != wanted:
        return wanted in WIDER.get(kind, ())
    if kind == "record":
        return all(
            resolves(source["type"], field["type"]) if source else "default" in field
            for field, source in _sources(writer, reader)
        )
    if kind in ("array", "map"):
        inner = "items" if kind == "array" else "values"
        return resolves(writer[inner], reader[inner])
    if kind in ("enum", "fixed") and _rank(writer, reader) == _OTHER:
        return False
    if kind == "enum":
        return "default" in reader or bool({*writer["symbols"]} & {*reader["symbols"]})
    return kind != "fixed" or bool(writer["size"] == reader["size"])


def resolved(writer: Any, value: Any, reader: Any) -> Any:
    """Return a value of a writer's schema as one of the reader's.

    Raises:
        NoValue: it is none.
    """
    if isinstance(writer, list):
        return resolved(_branch_of_value(writer, value), value, reader)
    if isinstance(reader, list):
        reader = _branch(writer, reader)
    if reader is None or not resolves(writer, reader):
        raise NoValue
    kind, wanted = _kind(writer), _kind(reader)
    if kind == "record":
        return {
            field["name"]: resolved(source["type"], value[source["name"]], field["type"])
            if source
            else default(field["type"], field["default"])
            for field, source in _sources(writer, reader)
        }
    if kind == "array":
        return [resolved(writer["items"], each, reader["items"]) for each in value]
    if kind == "map":
        return {key: resolved(writer["values"], each, reader["values"]) for key, each in value.items()}
    if kind == "enum" and value not in reader["symbols"]:
        if "default" not in reader:
            raise NoValue
        return reader["default"]
    return _primitive(value, wanted)


def default(schema: Any, given: Any) -> Any:
    """Return the default of a field, which stands in the schema as JSON, as a value; of a union any branch may fit."""
    if isinstance(schema, list):
        return next(default(branch, given) for branch in schema if _may_be_default(branch, given))
    kind = _kind(schema)
    if kind == "record":
        fields = {
            each["name"]: (each["type"], given.get(each["name"], each.get("default"))) for each in schema["fields"]
        }
        return {name: default(*field) for name, field in fields.items()}
    if kind == "array":
        return [default(schema["items"], each) for each in given]
    if kind == "map":
        return {key: default(schema["values"], each) for key, each in given.items()}
    return given.encode("latin-1") if kind in ("bytes", "fixed") else _primitive(given, kind)


def _may_be_default(branch: Any, given: Any) -> bool:
    kinds = {type(None): "null", bool: "boolean", int: "long", str: "string", dict: "record", list: "array"}
    return _kind(branch) == kinds[type(given)]


def _primitive(value: Any, wanted: str) -> Any:
    if wanted == "float":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if wanted == "double":
        return float(value)
    if wanted == "bytes" and isinstance(value, str):
        return value.encode()
    if wanted == "string" and isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise NoValue from None
    return value


def _branch(writer: Any, union: list[Any]) -> Any:
    """Return the branch of a reader's union that values of a type become; None if there is none."""
    ranks = [_rank(writer, branch) for branch in union]
    order = sorted(range(len(union)), key=ranks.__getitem__)
    if _kind(writer) in _NAMED and min(ranks, default=_OTHER) < _OTHER:
        order = [at for at in order if ranks[at] == min(ranks)]
    return next((union[at] for at in order if resolves(writer, union[at])), None)


def _rank(writer: Any, reader: Any) -> int:
    kind = _kind(writer)
    if kind != _kind(reader):
        return _OTHER
    if kind not in _NAMED or writer["name"] == reader["name"]:
        return _SAME
    return _ALIAS if writer["name"] in reader.get("aliases", ()) else _OTHER


def _branch_of_value(union: list[Any], value: Any) -> Any:
    """Return the branch that a value of a union was written as: those of `avro_schemas` have no two of one type."""
    if value is None:
        return "null"
    others = [branch for branch in union if branch != "null"]
    kinds = {bool: "boolean", int: "long", str: "string", dict: "record"}
    return others[0] if len(others) == 1 else next(each for each in others if _kind(each) == kinds[type(value)])


def _sources(writer: Any, reader: Any) -> list[tuple[Any, Any]]:
    """Return each field of the reader with the writer's that it is read from, or None."""
    left = {field["name"]: field for field in writer["fields"]}
    found = []
    for field in reader["fields"]:
        name = next((each for each in (field["name"], *field.get("aliases", ())) if each in left), None)
        found.append((field, None if name is None else left.pop(name)))
    return found


def _kind(schema: Any) -> str:
    return str(schema if isinstance(schema, str) else schema["type"])


_DEFAULTS: tuple[tuple[Any, Any], ...] = (
    ("null", None),
    ("boolean", True),
    ("long", -(1 << 63)),
    ("float", 0.1),
    ("double", 2),
    ("bytes", "\x00\xff"),
    ("string", "\u20ac"),
    (["long", "null"], 5),
    (["null", "string"], None),
    (["string", "null"], None),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": ["null", "double"]}, {"k": None}),
    ({"type": "enum", "name": "NewE", "symbols": ["P", "Q"]}, "Q"),
    ({"type": "fixed", "name": "NewF", "size": 2}, "\xfe\x01"),
    (
        {
            "type": "record",
            "name": "NewR",
            "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string", "default": "why"}],
        },
        {"x": 3},
    ),
)


@st.composite
def further_evolved(draw: st.DrawFn, schema: Any) -> Any:
    """A reader's schema with what `evolved` leaves out: aliases, defaults, other unions, types that do not fit."""
    if isinstance(schema, list):
        change = draw(st.sampled_from(("no", "no", "one", "turned", "more")))
        branches = [draw(further_evolved(branch)) if isinstance(branch, dict) else branch for branch in schema]
        others = [branch for branch in branches if branch != "null"]
        if change == "one" and others:
            return draw(st.sampled_from(others))
        if change == "more" and not any(_kind(branch) in ("array", "record") for branch in branches):
            return [*branches, {"type": "array", "items": "long"}]
        return branches[::-1] if change == "turned" else branches
    form = _kind(schema)
    if isinstance(schema, str):
        change = draw(st.sampled_from(("no",) * 6 + ("union", "other")))
        if change == "other":
            return draw(st.sampled_from(("int", "double", "string", "bytes", "boolean", "null")))
        if change == "union" and schema in ("string", "bytes"):
            # Two branches that it could become.
            return draw(st.permutations(("bytes", "string")))
        wider = draw(st.sampled_from((schema, *WIDER.get(schema, ()))))
        beside = "boolean" if wider != "boolean" else "string"
        return [beside, wider] if change == "union" else schema
    if form in _NAMED and draw(st.integers(0, 9)) == 0:
        aliases = [schema["name"]] if draw(st.booleans()) else ["Another"]
        schema = {**schema, "name": f"{schema['name']}New", "aliases": aliases}
    if form in ("array", "map"):
        inner = "items" if form == "array" else "values"
        return {**schema, inner: draw(further_evolved(schema[inner]))}
    if form != "record":
        return schema
    fields = []
    for field in schema["fields"]:
        changed = {**field, "type": draw(further_evolved(field["type"]))}
        if "default" in field:
            changed["type"] = field["type"]
        elif draw(st.integers(0, 4)) == 0:
            changed = {**changed, "name": f"{field['name']}2", "aliases": ["no", field["name"]]}
        fields.append(changed)
    if draw(st.integers(0, 3)) == 0:
        # Named types stand once in a schema.
        kind, given = draw(st.sampled_from([each for each in _DEFAULTS if "name" not in each[0]]))
        fields.append({"name": "added", "type": kind, "default": given})
    return {**schema, "fields": draw(st.permutations(fields))}


def with_defaults(schema: Any) -> Any:
    """Return a record with a new field of each type that a default may have."""
    added = [{"name": f"n{at}", "type": kind, "default": given} for at, (kind, given) in enumerate(_DEFAULTS)]
    return {**schema, "fields": [*schema["fields"], *added]}
