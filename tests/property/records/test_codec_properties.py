"""What holds for all records and all bytes: round trips, cuts, windows, the abort filter, equality of the variants."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.record_batches import (
    ABORT,
    COMMIT,
    TRANSACTIONAL,
    batch,
    control_batch,
    offsets,
    record,
    resealed,
    rows,
    whole,
)
from pyspark_kafka.errors import ConnectorError, CorruptRecordsError
from pyspark_kafka.records import (
    HEADERS_TYPE,
    RecordColumns,
    _variant,
    decode,
    encode,
    encode_rows,
    iter_decode,
    patch_header,
    scan,
)

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
contents = st.none() | st.binary(max_size=200)
headers = st.none() | st.lists(st.tuples(st.text(max_size=8), contents), min_size=1, max_size=4)
times = st.integers(-(2**53), 2**53)
row_lists = st.lists(st.tuples(contents, contents, headers, times), max_size=40)


def to_rows(data: list[Any]) -> pa.RecordBatch:
    return rows([r[0] for r in data], [r[1] for r in data], [r[2] for r in data], [r[3] for r in data])


def to_list(table: Any) -> list[Any]:
    if table.num_columns == 0:
        return []
    # Times beyond the years that Python's datetime knows are tested too.
    data = table.drop_columns(["timestamp"]).to_pydict()
    ms = table.column("timestamp").cast(pa.int64()).to_pylist()
    entries = [e if e is None else [(h["key"], h["value"]) for h in e] for e in data["headers"]]
    return list(zip(data["key"], data["value"], entries, [number // 1000 for number in ms], strict=True))


@given(row_lists, st.sampled_from(CODECS), st.integers(1, 50), st.integers(1, 3_000))
def test_encoded_rows_are_decoded(data: list[Any], codec: str, target_rows: int, target_bytes: int) -> None:
    encoded = encode(to_rows(data), compression=codec)
    table, next_offset = whole(encoded, target_rows=target_rows, target_bytes=target_bytes)
    assert to_list(table) == data
    assert next_offset == (len(data) or None)


@given(row_lists, st.integers(80, 600), st.randoms(use_true_random=False))
def test_rows_cut_into_bounded_batches_are_all_there(data: list[Any], limit: int, random: Any) -> None:
    order = list(range(len(data)))
    random.shuffle(order)
    columns = RecordColumns.from_batch(to_rows(data))
    indices = pa.array(order, pa.int32()).buffers()[1]
    position, found = 0, []
    while position < len(order):
        try:
            encoded, taken = encode_rows(columns, indices, position, len(order), max_batch_bytes=limit)
        except ConnectorError:
            alone = encode(to_rows([data[order[position]]]))
            assert len(alone) > limit, "only a row that is too large alone may be refused"
            found.append(data[order[position]])
            position += 1
            continue
        assert len(encoded) <= limit
        found += to_list(whole(encoded)[0])
        position += taken
    assert found == [data[row] for row in order]


def log_of(parts: list[list[Any]], gaps: list[int], codec: str) -> tuple[bytes, list[int]]:
    """Return batches one behind the other with holes between them, and where each ends."""
    log, ends, base = b"", [], 0
    for part, gap in zip(parts, gaps, strict=False):
        if part:
            log += encode(to_rows(part), compression=codec, base_offset=base)
            base += len(part) + gap
            ends.append(len(log))
    return log, ends


logs = st.builds(
    log_of,
    st.lists(row_lists, min_size=1, max_size=4),
    st.lists(st.integers(0, 5), min_size=4, max_size=4),
    st.sampled_from(CODECS),
).filter(lambda log: log[1] != [])


@given(logs, st.data())
def test_any_cut_of_the_bytes_gives_the_whole_less_a_partial_tail(
    log: tuple[bytes, list[int]], data: st.DataObject
) -> None:
    records, ends = log
    cut = data.draw(st.integers(1, len(records)))
    complete = max((end for end in ends if end <= cut), default=0)
    if complete == 0:
        with pytest.raises(CorruptRecordsError, match="NO_COMPLETE_RECORD_BATCH"):
            decode(records[:cut], start_offset=0)
        return
    expected = decode(records[:complete], start_offset=0)
    found = decode(records[:cut], start_offset=0)
    assert found.batch.equals(expected.batch)
    assert found.next_offset == expected.next_offset
    scanned = scan(records[:cut], 0)
    assert (scanned.complete_bytes, scanned.next_offset) == (complete, expected.next_offset)


@given(logs, st.data(), st.integers(1, 30))
def test_any_window_of_offsets_equals_the_slice_of_the_whole(
    log: tuple[bytes, list[int]], data: st.DataObject, target_rows: int
) -> None:
    records, _ = log
    everything: Any = decode(records, start_offset=0)
    start, end = (data.draw(st.integers(0, everything.next_offset + 5)) for _ in range(2))
    table, next_offset = whole(records, start, end_offset=end, target_rows=target_rows)
    mask = [start <= offset < end for offset in everything.batch.column("offset").to_pylist()]
    expected = everything.batch.filter(pa.array(mask, pa.bool_()))
    assert to_list(table) == to_list(pa.Table.from_batches([expected]))
    reached = min(everything.next_offset, end)
    assert (start if next_offset is None else next_offset) == max(reached, start)


@given(logs, st.integers(1, 10))
def test_reading_on_from_any_piece_gives_the_rest(log: tuple[bytes, list[int]], target_rows: int) -> None:
    records, _ = log
    everything = offsets(records)
    for piece in iter_decode(records, start_offset=0, target_rows=target_rows):
        rest = [offset for offset in everything if offset >= piece.next_offset]
        assert offsets(records, piece.next_offset) == rest


@dataclass
class Event:
    """One batch of a transactional log: `kind` is data, plain, abort or commit."""

    producer: int
    kind: str
    count: int


events = st.builds(
    Event, st.integers(1, 3), st.sampled_from(["data", "data", "plain", "abort", "commit"]), st.integers(1, 3)
)


def transactional_log(history: list[Event]) -> tuple[bytes, list[int], list[tuple[int, int]], list[int]]:
    """Return a log, the offsets that a naive model leaves visible, the aborted list, and where each batch begins.

    The model keeps each producer's open transaction and decides about it when its marker comes; what is open at the
    end lies beyond the last stable offset, so it is committed here.
    """
    log, offset, visible, aborted = b"", 0, [], []
    open_since: dict[int, int] = {}
    undecided: dict[int, list[int]] = {}
    closing = [Event(producer, "commit", 1) for producer in (1, 2, 3)]
    starts = []
    for event in [*history, *closing]:
        starts.append(len(log))
        if event.kind in {"data", "plain"}:
            these = list(range(offset, offset + event.count))
            flags = TRANSACTIONAL if event.kind == "data" else 0
            if event.kind == "data":
                open_since.setdefault(event.producer, offset)
                undecided.setdefault(event.producer, []).extend(these)
            else:
                visible += these
            records = [record(delta) for delta in range(event.count)]
            log += batch(records, base_offset=offset, attributes=flags, producer_id=event.producer)
            offset += event.count
            continue
        log += control_batch(offset, event.producer, ABORT if event.kind == "abort" else COMMIT)
        ended = undecided.pop(event.producer, [])
        began = open_since.pop(event.producer, None)
        if event.kind == "commit":
            visible += ended
        elif began is not None:
            aborted.append((event.producer, began))
        offset += 1
    return log, sorted(visible), aborted, starts


@given(st.lists(events, max_size=25), st.data())
def test_the_abort_filter_equals_a_naive_model(history: list[Event], data: st.DataObject) -> None:
    log, visible, aborted, starts = transactional_log(history)
    listed = data.draw(st.permutations(aborted + aborted[::2]))
    assert offsets(log, isolation_level="read_committed", aborted_transactions=listed) == visible
    # An answer that begins later lists only what overlaps it: entries wholly before it are left out.
    begin = data.draw(st.sampled_from(starts))
    first = struct.unpack_from(">q", log, begin)[0]
    ends = marker_offsets(log)
    overlapping = [(p, at) for p, at in listed if min(end for q, end in ends if q == p and end > at) >= first]
    found = offsets(log[begin:], first, isolation_level="read_committed", aborted_transactions=overlapping)
    assert found == [offset for offset in visible if offset >= first]


def marker_offsets(log: bytes) -> list[tuple[int, int]]:
    """Return (producer id, offset) of every marker, read from the headers alone."""
    at, found = 0, []
    while at < len(log):
        base, length = struct.unpack_from(">qi", log, at)
        if log[at + 22] & 0x20:
            found.append((struct.unpack_from(">q", log, at + 43)[0], base))
        at += 12 + length
    return found


def outcome(records: bytes, **arguments: Any) -> Any:
    try:
        return [(piece.batch, piece.next_offset) for piece in iter_decode(records, **arguments)]
    except ConnectorError as error:
        return type(error), str(error)


def on_both_variants(call: Callable[[], Any]) -> tuple[Any, Any]:
    """Return what a call returns with the compiled kernel, and with its source as Python."""
    compiled = _variant.load_compiled()
    if compiled is None:
        pytest.skip("the compiled codec was not built")
    previous = _variant.kernel
    try:
        _variant.kernel = compiled
        fast = call()
        _variant.kernel = _variant.load_pure_python()
        return fast, call()
    finally:
        _variant.kernel = previous


# Most bytes of a compressed section do not reach the kernel when they are changed.
@given(row_lists.filter(bool), st.just("none") | st.sampled_from(CODECS), st.data())
def test_both_variants_do_the_same_with_mutated_bytes(rows_: list[Any], codec: str, data: st.DataObject) -> None:
    mutated = bytearray(encode(to_rows(rows_), compression=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        # The checksum is set right afterwards: what it would catch is not what is tested here.
        at = data.draw(st.integers(21, len(mutated) - 1))
        mutated[at] = data.draw(st.integers(0, 255) | st.sampled_from([0x7F, 0x80, 0xFF, mutated[at] ^ 1]))
    records = resealed(bytes(mutated))
    arguments: dict[str, Any] = {
        "start_offset": data.draw(st.integers(0, 5)),
        "target_rows": data.draw(st.integers(1, 20)),
        "isolation_level": data.draw(st.sampled_from(["read_committed", "read_uncommitted"])),
        "aborted_transactions": [(-1, 0)],
        "columns": data.draw(st.sampled_from([None, ["value"], ["timestamp", "headers"]])),
        "max_decompressed_bytes": 1 << 20,
    }
    fast, slow = on_both_variants(lambda: outcome(records, **arguments))
    assert fast == slow


texts = st.none() | st.text(max_size=60)
columns_of_bytes = st.sampled_from([(contents, pa.binary()), (contents, pa.large_binary()), (texts, pa.string())])
header_lists = st.none() | st.lists(st.fixed_dictionaries({"key": st.text(max_size=8), "value": contents}), max_size=4)


@st.composite
def batches_to_encode(draw: st.DrawFn) -> pa.RecordBatch:
    """Return columns of any types and lengths, none of which need be there; with nulls, or cut out of longer ones."""
    skipped, rows_ = draw(st.integers(0, 3)), draw(st.integers(0, 40))
    columns: dict[str, pa.Array[Any]] = {}

    def add(name: str, values: st.SearchStrategy[Any], kind: pa.DataType) -> None:
        if draw(st.booleans()):
            size = skipped + rows_
            columns[name] = pa.array(draw(st.lists(values, min_size=size, max_size=size)), kind).slice(skipped)

    for name in ("key", "value"):
        add(name, *draw(columns_of_bytes))
    add("headers", header_lists, HEADERS_TYPE)
    add("timestamp", st.none() | times, draw(st.sampled_from([pa.int64(), pa.timestamp("ms"), pa.timestamp("us")])))
    return pa.record_batch(columns)


def encoding(data: pa.RecordBatch, order: list[int], **arguments: Any) -> Any:
    """Return the batches that the rows become in an order, or the error at the first that does not fit."""
    found: list[Any] = []
    columns = RecordColumns.from_batch(data, timestamp_ms=1_700_000_000_000)
    indices = pa.array(order, pa.int32()).buffers()[1]
    try:
        while sum(taken for _, taken in found) < len(order):
            position = sum(taken for _, taken in found)
            found.append(encode_rows(columns, indices, position, len(order), **arguments))
    except ConnectorError as error:
        found.append((type(error), str(error)))
    return found


@given(batches_to_encode(), st.sampled_from(CODECS), st.sampled_from([90, 200, 2_000, 1 << 20]), st.randoms())
def test_both_variants_encode_the_same_bytes(data: pa.RecordBatch, codec: str, limit: int, random: Any) -> None:
    order = random.sample(range(data.num_rows), data.num_rows)
    fast, slow = on_both_variants(lambda: encoding(data, order, compression=codec, max_batch_bytes=limit))
    assert fast == slow


@given(st.binary(max_size=300), st.binary(max_size=60), st.integers(-2, 40), st.integers(0, 127), st.integers(-1, 40))
def test_arbitrary_sections_are_read_or_refused(
    section: bytes, tail: bytes, count: int, attributes: int, last_delta: int
) -> None:
    log = batch(section, count=count, attributes=attributes, last_delta=last_delta) + tail
    result = outcome(log, start_offset=0, isolation_level="read_committed", max_decompressed_bytes=1 << 20)
    assert isinstance(result, list) or issubclass(result[0], ConnectorError)


@given(
    row_lists.filter(bool),
    st.sampled_from(CODECS),
    st.tuples(st.integers(-1, 2**63 - 1), st.integers(-1, 2**15 - 1), st.integers(-1, 2**31 - 1)),
    st.booleans(),
)
def test_a_patched_header_changes_no_record(
    data: list[Any], codec: str, identity: tuple[int, int, int], transactional: bool
) -> None:
    encoded = bytearray(encode(to_rows(data), compression=codec))
    producer_id, epoch, sequence = identity
    patch_header(
        encoded, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )
    assert to_list(whole(encoded)[0]) == data
    assert struct.unpack_from(">qhi", encoded, 43) == identity
