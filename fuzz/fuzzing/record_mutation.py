"""Mutations that know record batches: fields, records, varints and codecs, with lengths and checksums set right after.

Blind mutations rarely get past a checksum; these change what lies behind it. Now and then the length or the checksum
is left wrong. Shares no code with the codec.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import cramjam
import crc32c

from fuzzing.batch_target import HEAD_BYTES
from fuzzing.mutation import border, fitted, mutate_bytes

if TYPE_CHECKING:
    from random import Random

HEADER = 61
# (position, size) of the fields of a header: base offset, length, epoch, magic, attributes, last delta, base and
# maximum timestamp, producer id, its epoch, base sequence, count. The checksum is not among them.
FIELDS = ((0, 8), (8, 4), (12, 4), (16, 1), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4))
_MAX_INPUT = 1 << 16
# A token of a record: an integer that is written as a varint, or bytes that stand as they are.
Token = int | bytes


def mutate_records(data: bytes, other: bytes, random: Random) -> bytes:
    """Make one to three changes to an input of the batch target."""
    head, batches = data[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0"), split(data[HEAD_BYTES:])
    for _ in range(random.choice((1, 1, 2, 3))):
        kind = random.randrange(10)
        if kind == 0 or not batches:
            head = mutate_bytes(head, other, random)[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
        elif kind == 1:
            batches = _rearranged(batches, split(other[HEAD_BYTES:]), random)
        elif kind == 2:
            batches[-1] = mutate_bytes(batches[-1], other, random)
        else:
            at = random.randrange(len(batches))
            if len(batches[at]) >= HEADER:
                batches[at] = _changed(batches[at], kind, random)
        if not batches:
            batches = split(other[HEAD_BYTES:])
    return (head + b"".join(batches))[:_MAX_INPUT]


def split(log: bytes) -> list[bytes]:
    """Cut bytes into batches by their lengths; what does not look like one is the last entry."""
    batches = []
    while len(log) >= HEADER:
        end = 12 + int.from_bytes(log[8:12], "big")
        if not HEADER <= end <= len(log):
            break
        batches.append(log[:end])
        log = log[end:]
    return [*batches, log] if log else batches


def _rearranged(batches: list[bytes], others: list[bytes], random: Random) -> list[bytes]:
    batches = list(batches)
    at = random.randrange(len(batches))
    match random.randrange(5):
        case 0:
            del batches[at]
        case 1:
            batches.insert(at, batches[at])
        case 2:
            batches.insert(at, batches.pop())
        case 3:
            batches[at : at + 1] = others[:4]
        case _:
            # The usual log: every batch behind the one before it.
            offset = 0
            for index, one in enumerate(batches):
                if len(one) >= HEADER:
                    batches[index] = fitted(offset, 8) + one[8:]
                    offset += 1 + (int.from_bytes(one[23:27], "big") & 0xFFFF) + random.choice((0, 0, 3))
    return batches


def _changed(one: bytes, kind: int, random: Random) -> bytes:
    header, section = bytearray(one[:HEADER]), one[HEADER:]
    if kind in {3, 4}:
        at, size = random.choice(FIELDS)
        value = border(random)
        if random.random() < 0.5:
            value = int.from_bytes(header[at : at + size], "big") + random.choice(
                (-2, -1, 1, 2, 1 << random.randrange(8))
            )
        header[at : at + size] = fitted(value, size)
        if at == 8:
            return _sealed(header, section, random, length=False)
    elif kind == 5:
        header[22] ^= random.choice((0x08, 0x10, 0x20, 0x30, 1, 2, 3, 4, 7))
    else:
        codec, plain = header[22] & 7, section
        if codec:
            plain = _decompressed(codec, section)
        if kind == 6 and codec:
            section = mutate_bytes(section, section, random)
        else:
            plain, count = _changed_records(plain, random)
            if random.random() < 0.8:
                header[57:61] = fitted(count, 4)
                header[23:27] = fitted(max(int.from_bytes(header[23:27], "big", signed=True), count - 1), 4)
            if random.random() < 0.2:
                codec = random.randrange(5)
                header[22] = header[22] & 0xF8 | codec
            section = _compressed(codec, plain, random)
    return _sealed(header, section, random)


def _sealed(header: bytearray, section: bytes, random: Random, *, length: bool = True) -> bytes:
    """Set length and checksum right, nearly always."""
    if length and random.random() < 0.97:
        header[8:12] = struct.pack(">I", len(section) + HEADER - 12)
    if random.random() < 0.97:
        header[17:21] = struct.pack(">I", crc32c.crc32c(section, crc32c.crc32c(bytes(header[21:]))))
    return bytes(header) + section


def _changed_records(section: bytes, random: Random) -> tuple[bytes, int]:
    """Change tokens of records, or the order of records; return the section and how many records it has."""
    records = _parsed(section)
    if not records:
        return mutate_bytes(section, section, random), 1
    at = random.randrange(len(records))
    record = records[at]
    match random.randrange(8):
        case 0:
            del records[at]
        case 1:
            records.insert(at, list(record))
        case 2:
            record[2] = len(records) + random.choice((-1, 0, 1, 70))
            records.append(list(record))
        case 3:
            # One header more, counted or not.
            record += [1, b"h", *random.choice(((-1,), (2, b"\xc3\x28"), (0,)))]
            if isinstance(record[7], int) and random.random() < 0.8:
                record[7] += 1
        case 4:
            place = random.choice((4, 6))
            content = random.randbytes(random.choice((0, 1, 31, 32, 33, 64, 255, 256, 257, 1000)))
            record[place - 1], record[place] = len(content), content
        case _:
            place = random.randrange(len(record))
            token = record[place]
            if isinstance(token, bytes):
                record[place] = mutate_bytes(token, token, random)
            else:
                record[place] = border(random) if random.random() < 0.5 else token + random.choice((-2, -1, 1, 2))
    written = []
    for index, tokens in enumerate(records):
        body = b"".join(token if isinstance(token, bytes) else varint(token, random) for token in tokens)
        lie = random.choice((-1, 1, border(random))) if index == at and random.random() < 0.05 else 0
        written.append(varint(len(body) + lie, random) + body)
    return b"".join(written), len(records)


def _parsed(section: bytes) -> list[list[Token]]:
    """Take records apart: attributes, time and offset delta, key length, key, value length, value, count, headers."""
    records: list[list[Token]] = []
    at = 0
    try:
        while at < len(section) and len(records) < 2000:
            length, at = _read_varint(section, at)
            end = at + length
            tokens: list[Token] = [section[at : at + 1]]
            at += 1
            for _ in range(2):
                number, at = _read_varint(section, at)
                tokens.append(number)
            for _ in range(2):
                at = _read_sized(section, at, tokens)
            count, at = _read_varint(section, at)
            tokens.append(count)
            for _ in range(min(count, 100)):
                at = _read_sized(section, at, tokens)
                at = _read_sized(section, at, tokens)
            if not 0 <= length <= len(section) or end < at:
                break
            tokens.append(section[at:end])
            records.append(tokens)
            at = end
    except IndexError:
        pass
    return records


def _read_sized(section: bytes, at: int, tokens: list[Token]) -> int:
    size, at = _read_varint(section, at)
    tokens += [size, section[at : at + max(size, 0)]]
    return at + max(size, 0)


def _read_varint(section: bytes, at: int) -> tuple[int, int]:
    raw = shift = 0
    while True:
        byte = section[at]
        at += 1
        raw |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift > 63:
            return raw >> 1 ^ -(raw & 1), at


def varint(value: int, random: Random) -> bytes:
    """Write a zig-zag varint, rarely with more bytes than it needs."""
    raw = (value << 1 ^ value >> 63) & 2**64 - 1
    out = bytearray()
    while raw > 127:
        out.append(raw & 127 | 128)
        raw >>= 7
    out.append(raw)
    if random.random() < 0.01:
        out[-1] |= 128
        out += b"\x80" * random.randrange(3) + b"\0"
    return bytes(out)


def _decompressed(codec: int, section: bytes) -> bytes:
    out = bytearray(_MAX_INPUT)
    try:
        if codec == 2:
            parts = b""
            at = 16
            while section[:8] == b"\x82SNAPPY\x00" and at < len(section):
                size = int.from_bytes(section[at : at + 4], "big")
                # Into a buffer: a claim that is a lie would be allocated otherwise.
                parts += out[: cramjam.snappy.decompress_raw_into(section[at + 4 : at + 4 + size], out)]
                at += 4 + size
            return parts
        codecs = {1: cramjam.gzip, 3: cramjam.lz4, 4: cramjam.zstd}
        return bytes(out[: codecs[codec].decompress_into(section, out)]) if codec in codecs else section
    except (cramjam.DecompressionError, MemoryError):
        return b""


def _compressed(codec: int, plain: bytes, random: Random) -> bytes:
    if codec == 1:
        return bytes(cramjam.gzip.compress(plain, 1))
    if codec == 2:
        raw = bytes(cramjam.snappy.compress_raw(plain))
        if random.random() < 0.5:
            return raw
        return b"\x82SNAPPY\x00" + struct.pack(">iiI", 1, 1, len(raw)) + raw
    if codec == 3:
        return bytes(cramjam.lz4.compress(plain))
    return bytes(cramjam.zstd.compress(plain, 1)) if codec == 4 else plain
