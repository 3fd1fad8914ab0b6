"""Rows to record batches, checked by an independent reader, and what a producer patches."""

from __future__ import annotations

import random
import struct
from typing import Any

import crc32c
import pyarrow as pa
import pytest
from kafka.record import MemoryRecords
from kafka.record.memory_records import MemoryRecordsBuilder

from kit.record_batches import batch, record, rows, whole
from pyspark_kafka.errors import RecordError, SchemaError
from pyspark_kafka.records import (
    HEADERS_TYPE,
    PreparedHeaders,
    RecordColumns,
    decode,
    encode,
    encode_rows,
    patch_header,
)


def read_by_kafka_python(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None, list[Any]]]:
    found = []
    records = MemoryRecords(bytes(data))
    while (read := records.next_batch()) is not None:
        assert read.validate_crc()
        found += [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in read]
    return found


def test_the_bytes_are_those_built_by_hand() -> None:
    headers = [[("h", b"1"), ("h", None)], None, []]
    encoded = encode(rows([b"k", None, b""], [None, b"v", b""], headers, times=[100, 50, 2**40]))
    expected = batch(
        [
            record(0, None, key=b"k", headers=[(b"h", b"1"), (b"h", None)]),
            record(1, b"v", time_delta=-50),
            record(2, b"", key=b"", time_delta=2**40 - 100),
        ],
        base_time=100,
        max_time=2**40,
    )
    assert encoded == expected[:12] + struct.pack(">i", -1) + expected[16:]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_kafka_python_reads_what_we_write(compression: str) -> None:
    keys = [b"key %d" % index if index % 3 else None for index in range(500)]
    values = [b"x" * (index * 7 % 300) if index % 5 else None for index in range(500)]
    headers = [[("a", b"%d" % index), ("b", None)] if index % 2 else None for index in range(500)]
    times = [1_700_000_000_000 + index * 37 for index in range(500)]
    encoded = encode(rows(keys, values, headers, times), compression=compression)
    assert read_by_kafka_python(encoded) == [
        (index, times[index], keys[index], values[index], headers[index] or []) for index in range(500)
    ]


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("transactional", [False, True])
def test_batches_of_kafka_python_are_read(codec: int, *, transactional: bool) -> None:
    builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 20, offset=500)
    builder.set_producer_state(7, 3, 11, transactional)
    expected = []
    for index in range(300):
        key, value = (None if index % 3 else b"k%d" % index), (None if index % 4 else b"v" * index)
        headers = [("h", b"%d" % index)] if index % 2 else []
        builder.append(1_700_000_000_000 + index * 1_001, key, value, headers)
        expected.append((500 + index, key, value, [{"key": "h", "value": b"%d" % index}] if index % 2 else None))
    builder.close()
    table, next_offset = whole(builder.buffer(), 500, isolation_level="read_committed")
    found = table.select(["offset", "key", "value", "headers"]).to_pydict()
    assert list(zip(*found.values(), strict=True)) == expected
    times = table.column("timestamp").cast(pa.int64()).to_pylist()
    assert times == [(1_700_000_000_000 + index * 1_001) * 1000 for index in range(300)]
    assert next_offset == 800


KINDS: list[pa.DataType] = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
KINDS += [pa.string_view(), pa.binary_view(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("sliced", [False, True])
def test_every_kind_of_string_column_is_encoded(kind: pa.DataType, *, sliced: bool) -> None:
    texts = [None, "", "short", "a string of more than twelve bytes, so not inline in a view", "ü", None, "z"]
    column: Any = pa.array(texts, pa.string()).cast(kind)
    if sliced:
        column, texts = column.slice(2, 4), texts[2:6]
    encoded = encode(pa.RecordBatch.from_arrays([column, column], ["key", "value"]), timestamp_ms=0)
    expected = [None if text is None else text.encode() for text in texts]
    table, _ = whole(encoded)
    assert table.column("key").to_pylist() == expected
    assert table.column("value").to_pylist() == expected


def test_a_fixed_size_column_is_encoded() -> None:
    column = pa.array([b"abcd", None], pa.binary(4))
    table, _ = whole(encode(pa.record_batch({"value": column})))
    assert table.column("value").to_pylist() == [b"abcd", None]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.list_(pa.binary())], ids=str)
