"""Single documents of JSON, checked and read by Python: arrow-json reads batches, takes more and names no row."""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Optional

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_kafka._typed.codecs.json.decimals import has_decimals, is_misread, parse_float
from pyspark_kafka._typed.codecs.values import find_values, has_kind

NOT_UTF8 = "it is not UTF-8"
NOT_JSON = "it is not JSON"
TOO_DEEP = "it is nested too deeply"
_CUT_SHORT = "it ends in the middle of a document"
_HALF_PAIR = "it has half a surrogate pair"
_NO_OBJECT = "it is not a JSON object"
_SURROGATE = re.compile(rb"\\u[dD][89abcdefABCDEF]")


class SyntaxCheck:
    """Finds values that are not one object of JSON to the letter (RFC 8259), or null, with msgspec.

    Runs on: executor; pure computation.
    """

    def __init__(self) -> None:
        """Prepare the check, once for all values.

        Raises:
            ImportError: msgspec is missing.
        """
        import msgspec  # noqa: PLC0415 - optional

        # The members are skipped, not built.
        self._skip = msgspec.json.Decoder(Optional[msgspec.defstruct("Document", [], gc=False)]).decode  # noqa: UP045 - made at run time
        self._syntax_error, self._other_type = msgspec.DecodeError, msgspec.ValidationError
        self._skip_any = msgspec.json.Decoder(msgspec.Raw).decode

    def find_malformed(self, texts: Sequence[bytes | None]) -> dict[int, str]:
        """Return the rows of malformed values, each with the end of a sentence that quotes nothing of the value."""
        try:
            # Almost always all are well-formed: half the time of the loop below.
            deque(map(self._skip, [text for text in texts if text is not None]), maxlen=0)
        except (ValueError, RecursionError):
            return {
                row: fault for row, text in enumerate(texts) if text is not None and (fault := self._fault_of(text))
            }
        return {}

    def _fault_of(self, text: bytes) -> str:
        try:
            try:
                self._skip(text)
            except self._other_type:
                self._skip_any(text)
                fault = _NO_OBJECT
            else:
                return ""
        except RecursionError:
            fault = TOO_DEEP
        except self._syntax_error as error:
            fault = _place(str(error), text)
        if text.startswith(codecs.BOM_UTF8):
            return "it begins with a byte order mark"
        return fault if is_utf8(text) else NOT_UTF8


def _place(message: str, text: bytes) -> str:
    """Return the place of a fault, without msgspec's quotes from the value."""
    if "truncated" in message:
        # msgspec reports half a surrogate pair the same way, wherever it is.
        return _HALF_PAIR if text.rstrip().endswith(b"}") and _SURROGATE.search(text) else _CUT_SHORT
    _, at, place = message.partition("(byte ")
    return f"it is not JSON: fault at byte {place.rstrip(')')}" if at else NOT_JSON


def is_utf8(text: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


class Entries(dict[str, Any]):
    """An object of JSON that has a name twice: as a map it has every entry, as a struct the last one."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        """Keep all entries of an object."""
        super().__init__(pairs)
        self.pairs = pairs


def load_document(text: bytes, kind: pa.DataType) -> Any:
    """Return a document of a type in Python's types.

    If a name stands twice, the last one counts, as with arrow-json, unless it is in a map: see `Entries`.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: it is nested too deeply for Python.
    """
    import msgspec  # noqa: PLC0415 - optional

    exact, pairs = has_decimals(kind), has_kind(kind, pa.types.is_map)
    if not (exact or pairs):
        try:
            return msgspec.json.decode(text)
        except msgspec.ValidationError:
            # A number beyond the range of a double, which arrow-json takes as infinite.
            pass
    # Python's parser also takes what is not JSON.
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


def items_of(value: dict[str, Any]) -> Iterable[Any]:
    """Return the items of a map."""
    return [item for _, item in value.pairs] if isinstance(value, Entries) else value.values()


def find_lost_numbers(column: pa.Array, text_of: Callable[[int], bytes]) -> dict[int, str]:
    """Return the rows with a number beyond the range of its type, which arrow-json takes as infinite, and their fields.

    The text "Infinity" is not such a number.
    """
    rows = find_values(column, pa.types.is_floating, _infinite)
    paths = ((row, find_path(text_of(row), column.type, pa.types.is_floating, _is_lost)) for row in sorted(rows))
    return {row: path for row, path in paths if path is not None}


def find_misread_decimal(text: bytes, kind: pa.DataType) -> str | None:
    """Return the field of the first decimal whose text arrow-json would misread; None if there is none."""
    return find_path(text, kind, pa.types.is_decimal, lambda value, _: isinstance(value, str) and is_misread(value))


def find_path(
    text: bytes,
    kind: pa.DataType,
    of_kind: Callable[[pa.DataType], bool],
    is_bad: Callable[[Any, pa.DataType], bool],
) -> str | None:
    """Return the path of the first bad part of a document, in the order of its type; None if no part is.

    Args:
        text: the document.
        kind: its type.
        of_kind: whether parts of a type are looked at.
        is_bad: whether such a part is bad.
    """

    def walk(value: Any, wanted: pa.DataType, path: str) -> str | None:
        inner: Iterable[tuple[Any, pa.DataType, str]] = ()
        if of_kind(wanted):
            return path if is_bad(value, wanted) else None
        if pa.types.is_struct(wanted) and isinstance(value, dict):
            named = (each for each in wanted if each.name in value)
            inner = [(value[each.name], each.type, f"{path}.{each.name}" if path else each.name) for each in named]
        elif pa.types.is_list(wanted) and isinstance(value, list):
            inner = ((each, wanted.value_type, path) for each in value)
        elif pa.types.is_map(wanted) and isinstance(value, dict):
            inner = ((each, wanted.item_type, path) for each in items_of(value))
        return next((found for each in inner if (found := walk(*each)) is not None), None)

    try:
        return walk(load_document(text, kind), kind, "")
    except (ValueError, RecursionError):
        # msgspec and arrow-json read deeper nesting than Python: the field stays unknown.
        return ""


def _infinite(column: pa.Array) -> list[int]:
    found = pc.is_inf(column)
    return list(np.asarray(pc.indices_nonzero(found)).tolist()) if pc.any(found).as_py() else []


def _is_lost(value: Any, wanted: pa.DataType) -> bool:
    if not isinstance(value, (int, float, str, Decimal)):
        return False
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Entries(pairs)


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 400 else float(digits)
