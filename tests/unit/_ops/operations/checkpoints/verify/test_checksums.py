from __future__ import annotations

import struct
import zlib

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._ops.operations.checkpoints.verify.checksums import compare_checksum


def checksum_of(data: bytes, size: int = 512) -> bytes:
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    return b"crc\0" + struct.pack(f">I{len(chunks)}I", size, *map(zlib.crc32, chunks))


@given(st.binary(max_size=2000), st.sampled_from([1, 16, 512, 4096]))
def test_checksum_of_a_file_matches_it(data: bytes, size: int) -> None:
    assert compare_checksum(data, checksum_of(data, size)) == ""


@given(st.binary(min_size=1, max_size=2000), st.data())
def test_checksum_shows_each_changed_byte(data: bytes, draw: st.DataObject) -> None:
    place = draw.draw(st.integers(0, len(data) - 1))
    changed = data[:place] + bytes([data[place] ^ draw.draw(st.integers(1, 255))]) + data[place + 1 :]
    assert f"bytes from {place // 512 * 512} is" in compare_checksum(changed, checksum_of(data))


def test_checksum_of_a_longer_file_shows_that_it_was_cut_short() -> None:
    assert compare_checksum(b"", checksum_of(b"abc")) == ("the checksum has 12 bytes, and this file's would have 8")


@given(st.binary(max_size=40))
def test_any_bytes_are_a_checksum_or_not(data: bytes) -> None:
    assert compare_checksum(b"abc", data) != "" or data == checksum_of(b"abc")


def test_bytes_that_are_no_checksum_are_named() -> None:
    for data in (b"", b"crc\0", b"crc\0\0\0\0\0", b"xxx\0\0\0\2\0abcd"):
        assert compare_checksum(b"abc", data) == "the checksum is not a checksum of Hadoop"
