"""Which values of a batch are no JSON, or are refused by arrow-json, and why, without asking it for each.

Every value is looked at by msgspec first, which takes JSON only and one document a value; arrow-json also takes what is
none. arrow-json refuses a batch for one value, and names the field, not the row. Reading each value alone takes 30
times as long as a batch. So the fields that it named are looked at in all values, with msgspec, which skips the rest;
what looks wrong there is judged by arrow-json's own rules for each type. `test_locating.py` compares them.
Layer: formats.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any, Optional, Union

import pyarrow as pa

from pyspark_kafka.formats.json.judging import ValueJudge, fits_whole, load_value, refused_texts
from pyspark_kafka.formats.values import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# For this number of chunks without a fault, after one with many, suspected fields are looked at before decoding.
_WARY_CHUNKS = 8
# One in some chunks costs less to be found when decoding fails.
_MANY = 4
_PLAIN_DECIMAL = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
# What msgspec does not take as the name of a field.
_ODD_NAME = re.compile(r'["\\\x00-\x1f\x7f]')
_NOT_UTF8 = "it is not UTF-8"
_CUT_SHORT = "it ends in the middle of a document"
_HALF_PAIR = "it has half a surrogate pair"
_SURROGATE = re.compile(rb"\\u[dD][89abcdefABCDEF]")
_NO_OBJECT = "it is no JSON object"
_FIELD = "whilst decoding field '"


class FaultFinder:
    """Finds the values of a type that arrow-json refuses.

    Runs on: executor; pure computation. For one thread at a time.
    """

    def __init__(self, read_type: pa.StructType) -> None:
        """Find faults in values of a type."""
        self._type = read_type
        self._suspects: set[tuple[str, ...]] = set()
        self._judges_all = False
        self._wary = 0
        self._look: Callable[[bytes], Any] | None = None
        self._check: _Check | None = None

    def notice(self, error: str) -> bool:
        """Suspect the field that an error of arrow-json names; return whether that is new."""
        path = _named_path(error, self._type)
        # What is no UTF-8 names no field, nor does a decimal.
        fresh = ({path} if path else {(), *_decimal_paths(self._type)}) - self._suspects
        if fresh:
            self._suspects |= fresh
            self._look = None
        return bool(fresh)

    def find(self, texts: Sequence[bytes | None], judged: Sequence[int] = ()) -> dict[int, tuple[Reason, str]]:
        """Return the rows whose value is bad, each with the reason and the end of a sentence.

        Found are values that are no JSON or no object; and, if there are suspects, those that are no UTF-8, or have a
        fault in a suspected field.

        Args:
            texts: the values.
            judged: rows that are judged in all fields.
        """
        import msgspec  # noqa: PLC0415 - optional

        if self._look is None:
            self._prepare(msgspec)
        look, check = self._look, self._check
        assert look is not None  # noqa: S101 - prepared above
        if check is None and not judged and not self._suspects and _all_fine(look, texts):
            return {}
        known_utf8 = not self._suspects or _all_utf8(texts)
        bad: dict[int, tuple[Reason, str]] = {}
        rows = range(len(texts)) if self._judges_all else judged
        odd: list[int] = [row for row in rows if texts[row] is not None]
        for row, text in enumerate(texts):
            if text is None:
                continue
            if not known_utf8 and not _is_utf8(text):
                bad[row] = (Reason.DECODE_FAILED, _NOT_UTF8)
                continue
            try:
                value = look(text)
            except RecursionError:
                bad[row] = (Reason.DECODE_FAILED, "it is nested too deeply")
            except msgspec.ValidationError:
                odd.append(row)
            except msgspec.DecodeError as error:
                bad[row] = (Reason.DECODE_FAILED, _place(error, text))
            else:
                if check is not None and value is not None and check.is_odd(value, row):
                    odd.append(row)
        if check is not None:
            odd += check.unreadable()
        if odd:
            bad |= self._judge({row: texts[row] or b"" for row in odd}, msgspec)
        for row, (reason, _) in bad.items():
            if reason is Reason.DECODE_FAILED and not _is_utf8(texts[row] or b""):
                bad[row] = (reason, _NOT_UTF8)
        if len(bad) >= _MANY:
            self._wary = _WARY_CHUNKS
        return bad

    def trust(self) -> None:
        """Note that a chunk was without a fault; after some of them, fields are suspected no more."""
        self._wary -= 1
        if self._wary <= 0 and self._suspects:
            self._suspects.clear()
            self._look = None

    def _prepare(self, msgspec: Any) -> None:
        """Make what looks at the suspected fields only."""
        plain = {path for path in self._suspects if not any(map(_ODD_NAME.search, path))}
        self._judges_all = len(plain) < len(self._suspects)
        narrow = _narrowed(self._type, plain)
        self._look = msgspec.json.Decoder(Optional[_kind(narrow, msgspec)]).decode  # noqa: UP045 - made at run time
        self._check = _Check(narrow) if len(narrow) else None

    def _judge(self, texts: dict[int, bytes], msgspec: Any) -> dict[int, tuple[Reason, str]]:
        """Return which values are bad, by their first field that is, in the order of the type."""
        bad: dict[int, tuple[Reason, str]] = {}
        judge = ValueJudge()
        for row, text in texts.items():
            try:
                value = load_value(text, msgspec, self._type)
            except RecursionError:
                bad[row] = (Reason.DECODE_FAILED, "it is nested too deeply")
            except msgspec.DecodeError as error:
                bad[row] = (Reason.DECODE_FAILED, _place(error, text))
            except ValueError:
                bad[row] = (Reason.DECODE_FAILED, "it is no JSON")
            else:
                if value is not None and not isinstance(value, dict):
                    bad[row] = (Reason.DECODE_FAILED, _NO_OBJECT)
                    continue
                judge.look(row, value, self._type)
        for row, path in judge.faults().items():
            bad[row] = (Reason.TYPE_MISMATCH, f"the value of field '{path}' has another type")
        return bad


class _Check:
    """Looks at the content of suspected fields whose JSON has the right kind."""

    def __init__(self, narrow: pa.StructType) -> None:
        self._texts: dict[pa.DataType, tuple[list[str], list[int]]] = {}
        self._row = 0
        self._walk = self._walk_of(narrow)

    def is_odd(self, value: Any, row: int) -> bool:
        """Whether a number of a value is out of the range of its field; texts are judged by `unreadable`."""
        self._row = row
        return bool(self._walk is not None and self._walk(value))

    def unreadable(self) -> list[int]:
        """Return the rows with a text that stands for no number or time, of all values since the last call."""
        found = {rows[at] for kind, (texts, rows) in self._texts.items() for at in refused_texts(texts, kind)}
        for texts, rows in self._texts.values():
            texts.clear()
            rows.clear()
        return list(found)

    def _walk_of(self, kind: pa.DataType) -> Callable[[Any], bool] | None:
        """Return a function that walks a value of a type; None if there is nothing to look at."""
        if pa.types.is_struct(kind):
            parts = [(f"f{number}", self._walk_of(each.type)) for number, each in enumerate(kind)]
            walks = [(name, walk) for name, walk in parts if walk is not None]

            def in_struct(value: Any) -> bool:
                for name, walk in walks:
                    inner = getattr(value, name)
                    if inner is not None and walk(inner):
                        return True
                return False

            return in_struct if walks else None
        if pa.types.is_list(kind) or pa.types.is_map(kind):
            walk = self._walk_of(kind.value_type if pa.types.is_list(kind) else kind.item_type)
            if walk is None:
                return None
            of_list = pa.types.is_list(kind)

            def in_items(value: Any) -> bool:
                return any(walk(each) for each in (value if of_list else value.values()) if each is not None)

            return in_items
        if pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
            return None
        if pa.types.is_decimal(kind):
            digits = kind.precision - kind.scale

            def in_decimal(value: Any) -> bool:
                if isinstance(value, str):
                    return not _PLAIN_DECIMAL.fullmatch(value) or len(value.lstrip("+-").partition(".")[0]) > digits
                return not abs(value) < 10**digits - 1

            return in_decimal
        texts, rows = self._texts.setdefault(kind, ([], []))
        floating = pa.types.is_floating(kind)
        # What fits without a closer look, of all types of that width.
        surely = 0 if floating else (1 << (kind.bit_width - 1)) - 1

        def in_number(value: Any) -> bool:
            if 0 <= value <= surely if type(value) is int else floating and type(value) is float:
                return False
            if isinstance(value, str):
                texts.append(value)
                rows.append(self._row)
                return False
            return not floating and not fits_whole(value, kind)

        return in_number


def _named_path(error: str, kind: pa.DataType) -> tuple[str, ...]:
    """Return the path of the field that an error names; no name if it names none, as with what is no JSON."""
    _, found, rest = error.partition(_FIELD)
    # The first field is the wrapper.
    _, _, rest = rest.partition("': ")
    path: list[str] = []
    while found:
        while pa.types.is_list(kind) or pa.types.is_map(kind):
            kind = kind.value_type if pa.types.is_list(kind) else kind.item_type
        names = [each.name for each in kind] if pa.types.is_struct(kind) else []
        name = next((each for each in names if rest.startswith(f"{_FIELD}{each}': ")), None)
        if name is None:
            break
        path.append(name)
        rest = rest[len(f"{_FIELD}{name}': ") :]
        kind = kind.field(name).type
    return tuple(path)


def _decimal_paths(kind: pa.DataType) -> list[tuple[str, ...]]:
    if pa.types.is_decimal(kind):
        return [()]
    if pa.types.is_struct(kind):
        return [(each.name, *path) for each in kind for path in _decimal_paths(each.type)]
    if pa.types.is_list(kind):
        return _decimal_paths(kind.value_type)
    return _decimal_paths(kind.item_type) if pa.types.is_map(kind) else []


def _narrowed(kind: pa.DataType, paths: set[tuple[str, ...]]) -> pa.DataType:
    """Return a type with the fields of some paths only; of what a path ends at, no fields: faults there name them."""
    if pa.types.is_list(kind):
        return pa.list_(_narrowed(kind.value_type, paths))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _narrowed(kind.item_type, paths))
    if not pa.types.is_struct(kind):
        return kind
    fields = []
    for each in kind:
        inner = {path[1:] for path in paths if path and path[0] == each.name}
        if inner:
            fields.append(pa.field(each.name, _narrowed(each.type, inner)))
    return pa.struct(fields)


def _kind(kind: pa.DataType, msgspec: Any) -> Any:
    """Return the type of msgspec that has the values of a type, of the right kind of JSON but with any content."""
    if pa.types.is_struct(kind):
        names = {f"f{number}": each.name for number, each in enumerate(kind)}
        fields = [
            (f"f{number}", Optional[_kind(each.type, msgspec)], None)  # noqa: UP045 - made at run time
            for number, each in enumerate(kind)
        ]
        return msgspec.defstruct("Looked", fields, rename=names, gc=False)
    if pa.types.is_list(kind):
        return list[Optional[_kind(kind.value_type, msgspec)]]  # type: ignore[misc]  # noqa: UP045 - made at run time
    if pa.types.is_map(kind):
        return dict[str, Optional[_kind(kind.item_type, msgspec)]]  # type: ignore[misc]  # noqa: UP045 - as above
    if pa.types.is_string(kind) or pa.types.is_null(kind):
        return str
    if pa.types.is_boolean(kind):
        return bool
    return Union[int, float, str]  # noqa: UP007 - as above


def _all_fine(look: Callable[[bytes], Any], texts: Sequence[bytes | None]) -> bool:
    """Whether nothing is wrong with any value, as almost always: half the time of a look at each."""
    present = [text for text in texts if text is not None]
    try:
        deque(map(look, present), maxlen=0)
    except (ValueError, RecursionError):
        return False
    return True


def _all_utf8(texts: Sequence[bytes | None]) -> bool:
    try:
        pa.array(texts, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _place(error: Exception, text: bytes) -> str:
    """Return what msgspec says of a fault, without what it quotes of the value."""
    said = str(error)
    if "truncated" in said:
        # It says so, too, of half a surrogate pair, wherever that is.
        return _HALF_PAIR if text.rstrip().endswith(b"}") and _SURROGATE.search(text) else _CUT_SHORT
    _, at, place = said.partition("(byte ")
    return f"it is no JSON: fault at byte {place.rstrip(')')}" if at else "it is no JSON"
