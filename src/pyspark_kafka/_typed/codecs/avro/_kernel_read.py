"""The hot loop of decoding Avro: bytes to columns. Cython in pure-Python mode, one source for two variants.

A `ReadStep` is one type of the writer's schema: it reads one value and puts it into a `Builder`, one column of the
reader's schema, or nowhere. Steps and builders form two trees, which `resolution` makes once for a pair of schemas.
Compiled and uncompiled, both return the same.

All input is hostile: a length is compared with what remains before it is used, and a count with what may follow. A
value that is not valid ends with a code; the caller cuts every column back to the row before.
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
_CUT_SHORT = cython.declare(cython.int, 1)  # the value ends in the middle of a field
_BAD_VARINT = cython.declare(cython.int, 2)  # a number of more than ten bytes
_OUT_OF_RANGE = cython.declare(cython.int, 3)  # a number that the writer's type cannot hold
_BAD_BRANCH = cython.declare(cython.int, 4)  # a branch that the union does not have
_BAD_SYMBOL = cython.declare(cython.int, 5)  # a symbol that the enum does not have
_BAD_BOOLEAN = cython.declare(cython.int, 6)  # neither 0 nor 1
_BAD_LENGTH = cython.declare(cython.int, 7)  # a negative length, or one beyond the end
_BAD_COUNT = cython.declare(cython.int, 8)  # more items than can follow
_BAD_TEXT = cython.declare(cython.int, 9)  # a string that is not UTF-8
_TRAILING = cython.declare(cython.int, 10)  # bytes behind the value
_NOT_READABLE = cython.declare(cython.int, 11)  # a branch or symbol that the reader's schema has no place for
_BAD_DECIMAL = cython.declare(cython.int, 12)  # more digits than the precision
_TOO_DEEP = cython.declare(cython.int, 13)  # nested beyond the limit
_TOO_LARGE = cython.declare(cython.int, 14)  # a column of the batch would pass 2 GiB
_TOO_MANY_CELLS = cython.declare(cython.int, 15)  # few bytes that become many cells

# Items without bytes (null, an empty record) cost the sender nothing: a value has at most this number.
_EMPTY_ITEMS = cython.declare(cython.Py_ssize_t, 65536)
_UNBOUNDED = cython.declare(cython.Py_ssize_t, 9223372036854775807)
_MAX_BYTES = cython.declare(cython.Py_ssize_t, 2147483647)
_MAX_DEPTH = cython.declare(cython.int, 64)
_FIRST_CAPACITY = cython.declare(cython.Py_ssize_t, 64)
_TOP_BITS = cython.declare(cython.ulonglong, 0x8080808080808080)
_LOW_BITS = cython.declare(cython.ulonglong, 0x0101010101010101)
# The seven bits of every other byte, the fourteen of every other pair, and so on. Numbers of this size in code
# would be Python's.
_EVEN_7 = cython.declare(cython.ulonglong, 0x007F007F007F007F)
_ODD_7 = cython.declare(cython.ulonglong, 0x7F007F007F007F00)
_EVEN_14 = cython.declare(cython.ulonglong, 0x00003FFF00003FFF)
_ODD_14 = cython.declare(cython.ulonglong, 0x3FFF00003FFF0000)
_EVEN_28 = cython.declare(cython.ulonglong, 0x000000000FFFFFFF)
_ODD_28 = cython.declare(cython.ulonglong, 0x0FFFFFFF00000000)

_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")


@cython.final
@cython.cclass
class ValueCursor:
    """A place in the bytes of one value."""

    data: cython.const[cython.uchar][::1]
    # Of all bytes that there are; those behind `end` are of other values.
    size: cython.Py_ssize_t
    pos: cython.Py_ssize_t
    end: cython.Py_ssize_t
    # What read_long has read.
    value: cython.longlong
    # Items without bytes that this value may still have.
    empty_items: cython.Py_ssize_t
    # Cells that its items may still have.
    cells: cython.Py_ssize_t
    depth: cython.int

    def __init__(self, data: object) -> None:
        """Begin at the start of some bytes."""
        self.data = data
        self.size = len(data)
        self.pos = 0
        self.end = self.size
        self.value = 0
        self.empty_items = _EMPTY_ITEMS
        self.cells = _UNBOUNDED
        self.depth = 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def read_long(self) -> cython.int:
        """Read a zig-zag varint of at most ten bytes into `value`."""
        raw: cython.ulonglong = 0
        shift: cython.int = 0
        byte: cython.ulonglong
        pos: cython.Py_ssize_t = self.pos
        mask: cython.ulonglong
        if cython.compiled and self.end - pos >= 8:
            # Eight bytes at once: a loop over them ends at a place that the processor cannot foresee.
            memcpy(cython.address(raw), cython.address(self.data[pos]), 8)
            mask = ~raw & _TOP_BITS
            if mask != 0:
                # All bits up to the lowest set bit: the bytes of the number.
                mask ^= mask - 1
                self.pos = pos + cython.cast(cython.Py_ssize_t, ((mask & _LOW_BITS) * _LOW_BITS) >> 56)
                raw &= mask & ~_TOP_BITS
                raw = (raw & _EVEN_7) | ((raw & _ODD_7) >> 1)
                raw = (raw & _EVEN_14) | ((raw & _ODD_14) >> 2)
                raw = (raw & _EVEN_28) | ((raw & _ODD_28) >> 4)
                self.value = cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1)
                return _OK
            raw = 0
        while pos < self.end:
            byte = self.data[pos]
            pos += 1
            # The tenth byte has one bit left: more would be cut off silently.
            if shift == 63 and byte > 1:
                return _BAD_VARINT
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.pos = pos
                self.value = cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1)
                return _OK
            shift += 7
        return _CUT_SHORT

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def read_length(self) -> cython.int:
        """Read the length of what follows into `value`; it is not beyond the end."""
        code: cython.int = self.read_long()
        if code != _OK:
            return code
        if self.value < 0:
            return _BAD_LENGTH
        if self.value > self.end - self.pos:
            return _CUT_SHORT
        return _OK


# -- columns


@cython.cfunc
def _room(size: cython.Py_ssize_t, kind: str) -> object:
    """Return room for numbers of a kind, as `array.array` names it; it has this number of bytes, all 0."""
    return memoryview(bytearray(size)).cast(kind)


@cython.cfunc
def _wider(
    values: object, used: cython.Py_ssize_t, capacity: cython.Py_ssize_t, width: cython.Py_ssize_t, kind: str
) -> object:
    """Return room for more numbers of some width, with the first `used` numbers copied."""
    wider = _room(width * capacity, kind)
    wider[:used] = memoryview(values)[:used]
    return wider


@cython.cclass
class Builder:
    """A column that grows: a validity byte for each row, and what its kind adds."""

    length: cython.Py_ssize_t
    capacity: cython.Py_ssize_t
    nulls: cython.Py_ssize_t
    valid: cython.uchar[::1]

    def __init__(self) -> None:
        """Begin without a row."""
        self.length = 0
        self.capacity = _FIRST_CAPACITY
        self.nulls = 0
        self.valid = bytearray(_FIRST_CAPACITY)

    @cython.final
    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def add(self, valid: cython.uchar) -> cython.int:
        """Note that a row is complete, and make room for the next."""
        self.valid[self.length] = valid
        self.length += 1
        if self.length == self.capacity:
            self._grow()
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def _grow(self) -> cython.int:
        return self._widen(2 * self.capacity)

    @cython.cfunc
    @cython.exceptval(-1)
    def _widen(self, capacity: cython.Py_ssize_t) -> cython.int:
        self.valid = _wider(self.valid, self.capacity, capacity, 1, "B")
        self.grow_values(capacity)
        self.capacity = capacity
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def reserve(self, rows: cython.Py_ssize_t) -> cython.int:
        """Make room for this number of rows in all."""
        if rows >= self.capacity:
            self._widen(rows + 1)
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def grow_values(self, capacity: cython.Py_ssize_t) -> cython.int:
        """Make room for values; a kind of column with values of its own does."""
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        """Append a null."""
        self.nulls += 1
        return self.add(0)

    @cython.cfunc
    @cython.exceptval(check=False)
    def truncate(self, length: cython.Py_ssize_t) -> cython.void:
        """Remove the rows from `length` on; there may be none."""
        while self.length > length:
            self.length -= 1
            if not self.valid[self.length]:
                self.nulls -= 1

    def rows(self) -> tuple[int, int, object]:
        """Return the number of rows, of nulls, and a validity byte for each row."""
        return self.length, self.nulls, memoryview(self.valid)[: self.length]


@cython.cclass
class NullBuilder(Builder):
    """A column of nulls."""


@cython.cclass
class NumberBuilder(Builder):
    """A column of numbers, which takes whole and other numbers."""

    @cython.cfunc
    @cython.exceptval(-1)
    def append_long(self, value: cython.longlong) -> cython.int:
        """Append a whole number, which fits."""
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_double(self, value: cython.double) -> cython.int:
        """Append a number of a column that is not one of whole numbers."""
        return _OK


@cython.final
@cython.cclass
class IntBuilder(NumberBuilder):
    """A column of 32-bit numbers."""

    values: cython.int[::1]

    def __init__(self) -> None:
        """Begin without a row."""
        Builder.__init__(self)
        self.values = _room(4 * _FIRST_CAPACITY, "i")

    @cython.cfunc
    @cython.exceptval(-1)
    def grow_values(self, capacity: cython.Py_ssize_t) -> cython.int:
        self.values = _wider(self.values, self.capacity, capacity, 4, "i")
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_long(self, value: cython.longlong) -> cython.int:
        self.values[self.length] = cython.cast(cython.int, value)
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        self.values[self.length] = 0
        self.nulls += 1
        return self.add(0)

    def data(self) -> object:
        """Return the numbers."""
        return memoryview(self.values)[: self.length]


@cython.final
@cython.cclass
class LongBuilder(NumberBuilder):
    """A column of 64-bit numbers."""

    values: cython.longlong[::1]

    def __init__(self) -> None:
        """Begin without a row."""
        Builder.__init__(self)
        self.values = _room(8 * _FIRST_CAPACITY, "q")

    @cython.cfunc
    @cython.exceptval(-1)
    def grow_values(self, capacity: cython.Py_ssize_t) -> cython.int:
        self.values = _wider(self.values, self.capacity, capacity, 8, "q")
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_long(self, value: cython.longlong) -> cython.int:
        self.values[self.length] = value
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        self.values[self.length] = 0
        self.nulls += 1
        return self.add(0)

    def data(self) -> object:
        """Return the numbers."""
        return memoryview(self.values)[: self.length]


@cython.final
@cython.cclass
class FloatBuilder(NumberBuilder):
    """A column of 32-bit floating-point numbers."""

    values: cython.float[::1]

    def __init__(self) -> None:
        """Begin without a row."""
        Builder.__init__(self)
        self.values = _room(4 * _FIRST_CAPACITY, "f")

    @cython.cfunc
    @cython.exceptval(-1)
    def grow_values(self, capacity: cython.Py_ssize_t) -> cython.int:
        self.values = _wider(self.values, self.capacity, capacity, 4, "f")
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_long(self, value: cython.longlong) -> cython.int:
        self.values[self.length] = value
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_double(self, value: cython.double) -> cython.int:
        self.values[self.length] = value
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        self.values[self.length] = 0
        self.nulls += 1
        return self.add(0)

    def data(self) -> object:
        """Return the numbers."""
        return memoryview(self.values)[: self.length]


@cython.final
@cython.cclass
class DoubleBuilder(NumberBuilder):
    """A column of 64-bit floating-point numbers."""

    values: cython.double[::1]

    def __init__(self) -> None:
        """Begin without a row."""
        Builder.__init__(self)
        self.values = _room(8 * _FIRST_CAPACITY, "d")

    @cython.cfunc
    @cython.exceptval(-1)
    def grow_values(self, capacity: cython.Py_ssize_t) -> cython.int:
        self.values = _wider(self.values, self.capacity, capacity, 8, "d")
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_long(self, value: cython.longlong) -> cython.int:
        self.values[self.length] = value
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_double(self, value: cython.double) -> cython.int:
        self.values[self.length] = value
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        self.values[self.length] = 0
        self.nulls += 1
        return self.add(0)

    def data(self) -> object:
        """Return the numbers."""
        return memoryview(self.values)[: self.length]


@cython.final
@cython.cclass
class BytesBuilder(Builder):
    """A column of strings or bytes: 32-bit offsets, and data."""

    offsets: cython.int[::1]
    stored: cython.uchar[::1]
    used: cython.Py_ssize_t
    room: cython.Py_ssize_t

    def __init__(self) -> None:
        """Begin without a row."""
        Builder.__init__(self)
        self.offsets = _room(4 * (_FIRST_CAPACITY + 1), "i")
        self.room = 1024
        self.used = 0
        self.stored = bytearray(self.room)

    @cython.cfunc
    @cython.exceptval(-1)
    def grow_values(self, capacity: cython.Py_ssize_t) -> cython.int:
        self.offsets = _wider(self.offsets, self.capacity + 1, capacity + 1, 4, "i")
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_bytes(self, cursor: ValueCursor, size: cython.Py_ssize_t) -> cython.int:
        """Append the bytes before a cursor, which has passed them."""
        pos: cython.Py_ssize_t = cursor.pos - size
        if self.used + size > _MAX_BYTES:
            return _TOO_LARGE
        if self.used + size > self.room:
            self._make_room(size)
        if cython.compiled:
            if size <= 16 and cursor.size - pos >= 16 and self.room - self.used >= 16:
                # A copy whose size is known takes two instructions; what is too much is written over by the next.
                memcpy(cython.address(self.stored[self.used]), cython.address(cursor.data[pos]), 16)
            elif size > 0:
                memcpy(cython.address(self.stored[self.used]), cython.address(cursor.data[pos]), size)
        else:
            self.stored[self.used : self.used + size] = cursor.data[pos : pos + size]
        self.used += size
        self.offsets[self.length + 1] = cython.cast(cython.int, self.used)
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(-1)
    def _make_room(self, size: cython.Py_ssize_t) -> cython.int:
        room: cython.Py_ssize_t = 2 * (self.used + size)
        self.stored = _wider(self.stored, self.used, room, 1, "B")
        self.room = room
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        self.offsets[self.length + 1] = cython.cast(cython.int, self.used)
        self.nulls += 1
        return self.add(0)

    @cython.cfunc
    @cython.exceptval(check=False)
    def truncate(self, length: cython.Py_ssize_t) -> cython.void:
        Builder.truncate(self, length)
        self.used = self.offsets[self.length]

    def parts(self) -> tuple[object, object]:
        """Return the offsets, one more than rows, and the data."""
        return memoryview(self.offsets)[: self.length + 1], memoryview(self.stored)[: self.used]


@cython.final
@cython.cclass
class DecimalBuilder(Builder):
    """A column of decimals: the unscaled number of each in 16 bytes, little end first."""

    stored: cython.uchar[::1]
    # The least unscaled number with one digit too many, 16 bytes, little end first.
    bound: bytes

    def __init__(self, precision: int) -> None:
        """Begin without a row; a decimal has at most `precision` digits, which are at most 38."""
        Builder.__init__(self)
        self.stored = bytearray(16 * _FIRST_CAPACITY)
        self.bound = (10**precision).to_bytes(16, "little")

    @cython.cfunc
    @cython.exceptval(-1)
    def grow_values(self, capacity: cython.Py_ssize_t) -> cython.int:
        self.stored = _wider(self.stored, 16 * self.capacity, 16 * capacity, 1, "B")
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_unscaled(self, cursor: ValueCursor, size: cython.Py_ssize_t) -> cython.int:
        """Append the number before a cursor, in two's complement, big end first, of any length."""
        pos: cython.Py_ssize_t = cursor.pos - size
        at: cython.Py_ssize_t = 16 * self.length
        index: cython.Py_ssize_t
        byte: cython.int
        sign: cython.int = 0xFF if size > 0 and cursor.data[pos] >= 0x80 else 0
        # Bytes that only repeat the sign say nothing.
        while size > 16:
            if cursor.data[pos] != sign:
                return _BAD_DECIMAL
            pos += 1
            size -= 1
        if size == 16 and (cursor.data[pos] >= 0x80) != (sign == 0xFF):
            return _BAD_DECIMAL
        for index in range(16):
            byte = cursor.data[pos + size - 1 - index] if index < size else sign
            self.stored[at + index] = cython.cast(cython.uchar, byte)
        if not self._within(at, sign):
            return _BAD_DECIMAL
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _within(self, at: cython.Py_ssize_t, sign: cython.int) -> cython.bint:
        """Whether the absolute number at a place is less than the bound."""
        index: cython.Py_ssize_t
        carry: cython.int = 1 if sign else 0
        byte: cython.int
        limit: cython.int
        less: cython.bint = False
        # From the little end: the last difference that is met decides.
        for index in range(16):
            byte = self.stored[at + index]
            if sign:
                byte = (byte ^ 0xFF) + carry
                carry = byte >> 8
                byte &= 0xFF
            limit = cython.cast(cython.uchar, self.bound[index])
            if byte != limit:
                less = byte < limit
        return less

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        index: cython.Py_ssize_t
        for index in range(16):
            self.stored[16 * self.length + index] = 0
        self.nulls += 1
        return self.add(0)

    def data(self) -> object:
        """Return the numbers."""
        return memoryview(self.stored)[: 16 * self.length]


