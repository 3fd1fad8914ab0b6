"""How an answer is cut into pieces, and the columns that a piece has."""

from __future__ import annotations

from typing import Any

import cramjam
import pyarrow as pa
import pytest

from kit.record_batches import ZSTD, batch, plain_batch, record, whole
from pyspark_kafka.records import COLUMN_NAMES, HEADERS_TYPE, decode, iter_decode, scan


def test_all_columns_have_the_declared_types_and_nullability() -> None:
    fields: list[pa.Field[Any]] = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("headers", HEADERS_TYPE),
    ]
    assert decode(plain_batch(0, 1), start_offset=0).batch.schema == pa.schema(fields)
    header = HEADERS_TYPE.value_type
    assert [(field.name, field.type, field.nullable) for field in header] == [
        ("key", pa.string(), False),
        ("value", pa.binary(), True),
    ]


@pytest.mark.parametrize("columns", [["value", "key"], ["timestampType"], ["headers", "offset"], list(COLUMN_NAMES)])
def test_only_the_asked_columns_are_built_in_the_order_asked(columns: list[str]) -> None:
    data = batch([record(0, b"v", key=b"k", headers=[(b"h", b"x")]), record(1)])
    everything = decode(data, start_offset=0).batch
    some = decode(data, start_offset=0, columns=columns).batch
    assert some.schema.names == columns
    assert some.equals(everything.select(columns))


def test_no_columns_still_count_rows() -> None:
    pieces = list(iter_decode(plain_batch(0, 25), start_offset=3, columns=[], target_rows=10))
    assert [piece.batch.num_rows for piece in pieces] == [10, 10, 2]


def test_rows_without_columns_are_counted_in_one_batch_whatever_their_number() -> None:
    log = b"".join(plain_batch(base, 300) for base in range(0, 1_200, 300))
    assert decode(log, start_offset=5, columns=[]).batch.num_rows == 1_195


def test_a_timestamp_alone_and_a_repeated_name_are_no_problem() -> None:
    assert decode(plain_batch(0, 2), start_offset=0, columns=["offset", "offset"]).batch.num_columns == 2


def test_an_unknown_column_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="unknown record column 'topic'"):
        iter_decode(b"", start_offset=0, columns=["topic"])


def test_several_batches_make_one_piece() -> None:
    log = b"".join(plain_batch(base, 10) for base in range(0, 200, 10))
    pieces = list(iter_decode(log, start_offset=0))
    assert [(piece.batch.num_rows, piece.next_offset) for piece in pieces] == [(200, 200)]


def test_one_large_batch_makes_several_pieces_by_rows() -> None:
    pieces = list(iter_decode(plain_batch(100, 25), start_offset=100, target_rows=10))
    assert [(piece.batch.num_rows, piece.next_offset) for piece in pieces] == [(10, 110), (10, 120), (5, 125)]


def test_one_large_batch_makes_several_pieces_by_bytes() -> None:
    log = batch([record(index, b"x" * 1000) for index in range(40)])
    pieces = list(iter_decode(log, start_offset=0, target_bytes=10_000))
    assert [piece.batch.num_rows for piece in pieces] == [10, 10, 10, 10]
    assert [piece.next_offset for piece in pieces] == [10, 20, 30, 40]


def test_a_record_larger_than_the_target_is_a_piece_of_its_own() -> None:
    sizes = [10, 300_000, 10, 10, 200_000]
    log = batch([record(index, b"x" * size, key=b"k" * size) for index, size in enumerate(sizes)])
    pieces = list(iter_decode(log, start_offset=0, target_bytes=1_000))
    assert [piece.batch.num_rows for piece in pieces] == [1, 1, 2, 1]
    assert [len(value or b"") for piece in pieces for value in piece.batch.column("value").to_pylist()] == sizes
    assert [len(key or b"") for piece in pieces for key in piece.batch.column("key").to_pylist()] == sizes


