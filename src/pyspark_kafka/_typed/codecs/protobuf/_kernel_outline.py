"""The hot loop before messages are read: their fields are walked over, and faults that the reading library lacks found.

Cython in pure-Python mode, one source for two variants, which return the same. All input is hostile: a length is
compared with what remains, and the depth is bounded. Pure: no sockets, no clock.

Source: "Encoding" of protobuf.dev: tags, wire types, packed fields, groups; "Last One Wins" and "Oneof".
"""
# Names of C types stand in the annotations. Uncompiled they mean nothing: annotations must never be evaluated, and
# mypy has nothing to check.
# mypy: ignore-errors
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True

from __future__ import annotations

import cython

# What the walk says of a value. C constants are not visible to Python: callers use the names at the end of this file.
_GOOD = cython.declare(cython.int, 0)
_BAD = cython.declare(cython.int, 1)  # cut short, or no message of its schema
_TOO_DEEP = cython.declare(cython.int, 2)  # messages and groups nested beyond the limit
_UNMERGED = cython.declare(cython.int, 3)  # parts of it stand twice, and count once
_TOO_SHORT = cython.declare(cython.int, 4)  # it ends before its message begins

# As Google's parsers have it.
_MAX_DEPTH = cython.declare(cython.int, 100)
_IS_REPEATED = cython.declare(cython.int, 1)
_IS_MESSAGE = cython.declare(cython.int, 2)
_IS_TEXT = cython.declare(cython.int, 4)


