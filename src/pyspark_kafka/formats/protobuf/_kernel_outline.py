"""The hot loop of finding messages that are cut short: the fields of each are walked over, and nothing is read.

Cython in pure-Python mode, one source for two variants, which return the same. Pure: no sockets, no clock. Layer:
formats, below everything else of it.

Source: "Encoding" of protobuf.dev: tags, wire types 0, 1, 2 and 5.
"""
# Names of C types stand in the annotations. Uncompiled they mean nothing: annotations must never be evaluated, and
# mypy has nothing to check.
# mypy: ignore-errors
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True

from __future__ import annotations

import cython


@cython.cfunc
@cython.exceptval(check=False)
def _is_cut_short(
    data: cython.const[cython.uchar][::1], start: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.bint:
    """Whether the fields from a place on do not end with the value, but beyond it.

    False as soon as there is something that a walk does not understand: a group, a number of more than ten bytes.
    """
    pos: cython.Py_ssize_t = start
    number: cython.ulonglong
    byte: cython.ulonglong
    shift: cython.int
    part: cython.int
    kind: cython.int
    while pos < end:
        # The tag, then a number or a length.
        kind = -1
        for part in range(2):
            number = 0
            shift = 0
            while True:
                if pos >= end:
                    return True
                byte = data[pos]
                pos += 1
                if shift < 63:
                    number |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift > 63:
                    return False
            if part == 0:
                kind = cython.cast(cython.int, number & 7)
                if kind not in (0, 2):
                    break
        if kind == 0:
            continue
        if kind == 1:
            number = 8
        elif kind == 5:
            number = 4
        elif kind != 2:
            return False
        if number > cython.cast(cython.ulonglong, end - pos):
            return True
        pos += cython.cast(cython.Py_ssize_t, number)
    return False


def find_cut_short(data: object, offsets: object, first: int, count: int, valid: object) -> list:
    """Return which of some rows are messages that are cut short in one of their fields.

    Args:
        data: the bytes of all values.
        offsets: where each value begins and the last one ends, 64-bit; the caller has checked that they are in order
            and within the data.
        first: the first row.
        count: how many rows.
        valid: a byte for each row, 0 where there is no value; or None.
    """
    bytes_of_all: cython.const[cython.uchar][::1] = data
    ends: cython.const[cython.longlong][::1] = offsets
    present: cython.const[cython.uchar][::1] = valid
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t = first
    rows: cython.Py_ssize_t = count
    found: list = []
    for row in range(at, at + rows):
        if valid is not None and not present[row]:
            continue
        if _is_cut_short(bytes_of_all, ends[row], ends[row + 1]):
            found.append(row)
    return found