def test_other_columns_are_refused_by_name(kind: pa.DataType) -> None:
    data: list[Any] = [None, []] if pa.types.is_list(kind) else [1]
    with pytest.raises(SchemaError, match=r"COLUMN_TYPE.*column 'value' has type .* expected string or binary"):
        encode(pa.record_batch({"value": pa.array(data, kind)}))


def test_an_all_null_column_gives_nulls() -> None:
    for kind in (pa.null(), pa.binary()):
        table, _ = whole(encode(pa.record_batch({"key": pa.nulls(3, kind), "value": pa.array([b"a", b"", None])})))
        assert table.column("key").to_pylist() == [None, None, None]
        assert table.column("value").to_pylist() == [b"a", b"", None]


def test_headers_of_other_kinds_and_slices_are_encoded() -> None:
    struct_type = pa.struct([("value", pa.large_binary()), ("key", pa.large_string())])
    data = [None, [], [{"key": "a", "value": None}], [{"key": "b", "value": b"1"}, {"key": "b", "value": b""}], None]
    for kind in (pa.list_(struct_type), pa.large_list(struct_type), HEADERS_TYPE):
        column: Any = pa.array(data, kind)
        for first in range(4):
            part = column.slice(first)
            table, _ = whole(encode(pa.RecordBatch.from_arrays([part], ["headers"]), timestamp_ms=0))
            # No headers and null headers are the same bytes; a reader returns null.
            assert table.column("headers").to_pylist() == [entries or None for entries in data[first:]]


def test_header_values_that_are_all_null_are_encoded() -> None:
    table, _ = whole(encode(rows([None], [None], [[("a", None), ("b", None)]])))
    assert table.column("headers").to_pylist() == [[{"key": "a", "value": None}, {"key": "b", "value": None}]]


@pytest.mark.parametrize("entry", [{"key": None, "value": b""}, None])
def test_a_null_header_key_names_the_row(entry: Any) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    column = pa.array([None, [{"key": "a", "value": b""}], [{"key": "b", "value": b""}, entry]], kind)
    with pytest.raises(RecordError, match=r"HEADER_KEY_NULL.*row 2: header 1 "):
        encode(pa.record_batch({"headers": column}))


def test_wrong_header_columns_are_refused() -> None:
    for kind in (pa.list_(pa.string()), pa.string(), pa.list_(pa.struct([("k", pa.string())]))):
        data: list[Any] = [None, []] if pa.types.is_list(kind) else ["x"]
        with pytest.raises(SchemaError, match="column 'headers'"):
            encode(pa.record_batch({"headers": pa.array(data, kind)}))


@pytest.mark.parametrize(
    ("unit", "numbers", "expected"),
    [
        ("s", [1, -1], [1000, -1000]),
        ("ms", [7, -7], [7, -7]),
        ("us", [1999, -1, -1000, 0], [1, -1, -1, 0]),
        ("ns", [1_999_999, -1, -1_000_000], [1, -1, -1]),
    ],
)
def test_timestamps_of_every_unit_become_milliseconds_rounded_down(
    unit: str, numbers: list[int], expected: list[int]
) -> None:
    column: Any = pa.array(numbers, pa.int64()).cast(pa.timestamp(unit, "UTC"))
    encoded = encode(pa.record_batch({"value": pa.nulls(len(numbers)), "timestamp": column}))
    assert [entry[1] for entry in read_by_kafka_python(encoded)] == expected


def test_null_timestamps_take_the_constant_and_integers_are_milliseconds() -> None:
    column: Any = pa.array([5, None, -9], pa.int64())
    encoded = encode(pa.record_batch({"value": pa.nulls(3), "timestamp": column}), timestamp_ms=77)
    assert [entry[1] for entry in read_by_kafka_python(encoded)] == [5, 77, -9]
    with pytest.raises(SchemaError, match="'timestamp' has type string"):
        encode(pa.record_batch({"timestamp": pa.array(["now"])}))


