"""The hot loops of encoding: rows to records, murmur2, counting sort. Cython in pure-Python mode, as _kernel_read.py.

Here live byte loops only: no Arrow, no errors with text, no I/O. Arrow buffers and row numbers were checked by the
caller; what is written is bounded by the capacity that the caller states.
"""
# Names of C types stand in the annotations. Uncompiled they mean nothing: annotations must never be evaluated, and
# mypy has nothing to check.
# mypy: ignore-errors

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

# Free bytes that the output has beyond its stated capacity, so that short copies may run in whole chunks.
SLACK = 64
_CHUNK = cython.declare(cython.Py_ssize_t, 32)
_SMALL_COPY = cython.declare(cython.Py_ssize_t, 256)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    target: cython.p_uchar,
    target_pos: cython.Py_ssize_t,
    src: cython.p_const_uchar,
    pos: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    src_length: cython.Py_ssize_t,
) -> cython.void:
    """Copy `length` bytes. Short runs go in whole chunks, which the target's SLACK allows and the source may."""
    done: cython.Py_ssize_t
    if cython.compiled:
        if length <= _SMALL_COPY and pos + length + _CHUNK <= src_length:
            done = 0
            while done < length:
                memcpy(target + target_pos + done, src + pos + done, 32)
                done += 32
        else:
            memcpy(target + target_pos, src + pos, length)
    else:
        target[target_pos : target_pos + length] = src[pos : pos + length]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.Py_ssize_t:
    raw: cython.ulonglong = _zigzag(value)
    size: cython.Py_ssize_t = 1
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zigzag(value: cython.longlong) -> cython.ulonglong:
    raw: cython.ulonglong
    if cython.compiled:
        raw = (cython.cast(cython.ulonglong, value) << 1) ^ cython.cast(cython.ulonglong, value >> 63)
    else:
        raw = ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF
    return raw


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(out: cython.p_uchar, pos: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    raw: cython.ulonglong = _zigzag(value)
    while raw >= 0x80:
        out[pos] = (raw & 0x7F) | 0x80
        raw >>= 7
        pos += 1
    out[pos] = raw
    return pos + 1


@cython.cclass
class BytesColumn:
    """A nullable column of byte strings: Arrow's offsets (32 or 64 bits), data and validity bitmap.

    `first` is the array's own offset into those buffers. The offsets must have been validated: they are trusted here.
    """

    length: cython.Py_ssize_t
    first: cython.Py_ssize_t
    wide: cython.bint
    nullable: cython.bint
    data_length: cython.Py_ssize_t
    narrow_offsets: cython.const[cython.int][::1]
    wide_offsets: cython.const[cython.longlong][::1]
    data: cython.const[cython.uchar][::1]
    validity: cython.const[cython.uchar][::1]

    def __init__(
        self, length: int, first: int, offsets: object, wide: bool, data: object, data_length: int, validity: object
    ) -> None:
        self.length = length
        self.first = first
        self.wide = wide
        if wide:
            self.wide_offsets = offsets
        else:
            self.narrow_offsets = offsets
        self.data = data
        self.data_length = data_length
        self.nullable = validity is not None
        if validity is not None:
            self.validity = validity

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def start_of(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        if self.wide:
            return self.wide_offsets[self.first + row]
        return self.narrow_offsets[self.first + row]

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def size_of(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return the length of a row's bytes, or -1 for null."""
        at: cython.Py_ssize_t = self.first + row
        if self.nullable and not (self.validity[at >> 3] >> (at & 7)) & 1:
            return -1
        if self.wide:
            return self.wide_offsets[at + 1] - self.wide_offsets[at]
        return self.narrow_offsets[at + 1] - self.narrow_offsets[at]

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def put(
        self, out: cython.p_uchar, pos: cython.Py_ssize_t, row: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Write the length as a varint (-1 for null) and the bytes of a row."""
        data: cython.p_const_uchar = cython.NULL
        pos = _put_varint(out, pos, size)
        if size <= 0:
            return pos
        if cython.compiled:  # noqa: SIM108 - the two sides differ in C type
            data = cython.address(self.data[0])
        else:
            data = self.data
        _copy(out, pos, data, self.start_of(row), size, self.data_length)
        return pos + size


@cython.cclass
class RowEncoder:
    """Writes rows of Arrow columns as the records section of one batch.

    `header_rows` is the list column as a BytesColumn without data: its offsets count headers. Times are milliseconds,
    one a row or `constant_time`.
    """

    key: BytesColumn
    value: BytesColumn
    header_rows: BytesColumn
    header_keys: BytesColumn
    header_values: BytesColumn
    has_key: cython.bint
    has_value: cython.bint
    has_headers: cython.bint
    has_times: cython.bint
    times: cython.const[cython.longlong][::1]
    time_first: cython.Py_ssize_t
    constant_time: cython.longlong
    rows: cython.Py_ssize_t
    used: cython.Py_ssize_t
    needed: cython.Py_ssize_t
    base_time: cython.longlong
    max_time: cython.longlong

    def __init__(self, key: object, value: object) -> None:
        self.has_key = key is not None
        self.has_value = value is not None
        self.has_headers = self.has_times = False
        if key is not None:
            self.key = key
        if value is not None:
            self.value = value
        self.constant_time = 0
        self.rows = self.used = self.needed = 0
        self.base_time = self.max_time = 0

    def set_headers(self, rows: BytesColumn, keys: BytesColumn, values: BytesColumn) -> None:
        self.header_rows = rows
        self.header_keys = keys
        self.header_values = values
        self.has_headers = True

    def set_times(self, times: object, first: int) -> None:
        self.times = times
        self.time_first = first
        self.has_times = True

    def set_constant_time(self, time: cython.longlong) -> None:
        self.constant_time = time
        self.has_times = False

    def result(self) -> tuple[int, int, int, int, int]:
        """Rows and bytes written, base and maximum timestamp, bytes that the row that did not fit needs."""
        return (self.rows, self.used, self.base_time, self.max_time, self.needed)

    def write(
        self, out: cython.uchar[::1], capacity: cython.Py_ssize_t, indices: object, start: int, stop: int
    ) -> None:
        """Write rows `indices[start:stop]` (or start to stop themselves, without indices) while they fit."""
        view: cython.const[cython.int][::1]
        index: cython.p_const_int = cython.NULL
        first: cython.Py_ssize_t = start
        last: cython.Py_ssize_t = stop
        buffer: cython.p_uchar = cython.NULL
        indexed: cython.bint = indices is not None
        if cython.compiled:
            buffer = cython.address(out[0])
            if indexed:
                view = indices
                if first < last:
                    index = cython.address(view[0])
        else:
            buffer = out
            if indexed:
                index = indices
        with cython.nogil:
            self._write(buffer, capacity, index, indexed, first, last)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def _write(
        self,
        out: cython.p_uchar,
        capacity: cython.Py_ssize_t,
        index: cython.p_const_int,
        indexed: cython.bint,
        start: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
    ) -> cython.void:
        pos: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        row: cython.Py_ssize_t = 0
        rows: cython.Py_ssize_t = 0
        key_size: cython.Py_ssize_t = -1
        value_size: cython.Py_ssize_t = -1
        header: cython.Py_ssize_t
        header_start: cython.Py_ssize_t = 0
        headers: cython.Py_ssize_t = 0
        header_size: cython.Py_ssize_t
        body: cython.Py_ssize_t
        time: cython.longlong = self.constant_time
        base_time: cython.longlong = 0
        max_time: cython.longlong = 0
        time_delta: cython.longlong
        has_key: cython.bint = self.has_key
        has_value: cython.bint = self.has_value
        has_headers: cython.bint = self.has_headers
        has_times: cython.bint = self.has_times
        self.needed = 0
        for at in range(start, stop):
            row = index[at] if indexed else at
            if has_times:
                time = self.times[self.time_first + row]
            if rows == 0:
                base_time = max_time = time
            time_delta = _difference(time, base_time)
            if has_key:
                key_size = self.key.size_of(row)
            if has_value:
                value_size = self.value.size_of(row)
            # attributes + four varints + bytes; a null has length -1, which takes one byte
            body = (
                1
                + _varint_size(time_delta)
                + _varint_size(rows)
                + _varint_size(key_size)
                + max(key_size, 0)
                + _varint_size(value_size)
                + max(value_size, 0)
            )
            if has_headers:
                headers = self.header_rows.size_of(row)
                headers = max(headers, 0)
                header_start = self.header_rows.start_of(row)
                for header in range(header_start, header_start + headers):
                    header_size = self.header_keys.size_of(header)
                    body += _varint_size(header_size) + header_size
                    header_size = self.header_values.size_of(header)
                    body += _varint_size(header_size) + max(header_size, 0)
            body += _varint_size(headers)
            if body > 0x7FFF_FFFF or body + _varint_size(body) > capacity - pos:
                self.needed = body + 5
                break
            pos = _put_varint(out, pos, body)
            out[pos] = 0
            pos = _put_varint(out, pos + 1, time_delta)
            pos = _put_varint(out, pos, rows)
            if has_key:
                pos = self.key.put(out, pos, row, key_size)
            else:
                out[pos] = 1
                pos += 1
            if has_value:
                pos = self.value.put(out, pos, row, value_size)
            else:
                out[pos] = 1
                pos += 1
            pos = _put_varint(out, pos, headers)
            for header in range(header_start, header_start + headers):
                pos = self.header_keys.put(out, pos, header, self.header_keys.size_of(header))
                pos = self.header_values.put(out, pos, header, self.header_values.size_of(header))
            max_time = max(max_time, time)
            rows += 1
        self.rows = rows
        self.used = pos
        self.base_time = base_time
        self.max_time = max_time


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _difference(left: cython.longlong, right: cython.longlong) -> cython.longlong:
    """Subtract modulo 2^64, as the reader adds: signed overflow is undefined in C."""
    result: cython.longlong
    if cython.compiled:
        result = cython.cast(
            cython.longlong, cython.cast(cython.ulonglong, left) - cython.cast(cython.ulonglong, right)
        )
    else:
        result = (left - right + 0x8000_0000_0000_0000) % 0x1_0000_0000_0000_0000 - 0x8000_0000_0000_0000
    return result


# Literals above 2^31 - 1 would be Python objects in the compiled variant.
_UINT = cython.declare(cython.uint, 0xFFFF_FFFF)
_MURMUR_SEED = cython.declare(cython.uint, 0x9747_B28C)
_MURMUR_FACTOR = cython.declare(cython.uint, 0x5BD1_E995)
_CRC_TOP_BIT = cython.declare(cython.uint, 0x8000_0000)
_CRC_POLYNOMIAL = cython.declare(cython.uint, 0x82F6_3B78)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.cdivision(True)
def _murmur2(data: cython.p_const_uchar, pos: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.uint:
    """Hash as Java's `org.apache.kafka.common.utils.Utils.murmur2` does."""
    mixed: cython.uint
    hashed: cython.uint = (_MURMUR_SEED ^ cython.cast(cython.uint, length)) & _UINT
    at: cython.Py_ssize_t = pos
    left: cython.Py_ssize_t = length
    while left >= 4:
        mixed = (
            data[at]
            | (cython.cast(cython.uint, data[at + 1]) << 8)
            | (cython.cast(cython.uint, data[at + 2]) << 16)
            | (cython.cast(cython.uint, data[at + 3]) << 24)
        )
        mixed = (mixed * _MURMUR_FACTOR) & _UINT
        mixed ^= mixed >> 24
        mixed = (mixed * _MURMUR_FACTOR) & _UINT
        hashed = ((hashed * _MURMUR_FACTOR) & _UINT) ^ mixed
        at += 4
        left -= 4
    if left >= 3:
        hashed ^= cython.cast(cython.uint, data[at + 2]) << 16
    if left >= 2:
        hashed ^= cython.cast(cython.uint, data[at + 1]) << 8
    if left >= 1:
        hashed ^= data[at]
        hashed = (hashed * _MURMUR_FACTOR) & _UINT
    hashed ^= hashed >> 13
    hashed = (hashed * _MURMUR_FACTOR) & _UINT
    hashed ^= hashed >> 15
    return hashed


@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
@cython.cdivision(True)
def murmur2_partitions(keys: BytesColumn, partition_count: cython.uint, out: cython.int[::1]) -> None:
    """Store for every key its partition, `toPositive(murmur2(key)) % count`; -1 for a null key."""
    data: cython.p_const_uchar = cython.NULL
    row: cython.Py_ssize_t
    size: cython.Py_ssize_t
    if cython.compiled:
        if keys.data_length > 0:
            data = cython.address(keys.data[0])
    else:
        data = keys.data
    with cython.nogil:
        for row in range(keys.length):
            size = keys.size_of(row)
            if size < 0:
                out[row] = -1
            else:
                out[row] = (_murmur2(data, keys.start_of(row), size) & 0x7FFF_FFFF) % partition_count


@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
def group_by_partition(
    partitions: cython.const[cython.int][::1],
    length: cython.Py_ssize_t,
    partition_count: cython.Py_ssize_t,
    indices: cython.int[::1],
    bounds: cython.longlong[::1],
    cursors: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Sort row numbers by partition, stably, by counting. Return the first row whose partition is not in range, or -1.

    `bounds` (count + 1, zeroed) receives the half-open ranges of `indices`; `cursors` (count) is working space.
    """
    row: cython.Py_ssize_t
    number: cython.int
    at: cython.Py_ssize_t
    for row in range(length):
        number = partitions[row]
        if number < 0 or number >= partition_count:
            return row
        bounds[number + 1] += 1
    for at in range(partition_count):
        cursors[at] = bounds[at]
        bounds[at + 1] += bounds[at]
    for row in range(length):
        number = partitions[row]
        indices[cursors[number]] = row
        cursors[number] += 1
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _multiply_mod(left: cython.uint, right: cython.uint) -> cython.uint:
    """Multiply two polynomials modulo CRC-32C's, in the reflected order of bits: bit 31 is x^0."""
    product: cython.uint = 0
    bit: cython.uint = _CRC_TOP_BIT
    while bit != 0:
        if left & bit:
            product ^= right
        bit >>= 1
        right = (right >> 1) ^ _CRC_POLYNOMIAL if right & 1 else right >> 1
    return product


def shift_crc(crc: cython.uint, length: cython.ulonglong) -> int:
    """Multiply a difference of CRC-32C values by x^(8 * length): what it becomes `length` bytes later."""
    power: cython.uint = 0x0080_0000  # x^8: one byte
    while length:
        if length & 1:
            crc = _multiply_mod(power, crc)
        power = _multiply_mod(power, power)
        length >>= 1
    return crc