@cython.final
@cython.cclass
class StructBuilder(Builder):
    """A column of structs, with a column for each field."""

    children: list

    def __init__(self, children: list) -> None:
        """Begin without a row, on columns without a row."""
        Builder.__init__(self)
        self.children = children

    @cython.cfunc
    @cython.exceptval(-1)
    def reserve(self, rows: cython.Py_ssize_t) -> cython.int:
        child: Builder
        for child in self.children:
            child.reserve(rows)
        return Builder.reserve(self, rows)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        child: Builder
        for child in self.children:
            child.append_null()
        self.nulls += 1
        return self.add(0)

    @cython.cfunc
    @cython.exceptval(check=False)
    def truncate(self, length: cython.Py_ssize_t) -> cython.void:
        child: Builder
        Builder.truncate(self, length)
        for child in self.children:
            # A struct that is not complete has children that are one row ahead.
            child.truncate(self.length)


@cython.final
@cython.cclass
class ListBuilder(Builder):
    """A column of lists or maps: 32-bit offsets into a column of items."""

    offsets: cython.int[::1]
    items: Builder

    def __init__(self, items: Builder) -> None:
        """Begin without a row, on a column of items without a row."""
        Builder.__init__(self)
        self.items = items
        self.offsets = _room(4 * (_FIRST_CAPACITY + 1), "i")

    @cython.cfunc
    @cython.exceptval(-1)
    def grow_values(self, capacity: cython.Py_ssize_t) -> cython.int:
        self.offsets = _wider(self.offsets, self.capacity + 1, capacity + 1, 4, "i")
        return _OK

    @cython.cfunc
    @cython.exceptval(-1)
    def append_items(self) -> cython.int:
        """Append a list of all items since the one before."""
        if self.items.length > _MAX_BYTES:
            return _TOO_LARGE
        self.offsets[self.length + 1] = cython.cast(cython.int, self.items.length)
        return self.add(1)

    @cython.cfunc
    @cython.exceptval(-1)
    def append_null(self) -> cython.int:
        self.offsets[self.length + 1] = self.offsets[self.length]
        self.nulls += 1
        return self.add(0)

    @cython.cfunc
    @cython.exceptval(check=False)
    def truncate(self, length: cython.Py_ssize_t) -> cython.void:
        Builder.truncate(self, length)
        self.items.truncate(self.offsets[self.length])

    def starts(self) -> object:
        """Return the offsets, one more than rows."""
        return memoryview(self.offsets)[: self.length + 1]


