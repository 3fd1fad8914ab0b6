"""The rules of docs/internals/fetch-rules.md, R1 to R13, each by name, on both variants of the kernel."""

from __future__ import annotations

import struct
import tracemalloc
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from kit.record_batches import (
    ABORT,
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND,
    TRANSACTIONAL,
    batch,
    control_batch,
    offsets,
    plain_batch,
    record,
    resealed,
    varint,
    whole,
)
from pyspark_kafka.errors import CorruptRecordsError, RecordError
from pyspark_kafka.records import decode, iter_decode, scan


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


# docs/internals/fetch-rules.md, R1


def test_r1_a_cut_off_last_batch_is_left_out_wherever_it_is_cut() -> None:
    first, second = plain_batch(0, 3), plain_batch(3, 3)
    for cut in range(len(second)):
        decoded = decode(first + second[:cut], start_offset=0)
        assert decoded.batch.column("offset").to_pylist() == [0, 1, 2]
        assert decoded.next_offset == 3


@pytest.mark.parametrize("size", [1, 11, 16, 17, 60, 61])
def test_r1_bytes_without_one_complete_batch_are_an_error(size: int) -> None:
    with pytest.raises(CorruptRecordsError, match="NO_COMPLETE_RECORD_BATCH"):
        decode(plain_batch(0, 3)[:size], start_offset=0)


def test_r1_no_bytes_are_no_error_and_no_movement() -> None:
    assert list(iter_decode(b"", start_offset=5)) == []
    assert decode(b"", start_offset=5).next_offset == 5
    assert decode(b"", start_offset=5).batch.num_rows == 0


# docs/internals/fetch-rules.md, R2


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 48])
def test_r2_a_negative_or_too_short_length_is_corruption(length: int) -> None:
    data = plain_batch(0, 3)
    broken = data[:8] + struct.pack(">i", length) + data[12:]
    with pytest.raises(CorruptRecordsError, match="length"):
        decode(broken, start_offset=0)


def test_r2_a_length_that_overflows_when_its_overhead_is_added_is_no_complete_batch() -> None:
    data = plain_batch(0, 3)
    broken = data[:8] + struct.pack(">i", 2**31 - 1) + data[12:]
    with pytest.raises(CorruptRecordsError, match="NO_COMPLETE_RECORD_BATCH"):
        decode(broken, start_offset=0)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_named_in_the_error(magic: int) -> None:
    with pytest.raises(CorruptRecordsError, match=f"UNSUPPORTED_MESSAGE_FORMAT.*offset 40 have message format {magic}"):
        decode(plain_batch(40, 1, magic=magic), start_offset=0)


@pytest.mark.parametrize("magic", [-1, 3, 127])
def test_an_unknown_magic_byte_is_corruption(magic: int) -> None:
    with pytest.raises(CorruptRecordsError, match="magic"):
        decode(plain_batch(40, 1, magic=magic), start_offset=0)


# docs/internals/fetch-rules.md, R3


def test_r3_a_flip_of_any_covered_byte_fails_the_checksum() -> None:
    data = plain_batch(7, 3)
    for index in [*range(17, len(data))]:
        broken = bytearray(data)
        broken[index] ^= 0x40
        with pytest.raises(CorruptRecordsError, match=r"base offset 7 .*CRC-32C is 0x[0-9a-f]{8}, expected 0x"):
            decode(broken, start_offset=0)


def test_r3_checksums_are_not_verified_when_not_asked() -> None:
    data = bytearray(plain_batch(7, 3))
    data[17] ^= 1
    assert decode(data, start_offset=0, check_crcs=False).next_offset == 10


def test_r3_leader_epoch_is_outside_the_checksum() -> None:
    data = plain_batch(7, 3)
    assert decode(data[:12] + struct.pack(">i", 99) + data[16:], start_offset=0).next_offset == 10


# docs/internals/fetch-rules.md, R4


def test_r4_next_offset_comes_from_the_header() -> None:
    compacted = batch([record(2), record(5)], base_offset=100, last_delta=20)
    assert decode(compacted, start_offset=100).next_offset == 121
    assert scan(compacted, 100).next_offset == 121


def test_a_batch_that_goes_back_behind_the_one_before_is_corruption() -> None:
    with pytest.raises(CorruptRecordsError, match="goes back"):
        decode(plain_batch(10, 3) + plain_batch(12, 3), start_offset=0)