@cython.final
@cython.cclass
class FieldWalk:
    """Walks over the fields of messages of one schema.

    A *node* is a message at a place of the schema; node 0 is the message of a value. A *field* is one of a node; field
    0 is any that is of no interest. Of the fields below a message within itself only form and text are checked: no node
    with other kinds of fields is below itself.

    For one thread at a time.
    """

    # The bytes of all values, which one refers to; and where they begin.
    data: cython.const[cython.uchar][::1]
    start: cython.pointer[cython.const[cython.uchar]]
    # By node: where small numbers have their fields and how many, where large ones have theirs and how many.
    dense_starts: cython.const[cython.int][::1]
    dense_sizes: cython.const[cython.int][::1]
    sparse_starts: cython.const[cython.int][::1]
    sparse_sizes: cython.const[cython.int][::1]
    dense: cython.const[cython.int][::1]
    sparse_numbers: cython.const[cython.int][::1]
    sparse: cython.const[cython.int][::1]
    # By field: its wire type, what it is, the node of its message or -1, its oneof or -1, the cells of an item, and
    # the bytes of an item where items may be packed, 1 for varints, else 0.
    wires: cython.const[cython.int][::1]
    kinds: cython.const[cython.int][::1]
    children: cython.const[cython.int][::1]
    oneofs: cython.const[cython.int][::1]
    widths: cython.const[cython.int][::1]
    packed: cython.const[cython.int][::1]
    # By field and by oneof: in which message it was seen last; by oneof also which member.
    seen: cython.longlong[::1]
    oneof_seen: cython.longlong[::1]
    oneof_members: cython.int[::1]
    messages: cython.longlong
    # What a step leaves: where it ended, a number, cells of items, whether something stands twice.
    pos: cython.Py_ssize_t
    number: cython.ulonglong
    cells: cython.longlong
    is_unmerged: cython.bint

    def __init__(
        self,
        nodes: tuple[object, object, object, object],
        numbers: tuple[object, object, object],
        fields: tuple[object, object, object, object, object, object],
        seen: tuple[object, object, object],
    ) -> None:
        """Walk over messages of a schema; `outline.build_walk` makes the arrays: of 32 bits, two of `seen` of 64."""
        self.dense_starts, self.dense_sizes, self.sparse_starts, self.sparse_sizes = nodes
        self.dense, self.sparse_numbers, self.sparse = numbers
        self.wires, self.kinds, self.children, self.oneofs, self.widths, self.packed = fields
        self.seen, self.oneof_seen, self.oneof_members = seen
        self.messages = 0
        self.pos = 0
        self.number = 0
        self.cells = 0
        self.is_unmerged = False

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _read_number(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, max_size: cython.int) -> cython.bint:
        """Read a varint of at most some bytes into `number`, and leave `pos` behind it. False if there is none."""
        found: cython.ulonglong = 0
        shift: cython.int = 0
        byte: cython.ulonglong
        while pos < end:
            byte = self.start[pos]
            pos += 1
            if shift < 63:
                found |= (byte & 0x7F) << shift
            else:
                found |= (byte & 1) << shift
            if byte < 0x80:
                self.number = found
                self.pos = pos
                return True
            shift += 7
            if shift == 7 * max_size:
                return False
        return False

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _read_tag(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Read a tag into `number`, and leave `pos` behind it. False if it has no field or more than 32 bits."""
        if pos < end and 8 <= self.start[pos] < 0x80:
            self.number = self.start[pos]
            self.pos = pos + 1
            return True
        return self._read_number(pos, end, 5) and 8 <= self.number <= 0xFFFFFFFF

    @cython.cfunc
    @cython.exceptval(check=False)
    def _skip(
        self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, tag: cython.ulonglong, depth: cython.int
    ) -> cython.int:
        """Leave `pos` behind what follows a tag; of a text or message `number` is its length."""
        wire: cython.int = cython.cast(cython.int, tag & 7)
        inner: cython.ulonglong
        code: cython.int
        if wire == 0:
            return _GOOD if self._read_number(pos, end, 10) else _BAD
        if wire == 2:
            if not self._read_number(pos, end, 10):
                return _BAD
            pos = self.pos
        elif wire == 1:
            self.number = 8
        elif wire == 5:
            self.number = 4
        elif wire == 3:
            if depth >= _MAX_DEPTH:
                return _TOO_DEEP
            while self._read_tag(pos, end):
                inner = self.number
                if inner & 7 == 4:
                    return _GOOD if inner >> 3 == tag >> 3 else _BAD
                code = self._skip(self.pos, end, inner, depth + 1)
                if code != _GOOD:
                    return code
                pos = self.pos
            return _BAD
        else:
            return _BAD
        if self.number > cython.cast(cython.ulonglong, end - pos):
            return _BAD
        self.pos = pos + cython.cast(cython.Py_ssize_t, self.number)
        return _GOOD

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _find(self, node: cython.Py_ssize_t, tag: cython.ulonglong) -> cython.Py_ssize_t:
        """Return the field of a tag, whatever its wire type; 0 if it is of no interest."""
        number: cython.longlong = cython.cast(cython.longlong, tag >> 3)
        low: cython.Py_ssize_t
        high: cython.Py_ssize_t
        middle: cython.Py_ssize_t
        if number < self.dense_sizes[node]:
            return self.dense[self.dense_starts[node] + number]
        low = self.sparse_starts[node]
        high = low + self.sparse_sizes[node]
        while low < high:
            middle = (low + high) // 2
            if self.sparse_numbers[middle] < number:
                low = middle + 1
            elif self.sparse_numbers[middle] > number:
                high = middle
            else:
                return self.sparse[middle]
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _walk(
        self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, node: cython.Py_ssize_t, depth: cython.int
    ) -> cython.int:
        """Return what is to say of a message, and count the cells of its items."""
        data: cython.pointer[cython.const[cython.uchar]] = self.start
        message: cython.longlong = self.messages
        tag: cython.ulonglong
        length: cython.Py_ssize_t
        field: cython.Py_ssize_t
        oneof: cython.Py_ssize_t
        size: cython.int
        code: cython.int
        wire: cython.int
        last: cython.Py_ssize_t
        first: cython.Py_ssize_t = self.dense_starts[node]
        small: cython.ulonglong = self.dense_sizes[node]
        self.messages += 1
        while pos < end:
            # What most fields are is read here, and the rest by steps of its own.
            tag = data[pos]
            if 8 <= tag < 0x80:
                pos += 1
            else:
                if not self._read_tag(pos, end):
                    return _BAD
                tag = self.number
                pos = self.pos
            wire = cython.cast(cython.int, tag & 7)
            length = 0
            if wire == 2 and pos < end and data[pos] < 0x80:
                length = data[pos]
                pos += 1
                if length > end - pos:
                    return _BAD
                pos += length
            elif wire == 0:
                # At most ten bytes.
                last = pos + 9 if end - pos > 9 else end - 1
                while pos < last and data[pos] >= 0x80:
                    pos += 1
                if pos > last or data[pos] >= 0x80:
                    return _BAD
                pos += 1
            elif wire in (1, 5):
                length = 8 if wire == 1 else 4
                if length > end - pos:
                    return _BAD
                pos += length
            else:
                code = self._skip(pos, end, tag, depth)
                if code != _GOOD:
                    return code
                pos = self.pos
                length = cython.cast(cython.Py_ssize_t, self.number)
            field = self.dense[first + (tag >> 3)] if tag >> 3 < small else self._find(node, tag)
            if field == 0:
                continue
            if wire != self.wires[field]:
                size = self.packed[field]
                if size != 0 and wire == 2:
                    if size == 1:
                        if length != 0 and data[pos - 1] >= 0x80:
                            return _BAD
                    elif length % size != 0:
                        return _BAD
                    self.cells += length // size
                continue
            if self.children[field] >= 0:
                if depth >= _MAX_DEPTH:
                    return _TOO_DEEP
                code = self._walk(pos - length, pos, self.children[field], depth + 1)
                if code != _GOOD:
                    return code
            if self.kinds[field] & _IS_TEXT and not self._is_utf8(pos - length, pos):
                return _BAD
            if self.kinds[field] & _IS_REPEATED:
                self.cells += self.widths[field]
                continue
            if self.kinds[field] & _IS_MESSAGE:
                if self.seen[field] == message:
                    self.is_unmerged = True
                self.seen[field] = message
            oneof = self.oneofs[field]
            if oneof >= 0:
                if self.oneof_seen[oneof] == message and self.oneof_members[oneof] != field:
                    self.is_unmerged = True
                self.oneof_seen[oneof] = message
                self.oneof_members[oneof] = cython.cast(cython.int, field)
        return _GOOD

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_utf8(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Whether bytes are UTF-8: no overlong form, no surrogate, nothing beyond U+10FFFF (RFC 3629)."""
        first: cython.uint
        second: cython.uint
        more: cython.Py_ssize_t
        while pos < end:
            first = self.start[pos]
            pos += 1
            if first < 0x80:
                continue
            if first < 0xC2 or first > 0xF4:
                return False
            more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
            if more > end - pos:
                return False
            second = self.start[pos]
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
                if (self.start[pos] & 0xC0) != 0x80:
                    return False
                pos += 1
                more -= 1
        return True

    def check(
        self, data: object, offsets: object, skipped: int, valid: object, verdicts: object, cells: object
    ) -> tuple[int, int]:
        """Say of each of some values what it is, and count the cells of its items.

        Args:
            data: the bytes of all values.
            offsets: where each value begins and the last one ends, 64-bit; the caller has checked that they are in
                order and within the data.
            skipped: bytes at the beginning of each value that are not part of it.
            valid: a byte for each value, 0 where there is none; or None.
            verdicts: a byte for each value, in which it is noted.
            cells: a 64-bit number for each value, in which they are noted.

        Returns:
            How many values are not good, and the cells of all.
        """
        ends: cython.const[cython.longlong][::1] = offsets
        present: cython.const[cython.uchar][::1] = valid
        codes: cython.uchar[::1] = verdicts
        counts: cython.longlong[::1] = cells
        before: cython.Py_ssize_t = skipped
        rows: cython.Py_ssize_t = len(verdicts)
        row: cython.Py_ssize_t
        code: cython.int
        others: cython.Py_ssize_t = 0
        total: cython.longlong = 0
        self._begin(data)
        for row in range(rows):
            if valid is not None and not present[row]:
                continue
            self.cells = 0
            self.is_unmerged = False
            if ends[row + 1] - ends[row] < before:
                code = _TOO_SHORT
            else:
                code = self._walk(ends[row] + before, ends[row + 1], 0, 0)
            if code == _GOOD and self.is_unmerged:
                code = _UNMERGED
            if code != _GOOD:
                codes[row] = cython.cast(cython.uchar, code)
                others += 1
            counts[row] = self.cells
            total += self.cells
        return others, total

    def merged(self, value: bytes) -> bytes:
        """Return a value with each part once, of which `check` said that it is unmerged.

        The parts of a message that stands twice are together in one, and of a oneof the last member is left. Other
        fields keep their order.
        """
        return self._merged(value, 0)

    @cython.cfunc
    def _begin(self, data: object) -> cython.void:
        """Look at other bytes."""
        self.data = data
        if not cython.compiled:
            self.start = data
        elif len(data):
            self.start = cython.address(self.data[0])

    @cython.cfunc
    def _merged(self, value: bytes, node: cython.Py_ssize_t) -> bytes:
        pos: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = len(value)
        parts: list = []
        # By field: the parts of a message, or the last value of a member of a oneof with its tag.
        single: dict = {}
        members: dict = {}
        kept: cython.Py_ssize_t = 0
        begin: cython.Py_ssize_t
        field: cython.Py_ssize_t
        length: cython.Py_ssize_t
        tag: cython.ulonglong
        self._begin(value)
        while pos < end:
            begin = pos
            if not self._read_tag(pos, end):
                break
            tag = self.number
            if self._skip(self.pos, end, tag, 0) != _GOOD:
                break
            pos = self.pos
            length = cython.cast(cython.Py_ssize_t, self.number)
            field = self._find(node, tag)
            if (
                field == 0
                or cython.cast(cython.int, tag & 7) != self.wires[field]
                or (self.oneofs[field] < 0 and not self.kinds[field] & _IS_MESSAGE)
                or (self.kinds[field] & _IS_REPEATED and self.children[field] < 0)
            ):
                continue
            if begin > kept:
                parts.append(value[kept:begin])
            kept = pos
            if self.kinds[field] & _IS_REPEATED:
                parts.append(_delimited(tag, self._inner(value[pos - length : pos], field)))
                self._begin(value)
                continue
            if self.oneofs[field] >= 0:
                before = members.get(self.oneofs[field], field)
                if before != field:
                    single.pop(before, None)
                members[self.oneofs[field]] = field
            if self.kinds[field] & _IS_MESSAGE:
                single.setdefault(field, (tag, []))[1].append(value[pos - length : pos])
            else:
                single[field] = (tag, value[begin:pos])
        parts.append(value[kept:end])
        for place, found in single.items():
            if isinstance(found[1], list):
                parts.append(_delimited(found[0], self._inner(b"".join(found[1]), place)))
            else:
                parts.append(found[1])
        return b"".join(parts)

    @cython.cfunc
    def _inner(self, value: bytes, field: cython.Py_ssize_t) -> bytes:
        child: cython.Py_ssize_t = self.children[field]
        return value if child < 0 else self._merged(value, child)


@cython.cfunc
def _delimited(tag: cython.ulonglong, value: bytes) -> bytes:
    out: bytearray = bytearray()
    _put_varint(tag, out)
    _put_varint(len(value), out)
    return bytes(out) + value


@cython.cfunc
def _put_varint(number: cython.ulonglong, out: bytearray) -> cython.void:
    while number >= 0x80:
        out.append(cython.cast(cython.uchar, (number & 0x7F) | 0x80))
        number >>= 7
    out.append(cython.cast(cython.uchar, number))


GOOD = _GOOD
BAD = _BAD
TOO_DEEP = _TOO_DEEP
UNMERGED = _UNMERGED
TOO_SHORT = _TOO_SHORT
MAX_DEPTH = _MAX_DEPTH