# -- steps


@cython.cclass
class ReadStep:
    """One type of the writer's schema, and where its values go."""

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        """Read one value; on any other code than OK, the row is incomplete and is to be cut off."""
        return _OK


@cython.cclass
class ReadNull(ReadStep):
    """Nothing to read; a null for the column, if there is one."""

    target: Builder

    def __init__(self, target: object) -> None:
        """Put nulls into a column, or nowhere if it is None."""
        self.target = target

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        if self.target is None:
            return _OK
        return self.target.append_null()


@cython.cclass
class ReadLong(ReadStep):
    """An int or a long."""

    target: NumberBuilder
    # The target, if it is of this class, whose method is then known when this is compiled.
    longs: LongBuilder
    ints: IntBuilder
    minimum: cython.longlong
    maximum: cython.longlong
    scale: cython.longlong

    def __init__(self, target: object, minimum: int, maximum: int, scale: int) -> None:
        """Put numbers into a column, or nowhere if it is None.

        Args:
            target: the column.
            minimum: the least number of the writer's type.
            maximum: the largest; both are within 64 bits when multiplied.
            scale: what each is multiplied with.
        """
        self.target = target
        self.longs = target if isinstance(target, LongBuilder) else None
        self.ints = target if isinstance(target, IntBuilder) else None
        self.minimum = minimum
        self.maximum = maximum
        self.scale = scale

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int = cursor.read_long()
        if code != _OK:
            return code
        if cursor.value < self.minimum or cursor.value > self.maximum:
            return _OUT_OF_RANGE
        if self.longs is not None:
            return self.longs.append_long(cursor.value * self.scale)
        if self.ints is not None:
            return self.ints.append_long(cursor.value * self.scale)
        if self.target is None:
            return _OK
        return self.target.append_long(cursor.value * self.scale)


