"""What arrow-json takes as a value of a type, by its own rules. Layer: formats."""

from __future__ import annotations

import math
import re
from decimal import ROUND_DOWN, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka.formats.json.decimals import has_decimals, is_misread, parse_float, read_decimal
from pyspark_kafka.formats.values import find_values, has_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_BEYOND_DOUBLE = 1 << 1023
# No decimal has a digit that far from its point.
_FAR = 100
_EXACT = Context(prec=200, rounding=ROUND_DOWN)


class ValueJudge:
    """Judges values field by field; texts that stand for numbers or times are judged together at the end."""

    def __init__(self) -> None:
        """Begin without a value."""
        self._found: dict[int, tuple[int, str]] = {}
        self._texts: dict[pa.DataType, tuple[list[str], list[tuple[int, int, str]]]] = {}
        self._order = 0

    def look(self, row: int, value: Any, wanted: pa.DataType) -> None:
        """Judge the value of a row."""
        self._order = 0
        self._look(row, value, wanted, "")

    def faults(self) -> dict[int, str]:
        """Return the path of the first bad field of each row that has one."""
        for kind, (texts, places) in self._texts.items():
            for at in refused_texts(texts, kind):
                row, order, path = places[at]
                self._note(row, order, path)
        return {row: path for row, (_, path) in self._found.items()}

    def _note(self, row: int, order: int, path: str) -> None:
        before = self._found.get(row)
        if before is None or order < before[0]:
            self._found[row] = (order, path)

    def _look(self, row: int, value: Any, wanted: pa.DataType, path: str) -> bool:
        """Judge one value; return False once the row is known to be bad."""
        self._order += 1
        if value is None:
            return True
        if pa.types.is_struct(wanted):
            if isinstance(value, dict):
                return all(
                    self._look(row, value[each.name], each.type, f"{path}.{each.name}" if path else each.name)
                    for each in wanted
                    if each.name in value
                )
        elif pa.types.is_list(wanted):
            if isinstance(value, list):
                return all(self._look(row, each, wanted.value_type, path) for each in value)
        elif pa.types.is_map(wanted):
            if isinstance(value, dict):
                return all(self._look(row, each, wanted.item_type, path) for each in items_of(value))
        elif pa.types.is_string(wanted) or pa.types.is_null(wanted):
            if isinstance(value, str):
                return True
        elif pa.types.is_boolean(wanted):
            if isinstance(value, bool):
                return True
        elif pa.types.is_decimal(wanted):
            if _fits_decimal(value, wanted):
                return True
        elif isinstance(value, str):
            texts, places = self._texts.setdefault(wanted, ([], []))
            texts.append(value)
            places.append((row, self._order, path))
            return True
        elif not isinstance(value, (bool, list, dict)) and (pa.types.is_floating(wanted) or fits_whole(value, wanted)):
            return True
        self._note(row, self._order, path)
        return False


def refused_texts(texts: list[str], kind: pa.DataType) -> list[int]:
    """Return the places of texts that stand for no value of a type: arrow-json parses them as its cast does."""
    import arro3.core  # noqa: PLC0415 - optional

    if not texts:
        return []
    cast = arro3.core.Array.from_arrow(pa.array(texts, pa.string())).cast(kind)
    valid = pa.array(cast).is_valid().to_pylist()
    return [at for at, fine in enumerate(valid) if not fine]


def fits_whole(value: Any, wanted: pa.DataType) -> bool:
    """Whether a number without its fraction is in the range of a type of whole numbers, days, or parts of seconds."""
    if pa.types.is_timestamp(wanted):
        # What is out of range becomes the last moment that there is.
        return True
    bits = wanted.bit_width
    least, most = (0, 1 << bits) if pa.types.is_unsigned_integer(wanted) else (-(1 << (bits - 1)), 1 << (bits - 1))
    if least <= value < most:
        return True
    # What is no whole number of that size is read as a double, which may be just within.
    number = float(value) if not isinstance(value, int) or abs(value) < _BEYOND_DOUBLE else math.inf
    return math.isfinite(number) and least <= int(number) < most


