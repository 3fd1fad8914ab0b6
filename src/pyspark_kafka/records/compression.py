"""The codecs of record batches: bounded decompression and compression. Knows bytes, not records.

No claim in the input is believed before it is checked: an upper bound of the output is worked out from the framing
(block headers of lz4 and zstd, length prefixes of snappy), and the decompressor always writes into a buffer of
limited size. So neither a wrong claim nor a bomb can allocate beyond the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cramjam
import pyarrow as pa

from pyspark_kafka.errors import CorruptRecordsError

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
MIB = 1 << 20
DEFAULT_MAX_DECOMPRESSED_BYTES = 256 * MIB

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_XERIAL_VERSIONS = (1).to_bytes(4, "big") * 2
# What snappy-java's stream writer cuts its input into; readers take any size.
_XERIAL_BLOCK_BYTES = 32 * 1024
# No snappy element yields more than 64 bytes, and none that does takes fewer than 3: 22 times is beyond what can be.
_SNAPPY_MAX_RATIO = 22
# Deflate's limit is 1032 : 1.
_GZIP_MAX_RATIO = 1032
# An lz4 length byte of 255 adds 255 bytes of output.
_LZ4_MAX_RATIO = 255
_LZ4_MAGIC = 0x184D2204
_LZ4_BLOCK_BYTES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_BLOCK_BYTES = 1 << 17
_SKIPPABLE_MAGIC = 0x184D2A50
_GZIP_FIRST_GUESS = 64 * 1024
# What we write without a search for better matches: blocks of 256 KiB, each alone. lz4 takes a third longer for blocks
# of 64 KiB, for which it has another table of matches. Magic, version and independence of blocks, size of blocks, and
# the second byte of the xxHash-32 of these two.
_LZ4_START = b"\x04\x22\x4d\x18\x60\x50\xfb"
_LZ4_WRITTEN_BLOCK_BYTES = 1 << 18
_LZ4_STORED = 0x8000_0000
_DEFAULT_LEVELS = {"gzip": 6, "lz4": 1, "zstd": 3}


class CodecError(Exception):
    """Compressed bytes are malformed or too large; translated where the batch's offset is known.

    Attributes:
        too_large: whether the bytes may be sound, but would take more than the bound.
    """

    def __init__(self, reason: str, *, too_large: bool = False) -> None:
        super().__init__(reason)
        self.too_large = too_large


class Decompressor:
    """Decompresses records sections, one at a time, into a buffer that it owns and uses again.

    Runs on: executor; one a reading thread.

    Args:
        max_bytes: at most this number of bytes per section after decompression.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._scratch = memoryview(bytearray())

    def decompress(self, codec: int, data: memoryview) -> memoryview:
        """Return the decompressed bytes; they stay valid until the next call.

        Raises:
            CodecError: malformed input, an unknown codec, or more output than the bound.
        """
        if codec == 1:
            return self._gzip(data)
        if codec == 2:
            return self._snappy(data)
        if codec == 3:
            return self._into(cramjam.lz4.decompress_into, data, lz4_bound(data))
        if codec == 4:
            return self._into(cramjam.zstd.decompress_into, data, zstd_bound(data))
        raise CodecError(f"its compression codec is {codec}, which does not exist")

    def _buffer(self, size: int) -> memoryview:
        if len(self._scratch) < size:
            # Not one byte over the bound, but some room for a slightly larger batch to come.
            room = max(size, min(size + size // 4, self._max_bytes))
            self._scratch = memoryview(pa.allocate_buffer(room)).cast("B")
        return self._scratch[:size]

    def _too_large(self) -> CodecError:
        return CodecError(f"it decompresses to more than the {self._max_bytes} bytes allowed", too_large=True)

    def _into(self, decompress_into: Callable[[Any, Any], int], data: memoryview, bound: int) -> memoryview:
        """Decompress in one attempt into a buffer of `bound` bytes, which the output cannot exceed."""
        target = self._buffer(min(bound, self._max_bytes))
        try:
            return target[: decompress_into(data, target)]
        except cramjam.DecompressionError as error:
            if bound > self._max_bytes:
                raise self._too_large() from error
            raise CodecError(f"it cannot be decompressed ({error})") from error

    def _gzip(self, data: memoryview) -> memoryview:
        # The trailer of the last member holds its length modulo 2^32: right for one member, a first guess otherwise.
        claim = int.from_bytes(data[-4:], "little")
        bound = len(data) * _GZIP_MAX_RATIO
        limit = min(bound, self._max_bytes)
        size = claim if 0 < claim <= limit else min(_GZIP_FIRST_GUESS, limit)
        while True:
            target = self._buffer(size)
            try:
                return target[: cramjam.gzip.decompress_into(data, target)]
            except cramjam.DecompressionError as error:
                if size < limit:
                    size = min(size * 4, limit)
                    continue
                if bound > limit and "whole buffer" in str(error):
                    raise self._too_large() from error
                raise CodecError(f"it cannot be decompressed ({error})") from error

    def _snappy(self, data: memoryview) -> memoryview:
        # Walked twice, not kept: blocks of a few bytes each would make a list many times as large as the input.
        total = sum(claim for _, claim in _snappy_chunks(data))
        if total > self._max_bytes:
            raise self._too_large()
        target = self._buffer(total)
        at = 0
        for chunk, claim in _snappy_chunks(data):
            try:
                at += cramjam.snappy.decompress_raw_into(chunk, target[at : at + claim])
            except cramjam.DecompressionError as error:
                raise CodecError(f"it cannot be decompressed ({error})") from error
        if at != total:
            raise CodecError(f"its snappy blocks claim {total} bytes and hold {at}")
        return target


def _snappy_chunks(data: memoryview) -> Iterator[tuple[memoryview, int]]:
    """Return the raw snappy blocks of either encoding with the length that each claims, checked to be possible."""
    if data[:8] != _XERIAL_MAGIC:
        yield data, _snappy_claim(data)
        return
    at, total = 0, len(data)
    while at < total:
        # snappy-java reads framed streams put one behind the other: a header may stand where a chunk could.
        if data[at : at + 8] == _XERIAL_MAGIC:
            at += _XERIAL_HEADER_BYTES
            if at > total:
                raise CodecError("its snappy framing header is cut off")
            continue
        length = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if at > total or length > total - at:
            raise CodecError(f"a snappy chunk claims {length} bytes where {max(total - at, 0)} remain")
        chunk = data[at : at + length]
        yield chunk, _snappy_claim(chunk)
        at += length


def _snappy_claim(block: memoryview) -> int:
    """Read the length that a raw block claims to decompress to: a little-endian varint of at most 32 bits."""
    claim = 0
    for index, byte in enumerate(block[:5]):
        claim |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if claim > (len(block) - index - 1) * _SNAPPY_MAX_RATIO:
                raise CodecError(f"a snappy block of {len(block)} bytes claims to hold {claim}")
            return claim
    raise CodecError("a snappy block does not begin with its length")


def _little(data: memoryview, at: int, size: int) -> int:
    if at + size > len(data):
        raise CodecError("its compressed frame is cut off")
    return int.from_bytes(data[at : at + size], "little")


def lz4_bound(data: memoryview) -> int:
    """Return an upper bound of what lz4 frames decompress to, from their block headers.

    Raises:
        CodecError: when the framing is malformed.
    """
    at, bound = 0, 0
    while at < len(data):
        magic = _little(data, at, 4)
        if magic & ~0xF == _SKIPPABLE_MAGIC:
            at += 8 + _little(data, at + 4, 4)
            continue
        if magic != _LZ4_MAGIC:
            raise CodecError(f"an lz4 frame begins with {magic:#010x}")
        flags = _little(data, at + 4, 1)
        largest = _LZ4_BLOCK_BYTES.get(_little(data, at + 5, 1) >> 4 & 7, 0)
        at += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
        checksum = 4 if flags & 0x10 else 0
        while size := _little(data, at, 4):
            stored, size = size & 0x8000_0000, size & 0x7FFF_FFFF
            if size > len(data) - at:
                raise CodecError(f"an lz4 block claims {size} bytes where {len(data) - at} remain")
            bound += size if stored else min(largest, size * _LZ4_MAX_RATIO)
            at += 4 + size + checksum
        at += 4 + (4 if flags & 0x04 else 0)
    if at != len(data):
        raise CodecError("its compressed frame is cut off")
    return bound


def zstd_bound(data: memoryview) -> int:
    """Return an upper bound of what zstd frames decompress to, from their block headers.

    Raises:
        CodecError: when the framing is malformed.
    """
    at, bound = 0, 0
    while at < len(data):
        magic = _little(data, at, 4)
        if magic & ~0xF == _SKIPPABLE_MAGIC:
            at += 8 + _little(data, at + 4, 4)
            continue
        if magic != _ZSTD_MAGIC:
            raise CodecError(f"a zstd frame begins with {magic:#010x}")
        flags = _little(data, at + 4, 1)
        single = flags & 0x20
        dictionary = (0, 1, 2, 4)[flags & 3]
        content = (1 if single else 0, 2, 4, 8)[flags >> 6]
        at += 5 + (0 if single else 1) + dictionary
        claim = _little(data, at, content) + (256 if content == 2 else 0)
        at += content
        frame, last = 0, 0
        while not last:
            block = _little(data, at, 3)
            last, kind, size = block & 1, block >> 1 & 3, block >> 3
            at += 3
            if kind == 3:
                raise CodecError("a zstd block has the reserved type 3")
            frame += _ZSTD_BLOCK_BYTES if kind == 2 else size
            at += 1 if kind == 1 else size
        bound += min(frame, claim) if content else frame
        at += 4 if flags & 0x04 else 0
    if at != len(data):
        raise CodecError("its compressed frame is cut off")
    return bound


def compress(codec: str, data: memoryview, level: int | None = None) -> Any:
    """Return the bytes of a records section compressed by the named codec, as a buffer.

    Framing is what Java's clients write and read: xerial for snappy, independent blocks for lz4.

    Args:
        codec: one of CODEC_NAMES but `none`.
        data: the records section.
        level: the codec's own level; its usual one when None; without meaning for snappy.
    """
    if level is None:
        level = _DEFAULT_LEVELS.get(codec, 0)
    if codec == "gzip":
        return cramjam.gzip.compress(data, level)
    if codec == "snappy":
        return _compress_xerial(data)
    if codec == "lz4" and level == _DEFAULT_LEVELS["lz4"]:
        return _compress_lz4(data)
    if codec == "lz4":
        # Java's reader decompresses each block alone: linked blocks, cramjam's default, would fail there.
        stream = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        stream.compress(bytes(data))  # takes bytes alone
        return stream.finish()
    return cramjam.zstd.compress(data, level)


def _compress_lz4(data: memoryview) -> bytes:
    parts: list[Any] = [_LZ4_START]
    for at in range(0, len(data), _LZ4_WRITTEN_BLOCK_BYTES):
        block = data[at : at + _LZ4_WRITTEN_BLOCK_BYTES]
        smaller = memoryview(cramjam.lz4.compress_block(block, store_size=False))
        if len(smaller) < len(block):
            parts += (len(smaller).to_bytes(4, "little"), smaller)
        else:
            # A block that does not shrink would be more than its size allows.
            parts += ((len(block) | _LZ4_STORED).to_bytes(4, "little"), block)
    parts.append(bytes(4))
    return b"".join(parts)


def _compress_xerial(data: memoryview) -> bytes:
    parts = [_XERIAL_MAGIC, _XERIAL_VERSIONS]
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def translate(error: CodecError, base_offset: int, max_bytes: int, position: int) -> CorruptRecordsError:
    """Build the error for the caller of the codec, naming the batch."""
    if error.too_large:
        return CorruptRecordsError(
            f"the record batch with base offset {base_offset} {str(error).removeprefix('it ')}. "
            "Nothing of this batch was emitted.",
            condition="DECOMPRESSED_TOO_LARGE",
            hint="Raise maxDecompressedBatchBytes if such large batches are expected.",
            parameters={"base_offset": base_offset, "max_decompressed_bytes": max_bytes, "position": position},
            whole_bytes=position,
        )
    return CorruptRecordsError(
        f"the record batch with base offset {base_offset} is corrupt: {error}. Nothing of this batch was emitted.",
        condition="CORRUPT_RECORDS",
        hint="Its checksum is right, so it was written like this: find out which producer wrote it.",
        parameters={"base_offset": base_offset, "position": position},
        whole_bytes=position,
    )