def test_gaps_between_batches_are_no_corruption() -> None:
    assert offsets(plain_batch(10, 2) + plain_batch(50, 2)) == [10, 11, 50, 51]


# docs/internals/fetch-rules.md, R5


def test_r5_records_below_the_position_are_dropped() -> None:
    assert offsets(plain_batch(10, 5), 13) == [13, 14]


def test_r5_a_batch_below_the_position_is_not_decompressed() -> None:
    garbage = batch(b"not gzip", base_offset=0, count=5, attributes=GZIP)
    assert offsets(garbage + plain_batch(5, 2), 5) == [5, 6]


def test_r5_an_answer_that_advances_nothing_gives_no_piece() -> None:
    assert list(iter_decode(plain_batch(0, 5), start_offset=5)) == []
    decoded = decode(plain_batch(0, 5), start_offset=9)
    assert (decoded.batch.num_rows, decoded.next_offset) == (0, 9)


# docs/internals/fetch-rules.md, R6


def test_r6_records_at_or_above_the_end_are_dropped_and_the_position_stops_there() -> None:
    decoded = decode(plain_batch(0, 10), start_offset=0, end_offset=4)
    assert decoded.batch.column("offset").to_pylist() == [0, 1, 2, 3]
    assert decoded.next_offset == 4


def test_r6_the_position_reaches_the_end_over_a_marker_a_hole_and_aborted_records() -> None:
    log = plain_batch(0, 2) + plain_batch(2, 3, producer_id=5, attributes=TRANSACTIONAL) + control_batch(5, 5)
    log += batch([], base_offset=6, last_delta=3)
    decoded = decode(
        log, start_offset=0, end_offset=10, isolation_level="read_committed", aborted_transactions=[(5, 2)]
    )
    assert decoded.batch.column("offset").to_pylist() == [0, 1]
    assert decoded.next_offset == 10


def test_r6_a_batch_beyond_the_end_says_that_the_end_is_reached() -> None:
    decoded = decode(plain_batch(0, 2) + plain_batch(90, 2), start_offset=0, end_offset=50)
    assert decoded.batch.column("offset").to_pylist() == [0, 1]
    assert decoded.next_offset == 50


def test_r6_a_batch_beyond_the_end_is_not_read() -> None:
    beyond = bytearray(plain_batch(50, 2))
    beyond[-1] ^= 1
    assert offsets(plain_batch(0, 2) + bytes(beyond), end_offset=50) == [0, 1]


@pytest.mark.parametrize("end_offset", [None, 5])
def test_r6_a_base_offset_that_cannot_be_does_not_say_that_the_end_is_reached(end_offset: int | None) -> None:
    # The checksum does not cover the base offset, so this is what one damaged field looks like.
    data = plain_batch(0, 2) + plain_batch(2**63 - 1, 1)
    with pytest.raises(CorruptRecordsError, match="base offset 9223372036854775807"):
        decode(data, start_offset=0, end_offset=end_offset)


def test_r6_an_empty_range_gives_nothing() -> None:
    assert list(iter_decode(plain_batch(0, 5), start_offset=3, end_offset=3)) == []


def test_r6_the_end_is_applied_after_the_abort_filter() -> None:
    log = plain_batch(0, 4, producer_id=5, attributes=TRANSACTIONAL) + control_batch(4, 5) + plain_batch(5, 4)
    found = offsets(log, isolation_level="read_committed", aborted_transactions=[(5, 0)], end_offset=7)
    assert found == [5, 6]


# docs/internals/fetch-rules.md, R7


def test_r7_an_empty_batch_advances_and_gives_no_rows() -> None:
    pieces = list(iter_decode(batch([], base_offset=10, last_delta=4, base_time=-1), start_offset=10))
    assert [(piece.batch.num_rows, piece.next_offset) for piece in pieces] == [(0, 15)]


@pytest.mark.parametrize("count", [1, 5])
def test_r7_a_count_without_bytes_is_corruption(count: int) -> None:
    with pytest.raises(CorruptRecordsError, match=f"claims {count} records in 0 bytes"):
        decode(batch([], count=count), start_offset=0)


def test_r7_a_count_that_the_bytes_cannot_hold_is_corruption() -> None:
    with pytest.raises(CorruptRecordsError, match="claims 1000000 records"):
        decode(batch([record(0)], count=1_000_000), start_offset=0)


