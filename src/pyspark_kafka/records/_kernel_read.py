"""The hot loop of decoding: records to column buffers. Cython in pure-Python mode, one source for two variants.

Uncompiled it is the slow and correct reference; compiled it is the fast one. Both return the same result, or report the
same status. Here live byte loops only: no Arrow, no errors with text, no I/O. Callers own the buffers and the messages.

All input is hostile: a length is compared with what remains before it is used, and positions are sums of values that
were checked so, hence cannot overflow.
"""
# Names of C types stand in the annotations. Uncompiled they mean nothing: annotations must never be evaluated, and
# mypy has nothing to check.
# mypy: ignore-errors

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

# C constants are not visible to Python: callers use the same names without the underscore, at the end of this file.
# How SectionReader.read ended.
_DONE = cython.declare(cython.int, 0)  # all records of the section were read
_LIMIT = cython.declare(cython.int, 1)  # max_rows or max_bytes reached; call again with an emptied piece
_GROW_KEY = cython.declare(cython.int, 2)  # the next record needs SectionReader.needed bytes of free key data
_GROW_VALUE = cython.declare(cython.int, 3)
_GROW_HEADERS = cython.declare(cython.int, 4)  # ... header slots and header data bytes
_CORRUPT = cython.declare(cython.int, 5)  # SectionReader.problem says how
_TIME_RANGE = cython.declare(cython.int, 6)  # a visible record's timestamp does not fit in microseconds
_OTHER = cython.declare(cython.int, 7)  # SectionReader.read_batches came to the end, or to what it leaves to its caller

# What a CORRUPT status can mean: SectionReader.problem.
_BAD_RECORD_LENGTH = cython.declare(cython.int, 1)
_BAD_VARINT = cython.declare(cython.int, 2)
_BAD_OFFSET_DELTA = cython.declare(cython.int, 3)
_BAD_KEY_LENGTH = cython.declare(cython.int, 4)
_BAD_VALUE_LENGTH = cython.declare(cython.int, 5)
_BAD_HEADER_COUNT = cython.declare(cython.int, 6)
_BAD_HEADER = cython.declare(cython.int, 7)
_BAD_RECORD_END = cython.declare(cython.int, 8)
_TRAILING_BYTES = cython.declare(cython.int, 9)

# Free bytes that every data buffer has beyond its stated capacity, so that short copies may run in whole chunks.
SLACK = 64
_CHUNK = cython.declare(cython.Py_ssize_t, 32)
_SMALL_COPY = cython.declare(cython.Py_ssize_t, 256)

