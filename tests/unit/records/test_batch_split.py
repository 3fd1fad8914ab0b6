"""A record batch cut into several holds the same records, under the same identity."""

from __future__ import annotations

import struct

import pytest

from kit.record_batches import rows
from pyspark_kafka.records import decode, encode, patch_header, split_batch


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("parts", [1, 2, 3, 7, 100])
def test_parts_hold_the_records_of_the_whole(codec: str, parts: int) -> None:
    keys = [None if number % 3 else b"k%d" % number for number in range(20)]
    values = [None if number == 5 else b"v" * number * 10 for number in range(20)]
    whole = bytearray(encode(rows(keys, values), compression=codec, timestamp_ms=1_234_567))
    patch_header(whole, producer_id=9, producer_epoch=2, base_sequence=2**31 - 5, transactional=True)
    found = split_batch(whole, parts)
    assert len(found) == min(parts, 20)
    expected = decode(whole, start_offset=0).batch.to_pylist()
    offset, records = 0, []
    for data, count in found:
        decoded = decode(data, start_offset=0).batch.to_pylist()
        assert len(decoded) == count
        records += [row | {"offset": row["offset"] + offset} for row in decoded]
        attributes, producer_id, epoch, sequence = struct.unpack_from(">h20xqhi", data, 21)
        assert (producer_id, epoch, sequence) == (9, 2, (2**31 - 5 + offset) % 2**31)
        assert attributes & 0x10
        offset += count
    assert records == expected


def test_parts_of_a_batch_without_a_producer_have_none() -> None:
    whole = encode(rows([None] * 4, [b"a", b"b", b"c", b"d"]))
    for data, _ in split_batch(whole, 2):
        assert struct.unpack_from(">qhi", data, 43) == (-1, -1, -1)
        assert not struct.unpack_from(">h", data, 21)[0] & 0x10
