"""Measures the record codec alone on one core: decoding and encoding, a codec and a record size at a time.

Floors say what the machine allows: taking the CRC-32C of the bytes, copying them once, and walking over the records
without either (`parse`). Each figure is the best of the runs, each batch or piece is dropped before the next, as a
reading or sending task does. Prints a table and writes JSON.
Run: PYTHONPATH=src python bench/kernel.py [--records N] [--batch-bytes N] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crc32c
import pyarrow as pa

from pyspark_kafka.records import RecordColumns, codec_info, encode_rows, iter_decode

CODECS = ("none", "lz4", "snappy", "zstd", "gzip")


def best_seconds(work: Callable[[], object], budget_s: float = 0.4) -> float:
    """Return the shortest of the runs that fit in the budget; at least three."""
    best, runs, started = float("inf"), 0, time.perf_counter()
    while runs < 3 or time.perf_counter() - started < budget_s:
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
        runs += 1
    return best


def payload(key_bytes: int, value_bytes: int, count: int) -> RecordColumns:
    """Return keys of digits and values like JSON: neither random nor constant, so that codecs have something to do."""
    source = random.Random(7)
    text = [
        f'{{"id": {i}, "name": "user{source.randrange(10**6)}", "score": {source.random()}, "pad": "'
        for i in range(count)
    ]
    pad = "".join(source.choices("abcdefghijklmnop", k=value_bytes))
    values = [(line + pad)[: value_bytes - 2] + '"}' for line in text]
    keys = [f"{source.randrange(10**key_bytes):0{key_bytes}d}" for _ in range(count)] if key_bytes else None
    return RecordColumns(None if keys is None else pa.array(keys), pa.array(values), timestamp_ms=1_700_000_000_000)


def encode_all(rows: RecordColumns, codec: str, batch_bytes: int) -> list[bytearray]:
    """Encode all rows in batches of the given size."""
    batches, position = [], 0
    while position < rows.num_rows:
        data, taken = encode_rows(rows, None, position, rows.num_rows, max_batch_bytes=batch_bytes, compression=codec)
        batches.append(data)
        position += taken
    return batches


def as_answer(batches: list[bytearray]) -> bytes:
    """Put batches one behind the other with rising offsets, as a fetch answer has them."""
    position = 0
    for data in batches:
        struct.pack_into(">q", data, 0, position)
        position += struct.unpack_from(">i", data, 57)[0]
    return b"".join(batches)


def drain(answer: bytes, columns: tuple[str, ...] | None, *, check_crcs: bool = True) -> None:
    """Decode piece by piece and let each go, as a reading task does."""
    for _ in iter_decode(answer, start_offset=0, columns=columns, check_crcs=check_crcs):
        pass


def measure(name: str, rows: RecordColumns, codec: str, batch_bytes: int) -> dict[str, Any]:
    """Measure one record size with one codec; rates count uncompressed bytes of records."""
    count = rows.num_rows
    plain_bytes = sum(map(len, encode_all(rows, "none", batch_bytes)))
    answer = as_answer(encode_all(rows, codec, batch_bytes))

    def encode_each() -> None:
        position = 0
        while position < count:
            _, taken = encode_rows(rows, None, position, count, max_batch_bytes=batch_bytes, compression=codec)
            position += taken

    seconds = {
        "decode": best_seconds(lambda: drain(answer, None)),
        "decode key+value": best_seconds(lambda: drain(answer, ("key", "value"))),
        "encode": best_seconds(encode_each),
    }
    if codec == "none":
        view, target = memoryview(answer), memoryview(bytearray(len(answer)))

        def copy() -> None:
            target[:] = view

        seconds["floor: CRC"] = best_seconds(lambda: crc32c.crc32c(view))
        seconds["floor: copy"] = best_seconds(copy)
        # Every record is walked over, for its offset; of keys and values only the lengths are read.
        seconds["floor: parse"] = best_seconds(lambda: drain(answer, ("offset",), check_crcs=False))
    return {
        "records": name,
        "codec": codec,
        "ratio": round(plain_bytes / len(answer), 2),
        **{
            work: {"mb_s": round(plain_bytes / spent / 1e6), "m_records_s": round(count / spent / 1e6, 2)}
            for work, spent in seconds.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=100_000, help="records of 100 bytes; a tenth of it of 1 kB")
    parser.add_argument("--batch-bytes", type=int, default=1 << 20, help="uncompressed size of a record batch")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "kernel.json")
    chosen = parser.parse_args()
    sizes = {
        "100 B": (0, 100, chosen.records),
        "10+90 B": (10, 90, chosen.records),
        "1 kB": (10, 990, chosen.records // 10),
    }
    results = []
    for name, (key_bytes, value_bytes, count) in sizes.items():
        rows = payload(key_bytes, value_bytes, max(count, 1))
        results += [measure(name, rows, codec, chosen.batch_bytes) for codec in CODECS]
    print(
        f"compiled: {codec_info().compiled}; batches of {chosen.batch_bytes} bytes; MB/s and M records/s, uncompressed"
    )
    work = ("decode", "decode key+value", "encode", "floor: CRC", "floor: copy", "floor: parse")
    print(f"{'records':<9}{'codec':<8}{'ratio':>6}" + "".join(f"{name:>20}" for name in work))
    for row in results:
        cells = "".join(
            f"{row[name]['mb_s']:>12} {row[name]['m_records_s']:>7}" if name in row else "" for name in work
        )
        print(f"{row['records']:<9}{row['codec']:<8}{row['ratio']:>6}{cells}")
    found = {"compiled": codec_info().compiled, "batch_bytes": chosen.batch_bytes, "results": results}
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(found, indent=2) + "\n")
    print(f"JSON: {chosen.output}")


if __name__ == "__main__":
    main()