def test_r7_a_count_of_zero_with_bytes_is_corruption() -> None:
    with pytest.raises(CorruptRecordsError, match="claims 0 records"):
        decode(batch([record(0)], count=0), start_offset=0)


@pytest.mark.parametrize(("count", "last_delta"), [(-1, 0), (3, 1), (1, -1)])
def test_r7_a_count_that_the_offsets_cannot_hold_is_corruption(count: int, last_delta: int) -> None:
    with pytest.raises(CorruptRecordsError, match=r"claims|last offset delta"):
        decode(batch([record(0)], count=count, last_delta=last_delta), start_offset=0)


# docs/internals/fetch-rules.md, R8


def test_r8_offset_deltas_may_have_gaps_and_start_above_zero() -> None:
    assert offsets(batch([record(3), record(4), record(9)], base_offset=100, last_delta=15)) == [103, 104, 109]


@pytest.mark.parametrize("deltas", [[0, 0], [1, 0], [-1, 0], [0, 2]])
def test_r8_offsets_that_go_back_or_leave_the_batch_are_corruption(deltas: list[int]) -> None:
    with pytest.raises(CorruptRecordsError, match="offset delta"):
        decode(batch([record(delta) for delta in deltas], last_delta=1), start_offset=0)


# docs/internals/fetch-rules.md, R9


def test_r9_log_append_time_gives_every_record_the_batch_maximum() -> None:
    data = batch([record(0, time_delta=5), record(1, time_delta=9)], attributes=LOG_APPEND, base_time=1, max_time=77)
    table, _ = whole(data, columns=["timestamp", "timestampType"])
    assert table.to_pydict() == {"timestamp": [at(77), at(77)], "timestampType": [1, 1]}


def test_r9_create_time_is_base_plus_delta_even_over_a_delete_horizon() -> None:
    horizon = 1_700_000_000_000
    data = batch(
        [record(0, time_delta=1_000 - horizon), record(1, time_delta=2_000 - horizon)],
        attributes=DELETE_HORIZON,
        base_time=horizon,
        max_time=2_000,
    )
    table, _ = whole(data, columns=["timestamp", "timestampType"])
    assert table.to_pydict() == {"timestamp": [at(1_000), at(2_000)], "timestampType": [0, 0]}


def test_r9_times_before_1970_and_minus_one_are_kept() -> None:
    data = batch([record(0, time_delta=0), record(1, time_delta=-99_999)], base_time=-1)
    table, _ = whole(data, columns=["timestamp"])
    assert table.column("timestamp").to_pylist() == [at(-1), at(-100_000)]


LATEST = (2**63 - 1) // 1000


@pytest.mark.parametrize(
    ("base_time", "delta"), [(LATEST, 1), (-LATEST, -1), (2**63 - 1, 0), (-(2**63), 0), (1, 2**63 - 1), (-9, -(2**63))]
)
def test_r9_a_time_that_overflows_microseconds_names_the_record(base_time: int, delta: int) -> None:
    data = batch([record(0, time_delta=-base_time), record(1, time_delta=delta)], base_offset=30, base_time=base_time)
    if not -(2**63) <= -base_time < 2**63:
        data = batch([record(1, time_delta=delta)], base_offset=30, base_time=base_time, last_delta=1)
    with pytest.raises(RecordError, match=r"TIMESTAMP_OUT_OF_RANGE.*offset 31 "):
        decode(data, start_offset=0)
    assert 31 in offsets(data), "without the timestamp column it must not matter"


@pytest.mark.parametrize("base_time", [LATEST, -LATEST])
def test_r9_the_last_times_that_fit_are_read(base_time: int) -> None:
    table, _ = whole(batch([record(0)], base_time=base_time), columns=["timestamp"])
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [base_time * 1000]


def test_r9_a_log_append_time_that_overflows_names_the_first_visible_record() -> None:
    data = plain_batch(30, 3, attributes=LOG_APPEND, max_time=2**63 - 1)
    with pytest.raises(RecordError, match="offset 31 "):
        decode(data, start_offset=31)


def test_r9_a_time_that_overflows_outside_the_range_does_not_matter() -> None:
    data = batch([record(0, time_delta=2**63 - 1), record(1)])
    assert decode(data, start_offset=1).batch.num_rows == 1