@cython.cclass
class ReadFloat(ReadStep):
    """A float or a double."""

    target: NumberBuilder
    # The target, if it is of this class.
    doubles: DoubleBuilder
    wide: cython.bint

    def __init__(self, target: NumberBuilder, wide: bool) -> None:
        """Put numbers into a column; `wide` is a double."""
        self.target = target
        self.doubles = target if isinstance(target, DoubleBuilder) else None
        self.wide = wide

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        size: cython.Py_ssize_t = 8 if self.wide else 4
        number: cython.double
        small: cython.float = 0
        large: cython.double = 0
        if size > cursor.end - cursor.pos:
            return _CUT_SHORT
        if cython.compiled:
            # Machines with the big end first have no wheels of Arrow.
            if self.wide:
                memcpy(cython.address(large), cython.address(cursor.data[cursor.pos]), 8)
                number = large
            else:
                memcpy(cython.address(small), cython.address(cursor.data[cursor.pos]), 4)
                number = small
        else:
            number = (_DOUBLE if self.wide else _FLOAT).unpack_from(cursor.data, cursor.pos)[0]
        cursor.pos += size
        if self.doubles is not None:
            return self.doubles.append_double(number)
        return self.target.append_double(number)


@cython.cclass
class ReadBoolean(ReadStep):
    """A boolean."""

    target: IntBuilder

    def __init__(self, target: IntBuilder) -> None:
        """Put 0 or 1 into a column of 32-bit numbers."""
        self.target = target

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        if cursor.pos >= cursor.end:
            return _CUT_SHORT
        if cursor.data[cursor.pos] > 1:
            return _BAD_BOOLEAN
        cursor.pos += 1
        return self.target.append_long(cursor.data[cursor.pos - 1])