# Of a batch's header, and of what it may hold; see batch_header.py.
_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 61)
_LENGTH_OVERHEAD = cython.declare(cython.Py_ssize_t, 12)
_MIN_RECORD_BYTES = cython.declare(cython.Py_ssize_t, 7)
_CODEC_MASK = cython.declare(cython.int, 0x07)
_LOG_APPEND_TIME = cython.declare(cython.int, 0x08)
_CONTROL = cython.declare(cython.int, 0x20)
_MAX_OFFSET = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
_MAX_TIME_MS = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF // 1000)
# Sums with times beyond this one could overflow.
_MAX_SUMMED_TIME = cython.declare(cython.longlong, 0x3FFFFFFFFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int32(src: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.longlong:
    """Read a signed big-endian integer; four bytes must be there."""
    value: cython.longlong = src[at]
    if value >= 128:
        value -= 256
    return ((value * 256 + src[at + 1]) * 256 + src[at + 2]) * 256 + src[at + 3]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int64(src: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.longlong:
    """Read a signed big-endian integer; eight bytes must be there."""
    value: cython.longlong = _int32(src, at)
    return (((value * 256 + src[at + 4]) * 256 + src[at + 5]) * 256 + src[at + 6]) * 256 + src[at + 7]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _long_varint(
    src: cython.p_const_uchar, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, max_length: cython.int
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """Read a zig-zag varint of at most `max_length` bytes; position -1 means that there is none."""
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    byte: cython.ulonglong
    while pos < end and shift < 7 * max_length:
        byte = src[pos]
        pos += 1
        # The tenth byte of a varlong has one bit left, the fifth of a varint four: more would be cut off silently.
        if shift == 63 and byte > 1:
            break
        if shift == 28 and max_length == 5 and byte > 15:
            break
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (cython.cast(cython.longlong, raw >> 1) ^ -cython.cast(cython.longlong, raw & 1), pos)
        shift += 7
    return (0, -1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    src: cython.p_const_uchar, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, max_length: cython.int
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """Read a zig-zag varint, with fast paths for one and two bytes; position -1 means that there is none."""
    first: cython.uint
    second: cython.uint
    raw: cython.uint
    if pos < end:
        first = src[pos]
        if first < 0x80:
            return ((first >> 1) ^ -cython.cast(cython.longlong, first & 1), pos + 1)
        if pos + 1 < end:
            second = src[pos + 1]
            if second < 0x80:
                raw = (first & 0x7F) | (second << 7)
                return ((raw >> 1) ^ -cython.cast(cython.longlong, raw & 1), pos + 2)
    return _long_varint(src, pos, end, max_length)


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


@cython.cclass
class PieceColumns:
    """The column buffers of one piece and how far they are filled.

    A column whose buffers were not given is parsed and checked, but not stored. Capacities of data buffers leave SLACK
    bytes free behind them. Validity bitmaps start as all ones: a null clears its bit.
    """

    rows: cython.Py_ssize_t
    row_capacity: cython.Py_ssize_t
    key_used: cython.Py_ssize_t
    key_capacity: cython.Py_ssize_t
    key_nulls: cython.Py_ssize_t
    value_used: cython.Py_ssize_t
    value_capacity: cython.Py_ssize_t
    value_nulls: cython.Py_ssize_t
    header_rows_null: cython.Py_ssize_t
    headers: cython.Py_ssize_t
    header_capacity: cython.Py_ssize_t
    header_key_used: cython.Py_ssize_t
    header_value_used: cython.Py_ssize_t
    header_data_capacity: cython.Py_ssize_t
    header_value_nulls: cython.Py_ssize_t
    header_keys_ascii: cython.bint
    has_offset: cython.bint
    has_time: cython.bint
    has_type: cython.bint
    has_key: cython.bint
    has_value: cython.bint
    has_headers: cython.bint
    offset: cython.longlong[::1]
    time: cython.longlong[::1]
    time_type: cython.int[::1]
    key_ends: cython.int[::1]
    key_data: cython.uchar[::1]
    key_valid: cython.uchar[::1]
    value_ends: cython.int[::1]
    value_data: cython.uchar[::1]
    value_valid: cython.uchar[::1]
    header_row_ends: cython.int[::1]
    header_row_valid: cython.uchar[::1]
    header_key_ends: cython.int[::1]
    header_key_data: cython.uchar[::1]
    header_value_ends: cython.int[::1]
    header_value_data: cython.uchar[::1]
    header_value_valid: cython.uchar[::1]

    def __init__(self, row_capacity: int) -> None:
        self.row_capacity = row_capacity
        self.rows = self.key_used = self.key_capacity = self.key_nulls = 0
        self.value_used = self.value_capacity = self.value_nulls = 0
        self.header_rows_null = self.headers = self.header_capacity = 0
        self.header_key_used = self.header_value_used = self.header_data_capacity = self.header_value_nulls = 0
        self.header_keys_ascii = True
        self.has_offset = self.has_time = self.has_type = False
        self.has_key = self.has_value = self.has_headers = False

    def set_offset(self, offset: object) -> None:
        self.offset = offset
        self.has_offset = True

    def set_time(self, time: object) -> None:
        self.time = time
        self.has_time = True

    def set_type(self, time_type: object) -> None:
        self.time_type = time_type
        self.has_type = True

    def set_key(self, ends: object, data: object, valid: object, capacity: int) -> None:
        self.key_ends = ends
        self.key_data = data
        self.key_valid = valid
        self.key_capacity = capacity
        self.has_key = True

    def set_value(self, ends: object, data: object, valid: object, capacity: int) -> None:
        self.value_ends = ends
        self.value_data = data
        self.value_valid = valid
        self.value_capacity = capacity
        self.has_value = True

    def set_header_rows(self, ends: object, valid: object) -> None:
        self.header_row_ends = ends
        self.header_row_valid = valid
        self.has_headers = True

    def set_headers(
        self,
        key_ends: object,
        key_data: object,
        value_ends: object,
        value_data: object,
        value_valid: object,
        capacity: int,
        data_capacity: int,
    ) -> None:
        self.header_key_ends = key_ends
        self.header_key_data = key_data
        self.header_value_ends = value_ends
        self.header_value_data = value_data
        self.header_value_valid = value_valid
        self.header_capacity = capacity
        self.header_data_capacity = data_capacity

    def counts(self) -> tuple[int, int, int, int, int, int]:
        """Rows; key bytes and nulls; value bytes and nulls; rows without headers."""
        return (
            self.rows,
            self.key_used,
            self.key_nulls,
            self.value_used,
            self.value_nulls,
            self.header_rows_null,
        )

    def header_counts(self) -> tuple[int, int, int, int, bool]:
        """Headers; their key bytes, value bytes and null values; whether all key bytes are ASCII."""
        return (
            self.headers,
            self.header_key_used,
            self.header_value_used,
            self.header_value_nulls,
            bool(self.header_keys_ascii),
        )


@cython.cclass
class SectionReader:
    """Reads the records of one batch into pieces; resumable, since a batch may be larger than a piece.

    `set_source` takes the bytes, `open` a batch's section in them, `read` appends visible records to a piece.
    `read_batches` does both for one batch after the other, as long as they need nothing else.
    """

    source: cython.const[cython.uchar][::1]
    source_bytes: object
    source_length: cython.Py_ssize_t
    pos: cython.Py_ssize_t
    end: cython.Py_ssize_t
    remaining: cython.Py_ssize_t
    index: cython.Py_ssize_t
    base_offset: cython.longlong
    last_delta: cython.longlong
    previous_delta: cython.longlong
    low_delta: cython.longlong
    high_delta: cython.longlong
    base_time: cython.longlong
    time_low: cython.longlong
    time_high: cython.longlong
    log_append: cython.bint
    needed: cython.Py_ssize_t
    problem: cython.int
    header_staged: cython.Py_ssize_t
    header_key_staged: cython.Py_ssize_t
    header_value_staged: cython.Py_ssize_t
    header_nulls_staged: cython.Py_ssize_t

    def set_source(self, source: object, length: int) -> None:
        self.source = source
        self.source_bytes = source
        self.source_length = length

    @cython.ccall
    def open(
        self,
        pos: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        base_offset: cython.longlong,
        last_delta: cython.longlong,
        low_delta: cython.longlong,
        high_delta: cython.longlong,
        base_time: cython.longlong,
        time_low: cython.longlong,
        time_high: cython.longlong,
        log_append: cython.bint,
    ) -> object:
        """Begin a section: bytes [pos, end) of the source, `count` records.

        Records with delta in [low_delta, high_delta) are visible. `base_time` is the batch's base timestamp, or its
        maximum if `log_append`. Time deltas of visible records must lie in [time_low, time_high].
        """
        self.pos = pos
        self.end = end
        self.remaining = count
        self.index = 0
        self.base_offset = base_offset
        self.last_delta = last_delta
        self.previous_delta = -1
        self.low_delta = low_delta
        self.high_delta = high_delta
        self.base_time = base_time
        self.time_low = time_low
        self.time_high = time_high
        self.log_append = log_append
        self.needed = 0
        self.problem = 0

    def where(self) -> tuple[int, int, int, int, int]:
        """Problem; index of the record; delta of the last good or the offending record; position; bytes needed."""
        return (self.problem, self.index, self.previous_delta, self.pos, self.needed)

    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def read(self, out: PieceColumns, max_rows: cython.Py_ssize_t, max_bytes: cython.Py_ssize_t) -> int:
        """Append visible records until the section or the piece ends; return a status."""
        status: cython.int
        with cython.nogil:
            status = self._read(out, max_rows, max_bytes)
        return status

    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def read_batches(
        self,
        out: PieceColumns,
        at: cython.Py_ssize_t,
        floor: cython.longlong,
        start_offset: cython.longlong,
        stop_offset: cython.longlong,
        max_rows: cython.Py_ssize_t,
        max_bytes: cython.Py_ssize_t,
        with_time: cython.bint,
        passes_control: cython.bint,
        crc32c: object,
    ) -> tuple[int, int, int]:
        """Read uncompressed batches one after the other: one call, however small they are.

        The source is fetched bytes, in which no transaction was aborted from here on. A batch that is malformed, cut
        off, compressed, or at `stop_offset` is left to the caller, who knows what to do, and the text of errors.

        Args:
            out: the piece.
            at: where a batch begins.
            floor: the last offset of the batch before it; -1 if there is none.
            start_offset: the first offset wanted.
            stop_offset: the first offset not wanted.
            max_rows: of the piece.
            max_bytes: of the piece.
            with_time: whether timestamps are stored.
            passes_control: whether control batches are passed over; others are left to the caller.
            crc32c: returns the checksum of bytes; None leaves checksums unverified.

        Returns:
            OTHER, or the status of a batch that was not read whole, which is open; where the next, or that, batch
            begins; the last offset of the one before it.
        """
        src: cython.p_const_uchar = cython.NULL
        if self.source_length < _HEADER_BYTES:
            return (_OTHER, at, floor)
        if cython.compiled:  # noqa: SIM108 - Cython decides it when it compiles
            src = cython.address(self.source[0])
        else:
            src = self.source
        total: cython.Py_ssize_t = self.source_length
        status: cython.int
        attributes: cython.int
        end: cython.Py_ssize_t
        length: cython.longlong
        body: cython.longlong
        base: cython.longlong
        last_delta: cython.longlong
        base_time: cython.longlong
        count: cython.longlong
        low: cython.longlong
        high: cython.longlong
        time_low: cython.longlong
        time_high: cython.longlong
        log_append: cython.bint
        while total - at >= _HEADER_BYTES:
            base = _int64(src, at)
            length = _int32(src, at + 8)
            body = length + _LENGTH_OVERHEAD - _HEADER_BYTES
            if src[at + 16] != 2 or body < 0 or length > total - at - _LENGTH_OVERHEAD:
                break
            if base < 0 or base <= floor or base >= stop_offset:
                break
            attributes = src[at + 22]
            last_delta = _int32(src, at + 23)
            count = _int32(src, at + 57)
            if attributes & _CONTROL and not passes_control:
                break
            if attributes & _CODEC_MASK or last_delta < 0 or last_delta >= _MAX_OFFSET - base:
                break
            if count < 0 or count > last_delta + 1 or (count == 0) != (body == 0) or count * _MIN_RECORD_BYTES > body:
                break
            end = at + _LENGTH_OVERHEAD + length
            if crc32c is not None and crc32c(self.source_bytes[at + 21 : end]) != _int32(src, at + 17) & 0xFFFFFFFF:
                break
            if count > 0 and not attributes & _CONTROL and base + last_delta >= start_offset:
                log_append = (attributes & _LOG_APPEND_TIME) != 0
                base_time = _int64(src, at + 35) if log_append else _int64(src, at + 27)
                if base_time < -_MAX_SUMMED_TIME or base_time > _MAX_SUMMED_TIME:
                    break
                low = start_offset - base if base < start_offset else 0
                high = stop_offset - base if base + last_delta >= stop_offset else last_delta + 1
                time_low, time_high = -_MAX_OFFSET - 1, _MAX_OFFSET
                if with_time and log_append:
                    if base_time < -_MAX_TIME_MS or base_time > _MAX_TIME_MS:
                        time_low, time_high = 1, 0
                elif with_time:
                    time_low, time_high = -_MAX_TIME_MS - base_time, _MAX_TIME_MS - base_time
                self.open(
                    at + _HEADER_BYTES,
                    end,
                    count,
                    base,
                    last_delta,
                    low,
                    high,
                    base_time,
                    time_low,
                    time_high,
                    log_append,
                )
                with cython.nogil:
                    status = self._read(out, max_rows, max_bytes)
                if status != _DONE:
                    return (status, at, floor)
            floor = base + last_delta
            at = end
        return (_OTHER, at, floor)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def _read(self, out: PieceColumns, max_rows: cython.Py_ssize_t, max_bytes: cython.Py_ssize_t) -> cython.int:
        src: cython.p_const_uchar = cython.NULL
        offset: cython.p_longlong = cython.NULL
        time: cython.p_longlong = cython.NULL
        time_type: cython.p_int = cython.NULL
        key_ends: cython.p_int = cython.NULL
        key_data: cython.p_uchar = cython.NULL
        key_valid: cython.p_uchar = cython.NULL
        value_ends: cython.p_int = cython.NULL
        value_data: cython.p_uchar = cython.NULL
        value_valid: cython.p_uchar = cython.NULL
        if cython.compiled:
            if self.source_length > 0:
                src = cython.address(self.source[0])
            if out.has_offset:
                offset = cython.address(out.offset[0])
            if out.has_time:
                time = cython.address(out.time[0])
            if out.has_type:
                time_type = cython.address(out.time_type[0])
            if out.has_key:
                key_ends = cython.address(out.key_ends[0])
                key_data = cython.address(out.key_data[0])
                key_valid = cython.address(out.key_valid[0])
            if out.has_value:
                value_ends = cython.address(out.value_ends[0])
                value_data = cython.address(out.value_data[0])
                value_valid = cython.address(out.value_valid[0])
        else:
            src = self.source
            if out.has_offset:
                offset = out.offset
            if out.has_time:
                time = out.time
            if out.has_type:
                time_type = out.time_type
            if out.has_key:
                key_ends, key_data, key_valid = out.key_ends, out.key_data, out.key_valid
            if out.has_value:
                value_ends, value_data, value_valid = out.value_ends, out.value_data, out.value_valid

        src_length: cython.Py_ssize_t = self.source_length
        pos: cython.Py_ssize_t = self.pos
        section_end: cython.Py_ssize_t = self.end
        remaining: cython.Py_ssize_t = self.remaining
        index: cython.Py_ssize_t = self.index
        previous: cython.longlong = self.previous_delta
        base_offset: cython.longlong = self.base_offset
        last_delta: cython.longlong = self.last_delta
        low_delta: cython.longlong = self.low_delta
        high_delta: cython.longlong = self.high_delta
        time_low: cython.longlong = self.time_low
        time_high: cython.longlong = self.time_high
        base_time: cython.longlong = self.base_time
        log_append: cython.bint = self.log_append
        type_value: cython.int = 1 if log_append else 0
        row: cython.Py_ssize_t = out.rows
        key_used: cython.Py_ssize_t = out.key_used
        value_used: cython.Py_ssize_t = out.value_used
        key_nulls: cython.Py_ssize_t = out.key_nulls
        value_nulls: cython.Py_ssize_t = out.value_nulls
        key_capacity: cython.Py_ssize_t = out.key_capacity
        value_capacity: cython.Py_ssize_t = out.value_capacity
        has_offset: cython.bint = out.has_offset
        has_time: cython.bint = out.has_time
        has_type: cython.bint = out.has_type
        has_key: cython.bint = out.has_key
        has_value: cython.bint = out.has_value
        has_headers: cython.bint = out.has_headers
        status: cython.int = _DONE
        at: cython.Py_ssize_t
        end: cython.Py_ssize_t
        length: cython.longlong
        time_delta: cython.longlong
        delta: cython.longlong
        key_length: cython.longlong
        value_length: cython.longlong
        header_count: cython.longlong
        key_pos: cython.Py_ssize_t
        value_pos: cython.Py_ssize_t
        visible: cython.bint
        header_status: cython.int

        max_rows = min(max_rows, out.row_capacity)
        while remaining > 0:
            # A header slot costs eight bytes of offsets, however short the header is.
            if row >= max_rows or (
                row > 0
                and key_used + value_used + out.header_key_used + out.header_value_used + 8 * out.headers >= max_bytes
            ):
                status = _LIMIT
                break
            length, at = _varint(src, pos, section_end, 5)
            if at < 0 or length < 6 or length > section_end - at:
                self.problem = _BAD_RECORD_LENGTH
                status = _CORRUPT
                break
            end = at + length
            at += 1  # the attributes: one unused byte, not a varint
            time_delta, at = _varint(src, at, end, 10)
            if at < 0:
                self.problem = _BAD_VARINT
                status = _CORRUPT
                break
            delta, at = _varint(src, at, end, 5)
            if at < 0:
                self.problem = _BAD_VARINT
                status = _CORRUPT
                break
            if delta <= previous or delta > last_delta:
                self.problem = _BAD_OFFSET_DELTA
                previous = delta
                status = _CORRUPT
                break
            key_length, at = _varint(src, at, end, 5)
            # Any negative length is null, as Java's reader has it; what writes them writes -1.
            if at < 0 or key_length > end - at:
                self.problem = _BAD_KEY_LENGTH
                status = _CORRUPT
                break
            key_pos = at
            if key_length > 0:
                at += key_length
            value_length, at = _varint(src, at, end, 5)
            if at < 0 or value_length > end - at:
                self.problem = _BAD_VALUE_LENGTH
                status = _CORRUPT
                break
            value_pos = at
            if value_length > 0:
                at += value_length
            header_count, at = _varint(src, at, end, 5)
            # A header takes at least two bytes; a count beyond that is refused before anything is done with it.
            if at < 0 or header_count < 0 or header_count > (end - at) // 2:
                self.problem = _BAD_HEADER_COUNT
                status = _CORRUPT
                break
            visible = low_delta <= delta < high_delta
            if header_count > 0:
                header_status = self._read_headers(out, at, end, header_count, visible and has_headers)
                if header_status != _DONE:
                    status = header_status
                    break
            elif at != end:
                self.problem = _BAD_RECORD_END
                status = _CORRUPT
                break

            if visible:
                if time_delta < time_low or time_delta > time_high:
                    previous = delta
                    status = _TIME_RANGE
                    break
                if has_key:
                    if key_length > key_capacity - key_used:
                        self.needed = key_length
                        status = _GROW_KEY
                        break
                    if key_length >= 0:
                        _copy(key_data, key_used, src, key_pos, key_length, src_length)
                if has_value:
                    if value_length > value_capacity - value_used:
                        self.needed = value_length
                        status = _GROW_VALUE
                        break
                    if value_length >= 0:
                        _copy(value_data, value_used, src, value_pos, value_length, src_length)
                        value_used += value_length
                    else:
                        value_nulls += 1
                        value_valid[row >> 3] &= 0xFF ^ (1 << (row & 7))
                    value_ends[row + 1] = value_used
                if has_key:
                    # After the value's growth check: a row is stored whole or not at all.
                    if key_length >= 0:
                        key_used += key_length
                    else:
                        key_nulls += 1
                        key_valid[row >> 3] &= 0xFF ^ (1 << (row & 7))
                    key_ends[row + 1] = key_used
                if has_offset:
                    offset[row] = base_offset + delta
                if has_time:
                    time[row] = (base_time if log_append else base_time + time_delta) * 1000
                if has_type:
                    time_type[row] = type_value
                if has_headers:
                    self._store_header_row(out, row, header_count)
                row += 1
            previous = delta
            pos = end
            index += 1
            remaining -= 1

        if status == _DONE and pos != section_end:
            self.problem = _TRAILING_BYTES
            status = _CORRUPT
        self.pos = pos
        self.remaining = remaining
        self.index = index
        self.previous_delta = previous
        out.rows = row
        out.key_used = key_used
        out.value_used = value_used
        out.key_nulls = key_nulls
        out.value_nulls = value_nulls
        return status

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def _read_headers(
        self,
        out: PieceColumns,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        count: cython.longlong,
        store: cython.bint,
    ) -> cython.int:
        """Check the headers in [at, end), and stage them behind the stored ones if `store`."""
        src: cython.p_const_uchar = cython.NULL
        key_data: cython.p_uchar = cython.NULL
        value_data: cython.p_uchar = cython.NULL
        if store and (
            count > out.header_capacity - out.headers
            or end - at > out.header_data_capacity - out.header_key_used
            or end - at > out.header_data_capacity - out.header_value_used
        ):
            self.needed = end - at
            return _GROW_HEADERS
        if cython.compiled:
            src = cython.address(self.source[0])
            if store:
                key_data = cython.address(out.header_key_data[0])
                value_data = cython.address(out.header_value_data[0])
        else:
            src = self.source
            if store:
                key_data, value_data = out.header_key_data, out.header_value_data
        slot: cython.Py_ssize_t = out.headers
        key_used: cython.Py_ssize_t = out.header_key_used
        value_used: cython.Py_ssize_t = out.header_value_used
        nulls: cython.Py_ssize_t = 0
        length: cython.longlong
        i: cython.Py_ssize_t
        while count > 0:
            length, at = _varint(src, at, end, 5)
            if at < 0 or length < 0 or length > end - at:
                self.problem = _BAD_HEADER
                return _CORRUPT
            if store:
                _copy(key_data, key_used, src, at, length, self.source_length)
                for i in range(at, at + length):
                    if src[i] >= 0x80:
                        out.header_keys_ascii = False
                key_used += length
                out.header_key_ends[slot + 1] = key_used
            at += length
            length, at = _varint(src, at, end, 5)
            if at < 0 or length > end - at:
                self.problem = _BAD_HEADER
                return _CORRUPT
            if store:
                # A slot may hold what an uncommitted row staged in it before: set the bit both ways.
                if length < 0:
                    nulls += 1
                    out.header_value_valid[slot >> 3] &= 0xFF ^ (1 << (slot & 7))
                else:
                    out.header_value_valid[slot >> 3] |= 1 << (slot & 7)
                    _copy(value_data, value_used, src, at, length, self.source_length)
                    value_used += length
                out.header_value_ends[slot + 1] = value_used
                slot += 1
            if length > 0:
                at += length
            count -= 1
        if at != end:
            self.problem = _BAD_RECORD_END
            return _CORRUPT
        self.header_staged = slot
        self.header_key_staged = key_used
        self.header_value_staged = value_used
        self.header_nulls_staged = nulls
        return _DONE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def _store_header_row(self, out: PieceColumns, row: cython.Py_ssize_t, count: cython.longlong) -> cython.void:
        """Commit what `_read_headers` staged; a record without headers is a null list."""
        if count == 0:
            out.header_rows_null += 1
            out.header_row_valid[row >> 3] &= 0xFF ^ (1 << (row & 7))
        else:
            out.headers = self.header_staged
            out.header_key_used = self.header_key_staged
            out.header_value_used = self.header_value_staged
            out.header_value_nulls += self.header_nulls_staged
        out.header_row_ends[row + 1] = out.headers


DONE = _DONE
LIMIT = _LIMIT
GROW_KEY = _GROW_KEY
GROW_VALUE = _GROW_VALUE
GROW_HEADERS = _GROW_HEADERS
CORRUPT = _CORRUPT
TIME_RANGE = _TIME_RANGE
OTHER = _OTHER
BAD_RECORD_LENGTH = _BAD_RECORD_LENGTH
BAD_VARINT = _BAD_VARINT
BAD_OFFSET_DELTA = _BAD_OFFSET_DELTA
BAD_KEY_LENGTH = _BAD_KEY_LENGTH
BAD_VALUE_LENGTH = _BAD_VALUE_LENGTH
BAD_HEADER_COUNT = _BAD_HEADER_COUNT
BAD_HEADER = _BAD_HEADER
BAD_RECORD_END = _BAD_RECORD_END
TRAILING_BYTES = _TRAILING_BYTES