# docs/internals/fetch-rules.md, R10


def test_r10_bytes_after_the_declared_count_are_corruption() -> None:
    with pytest.raises(CorruptRecordsError, match="bytes are left after the declared count"):
        decode(batch([record(0), record(1), record(2)], count=2, last_delta=2), start_offset=0)


@pytest.mark.parametrize("extra", [-1, 1])
def test_r10_a_record_ends_exactly_at_its_stated_length(extra: int) -> None:
    body = record(0)[1:]
    section = varint(len(body) + extra) + body + (b"\x00" if extra > 0 else b"")
    with pytest.raises(CorruptRecordsError, match="record 0 of 1"):
        decode(batch(section), start_offset=0)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x00\x00\x00" + varint(9) + b"\x01\x00\x00", "key length"),
        (b"\x00\x00\x00\x01" + varint(9) + b"\x00\x00", "value length"),
        (b"\x00\x00\x00\x01\x01" + varint(-1), "header count"),
        (b"\x00\x00\x00\x01\x01" + varint(2**31 - 1), "header count"),
        (b"\x00\x00\x00\x01\x01" + varint(1) + b"\x01\x01", "header that is malformed"),
        (b"\x00\x00\x00\x01\x01" + varint(1) + b"\x00\x08", "header that is malformed"),
        (b"\x00\x00\x00\x01\x01" + varint(1) + b"\x00\x01\x00", "does not end"),
        (b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\x01\x01\x00", "timestamp or offset delta"),
        (b"\x00\x00\xff\xff\xff\xff\x10\x01\x01\x00", "timestamp or offset delta"),
        (b"\x00" + b"\x80" * 6, "timestamp or offset delta"),
    ],
)
def test_a_malformed_record_is_refused_with_its_reason(body: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordsError, match=f"record 0 of 1 .*{reason}"):
        decode(batch(varint(len(body)) + body), start_offset=0)


@pytest.mark.parametrize("length", [-1, -2, -(2**31)])
def test_any_negative_length_of_a_key_a_value_or_a_headers_value_is_null(length: int) -> None:
    null = varint(length)
    body = b"\x00\x00\x00" + null + null + varint(1) + varint(1) + b"h" + null
    whole = varint(len(body)) + body + record(1, b"v", key=b"k")
    row, other = decode(batch(whole, count=2), start_offset=0).batch.to_pylist()
    assert (row["key"], row["value"], row["headers"]) == (None, None, [{"key": "h", "value": None}])
    assert (other["key"], other["value"], other["headers"]) == (b"k", b"v", None)


@pytest.mark.parametrize("length", [b"\x80\x80\x80\x80\x10", b"\xff\xff\xff\xff\x0f", varint(2**31 - 1), varint(-5)])
def test_a_record_length_beyond_the_batch_is_refused(length: bytes) -> None:
    with pytest.raises(CorruptRecordsError, match="has a length that is malformed"):
        decode(batch(length + record(0)[1:]), start_offset=0)


def test_the_record_attributes_are_one_byte_not_a_varint() -> None:
    assert offsets(batch([record(0, attributes=0x80), record(1, attributes=0xFF)])) == [0, 1]


# docs/internals/fetch-rules.md, R11


@pytest.mark.parametrize("isolation_level", ["read_committed", "read_uncommitted"])
def test_r11_control_records_are_never_surfaced_but_advance(isolation_level: str) -> None:
    log = plain_batch(0, 2) + control_batch(2, 9) + control_batch(3, 9, kind=1) + control_batch(4, 9, kind=6)
    decoded = decode(log, start_offset=0, isolation_level=isolation_level)
    assert decoded.batch.column("offset").to_pylist() == [0, 1]
    assert decoded.next_offset == 5


@pytest.mark.parametrize("key", [b"", b"\x00\x00\x00"])
def test_r11_a_control_key_shorter_than_four_bytes_is_corruption(key: bytes) -> None:
    with pytest.raises(CorruptRecordsError, match="key shorter than 4 bytes"):
        decode(control_batch(0, 9, key=key), start_offset=0, isolation_level="read_committed")


def test_r11_a_control_batch_may_have_no_records() -> None:
    empty = batch([], base_offset=3, attributes=CONTROL | TRANSACTIONAL, producer_id=9)
    assert decode(empty, start_offset=3, isolation_level="read_committed").next_offset == 4