@cython.cclass
class ReadBytes(ReadStep):
    """Bytes, or a string, whose text is checked."""

    target: BytesBuilder
    text: cython.bint

    def __init__(self, target: BytesBuilder, text: bool) -> None:
        """Put bytes into a column; `text` must be UTF-8."""
        self.target = target
        self.text = text

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int = cursor.read_length()
        size: cython.Py_ssize_t
        if code != _OK:
            return code
        size = cursor.value
        if self.text and not _is_utf8(cursor, size):
            return _BAD_TEXT
        cursor.pos += size
        return self.target.append_bytes(cursor, size)


@cython.cclass
class ReadFixed(ReadStep):
    """Bytes of a fixed number."""

    target: BytesBuilder
    size: cython.Py_ssize_t

    def __init__(self, target: BytesBuilder, size: int) -> None:
        """Put bytes into a column."""
        self.target = target
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        if self.size > cursor.end - cursor.pos:
            return _CUT_SHORT
        cursor.pos += self.size
        return self.target.append_bytes(cursor, self.size)


@cython.cclass
class ReadDecimal(ReadStep):
    """A decimal, in bytes or in fixed."""

    target: DecimalBuilder
    size: cython.Py_ssize_t

    def __init__(self, target: DecimalBuilder, size: int) -> None:
        """Put numbers into a column; `size` is -1 where the length stands before each."""
        self.target = target
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int
        size: cython.Py_ssize_t = self.size
        if size < 0:
            code = cursor.read_length()
            if code != _OK:
                return code
            size = cursor.value
        elif size > cursor.end - cursor.pos:
            return _CUT_SHORT
        cursor.pos += size
        return self.target.append_unscaled(cursor, size)