def test_extreme_timestamps_survive() -> None:
    column: Any = pa.array([2**63 - 1, -(2**63), 0], pa.int64())
    encoded = encode(pa.record_batch({"value": pa.nulls(3), "timestamp": column}))
    assert struct.unpack_from(">qq", encoded, 27) == (2**63 - 1, 2**63 - 1)
    assert decode(encoded, start_offset=0, columns=["offset"]).batch.num_rows == 3


def test_rows_are_taken_by_index_while_they_fit() -> None:
    columns = RecordColumns(None, pa.array([b"%03d" % index * 30 for index in range(100)]), timestamp_ms=0)
    indices = pa.array(range(99, -1, -1), pa.int32()).buffers()[1]
    position, values = 10, []
    while position < 90:
        encoded, taken = encode_rows(columns, indices, position, 90, max_batch_bytes=1_000)
        assert len(encoded) <= 1_000
        table, _ = whole(encoded)
        values += table.column("value").to_pylist()
        assert table.num_rows == taken
        position += taken
    assert values == [b"%03d" % index * 30 for index in range(89, 9, -1)]


def test_a_batch_is_filled_to_the_last_byte() -> None:
    columns = RecordColumns(None, pa.array([b"x" * 10] * 20), timestamp_ms=0)
    record_bytes = len(record(0, b"x" * 10))
    for limit in (61 + 5 * record_bytes, 61 + 6 * record_bytes - 1):
        encoded, taken = encode_rows(columns, None, 0, 20, max_batch_bytes=limit)
        assert (taken, len(encoded)) == (5, 61 + 5 * record_bytes)


def test_a_row_above_the_limit_is_named() -> None:
    columns = RecordColumns(None, pa.array([b"small", b"x" * 500]), timestamp_ms=0)
    assert encode_rows(columns, None, 0, 2, max_batch_bytes=300)[1] == 1
    with pytest.raises(RecordError, match=r"RECORD_TOO_LARGE.*row 1 needs \d+ bytes .* more than the 300 allowed"):
        encode_rows(columns, None, 1, 2, max_batch_bytes=300)
    indices = pa.array([1, 0], pa.int32()).buffers()[1]
    with pytest.raises(RecordError, match="row 1 needs"):
        encode_rows(columns, indices, 0, 2, max_batch_bytes=300)


@pytest.mark.parametrize("chosen", [[0, 3], [-1]])
def test_indices_outside_the_rows_are_refused(chosen: list[int]) -> None:
    columns = RecordColumns(None, pa.array([b"a", b"b", b"c"]), timestamp_ms=0)
    with pytest.raises(ValueError, match="outside"):
        encode_rows(columns, pa.array(chosen, pa.int32()).buffers()[1], 0, len(chosen), max_batch_bytes=1_000)


def test_positions_outside_the_rows_and_unknown_codecs_are_refused() -> None:
    columns = RecordColumns(None, pa.array([b"a", b"b", b"c"]), timestamp_ms=0)
    with pytest.raises(ValueError, match=r"\[0, 4\)"):
        encode_rows(columns, None, 0, 4, max_batch_bytes=1_000)
    with pytest.raises(ValueError, match="unknown compression 'brotli'"):
        encode_rows(columns, None, 0, 3, max_batch_bytes=1_000, compression="brotli")


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(SchemaError, match="COLUMN_LENGTHS_DIFFER"):
        RecordColumns(pa.array([b"a"]), pa.array([b"a", b"b"]))


def test_no_rows_are_no_bytes() -> None:
    assert encode(rows([], [])) == b""