def _fits_decimal(value: Any, wanted: pa.Decimal128Type) -> bool:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        return False
    text = value if isinstance(value, str) else str(value)
    if not _DECIMAL.fullmatch(text) or (isinstance(value, str) and is_misread(text)):
        return False
    number = read_decimal(text)
    if number is None:
        return False
    if not number and isinstance(value, str):
        # The zeros of its exponent are digits; outside of texts they are left out before it is read.
        exponent = text.lower().partition("e")[2]
        return bool(int(exponent or 0) + wanted.scale <= wanted.precision)
    if not number or abs(number.adjusted()) > _FAR:
        return not number or number.adjusted() < 0
    return bool(int(number.copy_abs().scaleb(wanted.scale, _EXACT)) < 10**wanted.precision)


def find_lost_numbers(column: pa.Array, text_of: Callable[[int], bytes]) -> dict[int, str]:
    """Return the rows with a number beyond what its type holds, which arrow-json takes as infinite, and their fields.

    The text of infinity is no such number. The field is an empty text if the document does not say it.
    """
    lost: dict[int, str] = {}
    rows = find_values(column, pa.types.is_floating, _infinite)
    if not rows:
        return lost
    import msgspec  # noqa: PLC0415 - optional

    for row in sorted(rows):
        try:
            path = _beyond(load_value(text_of(row), msgspec, column.type), column.type, "")
        except (msgspec.DecodeError, ValueError, RecursionError):
            # What arrow-json reads though it is no JSON.
            path = ""
        if path is not None:
            lost[row] = path
    return lost


def _infinite(column: pa.Array) -> list[int]:
    found = pc.is_inf(column)
    return list(np.asarray(pc.indices_nonzero(found)).tolist()) if pc.any(found).as_py() else []


def _beyond(value: Any, wanted: pa.DataType, path: str) -> str | None:
    """Return the path of the first number that is infinite as a value of its type; None if there is none."""
    inner: Iterable[tuple[Any, pa.DataType, str]] = ()
    if pa.types.is_struct(wanted) and isinstance(value, dict):
        inner = [
            (value[each.name], each.type, f"{path}.{each.name}" if path else each.name)
            for each in wanted
            if each.name in value
        ]
    elif pa.types.is_list(wanted) and isinstance(value, list):
        inner = ((each, wanted.value_type, path) for each in value)
    elif pa.types.is_map(wanted) and isinstance(value, dict):
        inner = ((each, wanted.item_type, path) for each in items_of(value))
    elif pa.types.is_floating(wanted) and isinstance(value, (int, float, str, Decimal)):
        return path if _is_lost(value, wanted) else None
    return next((found for each in inner if (found := _beyond(*each)) is not None), None)


def _is_lost(value: float | str | Decimal, wanted: pa.DataType) -> bool:
    if isinstance(value, str) and not any(each in "0123456789" for each in value):
        return False
    try:
        number = float(value)
    except OverflowError:
        return True
    except ValueError:
        return False
    with np.errstate(over="ignore"):
        return bool(np.isinf(np.dtype(wanted.to_pandas_dtype()).type(number)))


class Entries(dict[str, Any]):
    """An object of JSON that has a name twice: as a map it has every entry, as a struct the last one."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        """Keep all entries of an object."""
        super().__init__(pairs)
        self.pairs = pairs


def load_value(text: bytes, msgspec: Any, kind: pa.DataType) -> Any:
    """Return a value of a type in Python's types.

    Of a name that stands twice the last counts, as with arrow-json, unless it is in a map: see `Entries`.
    """
    import json  # noqa: PLC0415 - seldom needed

    exact, pairs = has_decimals(kind), has_kind(kind, pa.types.is_map)
    if not (exact or pairs):
        try:
            return msgspec.json.decode(text)
        except msgspec.ValidationError:
            # A number beyond what a double holds, which arrow-json takes as infinite.
            pass
    # Python's parser also takes what is no JSON.
    msgspec.json.decode(text, type=msgspec.Raw)
    try:
        return json.loads(
            text,
            parse_float=parse_float if exact else float,
            parse_int=_whole,
            object_pairs_hook=_object if pairs else None,
        )
    except RecursionError as error:
        raise RecursionError("nested too deeply for Python's parser") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Entries(pairs)


def items_of(value: dict[str, Any]) -> Iterable[Any]:
    """Return the items of a map."""
    return [item for _, item in value.pairs] if isinstance(value, Entries) else value.values()


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 400 else float(digits)