@cython.cclass
class ReadEnum(ReadStep):
    """A symbol, as its number in the reader's enum."""

    target: NumberBuilder
    numbers: cython.int[::1]
    count: cython.Py_ssize_t

    def __init__(self, target: NumberBuilder, numbers: object) -> None:
        """Put numbers into a column; `numbers` has one for each symbol of the writer, -1 if the reader has none."""
        self.target = target
        self.numbers = numbers
        self.count = len(numbers)

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int = cursor.read_long()
        if code != _OK:
            return code
        if cursor.value < 0 or cursor.value >= self.count:
            return _BAD_SYMBOL
        if self.numbers[cursor.value] < 0:
            return _NOT_READABLE
        return self.target.append_long(self.numbers[cursor.value])


@cython.cclass
class ReadRecord(ReadStep):
    """The fields of a record in the writer's order, then what stands for fields that the writer does not have."""

    target: StructBuilder
    fields: list

    def __init__(self, target: object, fields: list) -> None:
        """Put structs into a column, or nowhere if it is None; the steps of the fields know their own columns."""
        self.target = target
        self.fields = fields

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int
        index: cython.Py_ssize_t
        # A record that is skipped may hold itself.
        cursor.depth += 1
        if cursor.depth > _MAX_DEPTH:
            return _TOO_DEEP
        for index in range(len(self.fields)):
            code = cython.cast(ReadStep, self.fields[index]).read(cursor)
            if code != _OK:
                return code
        cursor.depth -= 1
        if self.target is None:
            return _OK
        return self.target.add(1)