def test_rows_without_any_known_column_are_records_of_nulls() -> None:
    table, next_offset = whole(encode(pa.record_batch({"other": pa.array([1, 2, 3])})))
    assert table.column("value").to_pylist() == [None, None, None]
    assert next_offset == 3


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("size", [0, 1, 255, 5_000])
def test_patch_header_sets_the_identity_and_the_checksum(compression: str, size: int) -> None:
    columns = RecordColumns(None, pa.array([b"v" * size, b"w"]), timestamp_ms=0)
    encoded, _ = encode_rows(columns, None, 0, 2, max_batch_bytes=10_000, compression=compression)
    for identity in ((2**62, 32_000, 2**31 - 1), (0, 0, 0), (-1, -1, -1)):
        for transactional in (True, False):
            patch_header(
                encoded,
                producer_id=identity[0],
                producer_epoch=identity[1],
                base_sequence=identity[2],
                transactional=transactional,
            )
            assert struct.unpack_from(">qhi", encoded, 43) == identity
            assert bool(encoded[22] & 0x10) is transactional
            assert struct.unpack_from(">I", encoded, 17)[0] == crc32c.crc32c(memoryview(encoded)[21:])
            assert decode(encoded, start_offset=0).batch.num_rows == 2


def test_large_rows_are_copied_whole() -> None:
    # Sizes around the chunks of short copies, at the end of their buffers and within.
    values: list[bytes | None] = [bytes([index % 251]) * index for index in [*range(300), 4095, 4096, 70_000]]
    table, _ = whole(encode(rows([*reversed(values)], values)))
    assert table.column("value").to_pylist() == values
    assert table.column("key").to_pylist() == values[::-1]


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_batch_that_does_not_shrink_is_stored_uncompressed_and_keeps_the_bound(compression: str) -> None:
    noise = random.Random(5).randbytes(100_000)
    columns = RecordColumns(None, pa.array([noise], pa.binary()))
    batch, _ = encode_rows(columns, None, 0, 1, max_batch_bytes=100_100, compression=compression)
    assert len(batch) <= 100_100
    assert decode(bytes(batch), start_offset=0).batch.column("value").to_pylist() == [noise]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([0, None, 2**63 // 1000 + 1], pa.timestamp("s", "UTC")),
        pa.array([0, None, -(2**62)], pa.timestamp("s", "UTC")),
        pa.array([0, None, 2**63], pa.uint64()),
    ],
)
def test_a_timestamp_that_overflows_milliseconds_names_the_row(times: Any) -> None:
    with pytest.raises(RecordError, match=r"\[TIMESTAMP_OUT_OF_RANGE\] row 2 has a timestamp .* Hint: Correct the"):
        RecordColumns(None, None, timestamps=times)


def test_a_timestamp_column_of_another_type_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"COLUMN_TYPE.*'timestamp' has type string.* Hint: Cast column 'timestamp'"):
        RecordColumns(None, None, timestamps=pa.array(["2026-01-01"]))


def test_prepared_headers_are_encoded_as_an_array_of_them() -> None:
    keys, values = pa.array([b"k", None, b""]), pa.array([b"a", b"bc", None])
    headers = pa.array([[("h", b"1"), ("i", None)]] * 8, HEADERS_TYPE)
    prepared = PreparedHeaders(headers)
    of_three = pa.array(headers.to_pylist()[:3], HEADERS_TYPE)
    expected = RecordColumns(keys, values, headers=of_three, timestamp_ms=5)
    for _ in range(2):
        found = RecordColumns(keys, values, prepared=prepared, timestamp_ms=5)
        assert (found.data_bytes, found.max_bytes) == (expected.data_bytes, expected.max_bytes)
        made, wanted = (encode_rows(each, None, 0, 3, max_batch_bytes=10_000) for each in (found, expected))
        assert made == wanted
    few = PreparedHeaders(headers.slice(0, 2))
    with pytest.raises(ValueError, match="headers of 2 rows are too few for 3 rows"):
        RecordColumns(keys, values, prepared=few)


def test_null_key_outside_of_a_slice_is_no_error() -> None:
    column = pa.array(
        [[(None, b"1")], [("h", b"2")]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    encoded = encode(rows([b"k"], [b"v"], column.slice(1, 1)))
    assert [headers for *_, headers in read_by_kafka_python(encoded)] == [[("h", b"2")]]
