"""The target of encoding: rows drawn from the input are encoded by every variant and must be decoded as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import crc32c
import pyarrow as pa

from fuzzing.draw import Draw
from fuzzing.oracles import both_variants, require
from pyspark_kafka.records import (
    HEADERS_TYPE,
    RecordColumns,
    decode,
    encode_rows,
    group_by_partition,
    murmur2_partitions,
    patch_header,
)
from pyspark_kafka.records.compression import CODEC_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.records._variant import Kernel

_MAX_ROWS = 40
_KINDS = (pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.binary()))
_TIMES = (
    pa.int64(),
    pa.timestamp("s", "UTC"),
    pa.timestamp("ms", "UTC"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
)


def encode(data: bytes, variants: Sequence[Kernel]) -> None:
    """Choices of types, limits and codec, then the rows."""
    draw = Draw(data)
    codec, limit, cut, partitions = draw.pick(CODEC_NAMES), draw.number(2), draw.number(1), 1 + draw.number(1) % 8
    kinds = draw.pick(_KINDS), draw.pick(_KINDS)
    time_kind, with_times, wide_list = draw.pick(_TIMES), draw.flag(), draw.flag()
    producer_id, epoch, sequence = draw.number(2), draw.number(1), draw.number(2)
    keys, values, headers, times = _rows(draw)
    columns: dict[str, Any] = {
        "key": _column(keys, kinds[0]),
        "value": _column(values, kinds[1]),
        "headers": pa.array(headers, pa.large_list(HEADERS_TYPE.value_field) if wide_list else HEADERS_TYPE),
    }
    if with_times:
        columns["timestamp"] = pa.array(times, pa.int64()).cast(time_kind)
    # A slice, so that columns begin inside their buffers.
    batch = pa.record_batch(columns).slice(cut % (len(keys) + 1))

    def encoded() -> tuple[list[bytes], list[int], list[int]]:
        numbers = murmur2_partitions(batch.column("key"), partitions)
        indices: memoryview | None = None
        bounds: tuple[int, ...] = (0, batch.num_rows)
        # Rows with a null key have no partition; they go as they are.
        if numbers.to_pylist() and -1 not in numbers.to_pylist():
            indices, bounds = group_by_partition(numbers, partitions)
        rows = RecordColumns.from_batch(batch, timestamp_ms=7)
        made, taken = [], []
        at = 0
        while at < bounds[-1]:
            one, count = encode_rows(rows, indices, at, bounds[-1], max_batch_bytes=limit, compression=codec)
            require(0 < count <= bounds[-1] - at, f"{count} rows taken")
            patch_header(one, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
            made.append(bytes(one))
            taken.append(count)
            at += count
        order = list(range(batch.num_rows)) if indices is None else indices.tolist()
        return made, taken, order

    result = both_variants(encoded, variants, lambda left, right: left == right)
    if result is not None:
        _check(batch, *result, limit=limit)


def _check(batch: pa.RecordBatch, made: list[bytes], taken: list[int], order: list[int], *, limit: int) -> None:
    at = 0
    for one, count in zip(made, taken, strict=True):
        require(len(one) <= limit, f"a batch of {len(one)} bytes, {limit} allowed")
        require(int.from_bytes(one[17:21], "big") == crc32c.crc32c(one[21:]), "the checksum is wrong")
        decoded = decode(one, start_offset=0, columns=["key", "value", "headers"]).batch
        expected = batch.select(["key", "value", "headers"]).take(pa.array(order[at : at + count], pa.int64()))
        require(_plain(decoded) == _plain(expected), f"encoded {_plain(expected)}, decoded {_plain(decoded)}")
        at += count
    require(at == len(order), f"{at} rows of {len(order)} were encoded")


def _plain(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    def content(value: Any) -> Any:
        return value.encode() if isinstance(value, str) else value

    rows = batch.to_pylist()
    # No headers and an empty list of them are the same to Kafka.
    return [(content(row["key"]), content(row["value"]), row["headers"] or None) for row in rows]


def _column(values: list[bytes | None], kind: pa.DataType) -> Any:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array([None if value is None else value.decode("latin-1") for value in values], kind)
    if isinstance(kind, pa.DictionaryType):
        return pa.array(values, pa.binary()).dictionary_encode()
    return pa.array(values, kind)


def _rows(draw: Draw) -> tuple[list[bytes | None], list[bytes | None], list[Any], list[int | None]]:
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    headers: list[Any] = []
    times: list[int | None] = []
    while not draw.spent and len(keys) < _MAX_ROWS:
        shape = draw.number(1)
        keys.append(None if shape & 1 else draw.taken(draw.number(1)))
        values.append(None if shape & 2 else draw.taken(draw.number(1) * (9 if shape & 4 else 1)))
        entries = [
            {"key": draw.taken(draw.number(1) % 64).decode("latin-1"), "value": draw.taken(draw.number(1) % 64)}
            for _ in range(shape >> 4 & 3)
        ]
        headers.append(None if shape & 8 else entries)
        times.append(None if shape & 64 else draw.number(8 if shape & 128 else 4, signed=True))
    return keys, values, headers, times
