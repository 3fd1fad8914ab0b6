"""Random Avro schemas, values of them, and schemas that they have evolved to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from kit.avro_resolution import WIDER

_NAMES = ("a", "b", "c", "d", "e", "f")
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass
class _Names:
    """A name of its own for every named type."""

    used: int = 0

    def next(self, kind: str) -> str:
        self.used += 1
        return f"{kind}{self.used}"


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> dict[str, Any]:
    """A record, nested up to a depth, of any types but logical ones and records that hold themselves."""
    return _record(draw, _Names(), depth)


def _record(draw: st.DrawFn, names: _Names, depth: int) -> dict[str, Any]:
    count = draw(st.integers(0 if depth < 3 else 1, 4))
    fields = [{"name": _NAMES[number], "type": _any_type(draw, names, depth - 1)} for number in range(count)]
    return {"type": "record", "name": names.next("R"), "fields": fields}


def _any_type(draw: st.DrawFn, names: _Names, depth: int, *, union: bool = True) -> Any:
    kinds = [*_PRIMITIVES, "fixed", "enum"]
    if depth > 0:
        kinds += ["array", "map", "record"]
        if union:
            kinds += ["nullable", "nullable", "union"]
    kind = draw(st.sampled_from(kinds))
    if kind in _PRIMITIVES:
        return kind
    if kind == "fixed":
        return {"type": "fixed", "name": names.next("F"), "size": draw(st.integers(0, 5))}
    if kind == "enum":
        return {"type": "enum", "name": names.next("E"), "symbols": list("XYZ"[: draw(st.integers(1, 3))])}
    if kind == "array":
        return {"type": "array", "items": _any_type(draw, names, depth - 1)}
    if kind == "map":
        return {"type": "map", "values": _any_type(draw, names, depth - 1)}
    if kind == "record":
        return _record(draw, names, depth)
    if kind == "nullable":
        inner = _any_type(draw, names, depth - 1, union=False)
        if inner == "null":
            inner = "long"
        return ["null", inner] if draw(st.booleans()) else [inner, "null"]
    branches: list[Any] = draw(
        st.lists(st.sampled_from(("null", "boolean", "string", "long")), min_size=1, max_size=3, unique=True)
    )
    if draw(st.booleans()):
        branches.append(_record(draw, names, depth - 1))
    return branches


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values of a schema, as fastavro takes them; those of a union as pairs of branch and value where they need be."""
    if isinstance(schema, list):
        return st.one_of([values_of(branch) for branch in schema])
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return st.fixed_dictionaries({field["name"]: values_of(field["type"]) for field in schema["fields"]})
    if kind == "array":
        return st.lists(values_of(schema["items"]), max_size=3)
    if kind == "map":
        return st.dictionaries(st.text(max_size=3), values_of(schema["values"]), max_size=3)
    if kind == "fixed":
        return st.binary(min_size=schema["size"], max_size=schema["size"])
    if kind == "enum":
        return st.sampled_from(schema["symbols"])
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(1 << 31), (1 << 31) - 1),
        "long": st.integers(-(1 << 63), (1 << 63) - 1),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "bytes": st.binary(max_size=8),
        "string": st.text(max_size=8),
    }[kind]


@st.composite
def evolved(draw: st.DrawFn, schema: Any) -> Any:
    """A reader's schema that came of a writer's: fields gone, new, in another order; types wider; unions and back."""
    schema = json.loads(json.dumps(schema))
    return _evolve(draw, schema)


def _evolve(draw: st.DrawFn, schema: Any) -> Any:
    if isinstance(schema, list):
        return [_evolve(draw, branch) if isinstance(branch, dict) else branch for branch in schema]
    if isinstance(schema, str):
        change = draw(st.sampled_from(("no", "no", "no", "wider", "nullable")))
        if change == "wider":
            return draw(st.sampled_from((schema, *WIDER.get(schema, ()))))
        return ["null", schema] if change == "nullable" and schema != "null" else schema
    if schema["type"] == "record":
        fields = [
            {**field, "type": _evolve(draw, field["type"])} for field in schema["fields"] if draw(st.integers(0, 4))
        ]
        if draw(st.booleans()):
            fields.append({"name": "new", "type": draw(st.sampled_from(("int", "string"))), "default": None})
            fields[-1]["default"] = 7 if fields[-1]["type"] == "int" else "seven"
        return {**schema, "fields": draw(st.permutations(fields))}
    if schema["type"] == "array":
        return {**schema, "items": _evolve(draw, schema["items"])}
    if schema["type"] == "map":
        return {**schema, "values": _evolve(draw, schema["values"])}
    if schema["type"] == "enum" and draw(st.booleans()):
        return {**schema, "symbols": ["W", *schema["symbols"][:1]], "default": "W"}
    return schema