@cython.cclass
class ReadItems(ReadStep):
    """An array or a map, block by block."""

    target: ListBuilder
    item: ReadStep
    minimum: cython.Py_ssize_t
    cells: cython.Py_ssize_t

    def __init__(self, target: object, item: ReadStep, minimum: int, cells: int) -> None:
        """Put lists into a column, or nowhere if it is None.

        Args:
            target: the column.
            item: reads one item, into the column of items.
            minimum: how many bytes an item has at least.
            cells: how many cells an item has, without the cells of arrays and maps in it; 0 if it is put nowhere.
        """
        self.target = target
        self.item = item
        self.minimum = minimum
        self.cells = cells

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int
        left: cython.longlong
        while True:
            code = cursor.read_long()
            if code != _OK:
                return code
            left = cursor.value
            if left == 0:
                break
            if left < 0:
                # The size of the block follows, for readers that skip it.
                code = cursor.read_length()
                if code != _OK:
                    return code
                if left < -_MAX_BYTES:
                    return _BAD_COUNT
                left = -left
            if self.minimum > 0:
                if left > (cursor.end - cursor.pos) // self.minimum:
                    return _BAD_COUNT
            else:
                if left > cursor.empty_items:
                    return _BAD_COUNT
                cursor.empty_items -= left
            if self.cells > 0:
                if left > cursor.cells // self.cells:
                    return _TOO_MANY_CELLS
                cursor.cells -= left * self.cells
            while left > 0:
                code = self.item.read(cursor)
                if code != _OK:
                    return code
                left -= 1
        if self.target is None:
            return _OK
        return self.target.append_items()


@cython.cclass
class ReadUnion(ReadStep):
    """A branch of a union."""

    branches: list
    count: cython.Py_ssize_t

    def __init__(self, branches: list) -> None:
        """Read a branch with its step; None where the reader's schema has no place for it."""
        self.branches = branches
        self.count = len(branches)

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int = cursor.read_long()
        if code != _OK:
            return code
        if cursor.value < 0 or cursor.value >= self.count:
            return _BAD_BRANCH
        if self.branches[cursor.value] is None:
            return _NOT_READABLE
        return cython.cast(ReadStep, self.branches[cursor.value]).read(cursor)


@cython.cclass
class ReadMember(ReadStep):
    """A branch that goes into one field of a struct, whose other fields are null."""

    target: StructBuilder
    step: ReadStep
    index: cython.Py_ssize_t

    def __init__(self, target: StructBuilder, step: ReadStep, index: int) -> None:
        """Read with a step, which puts the value into the field of that index."""
        self.target = target
        self.step = step
        self.index = index

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int = self.step.read(cursor)
        index: cython.Py_ssize_t
        if code != _OK:
            return code
        for index in range(len(self.target.children)):
            if index != self.index:
                cython.cast(Builder, self.target.children[index]).append_null()
        return self.target.add(1)


@cython.cclass
class ReadConstant(ReadStep):
    """Nothing to read; the default of a field, from bytes of its own."""

    step: ReadStep
    cursor: ValueCursor
    counted: cython.bint

    def __init__(self, step: ReadStep, encoded: bytes, counted: bool) -> None:
        """Read the bytes with the step, for each row or item again; `counted` if its cells are cells of an item."""
        self.step = step
        self.cursor = ValueCursor(encoded)
        self.counted = counted

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int
        self.cursor.pos = 0
        self.cursor.depth = 0
        self.cursor.empty_items = _EMPTY_ITEMS
        if not self.counted:
            self.cursor.cells = _UNBOUNDED
            return self.step.read(self.cursor)
        # Text of the default is copied into each item: eight bytes are as much as a cell.
        self.cursor.cells = cursor.cells - self.cursor.end // 8
        if self.cursor.cells < 0:
            return _TOO_MANY_CELLS
        code = self.step.read(self.cursor)
        cursor.cells = self.cursor.cells
        return code


@cython.cclass
class SkipBytes(ReadStep):
    """Bytes or a string that nobody asked for."""

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        code: cython.int = cursor.read_length()
        if code == _OK:
            cursor.pos += cursor.value
        return code


@cython.cclass
class SkipFixed(ReadStep):
    """Bytes of a fixed number that nobody asked for."""

    size: cython.Py_ssize_t

    def __init__(self, size: int) -> None:
        """Skip `size` bytes."""
        self.size = size

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        if self.size > cursor.end - cursor.pos:
            return _CUT_SHORT
        cursor.pos += self.size
        return _OK


@cython.cclass
class SkipNested(ReadStep):
    """A type that is only known later, because it holds itself."""

    step: ReadStep

    def set(self, step: ReadStep) -> None:
        """Say what it is."""
        self.step = step

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, cursor: ValueCursor) -> cython.int:
        return self.step.read(cursor)


