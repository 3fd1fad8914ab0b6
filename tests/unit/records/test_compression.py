"""Codecs: what other writers write is read, claims are checked, output is bounded."""

from __future__ import annotations

import gzip
import random
import struct
import tracemalloc
import zlib
from typing import Any

import cramjam
import pyarrow as pa
import pytest

from kit.record_batches import GZIP, LZ4, SNAPPY, ZSTD, batch, record, rows, whole
from pyspark_kafka.errors import CorruptRecordsError
from pyspark_kafka.records import decode, encode
from pyspark_kafka.records.compression import CodecError, Decompressor, compress, lz4_bound, zstd_bound

VALUES = [b"some value that repeats itself %d" % (index % 10) for index in range(5_000)]
SECTION = b"".join(record(index, value) for index, value in enumerate(VALUES))
HALF = len(b"".join(record(index, value) for index, value in enumerate(VALUES[:2_500])))


def xerial(*blocks: bytes) -> bytes:
    framed = b"".join(struct.pack(">I", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed


def lz4_frames(data: bytes) -> bytes:
    return bytes(pa.compress(data, "lz4", asbytes=True))


def zstd_streamed(data: bytes) -> bytes:
    """Return a frame without a content size, as a streaming writer does."""
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as compressing:
        for at in range(0, len(data), 50_000):
            compressing.write(data[at : at + 50_000])
    return bytes(stream.getvalue())


def snappy(data: bytes) -> bytes:
    return bytes(pa.compress(data, "snappy", asbytes=True))


WRITTEN = {
    "gzip": (GZIP, gzip.compress(SECTION)),
    "gzip of several members": (GZIP, gzip.compress(SECTION[:HALF]) + gzip.compress(SECTION[HALF:])),
    "gzip whose last member is tiny": (GZIP, gzip.compress(SECTION[:-1]) + gzip.compress(SECTION[-1:])),
    "raw snappy": (SNAPPY, snappy(SECTION)),
    "xerial snappy": (SNAPPY, xerial(snappy(SECTION[:HALF]), snappy(SECTION[HALF:]))),
    "concatenated xerial snappy": (SNAPPY, xerial(snappy(SECTION[:HALF])) + xerial(snappy(SECTION[HALF:]))),
    "lz4": (LZ4, lz4_frames(SECTION)),
    "two lz4 frames": (LZ4, lz4_frames(SECTION[:HALF]) + lz4_frames(SECTION[HALF:])),
    "linked lz4 blocks with checksums": (LZ4, bytes(cramjam.lz4.compress(SECTION))),
    "zstd": (ZSTD, bytes(pa.compress(SECTION, "zstd", asbytes=True))),
    "zstd without a content size": (ZSTD, zstd_streamed(SECTION)),
    "two zstd frames": (ZSTD, zstd_streamed(SECTION[:HALF]) + bytes(pa.compress(SECTION[HALF:], "zstd", asbytes=True))),
    "zstd behind a skippable frame": (
        ZSTD,
        struct.pack("<II", 0x184D2A53, 5) + b"hello" + bytes(pa.compress(SECTION, "zstd", asbytes=True)),
    ),
    "lz4 behind a skippable frame": (LZ4, struct.pack("<II", 0x184D2A50, 0) + lz4_frames(SECTION)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_compressed_batches_of_other_libraries_are_read(name: str) -> None:
    codec, data = WRITTEN[name]
    table, next_offset = whole(batch(data, count=len(VALUES), attributes=codec), columns=["value"])
    assert table.column("value").to_pylist() == VALUES
    assert next_offset == len(VALUES)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_cut_or_extended_frame_is_corruption_not_a_crash(name: str) -> None:
    codec, data = WRITTEN[name]
    for broken in (data[:-1], data[: len(data) // 2], data[:9], data + b"garbage", data[:1]):
        with pytest.raises(CorruptRecordsError, match="base offset 0"):
            decode(batch(broken, count=len(VALUES), attributes=codec), start_offset=0)


@pytest.mark.parametrize("name", WRITTEN)
def test_output_beyond_the_bound_is_refused_and_the_bound_itself_is_not(name: str) -> None:
    codec, data = WRITTEN[name]
    log = batch(data, count=len(VALUES), attributes=codec)
    assert decode(log, start_offset=0, max_decompressed_bytes=len(SECTION)).batch.num_rows == len(VALUES)
    with pytest.raises(CorruptRecordsError, match=r"DECOMPRESSED_TOO_LARGE.*maxDecompressedBatchBytes"):
        decode(log, start_offset=0, max_decompressed_bytes=len(SECTION) - 1)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_cut_off_compressed_batch_is_left_out_and_a_complete_bad_one_is_not(codec: int) -> None:
    data = next(written for number, written in WRITTEN.values() if number == codec)
    whole_batch = batch(data, count=len(VALUES), attributes=codec)
    behind = batch(data, count=len(VALUES), attributes=codec, base_offset=len(VALUES))
    for cut in (1, 16, 17, 60, 61, len(behind) // 2, len(behind) - 1):
        decoded = decode(whole_batch + behind[:cut], start_offset=0, columns=["offset"])
        assert (decoded.batch.num_rows, decoded.next_offset) == (len(VALUES), len(VALUES))
    with pytest.raises(CorruptRecordsError, match="NO_COMPLETE_RECORD_BATCH"):
        decode(whole_batch[:-1], start_offset=0)
    bad = batch(data[:-1], count=len(VALUES), attributes=codec, base_offset=len(VALUES))
    with pytest.raises(CorruptRecordsError, match=f"base offset {len(VALUES)}"):
        decode(whole_batch + bad, start_offset=0)


BOMB_BYTES = 64 << 20
BOMBS = {
    "gzip": (GZIP, gzip.compress(bytes(BOMB_BYTES))),
    "lz4": (LZ4, lz4_frames(bytes(BOMB_BYTES))),
    "zstd": (ZSTD, zstd_streamed(bytes(BOMB_BYTES))),
    "snappy": (SNAPPY, snappy(bytes(BOMB_BYTES))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_allocates_no_more_than_the_bound(name: str) -> None:
    codec, data = BOMBS[name]
    decompressor = Decompressor(1 << 20)
    before = pa.total_allocated_bytes()
    with pytest.raises(CodecError) as caught:
        decompressor.decompress(codec, memoryview(data))
    assert caught.value.too_large
    assert pa.total_allocated_bytes() - before <= 1 << 20


def test_the_limit_holds_for_a_claimed_length_of_gigabytes_in_zstd() -> None:
    # A single-segment frame whose 8-byte content size claims 2^60 bytes, holding one raw block of 4 bytes.
    frame = struct.pack("<IB", 0xFD2FB528, 0xE0) + struct.pack("<Q", 1 << 60) + b"\x21\x00\x00abcd"
    assert zstd_bound(memoryview(frame)) == 4
    with pytest.raises(CorruptRecordsError, match="cannot be decompressed"):
        decode(batch(frame, attributes=ZSTD), start_offset=0)


@pytest.mark.parametrize("claim", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x04", b"\xff" * 10, b"", b"\x80"])
@pytest.mark.parametrize("framed", [False, True])
def test_an_impossible_snappy_claim_is_refused_before_the_decompressor_sees_it(claim: bytes, *, framed: bool) -> None:
    # cramjam aborts the process when it cannot allocate what a block claims.
    block = claim + b"\x00" * 20
    if not claim:
        block = b""
    data = xerial(snappy(SECTION), block) if framed else block or b"\x80"
    with pytest.raises(CorruptRecordsError):
        decode(batch(data, attributes=SNAPPY), start_offset=0)


def test_snappy_claims_are_summed_before_any_block_is_decompressed() -> None:
    blocks = [snappy(bytes(100_000)) for _ in range(20)]
    with pytest.raises(CodecError) as caught:
        Decompressor(1_999_999).decompress(SNAPPY, memoryview(xerial(*blocks, b"never looked at")[:-19]))
    assert caught.value.too_large


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_named(codec: int) -> None:
    with pytest.raises(CorruptRecordsError, match=f"compression codec is {codec}"):
        decode(batch(b"whatever", attributes=codec), start_offset=0)


def test_lz4_bound_is_the_sum_of_the_blocks_not_a_claim() -> None:
    frame = lz4_frames(SECTION)
    assert len(SECTION) <= lz4_bound(memoryview(frame)) <= 255 * len(frame)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_of_ours_are_read_by_other_libraries(codec: str) -> None:
    batch_rows = rows([None] * len(VALUES), [*VALUES])
    section = encode(batch_rows, timestamp_ms=0)[61:]
    body = encode(batch_rows, timestamp_ms=0, compression=codec)[61:]
    assert len(body) < len(section) / 2
    assert decompressed_elsewhere(codec, body, len(section)) == section


def decompressed_elsewhere(codec: str, body: bytes, size: int) -> bytes:
    if codec == "gzip":
        return zlib.decompress(body, 31)
    if codec == "snappy":
        assert body[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
        out, at = b"", 16
        while at < len(body):
            (length,) = struct.unpack_from(">i", body, at)
            block = body[at + 4 : at + 4 + length]
            out += pa.decompress(block, min(32 * 1024, size - len(out)), "snappy", asbytes=True)
            at += 4 + length
        return out
    elsewhere: Any = pa
    return bytes(elsewhere.decompress(body, size, codec, asbytes=True))


def test_lz4_blocks_that_we_write_are_independent() -> None:
    # Java's KafkaLZ4BlockInputStream decompresses each block alone.
    body = encode(rows([None] * len(VALUES), [*VALUES]), compression="lz4")[61:]
    assert body[4] & 0x20


def test_lz4_blocks_that_do_not_shrink_are_stored_and_fit_their_size() -> None:
    draw = random.Random(5)
    section = bytes(700_000) + draw.randbytes(900_000) + bytes(300_001)
    frame = memoryview(compress("lz4", memoryview(section)))
    assert bytes(Decompressor().decompress(LZ4, frame)) == section
    assert decompressed_elsewhere("lz4", bytes(frame), len(section)) == section
    sizes, stored, at = [], 0, 7
    while size := int.from_bytes(frame[at : at + 4], "little"):
        stored += size >> 31
        sizes.append(size & 0x7FFF_FFFF)
        at += 4 + sizes[-1]
    assert at + 4 == len(frame)
    assert len(sizes) == -(-len(section) // (1 << 18))
    assert stored == 3
    assert max(sizes) <= 1 << 18


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", 1, 9), ("zstd", 1, 19), ("lz4", 1, 9)])
def test_a_level_changes_the_size(codec: str, low: int, high: int) -> None:
    # Text that repeats itself irregularly, so that a search for longer matches pays.
    values: list[bytes | None] = [b"%d %d" % (index * index, index * 7919 % 1009) for index in range(3_000)]
    batch_rows = rows([None] * 3_000, values)
    sizes = [
        len(encode(batch_rows, timestamp_ms=0, compression=codec, compression_level=level)) for level in (low, high)
    ]
    assert sizes[1] < sizes[0]


def test_snappy_blocks_without_content_take_no_memory_each() -> None:
    empty_blocks = xerial(*[b"\x00"] * 50_000)
    tracemalloc.start()
    try:
        assert len(Decompressor().decompress(SNAPPY, memoryview(empty_blocks))) == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("name", WRITTEN)
def test_an_error_says_where_its_batch_begins_so_that_what_lies_before_can_be_had(name: str) -> None:
    codec, data = WRITTEN[name]
    good = batch(data, count=len(VALUES), attributes=codec)
    broken = batch(data[:-1], base_offset=len(VALUES), count=len(VALUES), attributes=codec)
    with pytest.raises(CorruptRecordsError) as damaged:
        decode(good + broken, start_offset=0)
    assert damaged.value.parameters["position"] == str(len(good))
    with pytest.raises(CorruptRecordsError) as large:
        decode(good, start_offset=0, max_decompressed_bytes=len(SECTION) - 1)
    assert large.value.parameters["position"] == "0"
