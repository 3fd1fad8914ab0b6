"""The hot loop of encoding Avro: columns to bytes. Cython in pure-Python mode, one source for two variants.

A `WriteStep` is one type of the writer's schema over one Arrow column: it appends the value of a row to an `Output`.
The caller has checked the columns: offsets and row numbers are trusted here. A value that does not fit its type ends
with a code, and the output names the step.
"""
# Names of C types stand in the annotations. Uncompiled they mean nothing: annotations must never be evaluated, and
# mypy has nothing to check.
# mypy: ignore-errors
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True

from __future__ import annotations

import struct

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

# How a value ended. C constants are not visible to Python: callers use the names at the end of this file.
_OK = cython.declare(cython.int, 0)
_IS_NULL = cython.declare(cython.int, 1)  # a null where the type has none
_OUT_OF_RANGE = cython.declare(cython.int, 2)  # a number that the type cannot hold
_INEXACT = cython.declare(cython.int, 3)  # a time with more digits than the type has
_BAD_SYMBOL = cython.declare(cython.int, 4)  # a text that is not a symbol of the enum
_BAD_SIZE = cython.declare(cython.int, 5)  # not as many bytes as the type has
_MEMBERS = cython.declare(cython.int, 6)  # not exactly one member of a union
_TOO_LARGE = cython.declare(cython.int, 7)  # the values together would pass 2 GiB

_MAX_BYTES = cython.declare(cython.Py_ssize_t, 2147483647)
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")