# -- text


@cython.cfunc
@cython.exceptval(check=False)
def _is_utf8(cursor: ValueCursor, size: cython.Py_ssize_t) -> cython.bint:
    """Whether bytes at a cursor are UTF-8: no overlong form, no surrogate, nothing beyond U+10FFFF (RFC 3629)."""
    pos: cython.Py_ssize_t = cursor.pos
    end: cython.Py_ssize_t = pos + size
    eight: cython.ulonglong = 0
    first: cython.uint
    second: cython.uint
    more: cython.Py_ssize_t
    if cython.compiled:
        # Eight bytes at once, as long as they are ASCII; of the last ones those before the end count.
        while end - pos >= 8:
            memcpy(cython.address(eight), cython.address(cursor.data[pos]), 8)
            if eight & _TOP_BITS:
                break
            pos += 8
        if 0 < end - pos < 8 and cursor.size - pos >= 8:
            memcpy(cython.address(eight), cython.address(cursor.data[pos]), 8)
            if not eight & (_TOP_BITS >> (8 * (8 - (end - pos)))):
                return True
    while pos < end:
        first = cursor.data[pos]
        pos += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if more > end - pos:
            return False
        second = cursor.data[pos]
        if (
            (second & 0xC0) != 0x80
            or (first == 0xE0 and second < 0xA0)
            or (first == 0xED and second > 0x9F)
            or (first == 0xF0 and second < 0x90)
            or (first == 0xF4 and second > 0x8F)
        ):
            return False
        pos += 1
        more -= 1
        while more > 0:
            if (cursor.data[pos] & 0xC0) != 0x80:
                return False
            pos += 1
            more -= 1
    return True


# -- values


def decode_rows(
    step: ReadStep,
    root: Builder,
    data: object,
    offsets: object,
    first: int,
    count: int,
    skipped: int,
    valid: object,
    cells_per_byte: int,
    free_cells: int,
) -> tuple:
    """Read the values of some rows into the column of the root, a row each.

    Args:
        step: reads a value.
        root: its column; rows are appended.
        data: the bytes of all values.
        offsets: where each value begins and the last one ends, 64-bit; the caller has checked that they are in order
            and within the data.
        first: the first row.
        count: how many rows.
        skipped: bytes at the beginning of each value that are not part of it.
        valid: a byte for each row, 0 where there is no value; or None.
        cells_per_byte: how many cells the items of a value may have for each of its bytes. Items of few bytes may have
            many columns; also of older programs, where the reader's schema has gained some.
        free_cells: how many cells more all values may have together.

    Returns:
        A tuple for each row that is null because its value is not valid: row, code, position in the value; and how many
        of the free cells are left.
    """
    cursor: ValueCursor = ValueCursor(data)
    ends: cython.const[cython.longlong][::1] = offsets
    present: cython.const[cython.uchar][::1] = valid
    rows: cython.Py_ssize_t = count
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t = first
    prefix: cython.Py_ssize_t = skipped
    before: cython.Py_ssize_t
    per_byte: cython.Py_ssize_t = cells_per_byte
    free: cython.Py_ssize_t = free_cells
    code: cython.int
    bad: list = []
    root.reserve(root.length + rows)
    for row in range(at, at + rows):
        if valid is not None and not present[row]:
            root.append_null()
            continue
        before = root.length
        cursor.pos = ends[row] + prefix
        cursor.end = ends[row + 1]
        cursor.empty_items = _EMPTY_ITEMS
        cursor.cells = free + per_byte * (cursor.end - cursor.pos)
        cursor.depth = 0
        if cursor.pos > cursor.end:
            code = _CUT_SHORT
        else:
            code = step.read(cursor)
            if code == _OK and cursor.pos != cursor.end:
                code = _TRAILING
        if code != _OK:
            root.truncate(before)
            root.append_null()
            bad.append((row, code, cursor.pos - ends[row]))
        elif cursor.cells < free:
            # It took more than its own bytes allow.
            free = cursor.cells
    return bad, free


OK = 0
CUT_SHORT = 1
BAD_VARINT = 2
OUT_OF_RANGE = 3
BAD_BRANCH = 4
BAD_SYMBOL = 5
BAD_BOOLEAN = 6
BAD_LENGTH = 7
BAD_COUNT = 8
BAD_TEXT = 9
TRAILING = 10
NOT_READABLE = 11
BAD_DECIMAL = 12
TOO_DEEP = 13
TOO_LARGE = 14
TOO_MANY_CELLS = 15