@pytest.mark.parametrize("version", [0, 1, 99])
def test_r11_an_unknown_marker_version_is_read_as_version_0(version: int) -> None:
    log = plain_batch(0, 2, producer_id=9, attributes=TRANSACTIONAL)
    log += control_batch(2, 9, key=struct.pack(">hhi", version, ABORT, 1))
    log += plain_batch(3, 2, producer_id=9, attributes=TRANSACTIONAL)
    assert offsets(log, isolation_level="read_committed", aborted_transactions=[(9, 0)]) == [3, 4]


# docs/internals/fetch-rules.md, R12


def test_r12_header_keys_may_repeat_and_values_may_be_null() -> None:
    headers = [(b"a", b"1"), (b"a", None), (b"", b"")]
    table, _ = whole(batch([record(0, headers=headers)]), columns=["headers"])
    expected = [{"key": "a", "value": b"1"}, {"key": "a", "value": None}, {"key": "", "value": b""}]
    assert table.column("headers").to_pylist() == [expected]


def test_r12_header_keys_that_are_not_utf8_are_replaced_one_by_one() -> None:
    # The two keys together would be valid UTF-8: each must be looked at alone.
    split = "\u00e9".encode()
    headers = [(split[:1], b"1"), (split[1:], b"2"), (split, b"3"), (b"a\xffb", None)]
    table, _ = whole(batch([record(0, headers=headers), record(1)]), columns=["headers"])
    (first, second) = table.column("headers").to_pylist()
    assert [header["key"] for header in first] == ["\ufffd", "\ufffd", "\u00e9", "a\ufffdb"]
    assert [header["value"] for header in first] == [b"1", b"2", b"3", None]
    assert second is None


def test_r12_replacing_keys_that_are_not_utf8_takes_no_python_object_for_every_key_at_once() -> None:
    names = [(b"\xff%c" % (index % 128), None) for index in range(60_000)]
    data = batch([record(0, headers=names)])
    # What the first call imports (Arrow looks for pandas) is not what this test measures.
    decode(batch([record(0, headers=names[:128])]), start_offset=0, columns=["headers"])
    tracemalloc.start()
    try:
        decoded = decode(data, start_offset=0, columns=["headers"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoded.batch.column(0)[0].as_py()[127] == {"key": "\ufffd\x7f", "value": None}
    assert peak < 4 << 20


def test_r12_many_headers_make_the_buffers_grow() -> None:
    many = [(b"key%d" % index, b"x" * (index % 7)) for index in range(3_000)]
    log = batch([record(0, headers=many), record(1, headers=[(b"big", b"y" * 100_000)]), record(2)])
    table, _ = whole(log, columns=["headers"])
    first, second, third = table.column("headers").to_pylist()
    assert [(header["key"].encode(), header["value"]) for header in first] == many
    assert second == [{"key": "big", "value": b"y" * 100_000}]
    assert third is None


# docs/internals/fetch-rules.md, R13


def test_r13_null_and_empty_stay_apart() -> None:
    log = batch(
        [
            record(0, None, key=None),
            record(1, b"", key=b""),
            record(2, b"v", key=b"k", headers=[(b"h", None), (b"h", b"")]),
        ]
    )
    table, _ = whole(log, columns=["key", "value", "headers"])
    assert table.column("key").to_pylist() == [None, b"", b"k"]
    assert table.column("value").to_pylist() == [None, b"", b"v"]
    assert [header["value"] for header in table.column("headers").to_pylist()[2]] == [None, b""]
    assert table.column("headers").to_pylist()[:2] == [None, None]


def test_validity_bitmaps_are_right_across_byte_borders() -> None:
    values = [None if index % 3 == 0 else b"%d" % index for index in range(50)]
    table, _ = whole(batch([record(index, value) for index, value in enumerate(values)]), target_rows=17)
    assert table.column("value").to_pylist() == values
    assert table.column("key").null_count == 50


def test_the_error_keeps_what_was_found_before_a_bad_header_field() -> None:
    data = plain_batch(0, 1)
    with pytest.raises(CorruptRecordsError, match="last offset delta is -1") as caught:
        decode(resealed(data[:23] + struct.pack(">i", -1) + data[27:]), start_offset=0)
    assert caught.value.parameters["base_offset"] == "0"
