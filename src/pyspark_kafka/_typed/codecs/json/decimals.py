"""Numbers in JSON that arrow-json misreads as decimals, found and written in another form.

Its parser keeps exponents in 16 bits and the digits of a number in 128, both without a check: 1e65536 is 1, 255 digits
are any number, and a long fraction with an exponent ends the process. Columns of other types have the same values.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

# Digits before the point that it reads without an exponent; and all of them with one.
_MAX_DIGITS = 99
_MAX_WITH_EXPONENT = 38
_MAX_EXPONENT = 4
# Beyond the exponents of a double on either side.
_FAR = 400
# A text as a whole, which is left as it is, or what looks like a number outside of texts.
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?', re.DOTALL)
_OF_JSON = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_ZERO = re.compile(rb"-?[0.]+[eE]")
_NUMBER = re.compile(r"[-+]?([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?)([0-9]+))?", re.ASCII)
# `1e9`, with the text after it.
_MIN_LENGTH = 6
# Two digits at this distance, if all between them are some.
_STEP = 49
# How far the begin and the end of a number are looked for; beyond that it is one in any case.
_MAX_STEPS = 64


def _table(characters: bytes) -> Any:
    """Return for each byte whether it is one of some characters."""
    found = np.zeros(256, bool)
    found[list(characters)] = True
    return found


_IN_NUMBER = _table(b"0123456789.+-")
_IS_DIGIT = _table(b"0123456789")
_BEFORE, _BEHIND = _table(b':,[" \t\r\n'), _table(b',]}" \t\r\n')


def find_suspects(values: pa.Array) -> list[int]:
    """Return the rows of values that may have such a number, in a text or not.

    These have a number with an exponent, many digits, or an escape for a character of a number.
    """
    values = values.cast(pa.large_binary())
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return []
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    if len(text) < _MIN_LENGTH:
        return []
    # Many times as fast as an expression. Few texts have digits before an e; in UUIDs, which do, the digits end soon.
    places = [_exponents(text, np.flatnonzero((text[1:-1] | 32) == 101) + 1), _long_runs(text)]
    escapes = np.flatnonzero(text[:-5] == 92)
    # An escape of ASCII.
    places.append(escapes[(text[escapes + 1] == 117) & (text[escapes + 2] == 48) & (text[escapes + 3] == 48)])
    found = np.concatenate(places)
    return np.unique(np.searchsorted(ends - ends[0], found, "right") - 1).tolist() if len(found) else []


def _exponents(text: Any, places: Any) -> Any:
    """Return the places of an e in numbers with an exponent."""
    places = places[_IN_NUMBER[text[places - 1]]]
    if not len(places):
        return places
    first, last = places - 1, places + 1
    last = last + ((text[last] == 43) | (text[last] == 45))
    last = np.minimum(last, len(text) - 1)
    for _ in range(_MAX_STEPS):
        back, ahead = _IN_NUMBER[text[first]] & (first > 0), _IS_DIGIT[text[last]] & (last < len(text) - 1)
        if not (back.any() or ahead.any()):
            break
        first, last = first - back, last + ahead
    begins = _BEFORE[text[first]] | _IN_NUMBER[text[first]]
    return places[begins & (_BEHIND[text[last]] | _IS_DIGIT[text[last]])]


def _long_runs(text: Any) -> Any:
    """Return a place in each run of many digits: a shorter one has no two digits at that distance, and all between."""
    sampled = _IS_DIGIT[text[::_STEP]]
    places = np.flatnonzero(sampled[:-1] & sampled[1:]) * _STEP
    return places[_IS_DIGIT[text[places[:, None] + np.arange(_STEP)]].all(axis=1)]


def rewrite_numbers(text: bytes) -> tuple[bytes, bool]:
    """Return a value with its numbers in forms that are read as they are, and whether texts in it have others.

    Those cannot be rewritten: only the type says which texts are numbers.
    """
    left = False

    def replace(match: re.Match[bytes]) -> bytes:
        nonlocal left
        token = match[0]
        if match[1] is not None:
            left = left or is_misread(_unescaped(token))
        elif _OF_JSON.fullmatch(token) and (_ZERO.match(token) or is_misread(token.decode())):
            # Zero with an exponent would be refused.
            return _rewritten(token)
        return token

    return _TOKEN.sub(replace, text), left


def _unescaped(token: bytes) -> str:
    """Return a text of JSON; nothing if it is none."""
    if b"\\" not in token:
        return token[1:-1].decode("latin-1")
    try:
        return str(json.loads(token.decode("latin-1")))
    except (ValueError, RecursionError):
        return ""


def is_misread(text: str) -> bool:
    """Whether a text is a number that arrow-json may misread as a decimal."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return False
    whole, fraction, sign, exponent = found[1].lstrip("0"), found[2] or "", found[3], found[4]
    if exponent is None:
        return len(whole) > _MAX_DIGITS
    exponent = exponent.lstrip("0")
    if len(exponent) > _MAX_EXPONENT or len(found[1]) + len(fraction) > _MAX_WITH_EXPONENT:
        return True
    # A number that is far smaller than any digit of a decimal is zero, before its exponent is used.
    return sign == "-" and _MAX_WITH_EXPONENT - len(fraction) < int(exponent or 0) < _MAX_DIGITS


def _rewritten(text: bytes) -> bytes:
    sign = b"-" if text.startswith(b"-") else b""
    number = read_decimal(text.decode())
    if number is not None and (not number or number.adjusted() < -_FAR):
        return sign + b"0"
    if number is None or number.adjusted() > _FAR:
        return sign + b"1e9999"
    if number.adjusted() > _MAX_DIGITS:
        # Beyond every decimal; of a double the digits that count.
        return f"{number:.60e}".encode()
    return f"{number:f}".encode()


def read_decimal(text: str) -> Decimal | None:
    """Return a number; None if it is beyond what Python's decimals hold, zero if it is smaller."""
    try:
        return Decimal(text)
    except InvalidOperation:
        mantissa, _, exponent = text.lower().partition("e")
        return Decimal(0) if exponent.startswith("-") or not mantissa.strip("+-0.") else None


def has_decimals(kind: pa.DataType) -> bool:
    """Whether a type has a decimal anywhere."""
    return pa.types.is_decimal(kind) or any(has_decimals(kind.field(at).type) for at in range(kind.num_fields))


def parse_float(text: str) -> Any:
    """Return a number of JSON for Python's parser."""
    number = read_decimal(text)
    return float("-inf" if text.startswith("-") else "inf") if number is None else number
