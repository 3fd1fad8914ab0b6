"""Logical types of Avro. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type, such as decimal; only decimals have a precision and a scale."""

    name: str
    precision: int = 0
    scale: int = 0


def logical_type(parsed: dict[str, Any], size: int | None = None) -> Logical | None:
    """Return the logical type of a type that has a column of it; None for bytes and numbers as they are.

    Args:
        parsed: the JSON of the type.
        size: the number of bytes, of a fixed.
    """
    name = parsed.get("logicalType")
    if not _annotates(parsed) or (name == "uuid" and size not in (None, 16)):
        return None
    if name != "decimal":
        return Logical(str(name))
    precision: Any = parsed.get("precision")
    scale: Any = parsed.get("scale", 0)
    if not _is_whole(precision) or not _is_whole(scale):
        return None
    # An invalid decimal stays bytes, and so does a decimal of more digits than Arrow and Spark have.
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        return None
    if size is not None and precision > _max_digits(size):
        return None
    return Logical("decimal", precision, scale)


def scale_of(parsed: dict[str, Any]) -> int | None:
    """Return the scale of a decimal, also of an invalid one, or of one that has no column; None if it has none."""
    if parsed.get("logicalType") != "decimal" or not _annotates(parsed):
        return None
    scale = parsed.get("scale", 0 if "precision" in parsed else None)
    if isinstance(scale, str) and scale.lstrip("-").isdecimal() and len(scale) < 10:
        return int(scale)
    if isinstance(scale, float) and scale.is_integer():
        return int(scale)
    return scale if _is_whole(scale) else None


def nanos_of(parsed: dict[str, Any]) -> str:
    """Return the name of a logical type in nanoseconds; empty for another."""
    name = parsed.get("logicalType")
    return name if parsed["type"] == "long" and name in _NANOS else ""


def _annotates(parsed: dict[str, Any]) -> bool:
    return parsed["type"] in _ANNOTATES.get(str(parsed.get("logicalType")), ())


def _is_whole(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _max_digits(size: int) -> int:
    return len(str(2 ** (8 * min(size, 64) - 1) - 1)) - 1 if size else 0