@cython.cclass
class Output:
    """Bytes that grow."""

    stored: cython.uchar[::1]
    used: cython.Py_ssize_t
    room: cython.Py_ssize_t
    failed: WriteStep

    def __init__(self, room: int) -> None:
        """Begin without a byte, with room for some."""
        self.room = max(64, room)
        self.stored = bytearray(self.room)
        self.used = 0

    @cython.cfunc
    @cython.exceptval(-1)
    def reserve(self, size: cython.Py_ssize_t) -> cython.int:
        """Make room for `size` bytes more."""
        if self.used + size <= self.room:
            return _OK
        self.room = 2 * (self.used + size)
        wider = bytearray(self.room)
        wider[: self.used] = self.stored[: self.used]
        self.stored = wider
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def put_long(self, value: cython.longlong) -> cython.int:
        """Append a zig-zag varint."""
        raw: cython.ulonglong
        if self.used + 10 > self.room:
            self.reserve(10)
        if cython.compiled:
            raw = (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(cython.ulonglong, value >> 63)
        else:
            raw = ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF
        while raw >= 0x80:
            self.stored[self.used] = (raw & 0x7F) | 0x80
            raw >>= 7
            self.used += 1
        self.stored[self.used] = raw
        self.used += 1
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def put_bytes(
        self, data: cython.const[cython.uchar][::1], pos: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.int:
        """Append some bytes out of others."""
        if self.used + size > self.room:
            self.reserve(size)
        if cython.compiled:
            if size > 0:
                memcpy(cython.address(self.stored[self.used]), cython.address(data[pos]), size)
        else:
            self.stored[self.used : self.used + size] = data[pos : pos + size]
        self.used += size
        return _OK

    def bytes(self) -> object:
        """Return what was written."""
        return memoryview(self.stored)[: self.used]


@cython.cclass
class WriteStep:
    """One type of the writer's schema, and the column whose values it writes.

    `path` says which, for errors.
    """

    path: str
    valid: cython.const[cython.uchar][::1]
    nullable: cython.bint

    def set(self, path: str, valid: object) -> None:
        """Say where the column is, and which rows are there: a byte for each, or None for all."""
        self.path = path
        self.nullable = valid is not None
        if valid is not None:
            self.valid = valid

    def where(self) -> str:
        """Return where the column is."""
        return self.path

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        """Append the value of a row."""
        if self.nullable and not self.valid[row]:
            out.failed = self
            return _IS_NULL
        return self.write_value(row, out)

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        """Append the value of a row that is there."""
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def fail(self, code: cython.int, out: Output) -> cython.int:
        """Name this step as the failed step."""
        out.failed = self
        return code


@cython.cclass
class WriteNull(WriteStep):
    """Nothing to write; every row is null."""

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        return _OK


@cython.cclass
class WriteLong(WriteStep):
    """An int or a long, out of 64-bit numbers."""

    values: cython.const[cython.longlong][::1]
    minimum: cython.longlong
    maximum: cython.longlong
    divisor: cython.longlong

    def __init__(self, values: object, minimum: int, maximum: int, divisor: int) -> None:
        """Write numbers divided by the divisor, which then are within the bounds and whole."""
        self.values = values
        self.minimum = minimum
        self.maximum = maximum
        self.divisor = divisor

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        value: cython.longlong = self.values[row]
        if self.divisor != 1:
            if value % self.divisor != 0:
                return self.fail(_INEXACT, out)
            value //= self.divisor
        if value < self.minimum or value > self.maximum:
            return self.fail(_OUT_OF_RANGE, out)
        return out.put_long(value)


@cython.cclass
class WriteBoolean(WriteStep):
    """A boolean, out of a byte for each row."""

    values: cython.const[cython.uchar][::1]

    def __init__(self, values: object) -> None:
        """Write bytes that are 0 or 1."""
        self.values = values

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        return out.put_bytes(self.values, row, 1)


@cython.cclass
class WriteFixed(WriteStep):
    """Bytes of a fixed number for each row: fixed, float and double."""

    data: cython.const[cython.uchar][::1]
    size: cython.Py_ssize_t

    def __init__(self, data: object, size: int) -> None:
        """Write bytes that stand one row after the other."""
        self.data = data
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        return out.put_bytes(self.data, row * self.size, self.size)


@cython.cclass
class WriteBytes(WriteStep):
    """Bytes, strings, and fixed out of bytes of any size."""

    offsets: cython.const[cython.longlong][::1]
    data: cython.const[cython.uchar][::1]
    size: cython.Py_ssize_t

    def __init__(self, offsets: object, data: object, size: int) -> None:
        """Write bytes by 64-bit offsets; with a size other than -1 without their length, which must be the size."""
        self.offsets = offsets
        self.data = data
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        size: cython.Py_ssize_t = self.offsets[row + 1] - self.offsets[row]
        if self.size < 0:
            out.put_long(size)
        elif size != self.size:
            return self.fail(_BAD_SIZE, out)
        return out.put_bytes(self.data, self.offsets[row], size)


@cython.cclass
class WriteDecimal(WriteStep):
    """A decimal, out of 16 bytes a row, little end first."""

    data: cython.const[cython.uchar][::1]
    size: cython.Py_ssize_t

    def __init__(self, data: object, size: int) -> None:
        """Write numbers with the big end first, in `size` bytes, or in as few as possible if it is -1."""
        self.data = data
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        at: cython.Py_ssize_t = 16 * row
        sign: cython.int = 0xFF if self.data[at + 15] >= 0x80 else 0
        needed: cython.Py_ssize_t = 16
        size: cython.Py_ssize_t
        index: cython.Py_ssize_t
        # A byte that only repeats the sign may go, if the next one has the sign too.
        while (
            needed > 1 and self.data[at + needed - 1] == sign and (self.data[at + needed - 2] >= 0x80) == (sign == 0xFF)
        ):
            needed -= 1
        size = needed if self.size < 0 else self.size
        if needed > size:
            return self.fail(_OUT_OF_RANGE, out)
        if self.size < 0:
            out.put_long(size)
        out.reserve(size)
        for index in range(size):
            out.stored[out.used + index] = (
                self.data[at + size - 1 - index] if size - 1 - index < 16 else cython.cast(cython.uchar, sign)
            )
        out.used += size
        return _OK


@cython.cclass
class WriteEnum(WriteStep):
    """A symbol, out of 32-bit numbers of symbols."""

    numbers: cython.const[cython.int][::1]

    def __init__(self, numbers: object) -> None:
        """Write numbers; -1 is not a symbol."""
        self.numbers = numbers

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        if self.numbers[row] < 0:
            return self.fail(_BAD_SYMBOL, out)
        return out.put_long(self.numbers[row])


@cython.cclass
class WriteRecord(WriteStep):
    """The fields of a record."""

    fields: list

    def __init__(self, fields: list) -> None:
        """Write a row of each field."""
        self.fields = fields

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        code: cython.int
        index: cython.Py_ssize_t
        for index in range(len(self.fields)):
            code = cython.cast(WriteStep, self.fields[index]).write(row, out)
            if code != _OK:
                return code
        return _OK


@cython.cclass
class WriteItems(WriteStep):
    """An array or a map, in one block."""

    offsets: cython.const[cython.longlong][::1]
    item: WriteStep

    def __init__(self, offsets: object, item: WriteStep) -> None:
        """Write items by 64-bit offsets into their column."""
        self.offsets = offsets
        self.item = item

    @cython.cfunc
    @cython.exceptval(-1)
    def write_value(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        code: cython.int
        at: cython.Py_ssize_t
        end: cython.Py_ssize_t = self.offsets[row + 1]
        if end > self.offsets[row]:
            out.put_long(end - self.offsets[row])
            for at in range(self.offsets[row], end):
                code = self.item.write(at, out)
                if code != _OK:
                    return code
        return out.put_long(0)


@cython.cclass
class WriteNullable(WriteStep):
    """A union of null and one other type."""

    inner: WriteStep
    null_branch: cython.longlong
    branch: cython.longlong

    def __init__(self, inner: WriteStep, null_branch: int, branch: int) -> None:
        """Write the number of the branch, then the value that is there; -1 is a branch that the union does not have."""
        self.inner = inner
        self.null_branch = null_branch
        self.branch = branch

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        if self.nullable and not self.valid[row]:
            if self.null_branch < 0:
                return self.fail(_IS_NULL, out)
            return out.put_long(self.null_branch)
        if self.branch < 0:
            return self.fail(_MEMBERS, out)
        out.put_long(self.branch)
        return self.inner.write_value(row, out)


@cython.cclass
class WriteMembers(WriteStep):
    """A union of several types, out of a struct with a field for each."""

    members: list
    branches: cython.longlong[::1]
    null_branch: cython.longlong

    def __init__(self, members: list, branches: object, null_branch: int) -> None:
        """Write the one member that is there, with the number of its branch."""
        self.members = members
        self.branches = branches
        self.null_branch = null_branch

    @cython.cfunc
    @cython.exceptval(-1)
    def write(self, row: cython.Py_ssize_t, out: Output) -> cython.int:
        found: cython.Py_ssize_t = -1
        index: cython.Py_ssize_t
        member: WriteStep
        if not self.nullable or self.valid[row]:
            for index in range(len(self.members)):
                member = cython.cast(WriteStep, self.members[index])
                if not member.nullable or member.valid[row]:
                    if found >= 0:
                        return self.fail(_MEMBERS, out)
                    found = index
        if found < 0:
            if self.null_branch < 0:
                return self.fail(_MEMBERS, out)
            return out.put_long(self.null_branch)
        out.put_long(self.branches[found])
        return cython.cast(WriteStep, self.members[found]).write_value(row, out)


def encode_rows(step: WriteStep, count: int, prefix: bytes, valid: object, room: int) -> tuple:
    """Write the values of all rows, one after the other.

    Args:
        step: of the schema's root.
        count: how many rows.
        prefix: what stands before each value.
        valid: a byte for each row, 0 where there is no value and nothing is written; or None.
        room: how many bytes they will probably take.

    Returns:
        (bytes, where each ends, row that failed or -1, code, path): of a row that failed, nothing is written.
    """
    out: Output = Output(room)
    before: cython.const[cython.uchar][::1] = prefix
    present: cython.const[cython.uchar][::1] = valid
    rows: cython.Py_ssize_t = count
    row: cython.Py_ssize_t
    size: cython.Py_ssize_t = len(prefix)
    code: cython.int
    made = bytearray(4 * (count + 1))
    ends: cython.int[::1] = memoryview(made).cast("i")
    for row in range(rows):
        if valid is None or present[row]:
            if size > 0:
                out.put_bytes(before, 0, size)
            code = step.write(row, out)
            if code == _OK and out.used > _MAX_BYTES:
                code = step.fail(_TOO_LARGE, out)
            if code != _OK:
                return out.bytes(), made, row, code, out.failed.path
        ends[row + 1] = cython.cast(cython.int, out.used)
    return out.bytes(), made, -1, _OK, ""


OK = 0
IS_NULL = 1
OUT_OF_RANGE = 2
INEXACT = 3
BAD_SYMBOL = 4
BAD_SIZE = 5
MEMBERS = 6
TOO_LARGE = 7
