"""Avro schemas drawn from the bytes of an input, and what they may have evolved to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzzing.draw import Draw

_MAX_DEPTH = 3
_SIMPLE: list[Any] = [
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    {"type": "string", "logicalType": "uuid"},
]
_OTHER = {"int": "long", "long": "double", "float": "double", "string": "bytes", "bytes": "string", "double": "int"}


def draw_schema(draw: Draw) -> dict[str, Any]:
    """Return a record of up to four fields, nested."""
    return _record(draw, [0], 0)


def _named(used: list[int], kind: str) -> str:
    used[0] += 1
    return f"{kind}{used[0]}"


def _record(draw: Draw, used: list[int], depth: int) -> dict[str, Any]:
    name = _named(used, "R")
    count = draw.number(1) % 5
    fields = [{"name": f"f{number}", "type": _type(draw, used, depth + 1)} for number in range(count)]
    return {"type": "record", "name": name, "fields": fields}


def _type(draw: Draw, used: list[int], depth: int, *, union: bool = True) -> Any:
    choice = draw.number(1) % 22
    if choice < len(_SIMPLE):
        return _SIMPLE[choice]
    if choice == 14:
        return {"type": "fixed", "name": _named(used, "F"), "size": draw.number(1) % 20}
    if choice == 15:
        return {"type": "enum", "name": _named(used, "E"), "symbols": ["X", "Y", "Z"][: draw.number(1) % 3 + 1]}
    if depth >= _MAX_DEPTH:
        return "long"
    if choice == 16:
        return {"type": "array", "items": _type(draw, used, depth + 1)}
    if choice == 17:
        return {"type": "map", "values": _type(draw, used, depth + 1)}
    if choice == 18 or not union:
        return _record(draw, used, depth + 1)
    if choice == 19:
        return ["null", "string", "long", _record(draw, used, depth + 1)]
    inner = _type(draw, used, depth + 1, union=False)
    return ["null", "string" if inner == "null" else inner]


def draw_evolution(draw: Draw, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a reader's schema: fields gone, new, renamed with an alias, of another type."""
    found: dict[str, Any] = json.loads(json.dumps(schema))
    for field in list(found["fields"]):
        match draw.number(1) % 8:
            case 0:
                found["fields"].remove(field)
            case 1:
                field["aliases"], field["name"] = [field["name"]], f"renamed_{field['name']}"
            case 2 if isinstance(field["type"], str):
                field["type"] = _OTHER.get(field["type"], "string")
            case 3 if isinstance(field["type"], str) and field["type"] != "null":
                field["type"] = ["null", field["type"]]
            case 4:
                found["fields"].reverse()
            case 5 if isinstance(field["type"], dict) and field["type"]["type"] == "record":
                field["type"] = draw_evolution(draw, field["type"])
    if draw.flag():
        found["fields"].append({"name": "new", "type": ["null", "long"], "default": None})
    return found
