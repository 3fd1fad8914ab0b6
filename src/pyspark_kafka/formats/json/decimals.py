"""Numbers in JSON that arrow-json misreads as decimals, found and written in another form. Layer: formats.

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
import pyarrow.compute as pc

# Digits before the point that it reads without an exponent; and all of them with one.
_MOST_DIGITS = 99
_MOST_WITH_EXPONENT = 38
_LONGEST_EXPONENT = 4
# Beyond the exponents of a double on either side.
_FAR = 400
# A text as a whole, which is left as it is, or what looks like a number outside of texts.
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?', re.DOTALL)
_OF_JSON = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_ZERO = re.compile(rb"-?[0.]+[eE]")
_NUMBER = re.compile(r"[-+]?([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?)([0-9]+))?", re.ASCII)
# For RE2, which is fast. It finds more: which of these are misread is seen in each.
# A text may have any of its characters as an escape.
_SUSPECT = r"[0-9.][eE][-+]?[0-9]+[\s,\]}\"]|[0-9]{100}|\\u00[2346]"
_STEP = 49


def find_suspects(values: pa.Array) -> list[int]:
    """Return the rows of values that may have such a number, in a text or not."""
    values = values.cast(pa.large_binary())
    if not _may_have(values):
        return []
    found = pc.match_substring_regex(values, _SUSPECT).fill_null(False)
    return list(np.asarray(pc.indices_nonzero(found)).tolist())


def _may_have(values: pa.Array) -> bool:
    """Whether there is an e behind a digit, an escape, or a run of digits: a tenth of the time of the expression."""
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return False
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    digits = (text - 46) < 12
    if bool((digits[:-1] & ((text[1:] | 32) == 101)).any()) or bool(((text[:-1] == 92) & (text[1:] == 117)).any()):
        return True
    some = digits[::_STEP]
    return bool((some[:-1] & some[1:]).any())


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
        return len(whole) > _MOST_DIGITS
    exponent = exponent.lstrip("0")
    if len(exponent) > _LONGEST_EXPONENT or len(found[1]) + len(fraction) > _MOST_WITH_EXPONENT:
        return True
    # A number that is far smaller than any digit of a decimal is zero, before its exponent is used.
    return sign == "-" and _MOST_WITH_EXPONENT - len(fraction) < int(exponent or 0) < _MOST_DIGITS


def _rewritten(text: bytes) -> bytes:
    sign = b"-" if text.startswith(b"-") else b""
    number = read_decimal(text.decode())
    if number is not None and (not number or number.adjusted() < -_FAR):
        return sign + b"0"
    if number is None or number.adjusted() > _FAR:
        return sign + b"1e9999"
    if number.adjusted() > _MOST_DIGITS:
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