def test_many_tiny_headers_end_a_piece_too() -> None:
    log = batch([record(index, None, headers=[(b"", b"")] * 500) for index in range(20)])
    pieces = list(iter_decode(log, start_offset=0, target_bytes=8_000))
    assert len(pieces) == 10
    assert sum(piece.batch.num_rows for piece in pieces) == 20


def test_a_piece_of_a_small_response_takes_little_memory() -> None:
    (piece,) = iter_decode(plain_batch(0, 1), start_offset=0, target_bytes=4 << 20, target_rows=40_000)
    assert piece.batch.num_rows == 1
    assert sum(buffer.size for column in piece.batch for buffer in column.buffers() if buffer) < 32 * 1024


def test_well_compressed_records_of_a_small_response_come_in_two_pieces() -> None:
    rows = bytes(cramjam.zstd.compress(b"".join(record(delta, None) for delta in range(2000))))
    data = b"".join(batch(rows, base_offset=2000 * n, attributes=ZSTD, count=2000, last_delta=1999) for n in range(5))
    assert len(data) < 10_000
    pieces = list(iter_decode(data, start_offset=0, target_rows=20_000))
    assert [piece.batch.num_rows for piece in pieces] == [len(data), 10_000 - len(data)]
    assert [piece.next_offset for piece in pieces] == [len(data), 10_000]


def test_a_piece_without_rows_is_only_the_last() -> None:
    log = plain_batch(0, 20) + batch([], base_offset=20, last_delta=4)
    pieces = list(iter_decode(log, start_offset=0, target_rows=10))
    assert [(piece.batch.num_rows, piece.next_offset) for piece in pieces] == [(10, 10), (10, 25)]
    pieces = list(iter_decode(log, start_offset=20))
    assert [(piece.batch.num_rows, piece.next_offset) for piece in pieces] == [(0, 25)]


def test_pieces_stay_as_they_are_while_later_ones_are_decoded() -> None:
    section = pa.compress(b"".join(record(index, b"%d" % index) for index in range(100)), "zstd", asbytes=True)
    log = b"".join(batch(section, base_offset=base, count=100, attributes=ZSTD) for base in (0, 100))
    pieces = list(iter_decode(log, start_offset=0, target_rows=7, columns=["value"]))
    values = [value for piece in pieces for value in piece.batch.column("value").to_pylist()]
    assert values == [b"%d" % (index % 100) for index in range(200)]


def test_decoding_keeps_nothing_of_the_answer_buffer() -> None:
    answer = bytearray(plain_batch(0, 5))
    decoded = decode(answer, start_offset=0)
    answer[:] = b"\x00" * len(answer)
    assert decoded.batch.column("value").to_pylist() == [b"0", b"1", b"2", b"3", b"4"]


def test_the_kinds_of_buffers_make_no_difference() -> None:
    data = plain_batch(0, 5)
    expected = decode(data, start_offset=0).batch
    for records in (bytearray(data), memoryview(data), memoryview(b"xyz" + data + b"zyx")[3:-3]):
        assert decode(records, start_offset=0).batch.equals(expected)


def test_scan_finds_the_next_position_and_the_complete_bytes() -> None:
    log = plain_batch(0, 5) + plain_batch(7, 3, last_delta=9)
    found = scan(log + plain_batch(20, 5)[:-1], 2)
    assert (found.next_offset, found.complete_bytes, found.batches, found.records) == (17, len(log), 2, 8)
    assert scan(b"", 4).next_offset == 4
    assert scan(plain_batch(0, 3), 50).next_offset == 50


def test_scan_stops_at_malformed_bytes_without_an_error() -> None:
    log = plain_batch(0, 5)
    assert scan(log + b"\xff" * 100, 0).complete_bytes == len(log)
    assert scan(log[:8] + b"\xff\xff\xff\xff" + log[12:], 3).next_offset == 3


def test_whole_answers_of_many_pieces_are_put_together() -> None:
    log = plain_batch(0, 50)
    table, next_offset = whole(log, target_rows=7)
    assert table.num_rows == 50
    assert next_offset == 50
    assert table.to_batches()[0].equals(decode(log, start_offset=0).batch)
