"""Random documents of JSON for random types, each with what it is read as by the documented rules."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

_UTC = dt.timezone.utc
_EXACT = Context(prec=500, rounding=ROUND_DOWN, traps=[])
_SIMPLE = (
    pa.bool_(),
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(9, 2),
    pa.decimal128(38, 18),
    pa.string(),
    pa.timestamp("us", "UTC"),
    pa.date32(),
)
_NAMES = st.sampled_from(["a", "b", "é", "x y", "c.d", "A", 'q"', "\\", "😀", ""])
_CHARACTERS = st.sampled_from(["a", " ", "é", "😀", "\n", '"', "\\", "\0", "12", "e5", "/", "\u2028"])
_TEXTS = st.lists(_CHARACTERS, max_size=4).map("".join)
_BLANKS = st.sampled_from(["", "", " ", "\n", "\t "])
_NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(-1e6, 1e6).map(repr),
    st.builds("{}.{:05d}".format, st.integers(-999, 999), st.integers(0, 99999)),
    st.builds("{}{}e{}".format, st.integers(-9, 9), st.just(""), st.integers(-50, 50)),
    st.builds("0.{}{}e{}".format, st.just("0" * 60), st.integers(1, 10**9), st.integers(50, 80)),
    st.sampled_from(["0", "-0", "1E2", "0e22", "1e65537", "1e-65537", "7e99999999999999999999", "1e400", "3" * 255]),
    st.sampled_from([str(each + more) for each in (1 << 7, 1 << 31, 1 << 63, -(1 << 63)) for more in (-1, 0)]),
)


class Document(NamedTuple):
    """A text of JSON, what it is read as, and whether it is bad."""

    text: str
    value: Any
    is_bad: bool = False


def types(depth: int = 2) -> st.SearchStrategy[pa.DataType]:
    """Return types of columns."""
    if depth == 0:
        return st.sampled_from(_SIMPLE)
    inner = types(depth - 1)
    return st.one_of(
        st.sampled_from(_SIMPLE),
        inner.map(lambda kind: pa.list_(pa.field("element", kind))),
        inner.map(lambda kind: pa.map_(pa.string(), pa.field("value", kind))),
        structs(depth - 1),
    )


def structs(depth: int = 2) -> st.SearchStrategy[pa.StructType]:
    """Return types of values."""
    fields = st.dictionaries(_NAMES, types(depth), min_size=1, max_size=3)
    return fields.map(lambda found: pa.struct(list(found.items())))


@st.composite
def documents(draw: st.DrawFn, kind: pa.DataType) -> Document:
    """Return a document for a type."""
    if draw(st.integers(0, 14)) == 0:
        return Document("null", None)
    if pa.types.is_struct(kind):
        return draw(_objects(kind))
    if pa.types.is_list(kind):
        items = draw(st.lists(documents(kind.value_type), max_size=3))
        return _joined("[]", [each.text for each in items], items, [each.value for each in items], draw(_BLANKS))
    if pa.types.is_map(kind):
        keys = draw(st.lists(_TEXTS, max_size=3))
        items = [draw(documents(kind.item_type)) for _ in keys]
        texts = [f"{draw(_strings(key))}:{each.text}" for key, each in zip(keys, items, strict=True)]
        pairs = [(key, each.value) for key, each in zip(keys, items, strict=True)]
        return _joined("{}", texts, items, pairs, draw(_BLANKS))
    if draw(st.integers(0, 14)) == 0:
        return Document(
            draw(st.sampled_from(["[]", "{}", '"zz"' if not pa.types.is_string(kind) else "1"])), None, True
        )
    return draw(_simple(kind))


@st.composite
def _objects(draw: st.DrawFn, kind: pa.StructType) -> Document:
    value: dict[str, Any] = {each.name: None for each in kind}
    parts, found = [], []
    for each in kind:
        if draw(st.booleans()):
            inner = draw(documents(each.type))
            # Of a name that stands twice the last counts.
            before = [draw(documents(each.type))] if draw(st.integers(0, 9)) == 0 else []
            parts += [f"{draw(_strings(each.name))}{draw(_BLANKS)}:{one.text}" for one in (*before, inner)]
            found.append(inner)
            value[each.name] = inner.value
    if draw(st.booleans()):
        # Of a field that the type lacks only the form is read.
        parts.insert(draw(st.integers(0, len(parts))), f'"unknown":{draw(_NUMBERS | _TEXTS.map(json.dumps))}')
    return _joined("{}", parts, found, value, draw(_BLANKS))


def _joined(ends: str, texts: list[str], inner: list[Document], value: Any, blank: str) -> Document:
    is_bad = any(each.is_bad for each in inner)
    text = f"{ends[0]}{blank}{f',{blank}'.join(texts)}{blank}{ends[1]}"
    return Document(text, None if is_bad else value, is_bad)


@st.composite
def _strings(draw: st.DrawFn, text: str) -> str:
    return json.dumps(text, ensure_ascii=draw(st.booleans()))


@st.composite
def _simple(draw: st.DrawFn, kind: pa.DataType) -> Document:
    if pa.types.is_boolean(kind):
        truth = draw(st.booleans())
        return Document(str(truth).lower(), truth)
    if pa.types.is_string(kind):
        characters = draw(_TEXTS)
        return Document(draw(_strings(characters)), characters)
    if pa.types.is_date(kind):
        day = draw(st.dates())
        return Document(f'"{day.isoformat()}"', day)
    if pa.types.is_timestamp(kind):
        at = draw(st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29))).replace(tzinfo=_UTC)  # noqa: DTZ001
        zone = dt.timezone(dt.timedelta(minutes=draw(st.sampled_from([0, 120, -330]))))
        text = at.astimezone(zone).isoformat(draw(st.sampled_from("T ")))
        return Document(f'"{text}"', at)
    text = draw(_NUMBERS)
    value = _number(text, kind)
    return Document(text, value, value is None)


def _number(text: str, kind: pa.DataType) -> Any:
    """Return what a number is read as; None if it is out of range."""
    if pa.types.is_floating(kind):
        with np.errstate(over="ignore"):
            found = float(np.float32(float(text))) if kind == pa.float32() else float(text)
        return found if math.isfinite(found) else None
    if pa.types.is_decimal(kind):
        number = _EXACT.create_decimal(text)
        if not number.is_finite() or (number and number.adjusted() > 40):
            return None
        cut = number.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
        return cut if abs(cut) < Decimal(10) ** (kind.precision - kind.scale) else None
    # Through a double, if it is not a whole number of 64 bits.
    is_whole = text.lstrip("-").isdecimal() and -(1 << 63) <= int(text) < 1 << 63
    if not is_whole and not math.isfinite(float(text)):
        return None
    whole = int(text) if is_whole else int(float(text))
    return whole if -(1 << (kind.bit_width - 1)) <= whole < 1 << (kind.bit_width - 1) else None
